//! MCP over stdio: exchanges as they were recorded in `session/`, and those that are too long to be recorded.

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
    Expect(Value),
}

/// In what is expected, the version of this program reads so.
const VERSION: &str = "$VERSION";

#[test]
fn recorded_sessions_go_as_recorded() {
    let home = Home::new();
    let bless = std::env::var_os("BLESS").is_some();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/session");
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
                wrong.push(format!("{}:{}\n  recorded {recorded}\n  now      {replayed}", file.display(), number + 1));
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
