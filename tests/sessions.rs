//! MCP over stdio: exchanges as they were recorded in `session/`, and those that are too long to be recorded.

#![cfg(test)]

mod support;

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use support::{Home, Server, guest, text, write};

/// The first line of a recorded session.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    /// What the session shows.
    #[expect(dead_code, reason = "for people")]
    session: String,
    components: Vec<String>,
    #[serde(default)]
    options: Vec<String>,
}

/// Any other line.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    /// A message from the client.
    Send(Value),
    /// A line from the client, as it is.
    SendText(String),
    /// The next message from the server.
    Expect(#[expect(dead_code, reason = "lines are compared as a whole")] Value),
}

/// In what is expected, the version of this program reads so.
const VERSION: &str = "$VERSION";

#[test]
fn recorded_sessions_go_as_recorded() {
    let home = Home::new();
    let bless = std::env::var_os("BLESS").is_some();
    let folder = Path::new("tests/session");
    let mut files: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    assert!(!files.is_empty());

    let mut wrong = Vec::new();
    for file in files {
        let recorded = std::fs::read_to_string(&file).unwrap();
        let replayed = replay(&home, &recorded).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        if bless {
            write(&file, &replayed);
        }
        for (number, (recorded, replayed)) in recorded.lines().zip(replayed.lines()).enumerate() {
            if !bless && json_of(recorded) != json_of(replayed) {
                wrong.push(format!(
                    "{}:{}\n  recorded {recorded}\n  now      {replayed}",
                    file.display(),
                    number + 1
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\nBLESS=1 records what is now", wrong.join("\n"));
}

/// Plays the client's part. Returns the session with what the server really said.
fn replay(home: &Home, recorded: &str) -> Result<String, serde_json::Error> {
    let mut lines = recorded.lines();
    let header_line = lines.next().unwrap_or_default();
    let header: Header = serde_json::from_str(header_line)?;
    let components: Vec<_> = header.components.iter().map(|name| guest(name)).collect();
    let options: Vec<_> = header.options.iter().map(String::as_str).collect();
    let mut server = home.serve(&options, &components);
    let mut replayed = vec![header_line.to_owned()];
    for line in lines {
        replayed.push(match serde_json::from_str(line)? {
            Step::Send(message) => {
                server.send(&message);
                line.to_owned()
            }
            Step::SendText(text) => {
                server.send_line(text);
                line.to_owned()
            }
            Step::Expect(_) => json!({"expect": with_placeholders(server.receive())}).to_string(),
        });
    }
    server.close_well();
    replayed.push(String::new());
    Ok(replayed.join("\n"))
}

fn json_of(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_default()
}

fn with_placeholders(mut message: Value) -> Value {
    let information = [
        "/result/serverInfo/version",
        "/result/_meta/io.modelcontextprotocol~1serverInfo/version",
    ];
    for pointer in information {
        if let Some(version) = message.pointer_mut(pointer) {
            assert_eq!(*version, env!("CARGO_PKG_VERSION"));
            *version = VERSION.into();
        }
    }
    message
}

fn session(component: &str, options: &[&str]) -> (Home, Server) {
    let home = Home::new();
    let mut server = home.serve(options, &[guest(component)]);
    server.initialize();
    (home, server)
}

#[test]
fn json_that_nests_too_deep_is_told_by_its_id() {
    let (_home, mut server) = session("every-type", &[]);
    // The message, its parameters and its arguments are three levels by themselves.
    for (depth, readable) in [(127, true), (128, false), (100_000, false)] {
        let nested = format!("{}{}", "[".repeat(depth - 3), "]".repeat(depth - 3));
        let params = format!(r#"{{"name": "greet", "arguments": {{"name": {nested}}}}}"#);
        server.send_line(format!(
            r#"{{"jsonrpc": "2.0", "method": "tools/call", "params": {params}, "id": {depth}}}"#
        ));
        let answer = server.receive();
        assert_eq!(answer["id"], depth);
        if readable {
            assert!(
                text(&answer["result"]).starts_with("$.name: expected a string, got "),
                "{answer}"
            );
        } else {
            assert_eq!(answer["error"]["code"], -32700, "{answer}");
        }
    }
    assert_eq!(
        server.call("greet", &json!({"name": "you"}))["structuredContent"],
        json!({"result": "Hello, you!"})
    );
    server.close_well();
}

#[test]
fn a_line_that_is_too_long_or_no_text_is_answered() {
    let (_home, mut server) = session("every-type", &[]);
    for (line, code) in [
        (vec![b'x'; (32 << 20) + 1], -32600),
        (vec![b' '; 70 << 20], -32600),
        (b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"p\xFFng\"}".to_vec(), -32700),
        (vec![0; 100], -32700),
    ] {
        server.send_line(line);
        let answer = server.receive();
        assert_eq!(
            (&answer["error"]["code"], &answer["id"]),
            (&code.into(), &Value::Null),
            "{answer}"
        );
        assert_eq!(
            server.call("greet", &json!({"name": "you"}))["structuredContent"],
            json!({"result": "Hello, you!"})
        );
    }
    server.close_well();
}

#[test]
fn eight_mebibytes_go_in_and_out() {
    let (_home, mut server) = session("every-type", &[]);
    // Every byte, and no period that a lost block would hide in.
    let bytes: Vec<u8> = (0..8_u32 << 20)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let value = Value::from(STANDARD.encode(&bytes));

    let result = server.call("test_every_type_echo_echo_bytes", &json!({"value": value}));
    assert_eq!(result["isError"], false, "{:.200}", text(&result));
    assert!(result["structuredContent"]["result"] == value, "the bytes have changed");
    assert!(
        serde_json::from_str::<Value>(text(&result)).unwrap() == result["structuredContent"],
        "text and structure differ"
    );

    // The rest of a record counts as well against the limit of 8 MiB.
    let bytes = &bytes[1 << 10..];
    let document = json!({
        "file_name": "large",
        "size": bytes.len(),
        "note": null,
        "origin": {"x": 1, "y": 2},
        "tags": ["a"],
        "checksum": STANDARD.encode(bytes),
    });
    let result = server.call("test_every_type_echo_echo_record", &json!({"value": document}));
    assert_eq!(result["isError"], false, "{:.200}", text(&result));
    assert!(result["structuredContent"]["result"] == document, "the record has changed");
    server.close_well();
}

#[test]
fn one_byte_too_many_names_the_output_limit() {
    let (_home, mut server) = session("every-type", &["--max-output", "1KiB"]);
    let bytes = |count: usize| json!({"value": STANDARD.encode(vec![7; count])});
    assert_eq!(server.call("test_every_type_echo_echo_bytes", &bytes(700))["isError"], false);
    let error = server.call_error("test_every_type_echo_echo_bytes", &bytes(5000));
    assert!(
        error.contains("output limit of 1KiB") && error.contains("hint: ") && error.contains("--max-output"),
        "{error}"
    );
    server.close_well();
}

/// Clients in Node give what they start sockets in place of pipes, and a shell may give it one of each.
#[cfg(unix)]
#[test]
fn sockets_serve_as_pipes_do() {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    let home = Home::new();
    // Of each, the client's end first.
    let socket = || {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (OwnedFd::from(ours), OwnedFd::from(theirs))
    };
    let input = || {
        let (read, write) = std::io::pipe().unwrap();
        (OwnedFd::from(write), OwnedFd::from(read))
    };
    let output = || {
        let (read, write) = std::io::pipe().unwrap();
        (OwnedFd::from(read), OwnedFd::from(write))
    };
    let ways = [
        (socket(), socket()),
        (socket(), output()),
        (input(), socket()),
        (input(), output()),
    ];
    for ((ours, stdin), (answers, stdout)) in ways {
        let mut command = home.host(&["serve"]);
        command.arg(guest("every-type")).stdin(stdin).stdout(stdout);
        let mut host = command.spawn().unwrap();
        // With it go the other ends, so that what is closed there is closed here.
        drop(command);
        let mut client = std::fs::File::from(ours);
        let client_info = json!({"name": "test", "version": "1"});
        let opening = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client_info});
        // Far more than fits into either.
        let name = "x".repeat(1 << 20);
        for message in [
            json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "greet", "arguments": {"name": name}}}),
        ] {
            client.write_all(format!("{message}\n").as_bytes()).unwrap();
        }
        let mut answers = BufReader::new(std::fs::File::from(answers));
        let mut answer = || {
            let mut line = String::new();
            answers.read_line(&mut line).unwrap();
            serde_json::from_str::<Value>(&line).unwrap()
        };
        assert_eq!(answer()["result"]["protocolVersion"], "2025-11-25");
        let greeted = answer();
        assert!(
            greeted["result"]["structuredContent"]["result"] == format!("Hello, {name}!"),
            "{greeted:.300}"
        );
        drop(client);
        let mut rest = Vec::new();
        answers.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty() && host.wait().unwrap().success());
    }
}

