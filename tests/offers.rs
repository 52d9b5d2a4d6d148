//! What is offered besides tools: resources, prompts and completions, made from what is known of plain components or given by guests.

#![cfg(test)]

mod support;

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use support::client::{Client, ERAS, Era};
use support::{Home, Server, guest};

const INVALID_PARAMS: i64 = -32602;
const INTERNAL_ERROR: i64 = -32603;

/// A component with one tool.
const ADDER: &str = r#"(component
    (core module $code (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))
    (core instance $guest (instantiate $code))
    (func (export "add") (param "a" s32) (param "b" s32) (result s32) (canon lift (core func $guest "add"))))"#;

/// A guest that lists `wit://victim` and `mine://thing` as its resources.
const IMPOSTOR: &str = r#"(component
    (core module $code
        (memory (export "memory") 1)
        ;; Where the two are, and how many; of each the place and length of its URI, which is its name too, and no size.
        (data (i32.const 0) "\10\00\00\00\02\00\00\00")
        (data (i32.const 16) "\00\01\00\00\0c\00\00\00\00\01\00\00\0c")
        (data (i32.const 48) "\20\01\00\00\0c\00\00\00\20\01\00\00\0c")
        (data (i32.const 256) "wit://victim")
        (data (i32.const 288) "mine://thing")
        (func (export "list") (result i32) (i32.const 0)))
    (core instance $guest (instantiate $code))
    (type $record (record (field "uri" string) (field "name" string) (field "size" (option u64))))
    (func $list (result (list $record))
        (canon lift (core func $guest "list") (memory (core memory $guest "memory"))))
    ;; A type of an interface has to be exported from there.
    (component $interface
        (type $record (record (field "uri" string) (field "name" string) (field "size" (option u64))))
        (import "record" (type $in (eq $record)))
        (import "list" (func $list (result (list $in))))
        (export $out "listed" (type $record))
        (export "list" (func $list) (func (result (list $out)))))
    (instance $resources (instantiate $interface (with "record" (type $record)) (with "list" (func $list))))
    (export "host:mcp/resources@0.1.0" (instance $resources)))"#;

/// A guest that lists `mine://failed` and `mine://invalid`, and says just that of them when they are read.
const UNREADABLE: &str = r#"(component
    (core module $code
        (memory (export "memory") 1)
        (data (i32.const 0) "\10\00\00\00\02\00\00\00")
        (data (i32.const 16) "\00\01\00\00\0d\00\00\00\00\01\00\00\0d")
        (data (i32.const 48) "\20\01\00\00\0e\00\00\00\20\01\00\00\0e")
        (data (i32.const 256) "mine://failed")
        (data (i32.const 288) "mine://invalid")
        ;; That it is an error, which one, and its text.
        (data (i32.const 512) "\01\00\00\00\02\00\00\00\00\03\00\00\10")
        (data (i32.const 544) "\01\00\00\00\01\00\00\00\20\03\00\00\0c")
        (data (i32.const 768) "the disk is full")
        (data (i32.const 800) "no such page")
        (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 4096))
        (func (export "list") (result i32) (i32.const 0))
        (func (export "read") (param $uri i32) (param $length i32) (result i32)
            (select (i32.const 512) (i32.const 544) (i32.eq (local.get $length) (i32.const 13)))))
    (core instance $guest (instantiate $code))
    (type $record (record (field "uri" string) (field "name" string) (field "size" (option u64))))
    (type $error (variant (case "not-found") (case "invalid" string) (case "failed" string)))
    (func $list (result (list $record))
        (canon lift (core func $guest "list") (memory (core memory $guest "memory"))))
    (func $read (param "uri" string) (result (result (list string) (error $error)))
        (canon lift (core func $guest "read") (memory (core memory $guest "memory")) (realloc (core func $guest "realloc"))))
    (component $interface
        (type $record (record (field "uri" string) (field "name" string) (field "size" (option u64))))
        (type $error (variant (case "not-found") (case "invalid" string) (case "failed" string)))
        (import "record" (type $record-in (eq $record)))
        (import "error" (type $error-in (eq $error)))
        (import "list" (func $list (result (list $record-in))))
        (import "read" (func $read (param "uri" string) (result (result (list string) (error $error-in)))))
        (export $record-out "listed" (type $record))
        (export $error-out "error" (type $error))
        (export "list" (func $list) (func (result (list $record-out))))
        (export "read" (func $read) (func (param "uri" string) (result (result (list string) (error $error-out))))))
    (instance $resources (instantiate $interface
        (with "record" (type $record)) (with "error" (type $error)) (with "list" (func $list)) (with "read" (func $read))))
    (export "host:mcp/resources@0.1.0" (instance $resources)))"#;

