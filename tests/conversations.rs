//! What a guest and its client say to each other during a call, in both eras: questions and answers, logs, progress, content.

#![cfg(test)]

mod support;

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use support::client::{ERAS, Era};
use support::{Home, Server, guest, text};

const INVALID_PARAMS: i64 = -32602;
const MISSING_CAPABILITY: i64 = -32021;

/// A client that can be asked for some things, and the component that asks for everything.
struct Talk {
    server: Server,
    era: Era,
    capabilities: Value,
}

impl Talk {
    /// With a client that can be asked for everything.
    fn new(home: &Home, era: Era) -> Self {
        Self::with(home, era, json!({"elicitation": {}, "sampling": {}, "roots": {}}), &[])
    }

    fn with(home: &Home, era: Era, capabilities: Value, options: &[&str]) -> Self {
        Self::about(home, era, capabilities, options, guest("conformance"))
    }

    fn about(home: &Home, era: Era, capabilities: Value, options: &[&str], component: PathBuf) -> Self {
        let mut server = home.serve(options, &[component]);
        if era == Era::Initialize {
            let client = json!({"name": "test", "version": "1"});
            let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client});
            let answer = server.request("initialize", &params);
            assert!(answer.get("error").is_none(), "{answer}");
            server.notify("notifications/initialized", &json!({}));
        }
        Self {
            server,
            era,
            capabilities,
        }
    }

    fn start(&mut self, method: &str, mut params: Value) -> u64 {
        if self.era == Era::Stateless {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        self.server.start_request(method, &params)
    }

    /// What comes before the answer to a request, and the answer.
    fn heard(&mut self, method: &str, params: Value) -> (Vec<Value>, Value) {
        let id = self.start(method, params);
        let mut before = Vec::new();
        loop {
            let message = self.server.receive();
            if message.get("method").is_none() {
                assert_eq!(message["id"], id, "{message}");
                return (before, message);
            }
            before.push(message);
        }
    }

    /// The answer to a request before which nothing is said.
    fn request(&mut self, method: &str, params: Value) -> Value {
        let (before, answer) = self.heard(method, params);
        assert!(before.is_empty(), "{before:?}");
        answer
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        result(self.request("tools/call", calling(tool, arguments)))
    }

    /// Answers what is asked, in some rounds: in one era all questions of a round come at once, in the other one by one.
    fn answering(&mut self, method: &str, params: &Value, rounds: &[&[(&str, Value)]]) -> Value {
        match self.era {
            Era::Initialize => {
                let id = self.start(method, params.clone());
                for (_, answer) in rounds.iter().copied().flatten() {
                    self.answer_next(answer);
                }
                let answer = self.server.receive();
                assert_eq!(answer["id"], id, "{answer}");
                assert!(answer.get("method").is_none(), "{answer}");
                result(answer)
            }
            Era::Stateless => {
                let mut asked = result(self.request(method, params.clone()));
                for round in rounds {
                    let keys = asked_for(&asked);
                    assert!(
                        keys.len() == round.len() && round.iter().all(|(key, _)| keys.contains(key)),
                        "{asked}"
                    );
                    asked = result(self.request(method, answered(params, &asked["requestState"], round)));
                }
                asked
            }
        }
    }

    /// Gives an answer to the next question, and returns the question.
    fn answer_next(&mut self, answer: &Value) -> Value {
        let question = self.server.receive();
        assert!(question.get("method").is_some(), "{question}");
        self.server
            .send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}));
        question
    }
}

fn calling(tool: &str, arguments: &Value) -> Value {
    json!({"name": tool, "arguments": arguments})
}

/// The same request again, with answers.
fn answered(params: &Value, state: &Value, answers: &[(&str, Value)]) -> Value {
    let mut params = params.clone();
    params["requestState"] = state.clone();
    params["inputResponses"] = answers
        .iter()
        .map(|(key, answer)| ((*key).to_owned(), answer.clone()))
        .collect();
    params
}

/// The keys of what is asked.
fn asked_for(result: &Value) -> Vec<&str> {
    assert_eq!(result["resultType"], "input_required", "{result}");
    let requests = result["inputRequests"].as_object().unwrap();
    requests.keys().map(String::as_str).collect()
}

fn result(mut answer: Value) -> Value {
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].take()
}

fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

/// What the component that asks for a user is called with.
fn asking_for_a_user() -> Value {
    calling("test_elicitation", &json!({"message": "Who?"}))
}

fn ada() -> Value {
    accept(json!({"username": "ada", "email": "ada@example.com"}))
}

