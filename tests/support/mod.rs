//! Runs the real `host` binary and talks to it, as a person at a terminal or as an MCP client over its pipes.

#![allow(dead_code, reason = "every test file is a program of its own and uses a part of this")]

pub(crate) mod client;
pub(crate) mod http;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take before the test gives up. Far more than needed, so that a busy machine fails no test.
const PATIENCE: Duration = Duration::from_secs(120);

/// The file of a test component.
pub(crate) fn guest(name: &str) -> PathBuf {
    test_guests::path(name).unwrap().canonicalize().unwrap()
}

/// Writes a file of a test. Nobody else reads it, so there is nothing to be atomic for.
#[allow(clippy::disallowed_methods, reason = "a test's own file")]
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    std::fs::write(path, bytes).unwrap();
}

/// The data directory of one test, gone when the test ends, and room for files of its own.
pub(crate) struct Home(TempDir);

/// What a command left behind.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// What is given as `HOST_HOME`.
    pub(crate) fn directory(&self) -> PathBuf {
        self.0.path().join("home")
    }

    /// What is kept there, of one kind.
    pub(crate) fn cached(&self, extension: &str) -> Vec<PathBuf> {
        let Ok(entries) = self.directory().join("cache").read_dir() else {
            return Vec::new();
        };
        entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|found| found == extension))
            .collect()
    }

    /// The path of a file in this test's own folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file in this test's own folder.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.file(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        write(&path, bytes);
        path
    }

    /// `host` with these arguments and this home, and nothing else of the tester's own configuration.
    pub(crate) fn host(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_host"));
        command
            .args(arguments)
            .env("HOST_HOME", self.directory())
            .env_remove("HOST_LOG")
            .env_remove("RUST_BACKTRACE");
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Finished {
        finish(self.host(arguments).stdin(Stdio::null()))
    }

    pub(crate) fn run_with_stdin(&self, arguments: &[&str], stdin: &str) -> Finished {
        let mut child = spawn(&mut self.host(arguments));
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(stdin.as_bytes()).unwrap();
        drop(pipe);
        child.wait_with_output().unwrap().into()
    }

    /// Starts `host serve` with these options and components.
    pub(crate) fn serve(&self, options: &[&str], components: &[PathBuf]) -> Server {
        let mut command = self.host(&["serve"]);
        command.args(options).args(components);
        Server::start(&mut command)
    }
}

pub(crate) fn finish(command: &mut Command) -> Finished {
    command.output().unwrap().into()
}

impl From<std::process::Output> for Finished {
    fn from(output: std::process::Output) -> Self {
        Self {
            code: output.status.code().expect("it was not killed"),
            stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
        }
    }
}

fn spawn(command: &mut Command) -> Child {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// A running `host serve`, and its client's side of the pipes. Killed when dropped.
pub(crate) struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: Option<JoinHandle<String>>,
    last_id: u64,
}

/// How a server ended once its client was gone.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// What it still wrote to stdout.
    pub(crate) lines: Vec<String>,
    pub(crate) stderr: String,
}

impl Server {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = spawn(command);
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut stderr = child.stderr.take().unwrap();
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in stdout.lines() {
                if sender.send(line.unwrap()).is_err() {
                    return;
                }
            }
        });
        let stderr = thread::spawn(move || {
            let mut text = Vec::new();
            stderr.read_to_end(&mut text).unwrap();
            String::from_utf8_lossy(&text).into_owned()
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            stderr: Some(stderr),
            last_id: 0,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends bytes as they are, and the end of the line.
    pub(crate) fn send_line(&mut self, line: impl AsRef<[u8]>) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin
            .write_all(line.as_ref())
            .and_then(|()| stdin.write_all(b"\n"))
            .and_then(|()| stdin.flush())
            .expect("the server reads");
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_line(message.to_string());
    }

    /// The next line that the server writes.
    pub(crate) fn receive(&mut self) -> Value {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in the line {line}")),
            Err(RecvTimeoutError::Timeout) => panic!("the server is silent"),
            Err(RecvTimeoutError::Disconnected) => {
                let stderr = self.stderr.take().map(|stderr| stderr.join().unwrap());
                panic!(
                    "the server closed its stdout; on stderr it said: {}",
                    stderr.unwrap_or_default()
                )
            }
        }
    }

    /// Sends a request, without waiting for its answer, and returns its id.
    pub(crate) fn start_request(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends a request while no other is under way, and returns its answer.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.start_request(method, params);
        loop {
            let answer = self.receive();
            if !tells_of_other_lists(&answer) {
                assert_eq!(answer["id"], id, "{answer}");
                return answer;
            }
        }
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Opens a session as most of today's clients do.
    pub(crate) fn initialize(&mut self) {
        let client = json!({"name": "test", "version": "1"});
        let answer = self.request(
            "initialize",
            &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}),
        );
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        self.notify("notifications/initialized", &json!({}));
    }

    pub(crate) fn tool_names(&mut self) -> Vec<String> {
        let answer = self.request("tools/list", &json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Starts a call and returns its id.
    pub(crate) fn start_call(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.start_request("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// The result of a call that is made while no other is under way.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let mut answer = self.request("tools/call", &json!({"name": tool, "arguments": arguments}));
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].take()
    }

    /// The text of a call that must fail.
    pub(crate) fn call_error(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        text(&result).to_owned()
    }

    /// Closes the client's end, and waits until the server has gone.
    pub(crate) fn close(mut self) -> Ended {
        drop(self.stdin.take());
        let mut lines = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => lines.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the server does not end although its client is gone"),
            }
        }
        let status = self.child.wait().unwrap();
        let stderr = self.stderr.take().unwrap().join().unwrap();
        Ended { status, lines, stderr }
    }

    /// Closes a session that must have ended well: nothing left to say, exit code 0.
    pub(crate) fn close_well(self) {
        let ended = self.close();
        assert!(ended.status.success() && ended.lines.is_empty(), "{ended:?}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text of a tool's result.
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text in {result}"))
}

/// Numbers that Linux keeps of a process.
#[cfg(target_os = "linux")]
pub(crate) mod proc {
    /// A field of `/proc/PID/status`, such as `VmRSS` (in KiB) or `Threads`.
    pub(crate) fn status(pid: u32, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let value = status
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
            .unwrap();
        value.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// How many files a process has open.
    pub(crate) fn open_files(pid: u32) -> usize {
        std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
    }

    /// The time that a process has computed for, in ticks of a hundredth of a second.
    pub(crate) fn cpu_ticks(pid: u32) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        // The name of the program, in parentheses, may have spaces in it; user and system time are fields 14 and 15.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    }
}

/// Tries until it is so, or fails.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "in vain waited until {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Fails where a message is not made for a person: no `error:` at its start, or the insides of a Rust program in it.
pub(crate) fn assert_readable(stderr: &str) {
    assert!(stderr.starts_with("error: "), "{stderr}");
    for inside in [
        "panicked",
        "backtrace",
        "Some(",
        "None",
        "Err(",
        "Error {",
        "kind:",
        "Os {",
        "\u{1b}",
    ] {
        assert!(!stderr.contains(inside), "{inside} in {stderr}");
    }
}

/// Whether a message only tells that there are other resources or prompts: with every component come and go those that are made of it.
pub(crate) fn tells_of_other_lists(message: &Value) -> bool {
    let lists = ["notifications/prompts/list_changed", "notifications/resources/list_changed"];
    lists.iter().any(|list| message["method"] == *list)
}