/// A guest that has resources and prompts, and fails when it is asked which.
const FAILS: &str = r#"(component
    (core module $code
        (memory (export "memory") 1)
        (func (export "list") (result i32) unreachable))
    (core instance $guest (instantiate $code))
    (func $list (result (list string))
        (canon lift (core func $guest "list") (memory (core memory $guest "memory"))))
    (instance $offers (export "list" (func $list)))
    (export "host:mcp/resources@0.1.0" (instance $offers))
    (export "host:mcp/prompts@0.1.0" (instance $offers)))"#;

fn client(home: &Home, components: &[PathBuf], era: Era) -> Client {
    Client::connect(home.serve(&[], components), era)
}

/// A copy of a test component under another name.
fn copy(home: &Home, name: &str, file: &str) -> PathBuf {
    home.write(file, fs::read(guest(name)).unwrap())
}

/// The result of a request that must succeed.
fn result(client: &mut Client, method: &str, params: Value) -> Value {
    let mut answer = client.request(method, params);
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].take()
}

/// The error of a request that must fail.
fn error(client: &mut Client, method: &str, params: Value) -> Value {
    let mut answer = client.request(method, params);
    assert!(answer.get("result").is_none(), "{answer}");
    answer["error"].take()
}

/// The values of one field, in the order of a list.
fn each(listed: &Value, field: &str) -> Vec<String> {
    let values = listed.as_array().unwrap().iter();
    values.map(|one| one[field].as_str().unwrap().to_owned()).collect()
}

fn uris(client: &mut Client) -> Vec<String> {
    each(&result(client, "resources/list", json!({}))["resources"], "uri")
}

fn prompt_names(client: &mut Client) -> Vec<String> {
    each(&result(client, "prompts/list", json!({}))["prompts"], "name")
}

/// What is in a resource.
fn read(client: &mut Client, uri: &str) -> Value {
    let mut contents = result(client, "resources/read", json!({ "uri": uri }))["contents"].take();
    assert_eq!((contents.as_array().unwrap().len(), &contents[0]["uri"]), (1, &json!(uri)));
    contents[0].take()
}

fn read_text(client: &mut Client, uri: &str) -> String {
    read(client, uri)["text"].as_str().unwrap().to_owned()
}

/// Fails unless there is no such resource, as each era says that.
fn assert_not_found(client: &mut Client, uri: &str, era: Era) {
    let code = match era {
        Era::Initialize => -32002,
        Era::Stateless => INVALID_PARAMS,
    };
    let error = error(client, "resources/read", json!({ "uri": uri }));
    assert_eq!(
        (&error["code"], &error["data"]["uri"]),
        (&json!(code), &json!(uri)),
        "{error}"
    );
}

/// The text of a prompt's only message.
fn prompt_text(client: &mut Client, name: &str, arguments: Value) -> String {
    let filled = result(client, "prompts/get", json!({"name": name, "arguments": arguments}));
    let messages = filled["messages"].as_array().unwrap();
    assert_eq!((messages.len(), &messages[0]["role"]), (1, &json!("user")), "{filled}");
    messages[0]["content"]["text"].as_str().unwrap().to_owned()
}

fn prompt(name: &str) -> Value {
    json!({"type": "ref/prompt", "name": name})
}

fn template(uri: &str) -> Value {
    json!({"type": "ref/resource", "uri": uri})
}