#[test]
fn what_the_user_does_with_a_form_is_told_to_the_guest() {
    for era in ERAS {
        let home = Home::new();
        let mut talk = Talk::with(&home, era, json!({"elicitation": {}}), &[]);
        for (answer, told) in [
            (
                ada(),
                r#"action=accept, content={"username":"ada","email":"ada@example.com"}"#,
            ),
            (json!({"action": "decline"}), "action=decline"),
            (json!({"action": "cancel"}), "action=cancel"),
        ] {
            let result = talk.answering("tools/call", &asking_for_a_user(), &[&[("user", answer)]]);
            assert_eq!(result["isError"], false, "{result}");
            assert_eq!(text(&result), format!("User response: {told}"));
        }
        talk.server.close_well();
    }
}

#[test]
fn a_form_is_asked_for_as_the_guest_made_it() {
    for era in ERAS {
        let home = Home::new();
        let mut talk = Talk::new(&home, era);
        let question = match era {
            Era::Initialize => {
                talk.start("tools/call", asking_for_a_user());
                let question = talk.answer_next(&json!({"action": "decline"}));
                talk.server.receive();
                question
            }
            Era::Stateless => result(talk.request("tools/call", asking_for_a_user()))["inputRequests"]["user"].take(),
        };
        assert_eq!(question["method"], "elicitation/create", "{question}");
        let params = &question["params"];
        assert_eq!(
            params["message"], "conformance asks: Who?",
            "a person knows who asks: {question}"
        );
        let schema = &params["requestedSchema"];
        assert_eq!(schema["required"], json!(["username", "email"]), "{question}");
        assert_eq!(
            schema["properties"]["username"]["description"], "User's response",
            "{question}"
        );
        talk.server.close_well();
    }
}

#[test]
fn a_guest_asks_in_several_rounds() {
    for era in ERAS {
        let home = Home::new();
        let mut talk = Talk::new(&home, era);
        let params = calling("test_input_required_result_multi_round", &json!({}));
        let result = talk.answering(
            "tools/call",
            &params,
            &[
                &[("step1", accept(json!({"name": "Ada"})))],
                &[("step2", accept(json!({"color": "red"})))],
            ],
        );
        assert_eq!(text(&result), "Ada likes red.");
        talk.server.close_well();
    }
}

#[test]
fn a_guest_asks_the_user_the_model_and_for_folders() {
    for era in ERAS {
        let home = Home::new();
        let mut talk = Talk::new(&home, era);
        let params = calling("test_input_required_result_multiple_inputs", &json!({}));
        let greeting = json!({"role": "assistant", "content": {"type": "text", "text": "Hello"}, "model": "some"});
        let result = talk.answering(
            "tools/call",
            &params,
            &[&[
                ("user_name", accept(json!({"name": "Ada"}))),
                ("greeting", greeting),
                ("client_roots", json!({"roots": [{"uri": "file:///work", "name": "work"}]})),
            ]],
        );
        assert_eq!(
            text(&result),
            "The user: action=accept, content={\"name\":\"Ada\"}\nThe model: Hello\nThe client: 1 folders"
        );
        talk.server.close_well();
    }
}

#[test]
fn a_prompt_may_ask_too() {
    for era in ERAS {
        let home = Home::new();
        let mut talk = Talk::new(&home, era);
        let answer = accept(json!({"context": "a garden"}));
        let params = json!({"name": "test_input_required_result_prompt"});
        let filled = talk.answering("prompts/get", &params, &[&[("user_context", answer)]]);
        assert_eq!(
            filled["messages"][0]["content"]["text"], "The context is: a garden",
            "{filled}"
        );
        talk.server.close_well();
    }
}

#[test]
fn an_answer_of_the_wrong_shape_is_asked_for_again() {
    let home = Home::new();
    let mut talk = Talk::new(&home, Era::Stateless);
    let params = asking_for_a_user();
    let mut asked = result(talk.request("tools/call", params.clone()));
    for wrong in [
        json!(12),
        json!({}),
        json!({"action": "jump"}),
        json!({"action": "accept"}),
        accept(json!({"username": 1, "email": "x"})),
    ] {
        let again = answered(&params, &asked["requestState"], &[("user", wrong)]);
        asked = result(talk.request("tools/call", again));
        assert_eq!(asked_for(&asked), ["user"]);
    }
    // And is not held against what comes then.
    let again = answered(&params, &asked["requestState"], &[("user", json!({"action": "decline"}))]);
    let done = result(talk.request("tools/call", again));
    assert_eq!(text(&done), "User response: action=decline");
    talk.server.close_well();
}

