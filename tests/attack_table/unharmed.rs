//! What must be true after every attack.

use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Home, Server, guest, proc};

/// How much more memory the process may have than before. A leak of a few rounds shows through it; what the allocator keeps for the
/// next call does not.
const SLACK_KIBIBYTES: u64 = 32 << 10;

/// How often an attack is made before anything is measured: code is mapped then, and pools are filled.
pub(crate) const WARM_UP: usize = 2;

/// How often it is made between the two measurements.
pub(crate) const ROUNDS: usize = 3;

/// The component that has done nothing to deserve any of this. It adds two numbers.
pub(crate) const GOOD: &str = r#"(component
    (core module $code
        (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))
    (core instance $guest (instantiate $code))
    (func (export "add") (param "a" s32) (param "b" s32) (result s32) (canon lift (core func $guest "add"))))"#;

/// The file of the good component, in the folder of a test.
pub(crate) fn good(home: &Home) -> PathBuf {
    home.write("good.wat", GOOD)
}

/// What a process holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    process: u32,
    kibibytes: u64,
    files: usize,
}

impl Held {
    pub(crate) fn by(process: u32) -> Self {
        Self {
            process,
            kibibytes: proc::status(process, "VmRSS"),
            files: proc::open_files(process),
        }
    }

    fn is_no_more_than(&self, before: &Self) -> bool {
        self.files <= before.files && self.kibibytes <= before.kibibytes + SLACK_KIBIBYTES
    }

    /// What the process holds now, if that is more and stays more for so long: files are closed after the answer was given.
    pub(crate) fn outgrown(&self, patience: Duration) -> Option<Self> {
        let begun = Instant::now();
        let mut now = Self::by(self.process);
        while begun.elapsed() < patience {
            if now.is_no_more_than(self) {
                return None;
            }
            thread::sleep(Duration::from_millis(100));
            now = Self::by(self.process);
        }
        Some(now)
    }

    /// Fails unless the process holds no more than this, at the latest after a while.
    pub(crate) fn assert_still(&self) {
        if let Some(now) = self.outgrown(Duration::from_secs(60)) {
            panic!("{self:?} became {now:?}");
        }
    }
}

/// A server with attackers, and with the good component, which came first and so has its tool under the plain name `add`.
pub(crate) struct Host {
    pub(crate) server: Server,
}

impl Host {
    pub(crate) fn serve(home: &Home, options: &[&str], attackers: &[&str]) -> Self {
        let attackers: Vec<PathBuf> = attackers.iter().map(|name| guest(name)).collect();
        Self::serve_files(home, options, &attackers)
    }

    pub(crate) fn serve_files(home: &Home, options: &[&str], attackers: &[PathBuf]) -> Self {
        let mut command = home.host(&["serve"]);
        command.args(options).arg(good(home)).args(attackers);
        Self::start(&mut command)
    }

    /// A server of whatever the command line says; the good component must be part of it.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut server = Server::start(command);
        server.initialize();
        Self { server }
    }

    /// Makes the attack, again and again, and fails unless after each the good component answers, and at the end the process holds
    /// no more than it did.
    pub(crate) fn survives(&mut self, mut attack: impl FnMut(&mut Server)) {
        let mut attack = |server: &mut Server, times: usize| {
            for _ in 0..times {
                attack(server);
                assert_good(server);
            }
        };
        attack(&mut self.server, WARM_UP);
        let before = Held::by(self.server.pid());
        attack(&mut self.server, ROUNDS);
        before.assert_still();
        assert_good(&mut self.server);
    }

    pub(crate) fn close_well(self) {
        self.server.close_well();
    }
}

/// Fails unless the good component answers.
pub(crate) fn assert_good(server: &mut Server) {
    let result = server.call("add", &json!({"a": 2, "b": 40}));
    assert_eq!(result["structuredContent"], json!({"result": 42}), "{result}");
}