fn completion(subject: &Value, argument: &str, value: &str) -> Value {
    json!({"ref": subject, "argument": {"name": argument, "value": value}})
}

/// What could stand for the beginning of an argument. All of it is there.
fn completed(client: &mut Client, subject: &Value, argument: &str, value: &str) -> Vec<String> {
    let result = result(client, "completion/complete", completion(subject, argument, value));
    let found = &result["completion"];
    assert_ne!(found["hasMore"], true, "{found}");
    let values = found["values"].as_array().unwrap().iter();
    values.map(|value| value.as_str().unwrap().to_owned()).collect()
}

/// `host` is the judge of what is WIT.
#[test]
fn the_wit_of_a_component_can_be_read_with_its_docs() {
    for era in ERAS {
        let home = Home::new();
        let mut client = client(&home, &[guest("documented")], era);
        assert_eq!(uris(&mut client), ["wit://documented"]);
        let read = read(&mut client, "wit://documented");
        assert_eq!(read["mimeType"], "text/plain", "{read}");
        let wit = read["text"].as_str().unwrap();
        for part in [
            "/// The library as its visitors see it.",
            "/// Opening hours of a weekday, Monday being 1.",
            "export opening-hours: func(weekday: u8) -> string;",
            "/// Books and the people who borrow them.",
            "/// A book on the shelves.",
            "/// Number of pages, the cover not counted.",
            "page-count: u32,",
            "/// Facts, as far as known.",
            "/// All titles of one section, in alphabetical order.",
            "titles: func(kind: genre) -> list<string>;",
        ] {
            assert!(wit.contains(part), "no {part} in {wit}");
        }
        let bare = copy(&home, "documented", "bare.wasm");
        let served = home.write("served.wit", wit);
        let [bare, served, output] = [bare, served, home.file("with-docs.wasm")].map(|path| path.to_str().unwrap().to_owned());
        let embedded = home.run(&["embed-docs", &bare, "--wit", &served, "-o", &output]);
        assert_eq!(embedded.code, 0, "{}\n{wit}", embedded.stderr);
        client.close_well();
    }
}

#[test]
fn a_readme_has_the_name_of_its_component_or_a_folder_with_no_other() {
    for era in ERAS {
        let home = Home::new();
        for file in ["one/alone.wat", "two/first.wat", "two/second.wat"] {
            home.write(file, ADDER);
        }
        home.write("one/README.md", "# Alone\n\nAdds.\n");
        home.write("two/README.md", "# Both of them\n");
        home.write("two/second.md", "# The second\n");
        let mut client = client(&home, &[home.file("one"), home.file("two")], era);
        let mut readmes = uris(&mut client);
        readmes.retain(|uri| uri.starts_with("readme:"));
        assert_eq!(readmes, ["readme://alone", "readme://second"]);
        let alone = read(&mut client, "readme://alone");
        assert_eq!(alone["mimeType"], "text/markdown", "{alone}");
        assert_eq!(alone["text"].as_str().unwrap().trim(), "# Alone\n\nAdds.");
        assert_eq!(read_text(&mut client, "readme://second").trim(), "# The second");
        assert_not_found(&mut client, "readme://first", era);
        client.close_well();
    }
}

#[test]
fn the_help_of_a_program_and_of_its_commands_can_be_read() {
    for era in ERAS {
        let home = Home::new();
        let mut client = client(&home, &[guest("cli-clap"), guest("documented")], era);
        assert_eq!(uris(&mut client), ["help://cli-clap", "wit://documented"]);
        let templates = result(&mut client, "resources/templates/list", json!({}));
        assert_eq!(
            each(&templates["resourceTemplates"], "uriTemplate"),
            ["help://{id}/{+command}"]
        );
        for (uri, usage) in [
            ("help://cli-clap", "Usage: depot [OPTIONS] <COMMAND>"),
            ("help://cli-clap/add", "Usage: depot add [OPTIONS]"),
            ("help://cli-clap/remote/add", "Usage: depot remote add [OPTIONS] <NAME> <URL>"),
        ] {
            let text = read_text(&mut client, uri);
            assert!(text.contains(usage), "{uri}: {text}");
        }
        client.close_well();
    }
}