#[test]
fn an_answer_of_the_wrong_shape_is_told_to_the_guest_that_waits() {
    let home = Home::new();
    let mut talk = Talk::new(&home, Era::Initialize);
    let wrong = accept(json!({"username": 1, "email": "x"}));
    let result = talk.answering("tools/call", &asking_for_a_user(), &[&[("user", wrong)]]);
    assert_eq!(result["isError"], true, "{result}");
    assert!(text(&result).contains("does not fit the question"), "{result}");
    talk.server.close_well();
}

#[test]
fn an_error_for_an_answer_is_told_to_the_guest() {
    let home = Home::new();
    let mut talk = Talk::new(&home, Era::Initialize);
    let id = talk.start("tools/call", asking_for_a_user());
    let question = talk.server.receive();
    let error = json!({"code": -32603, "message": "nobody is here"});
    talk.server
        .send(&json!({"jsonrpc": "2.0", "id": question["id"], "error": error}));
    let answer = talk.server.receive();
    assert_eq!(
        (&answer["id"], &answer["result"]["isError"]),
        (&json!(id), &json!(true)),
        "{answer}"
    );
    assert!(text(&answer["result"]).contains("nobody is here"), "{answer}");
    talk.server.close_well();
}

/// What the function has seen is what it sees again: it may have acted on it.
#[test]
fn an_answer_is_not_changed_later() {
    let home = Home::new();
    let mut talk = Talk::new(&home, Era::Stateless);
    let params = calling("test_input_required_result_multi_round", &json!({}));
    let first = result(talk.request("tools/call", params.clone()));
    let named = |name: &str| ("step1", accept(json!({ "name": name })));
    let second = result(talk.request("tools/call", answered(&params, &first["requestState"], &[named("Ada")])));
    assert_eq!(asked_for(&second), ["step2"]);
    let answers = [named("Eve"), ("step2", accept(json!({"color": "red"})))];
    let done = result(talk.request("tools/call", answered(&params, &second["requestState"], &answers)));
    assert_eq!(text(&done), "Ada likes red.");
    talk.server.close_well();
}

