//! What a person grants, on the command line, in files and for good: given, shown, taken back, and held.

#![cfg(test)]

mod support;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use support::{Home, guest, text};

/// A real server on loopback that answers `hello` to every request, and counts who connects.
struct Listener {
    port: u16,
    connections: Arc<AtomicUsize>,
}

impl Listener {
    fn new() -> Self {
        Self::answering("hello")
    }

    fn answering(body: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                counted.fetch_add(1, Ordering::SeqCst);
                let mut stream: TcpStream = stream.unwrap();
                std::thread::spawn(move || {
                    let mut request = [0; 4096];
                    let _ = stream.read(&mut request);
                    let head = format!(
                        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                        body.len()
                    );
                    let _ = stream.write_all(head.as_bytes());
                    let _ = stream.write_all(body.as_bytes());
                });
            }
        });
        Self { port, connections }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// `host call` of the HTTP client, with these options.
fn get(home: &Home, options: &[&str], url: &str) -> support::Finished {
    let file = guest("http-client");
    let mut words = vec!["call", file.to_str().unwrap(), "get"];
    words.extend(options);
    let url = format!("url={url}");
    words.push(&url);
    home.run(&words)
}

#[test]
fn a_guest_reaches_a_granted_server_and_nothing_else() {
    let home = Home::new();
    let (granted, other) = (Listener::new(), Listener::new());
    let rule = format!("--allow-net=http://127.0.0.1:{}", granted.port);

    let reached = get(&home, &[&rule], &granted.url());
    assert_eq!((reached.code, reached.stdout.as_str()), (0, "hello\n"), "{reached:?}");
    assert_eq!(granted.connections(), 1);

    for url in [
        other.url(),
        format!("http://localhost:{}/", other.port),
        format!("http://[::ffff:127.0.0.1]:{}/", other.port),
        format!("http://2130706433:{}/", other.port),
        format!("http://0x7f.1:{}/", other.port),
        format!("https://127.0.0.1:{}/", granted.port),
    ] {
        let refused = get(&home, &[&rule], &url);
        assert_eq!(refused.code, 1, "{url}: {refused:?}");
        assert!(refused.stderr.contains("denied: "), "{url}: {}", refused.stderr);
        assert!(refused.stderr.contains("--allow-net="), "{url}: {}", refused.stderr);
    }
    assert_eq!((granted.connections(), other.connections()), (1, 0));
}

#[test]
fn a_denial_names_the_very_rule_that_allows_it() {
    let home = Home::new();
    let server = Listener::new();
    let refused = get(&home, &[], &server.url());
    let rule = format!("--allow-net=http://127.0.0.1:{}", server.port);
    assert!(refused.stderr.contains(&format!("`{rule}`")), "{}", refused.stderr);
    assert_eq!(server.connections(), 0);
    assert_eq!(get(&home, &[&rule], &server.url()).stdout, "hello\n");
    // A denial beats it, in whatever order they stand.
    let denial = format!("--deny-net=127.0.0.0/8:{}", server.port);
    for options in [
        [rule.as_str(), denial.as_str()],
        [denial.as_str(), rule.as_str()],
        [denial.as_str(), "--allow-all"],
    ] {
        let refused = get(&home, &options, &server.url());
        assert!(
            refused.code == 1 && refused.stderr.contains(&format!("`{denial}` denies it")),
            "{refused:?}"
        );
    }
    assert_eq!(server.connections(), 1);
    let all = get(&home, &["--allow-all"], &server.url());
    assert!(
        all.stdout == "hello\n" && all.stderr.contains("warning: with `--allow-all`"),
        "{all:?}"
    );
}

#[test]
fn a_name_that_leads_to_this_machine_needs_more_than_its_name() {
    let home = Home::new();
    let server = Listener::new();
    let url = format!("http://localhost:{}/", server.port);
    let wildcard = get(&home, &["--allow-net=*"], &url);
    assert!(
        wildcard.code == 1 && wildcard.stderr.contains("an address of this machine"),
        "{wildcard:?}"
    );
    assert_eq!(server.connections(), 0);
    let named = format!("--allow-net=localhost:{}", server.port);
    assert_eq!(get(&home, &[&named], &url).stdout, "hello\n");
}