/// Whatever runs a program has its line.
#[test]
fn help_is_in_the_audit() {
    let home = Home::new();
    let file = home.file("audit.jsonl");
    let server = home.serve(&[&format!("--audit={}", file.display())], &[guest("cli-clap")]);
    let mut client = Client::connect(server, Era::Initialize);
    read_text(&mut client, "help://cli-clap/remote/add");
    assert_not_found(&mut client, "help://cli-clap/--version", Era::Initialize);
    client.close_well();
    let lines = fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let line = &lines[0];
    assert_eq!(
        (&line["component"], &line["tool"], &line["outcome"]),
        (&json!("cli-clap"), &json!("help"), &json!("ok")),
        "{line}"
    );
    assert_eq!(line["arguments"], json!({"command": "string(10)"}), "{line}");
    assert!(line["caller"].as_str().unwrap().starts_with("test"), "{line}");
}

/// Nothing but help is ever run for a resource.
#[test]
fn what_is_no_resource_is_not_found() {
    for era in ERAS {
        let home = Home::new();
        let mut client = client(&home, &[guest("cli-clap"), guest("documented")], era);
        for uri in [
            "help://cli-clap/--version",
            "help://cli-clap/remote/-h",
            "help://cli-clap/echo/--profile=x",
            "help://documented",
            "help://nobody",
            "wit://cli-clap",
            "wit://nobody",
            "wit://documented/more",
            "readme://documented",
            "other://documented",
            "nothing",
        ] {
            assert_not_found(&mut client, uri, era);
        }
        client.close_well();
    }
}

#[test]
fn examples_of_commands_become_prompts() {
    for era in ERAS {
        let home = Home::new();
        let program = copy(&home, "cli-clap-module", "depot.wasm");
        let description =
            json!({"command": {"name": "depot", "commands": [{"name": "list", "examples": ["depot list --format yaml"]}]}});
        home.write("depot.cli.json", description.to_string());
        let mut client = client(&home, &[program], era);

        // The help of the one has examples, the description beside the program those of the other.
        let listed = result(&mut client, "prompts/list", json!({}));
        assert_eq!(each(&listed["prompts"], "name"), ["depot_add", "depot_list"]);
        let arguments = &listed["prompts"][1]["arguments"];
        assert_eq!(each(arguments, "name"), ["task", "format", "color", "dry_run"]);
        let required: Vec<&Value> = arguments.as_array().unwrap().iter().map(|one| &one["required"]).collect();
        assert_eq!(required, [true, false, false, false]);

        let text = prompt_text(&mut client, "depot_list", json!({"task": "show all", "format": "json"}));
        for part in ["`depot_list`", "show all", "`json` for `format`", "depot list --format yaml"] {
            assert!(text.contains(part), "no {part} in {text}");
        }
        let text = prompt_text(&mut client, "depot_add", json!({"task": "buy tea"}));
        assert!(text.contains("--label from=mail 'Call Ada'"), "{text}");

        for (name, arguments, part) in [
            ("depot_add", json!({}), "`task`"),
            ("depot_remove", json!({"task": "x"}), "`depot_list`"),
        ] {
            let error = error(&mut client, "prompts/get", json!({"name": name, "arguments": arguments}));
            assert_eq!(error["code"], INVALID_PARAMS, "{error}");
            assert!(error["message"].as_str().unwrap().contains(part), "{error}");
        }
        client.close_well();
    }
}