#[test]
fn a_state_is_good_for_its_own_request_only() {
    let home = Home::new();
    let mut talk = Talk::new(&home, Era::Stateless);
    let params = asking_for_a_user();
    let state_of = |talk: &mut Talk, method: &str, params: &Value| {
        let asked = result(talk.request(method, params.clone()));
        asked["requestState"].as_str().unwrap().to_owned()
    };
    let state = state_of(&mut talk, "tools/call", &params);
    let of_prompt = state_of(
        &mut talk,
        "prompts/get",
        &json!({"name": "test_input_required_result_prompt"}),
    );
    let mut other = Talk::new(&home, Era::Stateless);
    let of_other_process = state_of(&mut other, "tools/call", &params);
    other.server.close_well();

    let middle = state.len() / 2;
    let changed = if &state[middle..=middle] == "A" { "B" } else { "A" };
    let tampered = format!("{}{changed}{}", &state[..middle], &state[middle + 1..]);
    let longer = format!("{state}A");
    let shorter = state[..state.len() - 1].to_owned();
    let other_arguments = calling("test_elicitation", &json!({"message": "Whom?"}));
    let other_tool = calling("test_streaming_elicitation", &json!({}));
    for (params, state) in [
        (&params, &tampered),
        (&params, &longer),
        (&params, &shorter),
        (&params, &String::new()),
        (&params, &of_prompt),
        (&params, &of_other_process),
        (&other_arguments, &state),
        (&other_tool, &state),
    ] {
        let again = answered(
            params,
            &json!(state),
            &[("user", ada()), ("confirm", accept(json!({"ok": true})))],
        );
        let refused = talk.request("tools/call", again);
        assert_eq!(refused["error"]["code"], INVALID_PARAMS, "{params} {state}: {refused}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("requestState"), "{refused}");
    }
    let done = result(talk.request("tools/call", answered(&params, &json!(state), &[("user", ada())])));
    assert!(text(&done).contains("action=accept"), "{done}");
    talk.server.close_well();
}

#[test]
fn a_client_is_told_what_it_lacks() {
    let home = Home::new();
    let params = calling("test_missing_capability", &json!({}));
    let mut talk = Talk::with(&home, Era::Stateless, json!({"elicitation": {}}), &[]);
    let refused = talk.request("tools/call", params.clone());
    assert_eq!(refused["error"]["code"], MISSING_CAPABILITY, "{refused}");
    assert_eq!(
        refused["error"]["data"],
        json!({"requiredCapabilities": {"sampling": {}}}),
        "{refused}"
    );
    talk.server.close_well();

    let mut talk = Talk::with(&home, Era::Initialize, json!({"elicitation": {}}), &[]);
    let failed = result(talk.request("tools/call", params));
    assert_eq!(failed["isError"], true, "{failed}");
    assert!(text(&failed).contains("sampling"), "{failed}");
    talk.server.close_well();

    for era in ERAS {
        let mut talk = Talk::new(&home, era);
        let result = talk.call("test_missing_capability", &json!({}));
        assert_eq!(result["isError"], false, "{result}");
        talk.server.close_well();
    }
}

#[test]
fn a_client_that_cannot_be_asked_is_not_asked() {
    for era in ERAS {
        let home = Home::new();
        // To open a page in a browser is not to show a form.
        for capabilities in [json!({"sampling": {}}), json!({"elicitation": {"url": {}}})] {
            let mut talk = Talk::with(&home, era, capabilities, &[]);
            let result = talk.call("test_elicitation", &json!({"message": "Who?"}));
            assert_eq!(result["isError"], true, "{result}");
            assert!(text(&result).contains("the client cannot be asked this"), "{result}");
            talk.server.close_well();
        }
    }
}

#[test]
fn the_error_of_a_guest_that_answers_with_content_is_told() {
    for era in ERAS {
        let home = Home::new();
        let mut talk = Talk::new(&home, era);
        let result = talk.call("test_error_handling", &json!({}));
        assert_eq!(result["isError"], true, "{result}");
        assert!(
            text(&result).contains("This tool intentionally returns an error for testing"),
            "{result}"
        );
        talk.server.close_well();
    }
}

#[test]
fn messages_are_logged_to_who_wants_to_see_them() {
    for era in ERAS {
        let home = Home::new();
        let mut talk = Talk::new(&home, era);
        for (level, expected) in [(None, 0), (Some("warning"), 0), (Some("info"), 3), (Some("debug"), 3)] {
            let mut params = calling("test_tool_with_logging", &json!({}));
            match (level, era) {
                (None, _) => {}
                (Some(level), Era::Stateless) => params["_meta"] = json!({"io.modelcontextprotocol/logLevel": level}),
                (Some(level), Era::Initialize) => {
                    let set = talk.request("logging/setLevel", json!({ "level": level }));
                    assert_eq!(set["result"], json!({}), "{set}");
                }
            }
            let (messages, answer) = talk.heard("tools/call", params);
            assert_eq!(answer["result"]["isError"], false, "{answer}");
            assert_eq!(messages.len(), expected, "{level:?}: {messages:?}");
            for message in &messages {
                assert_eq!(message["method"], "notifications/message", "{message}");
                let params = &message["params"];
                assert_eq!(
                    (&params["level"], &params["logger"]),
                    (&json!("info"), &json!("conformance")),
                    "{message}"
                );
            }
            if let Some(first) = messages.first() {
                assert_eq!(first["params"]["data"], "Tool execution started");
            }
        }
        talk.server.close_well();
    }
}

#[test]
fn progress_is_told_to_who_gave_a_token_and_grows() {
    for era in ERAS {
        let home = Home::new();
        let mut talk = Talk::new(&home, era);
        let silent = talk.call("test_tool_with_progress", &json!({}));
        assert_eq!(text(&silent), "Progress was reported.");
        for token in [json!("a token"), json!(7)] {
            let mut params = calling("test_tool_with_progress", &json!({}));
            params["_meta"] = json!({ "progressToken": token });
            let (reports, answer) = talk.heard("tools/call", params);
            assert_eq!(answer["result"]["isError"], false, "{answer}");
            for report in &reports {
                assert_eq!(report["method"], "notifications/progress", "{report}");
                assert_eq!(report["params"]["progressToken"], token, "{report}");
                assert_eq!(report["params"]["total"], 100.0, "{report}");
            }
            let progress: Vec<f64> = reports
                .iter()
                .map(|report| report["params"]["progress"].as_f64().unwrap())
                .collect();
            assert_eq!(progress, [0.0, 50.0, 100.0], "{reports:?}");
        }
        talk.server.close_well();
    }
}

#[test]
fn the_time_that_somebody_thinks_about_an_answer_does_not_count() {
    let home = Home::new();
    let mut talk = Talk::with(&home, Era::Initialize, json!({"elicitation": {}}), &["--timeout", "1s"]);
    let id = talk.start("tools/call", asking_for_a_user());
    let question = talk.server.receive();
    thread::sleep(Duration::from_secs(2));
    talk.server
        .send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}));
    let answer = talk.server.receive();
    assert_eq!(answer["id"], id, "{answer}");
    assert_eq!(text(&answer["result"]), "User response: action=decline");
    talk.server.close_well();
}

