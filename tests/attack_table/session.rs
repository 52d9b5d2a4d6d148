//! Rows 31–33: lines in the log that were written by somebody else, clients that do not read, and clients that change their mind.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Home, Server, guest, proc, wait_until};
use crate::unharmed::{GOOD, Held, Host, assert_good, good};

/// What is to look like a line of ours, in a log and on a terminal.
const FORGED: &str = "harmless\nFORGED  INFO host: everything was granted\r\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{2028}\u{202e}";

fn is_harmful(c: char) -> bool {
    (c.is_control() && c != '\n') || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}')
}

fn assert_unforged(stderr: &str) {
    assert!(!stderr.contains(is_harmful), "{stderr:?}");
    let forged: Vec<&str> = stderr
        .lines()
        .filter(|line| line.trim_start().starts_with("FORGED"))
        .collect();
    assert!(forged.is_empty(), "{forged:?} in {stderr}");
}

#[test]
fn row_31_log_injection() {
    let home = Home::new();
    for format in ["text", "json"] {
        let options = ["--log", "debug,guest=trace", "--log-format", format];
        let mut host = Host::serve(&home, &options, &["evil-20-stdout-flood", "every-type"]);
        host.survives(|server| {
            let said = server.call("say", &json!({"text": FORGED}));
            assert_eq!(said["structuredContent"], json!({"result": FORGED}));
            for method in ["tools/call", FORGED] {
                let answer = server.request(method, &json!({"name": FORGED, "arguments": {}}));
                assert!(answer["error"].is_object(), "{answer}");
            }
            server.call_error("greet", &json!({FORGED: FORGED}));
            server.notify(FORGED, &json!({"x": FORGED}));
            server.notify("notifications/cancelled", &json!({"requestId": FORGED, "reason": FORGED}));
        });
        let ended = host.server.close();
        assert!(ended.status.success() && ended.lines.is_empty(), "{ended:?}");
        assert_unforged(&ended.stderr);
        if format == "json" {
            for line in ended.stderr.lines() {
                serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error} in {line}"));
            }
        }
        assert!(ended.stderr.contains("harmless"), "nothing was logged: {}", ended.stderr);
    }
}

/// The name of a file can have anything in it but `/` and NUL.
#[test]
fn row_31_names_of_files() {
    let home = Home::new();
    home.write("plugins/good.wat", GOOD);
    home.write(&format!("plugins/{FORGED}.wat"), "(component (");
    home.write(&format!("plugins/{FORGED}2.wat"), "no component");
    let mut serve = home.host(&["serve", "--log", "debug"]);
    let mut host = Host::start(serve.arg(home.file("plugins")));
    host.survives(|server| assert_eq!(server.tool_names(), ["add"]));
    let ended = host.server.close();
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(ended.stderr.matches("left out").count(), 2, "{}", ended.stderr);
    assert_unforged(&ended.stderr);
    let file = home.file(&format!("plugins/{FORGED}.wat"));
    for command in ["tools", "inspect", "add"] {
        let refused = crate::support::finish(home.host(&[command]).arg(&file));
        assert_eq!(refused.code, 2, "{command}: {refused:?}");
        assert_unforged(&refused.stderr);
    }
}

/// An argument that takes room, and that is another for each call.
fn name(id: usize) -> String {
    format!("{id} ").repeat(10_000)
}

/// A client that reads only when it wants to.
struct Mute {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
}