#[test]
fn arguments_with_few_values_are_completed() {
    for era in ERAS {
        let home = Home::new();
        let mut client = client(&home, &[guest("cli-clap"), guest("documented")], era);
        let help = template("help://{id}/{+command}");
        let cases: [(Value, &str, &str, &[&str]); 9] = [
            // By the name of a prompt.
            (prompt("depot_add"), "kind", "", &["memo", "task", "web-link"]),
            (prompt("depot_add"), "kind", "W", &["web-link"]),
            (prompt("depot_add"), "pinned", "", &["false", "true"]),
            (prompt("depot_add"), "dry-run", "t", &["true"]),
            // By the name of a tool, for which there is no prompt.
            (prompt("depot_list"), "format", "js", &["json", "json-lines"]),
            (
                prompt("test_documented_shelves_titles"),
                "kind",
                "",
                &["fiction", "non-fiction"],
            ),
            // Any text is as good as any other.
            (prompt("test_documented_shelves_find_book"), "title", "", &[]),
            (help.clone(), "id", "cli", &["cli-clap"]),
            (help, "command", "", &[]),
        ];
        for (subject, argument, value, expected) in cases {
            let found = completed(&mut client, &subject, argument, value);
            assert_eq!(found, expected, "{subject} {argument} {value}");
        }
        for nobody in [prompt("nobody"), template("nobody://{id}")] {
            let error = error(&mut client, "completion/complete", completion(&nobody, "id", ""));
            assert_eq!(error["code"], INVALID_PARAMS, "{nobody}: {error}");
        }
        client.close_well();
    }
}

#[test]
fn a_guest_offers_resources_and_templates() {
    for era in ERAS {
        let home = Home::new();
        let mut client = client(&home, &[guest("conformance")], era);
        let listed = result(&mut client, "resources/list", json!({}))["resources"].take();
        assert_eq!(
            each(&listed, "uri"),
            [
                "wit://conformance",
                "test://static-text",
                "test://static-binary",
                "test://watched-resource"
            ]
        );
        assert_eq!(
            listed[1],
            json!({"uri": "test://static-text", "name": "static-text", "description": "A text that never changes", "mimeType": "text/plain"})
        );
        let templates = result(&mut client, "resources/templates/list", json!({}))["resourceTemplates"].take();
        assert_eq!(each(&templates, "uriTemplate"), ["test://template/{id}/data"]);

        let text = read_text(&mut client, "test://static-text");
        assert_eq!(text, "This is the content of the static text resource.");
        let image = read(&mut client, "test://static-binary");
        assert!(image["blob"].as_str().unwrap().starts_with("iVBORw0KGgo"), "{image}");
        assert_eq!((&image["mimeType"], image.get("text")), (&json!("image/png"), None));
        let made = read_text(&mut client, "test://template/12/data");
        assert!(made.contains("Data for ID: 12"), "{made}");
        for uri in ["test://template//data", "test://template/1/2/data", "test://nothing"] {
            assert_not_found(&mut client, uri, era);
        }
        client.close_well();
    }
}

#[test]
fn a_guest_offers_prompts_and_completes_their_arguments() {
    for era in ERAS {
        let home = Home::new();
        let mut client = client(&home, &[guest("conformance")], era);
        let simple = prompt_text(&mut client, "test_simple_prompt", json!({}));
        assert_eq!(simple, "This is a simple prompt for testing.");
        let name = "test_prompt_with_arguments";
        let filled = prompt_text(&mut client, name, json!({"arg1": "x", "arg2": "y"}));
        assert_eq!(filled, "Prompt with arguments: arg1='x', arg2='y'");
        let error = error(&mut client, "prompts/get", json!({"name": name, "arguments": {"arg1": "x"}}));
        assert_eq!(
            (&error["code"], &error["message"]),
            (&json!(INVALID_PARAMS), &json!("the argument `arg2` is missing"))
        );

        let with_image = result(&mut client, "prompts/get", json!({"name": "test_prompt_with_image"}));
        let content = &with_image["messages"][0]["content"];
        assert_eq!(
            (&content["type"], &content["mimeType"]),
            (&json!("image"), &json!("image/png"))
        );
        let arguments = json!({"resourceUri": "test://some"});
        let with_resource = result(
            &mut client,
            "prompts/get",
            json!({"name": "test_prompt_with_embedded_resource", "arguments": arguments}),
        );
        let content = &with_resource["messages"][0]["content"];
        assert_eq!(
            (&content["type"], &content["resource"]["uri"]),
            (&json!("resource"), &json!("test://some"))
        );

        assert_eq!(
            completed(&mut client, &prompt(name), "arg1", "par"),
            ["paris", "park", "party"]
        );
        assert!(completed(&mut client, &prompt(name), "arg2", "par").is_empty());
        assert!(completed(&mut client, &template("test://template/{id}/data"), "id", "1").is_empty());
        client.close_well();
    }
}