#[test]
fn every_kind_of_content_comes_out() {
    let image = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC";
    let image = json!({"type": "image", "data": image, "mimeType": "image/png"});
    for era in ERAS {
        let home = Home::new();
        let mut talk = Talk::new(&home, era);
        let mut content = |tool: &str| {
            let mut result = talk.call(tool, &json!({}));
            // A client that finds structure may show nothing else.
            assert!(result.get("structuredContent").is_none(), "{result}");
            result["content"].take()
        };
        assert_eq!(content("test_image_content"), json!([image]));
        let audio = content("test_audio_content");
        assert_eq!(
            (&audio[0]["type"], &audio[0]["mimeType"]),
            (&json!("audio"), &json!("audio/wav"))
        );
        assert!(audio[0]["data"].as_str().unwrap().starts_with("UklGR"), "{audio}");
        let embedded = json!({
            "uri": "test://embedded-resource",
            "mimeType": "text/plain",
            "text": "This is an embedded resource content.",
        });
        assert_eq!(
            content("test_embedded_resource"),
            json!([{"type": "resource", "resource": embedded}])
        );
        let several = content("test_multiple_content_types");
        assert_eq!(several.as_array().unwrap().len(), 3, "{several}");
        assert_eq!(several[0], json!({"type": "text", "text": "Multiple content types test:"}));
        assert_eq!((&several[1], &several[2]["type"]), (&image, &json!("resource")), "{several}");
        talk.server.close_well();
    }
}

#[test]
fn a_tool_may_answer_with_a_link_that_can_be_read() {
    let notes = Path::new("examples/notes/notes.wasm").canonicalize().unwrap();
    for era in ERAS {
        let home = Home::new();
        let folder = home.file("notes");
        std::fs::create_dir(&folder).unwrap();
        let grant = format!("{}:/notes", folder.to_str().unwrap());
        let mut talk = Talk::about(&home, era, json!({}), &["--allow-write", &grant], notes.clone());
        // That the list changed may be told before an answer.
        let adding = calling("add_note", &json!({"name": "tea", "text": "Green."}));
        let result = result(talk.heard("tools/call", adding).1);
        let link = json!({"type": "resource_link", "uri": "note://tea", "name": "tea", "mimeType": "text/plain", "size": 6});
        assert_eq!(result["content"][1], link, "{result}");
        let (_, read) = talk.heard("resources/read", json!({"uri": "note://tea"}));
        assert_eq!(read["result"]["contents"][0]["text"], "Green.", "{read}");
    }
}

#[test]
fn the_texts_of_content_are_printed_for_a_person() {
    let home = Home::new();
    let component = guest("conformance");
    let call = |tool: &str| home.run(&["call", component.to_str().unwrap(), tool]);
    let plain = call("test_simple_text");
    assert_eq!(
        (plain.code, plain.stdout.as_str()),
        (0, "This is a simple text response for testing.\n"),
        "{plain:?}"
    );
    let several = call("test_multiple_content_types");
    assert_eq!(several.code, 0, "{several:?}");
    for part in [
        "Multiple content types test:\n",
        "image/png",
        r#"{"test":"data","value":123}"#,
    ] {
        assert!(several.stdout.contains(part), "no {part} in {}", several.stdout);
    }
    let failed = call("test_error_handling");
    assert_eq!(failed.code, 1, "{failed:?}");
    let said = failed.stdout + &failed.stderr;
    assert!(
        said.contains("This tool intentionally returns an error for testing"),
        "{said}"
    );
    // Nobody is there to be asked.
    let asks = home.run(&["call", component.to_str().unwrap(), "test_elicitation", "message=Who?"]);
    assert_eq!(asks.code, 1, "{asks:?}");
}