impl Mute {
    fn connect(home: &Home, options: &[&str]) -> Self {
        let mut command = home.host(&["serve"]);
        command
            .args(options)
            .args([good(home), guest("every-type"), guest("evil-17-host-sleep")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().map(BufReader::new);
        let mut client = Self { child, stdin, stdout };
        let info = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
        client.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        assert_eq!(client.read()["id"], 0);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.as_mut().unwrap().read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line:?}"))
    }

    /// Sends this many calls from a thread of its own.
    fn flood(&mut self, first: usize, calls: usize) -> Flood {
        let mut stdin = self.stdin.take().unwrap();
        let progress = Arc::<Progress>::default();
        let shared = Arc::clone(&progress);
        let writer = thread::spawn(move || {
            for id in first..first + calls {
                let params = json!({"name": "greet", "arguments": {"name": name(id)}});
                let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
                // The other side may end before all is said.
                if shared.is_over.load(Ordering::SeqCst) || writeln!(stdin, "{message}").is_err() {
                    break;
                }
                shared.sent.fetch_add(1, Ordering::SeqCst);
            }
            stdin
        });
        Flood { progress, writer }
    }

    fn assert_calm(&mut self) {
        self.send(&json!({"jsonrpc": "2.0", "id": 7, "method": "ping"}));
        assert_eq!(self.read()["id"], 7);
    }

    /// Reads so many answers: one to each call, and the right one.
    fn assert_answered(&mut self, first: usize, calls: usize) {
        let mut open: HashSet<usize> = (first..first + calls).collect();
        while !open.is_empty() {
            let answer = self.read();
            let id = usize::try_from(answer["id"].as_u64().unwrap()).unwrap();
            assert!(open.remove(&id), "a second answer: {answer}");
            let result = &answer["result"];
            let is_busy = result["isError"] == true && answer.to_string().contains("busy");
            let greeting = format!("Hello, {}!", name(id));
            assert!(
                is_busy || result["structuredContent"] == json!({"result": greeting}),
                "a wrong answer to {id}"
            );
        }
    }
}

impl Drop for Mute {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Calls that are being sent, with nobody who waits for their answers.
struct Flood {
    progress: Arc<Progress>,
    /// Gives back the pipe.
    writer: thread::JoinHandle<ChildStdin>,
}

#[derive(Default)]
struct Progress {
    sent: AtomicUsize,
    is_over: AtomicBool,
}

impl Flood {
    /// Waits until no more of it is taken.
    fn wait_until_stuck(&self) {
        wait_until("nothing more is read", || {
            let before = self.progress.sent.load(Ordering::SeqCst);
            thread::sleep(Duration::from_secs(1));
            self.progress.sent.load(Ordering::SeqCst) == before
        });
    }
}

#[test]
fn row_32_client_that_does_not_read() {
    // More than a hundred megabytes of answers that nobody fetches.
    const CALLS: usize = 2_000;
    let home = Home::new();
    let mut client = Mute::connect(&home, &[]);
    let flood = client.flood(1_000, 500);
    client.assert_answered(1_000, 500);
    client.stdin = Some(flood.writer.join().unwrap());
    let before = Held::by(client.child.id());

    let flood = client.flood(10_000, CALLS);
    flood.wait_until_stuck();
    // Whoever does not read is not read from either, in the end.
    before.assert_still();
    client.assert_answered(10_000, CALLS);
    client.stdin = Some(flood.writer.join().unwrap());
    before.assert_still();
    client.assert_calm();

    // One that dies without having read anything takes the server with it.
    let Flood { progress, writer } = client.flood(100_000, 100_000);
    wait_until("some are sent", || progress.sent.load(Ordering::SeqCst) > 10);
    progress.is_over.store(true, Ordering::SeqCst);
    drop(client.stdout.take());
    drop(writer.join().unwrap());
    wait_until("the server ends", || client.child.try_wait().unwrap().is_some());
}

/// What may neither run nor wait is told so at once, and what runs goes on.
#[test]
fn row_32_more_calls_than_may_wait() {
    const CALLS: usize = 1_000;
    let home = Home::new();
    let mut host = Host::serve(&home, &["--timeout", "1h"], &["evil-17-host-sleep"]);
    // Compiled first: until then nothing runs, and so nothing waits.
    host.server.call("sleep", &json!({"seconds": 0}));
    host.survives(|server| {
        let mut sleeping: HashSet<u64> = (0..CALLS)
            .map(|_| server.start_call("sleep", &json!({"seconds": 3600})))
            .collect();
        // The good component has places of its own.
        let sum = server.start_call("add", &json!({"a": 2, "b": 40}));
        loop {
            let answer = server.receive();
            if answer["id"] == sum {
                assert_eq!(answer["result"]["structuredContent"], json!({"result": 42}), "{answer}");
                break;
            }
            assert!(sleeping.remove(&answer["id"].as_u64().unwrap()), "{answer}");
            let error = answer.to_string();
            assert!(error.contains("busy") && error.contains("hint: "), "{answer}");
        }
        let mut refused = CALLS - sleeping.len();
        for id in &sleeping {
            server.notify("notifications/cancelled", &json!({"requestId": id}));
        }
        // What was refused meanwhile may still be told, also after what was asked later.
        let mut quiet = 0;
        while quiet < 3 {
            thread::sleep(Duration::from_millis(50));
            quiet += 1;
            let end = server.start_request("ping", &json!({}));
            loop {
                let answer = server.receive();
                if answer["id"] == end {
                    break;
                }
                assert!(answer.to_string().contains("busy"), "{answer}");
                refused += 1;
                quiet = 0;
            }
        }
        assert!(refused > 0 && refused < CALLS, "{refused} were refused");
    });
    host.close_well();
}

/// A call that takes all the room for requests can still be taken back.
#[test]
fn row_32_large_call_is_cancelled() {
    let home = Home::new();
    let mut host = Host::serve(&home, &["--timeout", "1h"], &["evil-17-host-sleep"]);
    host.server.call("sleep", &json!({"seconds": 0}));
    host.survives(|server| {
        // White space counts as well: what is in a message is known only when it was read.
        let padding = " ".repeat(9 << 20);
        let sleep = |id: u64| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call",{padding}"params":{{"name":"sleep","arguments":{{"seconds":3600}}}}}}"#
            )
        };
        let first = 1_000_000;
        server.send_line(sleep(first));
        // There is no room for this one before the other is gone.
        server.notify("notifications/cancelled", &json!({"requestId": first}));
        let answer = server.request("ping", &json!({}));
        assert!(answer["result"].is_object(), "{answer}");
    });
    host.close_well();
}