#[test]
fn sockets_go_through_the_same_check() {
    let home = Home::new();
    let server = Listener::answering("raw");
    let file = guest("http-client");
    let port = format!("port={}", server.port);
    let call = |options: &[&str], tool: &str, target: &str| {
        let mut words = vec!["call", file.to_str().unwrap(), tool];
        words.extend(options);
        words.extend([target, port.as_str(), "text=GET / HTTP/1.0\r\n\r\n"]);
        home.run(&words)
    };
    let rule = format!("--allow-net=tcp://127.0.0.1:{}", server.port);
    let reached = call(&[&rule], "tcp", "address=127.0.0.1");
    assert!(reached.stdout.ends_with("raw\n"), "{reached:?}");
    let by_name = format!("--allow-net=tcp://localhost:{}", server.port);
    assert!(call(&[&by_name], "tcp-name", "name=localhost").stdout.ends_with("raw\n"));
    assert_eq!(server.connections(), 2);
    for (options, tool, target) in [
        (&[][..], "tcp", "address=127.0.0.1"),
        (&["--allow-net=http://127.0.0.1:*"], "tcp", "address=127.0.0.1"),
        (&["--allow-net=*"], "tcp", "address=127.0.0.1"),
        (&["--allow-net=*"], "tcp-name", "name=localhost"),
        (&["--allow-net=example.com"], "tcp-name", "name=localhost"),
        (&["--allow-net=tcp://127.0.0.1:*"], "udp", "address=127.0.0.1"),
        (&["--allow-net=tcp://127.0.0.1:*"], "udp-connected", "address=127.0.0.1"),
    ] {
        let refused = call(options, tool, target);
        assert_eq!(refused.code, 1, "{options:?} {tool} {target}: {refused:?}");
        assert!(refused.stderr.contains("denied: "), "{refused:?}");
    }
    assert_eq!(server.connections(), 2);
    let listening = home.run(&[
        "call",
        file.to_str().unwrap(),
        "listen",
        "port=0",
        "--allow-net=*",
        "--allow-net=0.0.0.0/0",
    ]);
    assert!(
        listening.code == 1 && listening.stderr.contains("which no guest may do"),
        "{listening:?}"
    );
}

#[test]
fn what_is_received_is_bounded() {
    let home = Home::new();
    let server = Listener::answering("0123456789");
    let rule = format!("--allow-net=127.0.0.1:{}", server.port);
    let file = guest("http-client");
    let flood = |limit: &str| {
        let url = format!("url={}", server.url());
        home.run(&["call", file.to_str().unwrap(), "flood", &rule, "--max-received", limit, &url])
    };
    assert_eq!(flood("10").stdout, "10\n");
    let cut = flood("9");
    assert!(
        cut.code == 1 && cut.stderr.contains("HTTP response body size exceeds limit: 9 bytes"),
        "{cut:?}"
    );
}