/// Tells what it does at length: of 1,500 characters about progress, and of 20,000 for the log, in JSON.
const TALKATIVE: &str = r#"(component
  (import "host:mcp/progress@0.1.0" (instance $p
    (export "report" (func (param "progress" f64) (param "total" (option f64)) (param "message" (option string))))))
  (import "host:mcp/log@0.1.0" (instance $l
    (type $levels (enum "debug" "info" "notice" "warning" "error" "critical" "alert" "emergency"))
    (export "level" (type $level (eq $levels)))
    (export "write" (func (param "level" $level) (param "logger" (option string)) (param "message" string)))))
  (core module $memory (memory (export "memory") 1))
  (core instance $memory (instantiate $memory))
  (core func $report (canon lower (func $p "report") (memory $memory "memory")))
  (core func $write (canon lower (func $l "write") (memory $memory "memory")))
  (core module $m
    (import "m" "memory" (memory 1))
    (import "p" "report" (func $report (param f64 i32 f64 i32 i32 i32)))
    (import "l" "write" (func $write (param i32 i32 i32 i32 i32 i32)))
    (func (export "talk")
      (memory.fill (i32.const 2) (i32.const 120) (i32.const 19996))
      (i32.store16 (i32.const 0) (i32.const 0x225b))
      (i32.store16 (i32.const 19998) (i32.const 0x5d22))
      (call $report (f64.const 1) (i32.const 0) (f64.const 0) (i32.const 1) (i32.const 2) (i32.const 1500))
      (call $write (i32.const 1) (i32.const 1) (i32.const 2) (i32.const 1500) (i32.const 0) (i32.const 20000))))
  (core instance $i (instantiate $m
    (with "m" (instance $memory))
    (with "p" (instance (export "report" (func $report))))
    (with "l" (instance (export "write" (func $write))))))
  (func (export "talk") (canon lift (core func $i "talk"))))"#;

/// What is kept for a client that does not listen just now is not a guest's to decide.
#[test]
fn what_a_guest_says_at_length_is_cut() {
    for era in ERAS {
        let home = Home::new();
        let component = home.write("talkative.wat", TALKATIVE);
        let mut talk = Talk::about(&home, era, json!({}), &[], component);
        if era == Era::Initialize {
            talk.request("logging/setLevel", json!({"level": "info"}));
        }
        let mut params = calling("talk", &json!({}));
        params["_meta"] = json!({"progressToken": 1, "io.modelcontextprotocol/logLevel": "info"});
        let (before, answer) = talk.heard("tools/call", params);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        let said: Vec<&Value> = before.iter().map(|message| &message["params"]).collect();
        let cut = |beginning: &str, length: usize| format!("{beginning}{} …", "x".repeat(length - beginning.len()));
        assert_eq!(said[0]["message"], cut("", 1 << 10));
        assert_eq!(said[1]["logger"], cut("", 1 << 10));
        assert_eq!(said[1]["data"], cut("[\"", 16 << 10), "cut JSON is text");
        assert_eq!(said.len(), 2);
        talk.server.close_well();
    }
}

/// Reports twice and returns at once.
const HASTY: &str = r#"(component
  (import "host:mcp/progress@0.1.0" (instance $p
    (export "report" (func (param "progress" f64) (param "total" (option f64)) (param "message" (option string))))))
  (core module $memory (memory (export "memory") 1))
  (core instance $memory (instantiate $memory))
  (core func $report (canon lower (func $p "report") (memory $memory "memory")))
  (core module $m
    (import "p" "report" (func $report (param f64 i32 f64 i32 i32 i32)))
    (func (export "work")
      (call $report (f64.const 0.1) (i32.const 1) (f64.const 1) (i32.const 0) (i32.const 0) (i32.const 0))
      (call $report (f64.const 1) (i32.const 1) (f64.const 1) (i32.const 0) (i32.const 0) (i32.const 0))))
  (core instance $i (instantiate $m (with "p" (instance (export "report" (func $report))))))
  (func (export "work") (canon lift (core func $i "work"))))"#;

#[test]
fn what_is_said_just_before_the_end_comes_before_the_answer() {
    for era in ERAS {
        let home = Home::new();
        let component = home.write("hasty.wat", HASTY);
        let mut talk = Talk::about(&home, era, json!({}), &[], component);
        for round in 0..200 {
            let params = json!({"name": "work", "arguments": {}, "_meta": {"progressToken": round}});
            let (before, answer) = talk.heard("tools/call", params);
            let reports: Vec<&Value> = before.iter().map(|message| &message["params"]["progress"]).collect();
            assert_eq!(reports, [&json!(0.1), &json!(1.0)], "{round}: {before:?}");
            assert_eq!(answer["result"]["isError"], false, "{answer}");
        }
        talk.server.close_well();
    }
}