#[test]
fn tools_come_sorted_and_all_at_once() {
    let home = Home::new();
    let mut server = home.serve(&[], &["every-type", "documented", "trap", "exit"].map(guest));
    server.initialize();
    let answer = server.request("tools/list", &json!({}));
    assert_eq!(answer["result"].get("nextCursor"), None);
    let names = server.tool_names();
    assert_eq!(names.len(), 33 + 6 + 6 + 3);
    assert!(names.is_sorted(), "{names:?}");
    server.close_well();
}

#[test]
fn many_requests_at_once_are_all_answered() {
    let (_home, mut server) = session("every-type", &[]);
    let mut open: Vec<u64> = (0..500)
        .map(|n| server.start_call("greet", &json!({"name": n.to_string()})))
        .collect();
    let first = open[0];
    while !open.is_empty() {
        let answer = server.receive();
        let id = answer["id"].as_u64().unwrap();
        let at = open.iter().position(|open| *open == id).expect("one answer to each");
        open.swap_remove(at);
        assert_eq!(
            answer["result"]["structuredContent"]["result"],
            format!("Hello, {}!", id - first)
        );
    }
    server.close_well();
}

#[test]
fn calls_in_one_piece_are_answered_like_one_at_a_time() {
    let home = Home::new();
    let mut server = home.serve(&[], &["every-type", "trap"].map(guest));
    server.initialize();
    let call = |name: &str, arguments: Value| json!({"method": "tools/call", "params": {"name": name, "arguments": arguments}});
    // Those that nobody can tell apart from others, those that fail in all ways, and what is no call at all.
    let mut asked: Vec<Value> = (0..20).map(|n| call("add", json!({"a": n, "b": 1}))).collect();
    asked.extend([
        call("greet", json!({"name": "x".repeat(10_000)})),
        call("add", json!({"a": "one"})),
        call("divide", json!({"a": 7, "b": 0})),
        call("divide", json!({"a": 7, "b": 2})),
        call("nobody", json!({})),
        json!({"method": "ping"}),
        json!({"method": "tools/list"}),
    ]);
    let answer = |mut message: Value| {
        let id = message.as_object_mut().unwrap().shift_remove("id").unwrap();
        (id, message)
    };
    let line = |id: usize, asked: &Value| {
        let mut message = asked.clone();
        message["jsonrpc"] = "2.0".into();
        message["id"] = id.into();
        format!("{message}\n")
    };
    let expected: Vec<Value> = asked
        .iter()
        .map(|asked| {
            server.send_line(line(0, asked).trim_end());
            answer(server.receive()).1
        })
        .collect();
    assert_eq!(expected[1]["result"]["structuredContent"], json!({"result": 2}));

    // In another order each time.
    let ids: Vec<usize> = (1..=20 * asked.len()).collect();
    let which = |id: usize| (id + id / asked.len() * 5) * 7 % asked.len();
    let all: String = ids.iter().map(|id| line(*id, &asked[which(*id)])).collect();
    let (sent, mut received) = (all.trim_end().to_owned(), vec![false; ids.len()]);
    server.send_line(sent);
    for _ in &ids {
        let (id, answer) = answer(server.receive());
        let id = usize::try_from(id.as_u64().unwrap()).unwrap();
        assert_eq!(answer, expected[which(id)], "{id}");
        assert!(!std::mem::replace(&mut received[id - 1], true), "{id} was answered twice");
    }
    server.close_well();
}