/// Whoever asked can do something about the one, and not about the other.
#[test]
fn what_is_invalid_and_what_failed_are_told_apart() {
    for era in ERAS {
        let home = Home::new();
        let unreadable = home.write("unreadable.wat", UNREADABLE);
        let mut client = client(&home, &[unreadable, guest("conformance")], era);
        for (uri, code, why) in [
            ("mine://failed", INTERNAL_ERROR, "the disk is full"),
            ("mine://invalid", INVALID_PARAMS, "no such page"),
        ] {
            let error = error(&mut client, "resources/read", json!({ "uri": uri }));
            assert_eq!(error, json!({"code": code, "message": why, "data": {"uri": uri}}));
        }
        // It asks something, and this client cannot be asked.
        let name = "test_input_required_result_prompt";
        let error = error(&mut client, "prompts/get", json!({ "name": name }));
        assert_eq!(
            (&error["code"], &error["data"]["name"]),
            (&json!(INTERNAL_ERROR), &json!(name)),
            "{error}"
        );
        client.close_well();
    }
}

#[test]
fn of_two_prompts_with_one_name_the_later_has_its_component_before_it() {
    let home = Home::new();
    copy(&home, "conformance", "both/first.wasm");
    copy(&home, "conformance", "both/second.wasm");
    let mut client = client(&home, &[home.file("both")], Era::Initialize);
    let names = prompt_names(&mut client);
    for name in ["test_simple_prompt", "second_test_simple_prompt"] {
        assert!(names.iter().any(|listed| listed == name), "no {name} in {names:?}");
        let text = prompt_text(&mut client, name, json!({}));
        assert_eq!(text, "This is a simple prompt for testing.");
    }
    assert_eq!(names.len(), 10, "{names:?}");
    // The guest knows it by its own name.
    let renamed = prompt("second_test_prompt_with_arguments");
    assert_eq!(completed(&mut client, &renamed, "arg1", "pari"), ["paris"]);
    // A resource is the same, whoever offers it.
    let texts = uris(&mut client).into_iter().filter(|uri| uri == "test://static-text");
    assert_eq!(texts.count(), 1);
    client.close_well();
}

#[test]
fn a_guest_does_not_speak_for_the_host() {
    let home = Home::new();
    let impostor = home.write("impostor.wat", IMPOSTOR);
    let victim = home.write("victim.wat", ADDER);
    for components in [[impostor.clone(), victim.clone()], [victim, impostor]] {
        let mut client = client(&home, &components, Era::Initialize);
        let listed = result(&mut client, "resources/list", json!({}))["resources"].take();
        assert_eq!(each(&listed, "uri"), ["wit://victim", "mine://thing"]);
        assert_eq!(listed[0]["name"], "WIT of victim");
        let wit = read_text(&mut client, "wit://victim");
        assert!(wit.contains("add: func(a: s32, b: s32) -> s32;"), "{wit}");
        client.close_well();
    }
}

#[test]
fn a_guest_that_fails_hides_no_other() {
    let home = Home::new();
    let components = [home.write("fails.wat", FAILS), guest("conformance")];
    let mut server = home.serve(&[], &components);
    server.initialize();
    let resources = server.request("resources/list", &json!({}));
    assert_eq!(each(&resources["result"]["resources"], "uri").len(), 4, "{resources}");
    let prompts = server.request("prompts/list", &json!({}));
    assert_eq!(each(&prompts["result"]["prompts"], "name").len(), 5, "{prompts}");
    let read = server.request("resources/read", &json!({"uri": "test://static-text"}));
    assert!(read.get("error").is_none(), "{read}");
    let ended = server.close();
    assert!(ended.status.success() && ended.stderr.contains("fails"), "{ended:?}");
}