#[test]
fn row_32_end_of_input() {
    let home = Home::new();
    for options in [&[][..], &["--watch"]] {
        let mut client = Mute::connect(&home, options);
        for id in 1..100 {
            let params = json!({"name": "sleep", "arguments": {"seconds": 3600}});
            client.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
        }
        client.assert_calm();
        drop(client.stdin.take());
        wait_until("the server ends", || client.child.try_wait().unwrap().is_some());
        assert!(client.child.wait().unwrap().success());
    }
}

/// Who has said all does not have to listen, and who cannot be told anything any more is served no more.
#[test]
fn row_32_end_with_unread_answers() {
    let home = Home::new();
    for is_closed in [false, true] {
        let mut client = Mute::connect(&home, &[]);
        // More than there is room for, so that the writer waits for the server's end; or less, where it is to come to its own.
        let Flood { progress, writer } = client.flood(1, if is_closed { 300 } else { 150 });
        wait_until("some are sent", || progress.sent.load(Ordering::SeqCst) > 30);
        if is_closed {
            // Nobody can read, and more may come.
            drop(client.stdout.take());
            client.stdin = Some(writer.join().unwrap());
        } else {
            // Nobody reads, and no more will come.
            progress.is_over.store(true, Ordering::SeqCst);
            drop(writer.join().unwrap());
        }
        wait_until("the server ends", || client.child.try_wait().unwrap().is_some());
    }
}

/// A pause that is another each time, from none to a few milliseconds.
fn pause(number: u64) {
    match number % 4 {
        0 => {}
        1 => thread::yield_now(),
        more => thread::sleep(Duration::from_micros(more * (number % 7) * 400)),
    }
}

#[test]
fn row_33_cancellation_storm() {
    let home = Home::new();
    let attackers = [
        "evil-17-infinite-loop",
        "evil-17-host-sleep",
        "evil-19-huge-result",
        "async-export",
    ];
    let mut host = Host::serve(&home, &["--timeout", "1h"], &attackers);
    let endless: [(&str, Value); 4] = [
        ("spin", json!({})),
        ("spin_in_realloc", json!({"text": "hi"})),
        ("sleep", json!({"seconds": 3600})),
        ("yield_forever", json!({})),
    ];
    let finite = [("amplified", json!({})), ("add", json!({"a": 2, "b": 40}))];
    let storm = |server: &mut Server| {
        // How often each may still be answered: what never ends by itself never is.
        let mut cancelled: HashMap<u64, bool> = HashMap::new();
        for number in 0..200 {
            let (tool, arguments) = endless.iter().chain(&finite).nth(number % 6).unwrap();
            let id = server.start_call(tool, arguments);
            pause(id);
            server.notify("notifications/cancelled", &json!({"requestId": id, "reason": "never mind"}));
            // Once more, for one that is gone, and for one that never was.
            server.notify("notifications/cancelled", &json!({"requestId": id}));
            server.notify("notifications/cancelled", &json!({"requestId": id + 1_000_000}));
            cancelled.insert(id, finite.iter().any(|(known, _)| known == tool));
        }
        let end = server.start_request("ping", &json!({}));
        loop {
            let answer = server.receive();
            if answer["id"] == end {
                break;
            }
            let may_be = cancelled.remove(&answer["id"].as_u64().unwrap());
            assert_eq!(may_be, Some(true), "nobody waits for {answer}");
        }
        // All places are free, for more than there are at a time; and nothing late comes between.
        let calls: HashSet<u64> = (0..100)
            .map(|_| server.start_call("evil_17_host_sleep_add", &json!({"a": 2, "b": 40})))
            .collect();
        let answered: HashSet<u64> = (0..100).map(|_| server.receive()["id"].as_u64().unwrap()).collect();
        assert_eq!(answered, calls);
    };
    // Large results that are cancelled leave the allocator with more or less, up to some point.
    for _ in 0..4 {
        storm(&mut host.server);
    }
    host.survives(storm);
    wait_until_idle(&host.server);
    assert_good(&mut host.server);
    host.close_well();
}

fn wait_until_idle(server: &Server) {
    wait_until("no guest computes any more", || {
        let before = proc::cpu_ticks(server.pid());
        thread::sleep(Duration::from_millis(300));
        proc::cpu_ticks(server.pid()) - before <= 1
    });
}
