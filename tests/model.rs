//! A server that watches its store, while other processes add, update and remove at random: its client is told of each change
//! once, and gets no wrong answer.

#![cfg(test)]

mod support;

use std::process::{Child, Stdio};

use serde_json::{Value, json};
use support::{Finished, Home, Server, wait_until, write};

const STEPS: usize = 60;
const COMPONENTS: usize = 4;

/// Xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % limit as u64).unwrap()
    }
}

/// A client that counts what it is told between its answers.
struct Client {
    server: Server,
    told: usize,
}

impl Client {
    fn note(&mut self, message: &Value) {
        if !support::tells_of_other_lists(message) {
            assert_eq!(message["method"], "notifications/tools/list_changed", "{message}");
            self.told += 1;
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.server.start_request(method, params);
        loop {
            let message = self.server.receive();
            if message["id"] == id {
                return message;
            }
            self.note(&message);
        }
    }

    /// Waits until it has been told so often.
    fn listen(&mut self, times: usize) {
        while self.told < times {
            let message = self.server.receive();
            self.note(&message);
        }
    }

    /// The version that answers, if the tool is there.
    fn call(&mut self, name: &str) -> Option<u64> {
        let answer = self.ask("tools/call", &json!({"name": name, "arguments": {}}));
        if answer["error"]["code"] == -32602 {
            return None;
        }
        let result = &answer["result"];
        assert_eq!(result["isError"], false, "{answer}");
        Some(result["structuredContent"]["result"].as_u64().unwrap())
    }

    /// The tools, and which of them return a signed number.
    fn list(&mut self) -> Vec<(String, bool)> {
        let answer = self.ask("tools/list", &json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap();
        let tool = |tool: &Value| {
            let is_signed = tool["outputSchema"].to_string().contains("-2147483648");
            (tool["name"].as_str().unwrap().to_owned(), is_signed)
        };
        tools.iter().map(tool).collect()
    }
}

fn name(component: usize) -> String {
    format!("c{component}")
}

fn is_signed(version: u64) -> bool {
    version.is_multiple_of(3)
}

/// Starts a process that changes one component, or tries to, and says what is there afterwards.
fn change(home: &Home, random: &mut Random, component: usize, before: Option<u64>, version: u64) -> (Child, Option<u64>) {
    let name = name(component);
    let file = home.file(&format!("{name}.wat"));
    let write = || {
        let ty = if is_signed(version) { "s32" } else { "u32" };
        let text = format!(
            r#"(component
                (core module $m (func (export "f") (result i32) (i32.const {version})))
                (core instance $i (instantiate $m))
                (func (export "{name}") (result {ty}) (canon lift (core func $i "f"))))"#
        );
        write(&file, text);
    };
    let path = file.to_str().unwrap();
    let (arguments, after): (&[&str], Option<u64>) = match (random.below(10), before) {
        (0..5, None) => {
            write();
            (&["add", path], Some(version))
        }
        // What is there already is not added again, and what is not there is not updated or removed.
        (0..2, Some(_)) => (&["add", path], before),
        (2..8, Some(_)) => {
            write();
            (&["update", &name, "--accept-changes"], Some(version))
        }
        (5..8, None) => (&["update", &name, "--accept-changes"], None),
        (8, _) => (&["gc"], before),
        (_, _) => (&["remove", &name], None),
    };
    let mut command = home.host(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    (command.spawn().unwrap(), after)
}

/// Set `MODEL_SEED` to what a failure shows, to do the same again.
#[test]
fn a_watching_server_follows_whatever_other_processes_change() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = std::env::var("MODEL_SEED").map_or(now.as_secs() | 1, |seed| seed.parse().unwrap());
    println!("MODEL_SEED={seed}");
    let mut random = Random(seed);
    let home = Home::new();
    let mut client = Client {
        server: home.serve(&["--watch"], &[]),
        told: 0,
    };
    client.server.initialize();
    let mut model: Vec<Option<u64>> = vec![None; COMPONENTS];
    let mut is_late = false;
    for step in 1..=STEPS {
        // One at a time, or two at once.
        let first = random.below(COMPONENTS);
        let second = random.below(COMPONENTS);
        let changing = if step % 3 == 0 && first != second {
            vec![first, second]
        } else {
            vec![first]
        };
        let mut running = Vec::new();
        let mut after = model.clone();
        for component in changing {
            let (child, state) = change(&home, &mut random, component, model[component], step as u64);
            after[component] = state;
            running.push(child);
        }
        let changes = model.iter().zip(&after).filter(|(before, after)| before != after).count();
        let told_before = client.told;
        for mut child in running {
            while child.try_wait().unwrap().is_none() {
                let component = random.below(COMPONENTS);
                let seen = client.call(&name(component));
                assert!(seen == model[component] || seen == after[component], "{component}: {seen:?}");
            }
            let finished = Finished::from(child.wait_with_output().unwrap());
            assert!(
                finished.code == 0 || finished.stderr.contains("there is no component"),
                "{finished:?}"
            );
        }
        let expected: Vec<(String, bool)> = (0..COMPONENTS)
            .filter_map(|component| Some((name(component), is_signed(after[component]?))))
            .collect();
        // One change is told once, and then it is there. Two at once may be told as one, and the second may be there before it is told.
        let is_alone = changes <= 1 && !is_late;
        if changes > 0 {
            client.listen(told_before + 1);
        }
        if !is_alone {
            wait_until("both changes are there", || {
                client.list() == expected && (0..COMPONENTS).all(|component| client.call(&name(component)) == after[component])
            });
        }
        assert_eq!(client.list(), expected);
        let told = client.told - told_before;
        assert!(told <= changes + usize::from(is_late), "told {told} times of {changes}");
        is_late = changes == 2 && told == 1;
        model = after;
        for (component, state) in model.iter().enumerate() {
            assert_eq!(client.call(&name(component)), *state, "{component}");
        }
    }
    let ended = client.server.close();
    assert!(ended.status.success() && ended.lines.is_empty(), "{ended:?}");
}