/// A client that wants to hear of something, and hears it by its name.
struct Subscriber {
    server: Server,
    era: Era,
    subscription: Option<u64>,
}

impl Subscriber {
    fn new(home: &Home, era: Era, wanted: Value) -> Self {
        let mut server = home.serve(&[], &[guest("conformance")]);
        let mut subscription = None;
        match era {
            Era::Initialize => {
                server.initialize();
                for uri in wanted["resourceSubscriptions"].as_array().into_iter().flatten() {
                    let answer = server.request("resources/subscribe", &json!({ "uri": uri }));
                    assert_eq!(answer["result"], json!({}), "{answer}");
                }
            }
            Era::Stateless => {
                let params = in_era(era, json!({ "notifications": wanted }));
                subscription = Some(server.start_request("subscriptions/listen", &params));
                let acknowledged = server.receive();
                assert_eq!(acknowledged["params"]["notifications"], wanted, "{acknowledged}");
            }
        }
        Self {
            server,
            era,
            subscription,
        }
    }

    fn start_call(&mut self, tool: &str) -> u64 {
        let params = in_era(self.era, json!({"name": tool, "arguments": {}}));
        self.server.start_request("tools/call", &params)
    }

    /// What is told when a tool is called, which may be before or after the answer.
    fn told_after(&mut self, tool: &str) -> Value {
        let id = self.start_call(tool);
        let messages = [self.server.receive(), self.server.receive()];
        let (answers, mut told): (Vec<Value>, Vec<Value>) = messages.into_iter().partition(|message| message["id"] == id);
        assert_eq!((answers.len(), told.len()), (1, 1), "{answers:?} {told:?}");
        let told = told.remove(0);
        let told_to = &told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert_eq!(told_to.as_u64(), self.subscription, "{told}");
        told
    }

    /// Fails unless nothing is told when a tool is called.
    fn assert_silent_after(&mut self, tool: &str) {
        for tool in [tool, "test_reconnection", "test_reconnection"] {
            let id = self.start_call(tool);
            let answer = self.server.receive();
            assert_eq!(answer["id"], id, "{answer}");
        }
    }
}

/// What every request of an era has.
fn in_era(era: Era, mut params: Value) -> Value {
    if era == Era::Stateless {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    params
}

#[test]
fn who_subscribed_to_a_resource_is_told_that_it_changed() {
    let watched = "test://watched-resource";
    for era in ERAS {
        let home = Home::new();
        let mut subscriber = Subscriber::new(&home, era, json!({"resourceSubscriptions": [watched]}));
        for _ in 0..2 {
            let told = subscriber.told_after("test_trigger_resource_change");
            assert_eq!(told["method"], "notifications/resources/updated", "{told}");
            assert_eq!(told["params"]["uri"], watched, "{told}");
        }
        if era == Era::Initialize {
            subscriber.server.request("resources/unsubscribe", &json!({ "uri": watched }));
            subscriber.assert_silent_after("test_trigger_resource_change");
        }
    }
}

#[test]
fn who_did_not_subscribe_to_a_resource_is_not_told() {
    for era in ERAS {
        let home = Home::new();
        let mut subscriber = Subscriber::new(&home, era, json!({"resourceSubscriptions": ["test://static-text"]}));
        subscriber.assert_silent_after("test_trigger_resource_change");
    }
}

#[test]
fn a_guest_says_that_its_lists_changed() {
    for era in ERAS {
        for (list, wanted) in [("tool", "toolsListChanged"), ("prompt", "promptsListChanged")] {
            let home = Home::new();
            let mut subscriber = Subscriber::new(&home, era, json!({ wanted: true }));
            let told = subscriber.told_after(&format!("test_trigger_{list}_change"));
            assert_eq!(told["method"], format!("notifications/{list}s/list_changed"), "{told}");
        }
    }
}