#[test]
fn grants_are_given_shown_and_taken_back() {
    let home = Home::new();
    let server = Listener::new();
    assert_eq!(home.run(&["add", guest("http-client").to_str().unwrap()]).code, 0);
    let url = format!("url={}", server.url());
    let call = || home.run(&["call", "http-client", "get", &url]);

    let refused = call();
    let rule = format!("--allow-net=http://127.0.0.1:{}", server.port);
    let hint = format!("`host grant http-client {rule}`");
    assert!(refused.code == 1 && refused.stderr.contains(&hint), "{refused:?}");
    let granted = home.run(&["grant", "http-client", &rule, "--allow-env=TZ=UTC", "--deny-net=*.internal"]);
    assert!(
        granted.stdout.contains(&rule) && granted.stdout.contains("for sha256:"),
        "{granted:?}"
    );
    assert_eq!(call().stdout, "hello\n");

    let policy = home.run(&["policy", "http-client"]).stdout;
    assert!(policy.contains(&rule) && policy.contains("(host grant)"), "{policy}");
    let policy: Value = serde_json::from_str(&home.run(&["policy", "http-client", "--json"]).stdout).unwrap();
    let rules: Vec<&str> = policy["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| rule["rule"].as_str().unwrap())
        .collect();
    assert_eq!(rules, [rule.as_str(), "--allow-env=TZ=…", "--deny-net=*.internal"]);
    assert!(policy["rules"].as_array().unwrap().iter().all(|rule| rule["from"] == "grant"));
    let missing = policy["notGranted"].to_string();
    assert!(!missing.contains("HTTP"), "{missing}");

    let wrong = home.run(&["revoke", "http-client", "--allow-net=example.com"]);
    assert!(
        wrong.code == 2 && wrong.stderr.contains("was not granted") && wrong.stderr.contains(&rule),
        "{wrong:?}"
    );
    assert_eq!(home.run(&["revoke", "http-client"]).code, 2);
    assert_eq!(home.run(&["revoke", "http-client", &rule]).code, 0);
    assert_eq!(call().code, 1);
    // Denials are no grants, and stay until they are named.
    let denied = home.run(&["revoke", "http-client", "--everything"]).stdout;
    assert!(
        denied.contains("--deny-net=*.internal") && !denied.contains("--allow"),
        "{denied}"
    );
    let nothing = home.run(&["revoke", "http-client", "--deny-net=*.internal"]);
    assert_eq!(nothing.stdout, "`http-client` is granted nothing\n");
    let policy: Value = serde_json::from_str(&home.run(&["policy", "http-client", "--json"]).stdout).unwrap();
    assert_eq!(policy["rules"], json!([]));
    assert!(policy["notGranted"].to_string().contains("--allow-net=HOST"), "{policy}");
    assert_eq!(server.connections(), 1);
}

#[test]
fn what_cannot_be_granted_for_good_is_refused() {
    let home = Home::new();
    assert_eq!(home.run(&["add", guest("counter").to_str().unwrap()]).code, 0);
    for (options, words) in [
        (&["--allow-all"][..], "one by one"),
        (&[], "nothing is named"),
        (&["--allow-read=no-such-directory"], "cannot be granted"),
        (&["--allow-net=http://127.1"], "127.0.0.1"),
        (&["--allow-net=*foo.com"], "*."),
        (&["--allow-net=10.0.0.1/8"], "10.0.0.0/8"),
    ] {
        let words_of_call: Vec<&str> = ["grant", "counter"].iter().chain(options).copied().collect();
        let refused = home.run(&words_of_call);
        assert!(
            refused.code == 2 && refused.stderr.contains(words),
            "{options:?}: {refused:?}"
        );
    }
    let unknown = home.run(&["grant", "other", "--allow-env=A"]);
    assert!(
        unknown.code == 2 && unknown.stderr.contains("there is `counter`"),
        "{unknown:?}"
    );
}

#[test]
fn new_bytes_do_not_inherit_grants() {
    let home = Home::new();
    let file = home.write("tool.wat", std::fs::read(guest("counter")).unwrap());
    assert_eq!(home.run(&["add", file.to_str().unwrap()]).code, 0);
    assert_eq!(
        home.run(&["grant", "tool", "--allow-env=A=1", "--allow-net=example.com"])
            .code,
        0
    );
    let mut changed = std::fs::read(&file).unwrap();
    changed.extend(b"\n;; other bytes\n");
    // Text that says the same gives the same bytes, so something has to be another.
    let changed = String::from_utf8(changed)
        .unwrap()
        .replacen("(component", "(component (core module)", 1);
    support::write(&file, changed);
    let updated = home.run(&["update", "tool", "--accept-changes"]);
    assert_eq!(updated.code, 0, "{updated:?}");
    assert!(
        updated
            .stderr
            .contains("`host grant tool --allow-net=example.com --allow-env=A=1` gives them again"),
        "{updated:?}"
    );
    let policy: Value = serde_json::from_str(&home.run(&["policy", "tool", "--json"]).stdout).unwrap();
    assert_eq!(policy["rules"], json!([]));
}

#[test]
fn variables_are_those_that_were_named() {
    let home = Home::new();
    let file = guest("evil-15-secret-leak");
    let variable = |options: &[&str], name: &str| {
        let name = format!("name={name}");
        let mut command = home.host(&["call", file.to_str().unwrap(), "variable", "--json"]);
        support::finish(command.args(options).arg(name).env("FROM_HERE", "here").env("OTHER", "other"))
    };
    assert_eq!(variable(&[], "FROM_HERE").stdout, "{\"result\":null}\n");
    assert_eq!(
        variable(&["--allow-env=FROM_HERE"], "FROM_HERE").stdout,
        "{\"result\":\"here\"}\n"
    );
    assert_eq!(variable(&["--allow-env=FROM_HERE"], "OTHER").stdout, "{\"result\":null}\n");
    assert_eq!(
        variable(&["--allow-env=FROM_HERE=set=twice"], "FROM_HERE").stdout,
        "{\"result\":\"set=twice\"}\n"
    );
    assert_eq!(
        variable(&["--allow-env=NOT_THERE"], "NOT_THERE").stdout,
        "{\"result\":null}\n"
    );
    assert_eq!(variable(&["--allow-all"], "OTHER").stdout, "{\"result\":\"other\"}\n");
}

/// The file and its folder.
fn config(home: &Home, text: &str) -> String {
    home.write("conf/host.toml", text).to_str().unwrap().to_owned()
}

#[test]
fn a_config_file_grants_limits_and_chooses() {
    let home = Home::new();
    home.write("conf/data/note.txt", "from a file");
    let file = config(
        &home,
        "[defaults]\nenv = { GREETING = 'hi' }\nlimits = { max_output = '1MiB' }\n\
         [components.evil-08-escape]\nallow = ['read=data:/data']\n\
         [components.evil-15-secret-leak]\ntools = ['variable', 'add', '!add']\nenv = { NAME = 'value' }\ndeny = ['net=*']\n",
    );
    let escape = guest("evil-08-escape");
    let read = home.run(&[
        "call",
        escape.to_str().unwrap(),
        "read",
        "--config",
        &file,
        "preopen=0",
        "path=note.txt",
        "follow=false",
    ]);
    assert_eq!(read.stdout, "from a file\n", "{read:?}");
    let leak = guest("evil-15-secret-leak");
    let leak = leak.to_str().unwrap();
    for (name, value) in [("NAME", "value"), ("GREETING", "hi")] {
        let found = home.run(&["call", leak, "variable", "--config", &file, &format!("name={name}")]);
        assert_eq!(found.stdout, format!("{value}\n"));
    }
    let tools = home.run(&["tools", leak, "--config", &file]).stdout;
    let tools: Value = serde_json::from_str(&tools).unwrap();
    let names: Vec<&str> = tools["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["variable"]);
}

#[test]
fn a_wrong_key_is_refused_with_its_place_and_the_nearest_right_one() {
    let home = Home::new();
    for (text, place, nearest) in [
        ("[components.a]\nalow = []\n", "line 2", "did you mean `allow`?"),
        (
            "[components.a]\n[components.a.limits]\nmax_memroy = '1MiB'\n",
            "line 3",
            "did you mean `max_memory`?",
        ),
        ("[default]\n", "line 1", "did you mean `defaults`?"),
        ("[defaults]\nallow = ['net=http://10.0.0.1/8']\n", "line 2", ""),
        ("[defaults]\nallow = ['red=/srv']\n", "line 2", "`read`"),
        (
            "[defaults]\nlimits = { timeout = '30' }\n",
            "line 2",
            "`ms`, `s`, `m` and `h`",
        ),
        ("[components.a]\nsha256 = 'abc'\n", "line 2", ""),
        ("[components.a]\ninstance = 'common'\n", "line 2", "`shared`"),
    ] {
        let file = config(&home, text);
        let refused = home.run(&["tools", guest("counter").to_str().unwrap(), "--config", &file]);
        assert_eq!(refused.code, 2, "{text}: {refused:?}");
        assert!(
            refused.stderr.contains(place) && refused.stderr.contains(nearest),
            "{text}: {}",
            refused.stderr
        );
    }
}

#[test]
fn a_component_in_the_config_is_added_from_its_source_and_pinned_to_its_bytes() {
    let home = Home::new();
    let bytes = std::fs::read(guest("counter")).unwrap();
    home.write("conf/parts/counter.wat", &bytes);
    let file = config(&home, "[components.tally]\nsource = 'parts/counter.wat'\n");
    let called = home.run(&["call", "tally", "increment", "--config", &file]);
    assert_eq!(called.stdout, "1\n", "{called:?}");
    let mut server = support::Server::start(home.host(&["serve", "--config", &file]).current_dir(home.file("")));
    server.initialize();
    assert_eq!(
        server.call("increment", &json!({}))["structuredContent"],
        json!({"result": 1})
    );
    server.close_well();
    let info: Value = serde_json::from_str(&home.run(&["info", "tally", "--json"]).stdout).unwrap();
    let digest = info["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();

    let other = "0".repeat(64);
    for (sha256, is_served) in [(digest, true), (other.as_str(), false)] {
        let file = config(
            &home,
            &format!("[components.tally]\nsource = 'parts/counter.wat'\nsha256 = '{sha256}'\n"),
        );
        let called = home.run(&["call", "tally", "increment", "--config", &file]);
        assert_eq!(called.code == 0, is_served, "{called:?}");
        if !is_served {
            assert!(
                called.stderr.contains("its bytes have the digest") && called.stderr.contains(&other),
                "{called:?}"
            );
        }
    }
}

#[test]
fn what_a_file_may_not_say_is_refused_and_a_wrong_name_is_told() {
    let home = Home::new();
    let counter = guest("counter");
    let counter = counter.to_str().unwrap();
    let file = config(&home, "[components.counter]\nallow = ['all']\n");
    let refused = home.run(&["call", counter, "increment", "--config", &file]);
    assert!(refused.code == 2 && refused.stderr.contains("one by one"), "{refused:?}");
    let file = config(&home, "[defaults]\nallow = ['read=.:/d', 'read=/:/d']\n");
    let refused = home.run(&["call", counter, "increment", "--config", &file]);
    assert!(refused.code == 2 && refused.stderr.contains("as `/d`"), "{refused:?}");
    let file = config(&home, &format!("[components.counter]\nsha256 = '{}'\n", "0".repeat(64)));
    let refused = home.run(&["call", counter, "increment", "--config", &file]);
    assert!(
        refused.code == 2 && refused.stderr.contains("its bytes have the digest"),
        "{refused:?}"
    );
    let file = config(&home, "[components.countr]\ndeny = ['net=*']\n");
    let warned = home.run(&["call", counter, "increment", "--config", &file]);
    assert!(
        warned.code == 0 && warned.stderr.contains("did you mean `counter`?"),
        "{warned:?}"
    );
}

/// What the server answers when asked for a variable that is a secret.
fn secret_of(server: &mut support::Server) -> Value {
    server.call("split", &json!({"name": "TOKEN"}))["structuredContent"]["result"].clone()
}

#[test]
fn a_running_server_follows_grants_and_secrets() {
    let home = Home::new();
    assert_eq!(home.run(&["add", guest("evil-15-secret-leak").to_str().unwrap()]).code, 0);
    let id = "evil-15-secret-leak";
    let set = |value: &str| assert_eq!(home.run_with_stdin(&["secret", "set", id, "TOKEN"], value).code, 0);
    set("first-value");
    let mut server = home.serve(&[], &[]);
    server.initialize();
    let expect = |server: &mut support::Server, value: &str| {
        let letters = json!(value.chars().map(String::from).collect::<Vec<_>>());
        for _ in 0..600 {
            if secret_of(server) == letters {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        panic!("the server does not follow: {}", secret_of(server));
    };
    expect(&mut server, "no such variable");
    assert_eq!(home.run(&["grant", id, "--allow-secret=TOKEN"]).code, 0);
    expect(&mut server, "first-value");
    set("second-value");
    expect(&mut server, "second-value");
    assert_eq!(home.run(&["revoke", id, "--everything"]).code, 0);
    expect(&mut server, "no such variable");
    server.close_well();
    // With the component its secrets go.
    let removed = home.run(&["remove", id]);
    assert!(removed.stdout.contains("forgot the secrets"), "{removed:?}");
    assert_eq!(home.run(&["secret", "list", id, "--json"]).stdout, "[]\n");
}

#[test]
fn a_shared_instance_remembers_until_it_fails() {
    let home = Home::new();
    let file = config(&home, "[components.counter]\ninstance = 'shared'\n");
    for (options, expected) in [(vec![], [1, 1, 1]), (vec!["--config", file.as_str()], [1, 2, 3])] {
        let mut server = home.serve(&options, &[guest("counter")]);
        server.initialize();
        for count in expected {
            assert_eq!(
                server.call("increment", &json!({}))["structuredContent"],
                json!({"result": count})
            );
        }
        server.call_error("trap", &json!({}));
        assert_eq!(
            server.call("increment", &json!({}))["structuredContent"],
            json!({"result": 1})
        );
        server.close_well();
    }
}

#[test]
fn a_policy_of_wassette_is_read_and_what_it_cannot_say_is_refused() {
    let home = Home::new();
    let server = Listener::new();
    let policy = home.write(
        "policy.yaml",
        "version: \"1.0\"\ndescription: local\npermissions:\n  network:\n    allow:\n      - host: localhost\n  environment:\n    allow:\n      - key: FROM_HERE\n",
    );
    let option = format!("--policy={}", policy.display());
    let url = format!("http://localhost:{}/", server.port);
    assert_eq!(get(&home, &[&option], &url).stdout, "hello\n");
    for (text, words) in [
        ("version: \"2.0\"\n", "version"),
        ("version: \"1.0\"\npermissions:\n  ipc: {}\n", "line 3"),
        (
            "version: \"1.0\"\npermissions:\n  resources:\n    limits:\n      cpu: 500m\n",
            "line 5",
        ),
        (
            "version: \"1.0\"\npermissions:\n  storage:\n    allow:\n      - uri: fs://relative\n        access: [read]\n",
            "line 5",
        ),
    ] {
        let policy = home.write("wrong.yaml", text);
        let refused = get(&home, &[&format!("--policy={}", policy.display())], &url);
        assert!(refused.code == 2 && refused.stderr.contains(words), "{text}: {refused:?}");
    }
    assert_eq!(server.connections(), 1);
}

/// What one run of the audit test does; the lines that it left.
fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_call_has_its_line_in_the_audit() {
    let home = Home::new();
    let file = home.file("audit.jsonl");
    let option = format!("--audit={}", file.display());
    let mut server = home.serve(&[&option, "--timeout=2s"], &[guest("http-client"), guest("counter")]);
    server.initialize();
    server.call("increment", &json!({}));
    server.call("get", &json!({"url": "http://10.1.2.3/geheim"}));
    server.call_error("trap", &json!({}));
    server.call("increment", &json!({"nonsense": "geheim"}));
    server.call_error("spin", &json!({}));
    server.close_well();
    let lines = lines(&file);
    let told: Vec<(&str, &str)> = lines
        .iter()
        .map(|line| (line["tool"].as_str().unwrap(), line["outcome"].as_str().unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            ("increment", "ok"),
            ("get", "tool-error"),
            ("trap", "failed"),
            ("increment", "bad-arguments"),
            ("spin", "limit"),
        ]
    );
    assert_eq!(lines[1]["component"], "http-client");
    assert!(lines[1]["digest"].as_str().unwrap().starts_with("sha256:"));
    assert_eq!(lines[1]["arguments"], json!({"url": "string(22)"}));
    assert!(lines[1]["denied"][0].as_str().unwrap().contains("10.1.2.3"), "{}", lines[1]);
    assert!(!lines[0]["caller"].as_str().unwrap().is_empty());
    assert!(lines[0]["duration_ms"].is_number() && lines[0]["time"].is_string());
    assert!(!std::fs::read_to_string(&file).unwrap().contains("geheim"));
}

#[cfg(target_os = "linux")]
#[test]
fn an_audit_that_cannot_be_written_is_loud_and_stops_calls() {
    let home = Home::new();
    let mut server = home.serve(&["--audit=/dev/full"], &[guest("counter")]);
    server.initialize();
    assert_eq!(
        server.call("increment", &json!({}))["structuredContent"],
        json!({"result": 1})
    );
    let error = server.call_error("increment", &json!({}));
    assert!(error.contains("the audit file `/dev/full` cannot be written"), "{error}");
    let ended = server.close();
    assert!(ended.stderr.contains("/dev/full"), "{}", ended.stderr);
    let missing = home.run(&[
        "call",
        guest("counter").to_str().unwrap(),
        "increment",
        "--audit=no/such/folder/a.jsonl",
    ]);
    assert!(missing.code == 2 && missing.stderr.contains("no/such/folder"), "{missing:?}");
}

#[test]
fn more_calls_than_may_run_wait_and_more_than_may_wait_are_told_so() {
    let home = Home::new();
    let options = ["--max-concurrent-calls=1", "--max-waiting-calls=1", "--timeout=3s"];
    let mut server = home.serve(&options, &[guest("counter")]);
    server.initialize();
    server.call("increment", &json!({}));
    let spinning = server.start_call("spin", &json!({}));
    // The second waits for its end, and the third is sent away at once; which of the two is which is up to the scheduler.
    let others = [
        server.start_call("increment", &json!({})),
        server.start_call("increment", &json!({})),
    ];
    let mut told = Vec::new();
    for _ in 0..3 {
        let answer = server.receive();
        let id = answer["id"].as_u64().unwrap();
        if id != spinning {
            assert!(others.contains(&id));
            told.push(text(&answer["result"]).to_owned());
        }
    }
    told.sort();
    assert!(
        told.iter()
            .any(|told| told.contains("busy: as many calls are running as may (1)")),
        "{told:?}"
    );
    assert_eq!(
        server.call("increment", &json!({}))["structuredContent"],
        json!({"result": 1})
    );
    server.close_well();
}

#[test]
fn computing_and_handles_are_bounded() {
    let home = Home::new();
    let options = ["--max-cpu=300ms", "--timeout=60s", "--max-handles=50"];
    let mut server = home.serve(&options, &[guest("counter"), guest("evil-16-handle-hoard")]);
    server.initialize();
    let error = server.call_error("spin", &json!({}));
    assert!(
        error.contains("computed for longer than its limit of 300ms") && error.contains("--max-cpu"),
        "{error}"
    );
    let error = server.call_error("hoard", &json!({}));
    assert!(
        error.contains("more open handles than its limit of 50") && error.contains("--max-handles"),
        "{error}"
    );
    server.close_well();
}

#[test]
fn the_parts_of_a_component_are_counted() {
    let home = Home::new();
    let file = config(&home, "[defaults.limits]\nmax_memories = 2\n");
    let memories = home.write(
        "three.wat",
        "(component (core module $m (memory 1)(memory 1)(memory 1) (func (export \"f\") (result i32) i32.const 1)) \
         (core instance $i (instantiate $m)) (func (export \"f\") (result u32) (canon lift (core func $i \"f\"))))",
    );
    let called = home.run(&["call", memories.to_str().unwrap(), "f", "--config", &file]);
    assert_eq!(called.code, 1, "{called:?}");
    assert!(called.stderr.contains("memories"), "{called:?}");
    assert_eq!(home.run(&["call", memories.to_str().unwrap(), "f"]).stdout, "1\n");
}

#[test]
fn a_denied_directory_is_a_hole_in_a_granted_one() {
    let home = Home::new();
    home.write("project/open.txt", "open");
    home.write("project/private/key.txt", "geheim");
    let project = home.file("project").canonicalize().unwrap();
    let allow = format!("--allow-write={}:/p", project.display());
    let deny = format!("--deny-read={}", project.join("private").display());
    let mut server = home.serve(&[&allow, &deny], &[guest("evil-08-escape")]);
    server.initialize();
    let mut call = |tool: &str, mut arguments: Value| {
        arguments["preopen"] = json!(0);
        server.call(tool, &arguments)["structuredContent"]["result"].clone()
    };
    let read = |path: &str| json!({"path": path, "follow": true});
    assert_eq!(call("read", read("open.txt")), json!({"ok": "open"}));
    assert_eq!(
        call("symlink", json!({"target": "private", "path": "link"})),
        json!({"ok": null})
    );
    for path in [
        "private/key.txt",
        "private/../private/key.txt",
        "./private//key.txt",
        "link/key.txt",
    ] {
        assert_eq!(call("read", read(path)), json!({"err": "not-permitted"}), "{path}");
    }
    for (tool, arguments) in [
        ("write", json!({"path": "private/new.txt", "text": "x"})),
        ("list_directory", json!({"path": "private"})),
        ("stat", json!({"path": "private/key.txt", "follow": false})),
        ("remove", json!({"path": "private/key.txt"})),
        ("hard_link", json!({"old": "private/key.txt", "new": "mine.txt"})),
    ] {
        assert_eq!(
            call(tool, arguments.clone()),
            json!({"err": "not-permitted"}),
            "{tool} {arguments}"
        );
    }
    let moved = server.call(
        "rename",
        &json!({"from_preopen": 0, "old": "private", "to_preopen": 0, "new": "moved"}),
    );
    assert_eq!(
        moved["structuredContent"]["result"],
        json!({"err": "not-permitted"}),
        "{moved}"
    );
    server.close_well();
    assert_eq!(std::fs::read_to_string(project.join("private/key.txt")).unwrap(), "geheim");
    // A core module cannot be held to that, so it does not run.
    let refused = home.run(&[
        "call",
        guest("cli-files").to_str().unwrap(),
        "files_read",
        &allow,
        &deny,
        "path=open.txt",
    ]);
    assert!(refused.code == 1 && refused.stderr.contains("--deny-read"), "{refused:?}");
}

#[cfg(unix)]
#[test]
fn a_directory_that_is_swapped_later_changes_nothing() {
    let home = Home::new();
    home.write("real/a.txt", "granted");
    home.write("other/a.txt", "never granted");
    let real = home.file("real").canonicalize().unwrap();
    let allow = format!("--allow-read={}:/d", real.display());
    let mut server = home.serve(&[&allow], &[guest("evil-08-escape")]);
    server.initialize();
    let mut read =
        || server.call("read", &json!({"preopen": 0, "path": "a.txt", "follow": true}))["structuredContent"]["result"].clone();
    assert_eq!(read(), json!({"ok": "granted"}));
    std::fs::rename(&real, home.file("moved")).unwrap();
    std::os::unix::fs::symlink(home.file("other"), &real).unwrap();
    assert_eq!(read(), json!({"ok": "granted"}));
    server.close_well();
    // For good, the same: what the path leads to now was never granted.
    assert_eq!(home.run(&["add", guest("evil-08-escape").to_str().unwrap()]).code, 0);
    std::fs::remove_file(&real).unwrap();
    std::fs::rename(home.file("moved"), &real).unwrap();
    assert_eq!(home.run(&["grant", "evil-08-escape", &allow]).code, 0);
    std::fs::rename(&real, home.file("moved")).unwrap();
    std::os::unix::fs::symlink(home.file("other"), &real).unwrap();
    let refused = home.run(&["call", "evil-08-escape", "read", "preopen=0", "path=a.txt", "follow=true"]);
    assert!(
        refused.code == 1 && refused.stderr.contains("which was not granted"),
        "{refused:?}"
    );
}

#[test]
fn the_schema_of_the_config_file_is_the_one_that_is_shipped() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/host.schema.json");
    let mut schema = serde_json::to_string_pretty(&lifecycle::config_schema()).unwrap();
    schema.push('\n');
    if std::env::var_os("BLESS").is_some() {
        support::write(&path, &schema);
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), schema, "BLESS=1 writes it anew");
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let right = json!({
        "defaults": {"limits": {"timeout": "5s", "max_memory": "64MiB"}, "allow": ["net=*.example.com"]},
        "components": {"a": {"source": "a.wasm", "tools": ["get_*"], "secrets": ["TOKEN"], "instance": "shared"}},
    });
    assert!(
        validator.is_valid(&right),
        "{:?}",
        validator.iter_errors(&right).collect::<Vec<_>>()
    );
    for wrong in [
        json!({"component": {}}),
        json!({"defaults": {"limits": {"timeout": 5}}}),
        json!({"components": {"a": {"instance": "common"}}}),
    ] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
    }
}
