//! Every command that changes the store, interrupted before each of its system calls that change files: by a kill, by a full disk, by
//! a disk that became read-only.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::scene::{PROGRAM, Scene, State, component, files, wit};
use crate::support::assert_readable;

/// What changes files, each with its other spellings: strace counts the calls of each spelling and of each thread by themselves.
const CALLS: [&str; 10] = [
    "?mkdir,mkdirat",
    "openat",
    "write,pwrite64",
    "fsync,fdatasync",
    "?rename,?renameat,renameat2",
    "?link,linkat",
    "?unlink,unlinkat",
    "ftruncate",
    "?chmod,fchmod,fchmodat",
    "flock",
];

/// A command, and what there is before and after it.
struct Operation {
    scene: Scene,
    command: &'static [&'static str],
    before: State,
    after: State,
    /// The files that are left once `gc` has run after it.
    files_after: Vec<PathBuf>,
    moments: Vec<Moment>,
}

/// A moment at which a command can be interrupted: the call of that number of the first thread, or of any thread.
#[derive(Clone, Copy)]
struct Moment {
    calls: &'static str,
    number: usize,
    threads: bool,
    /// Whether it changes the store, in whichever thread it is met.
    writes: bool,
}

impl Operation {
    fn new(command: &'static [&'static str], prepare: impl FnOnce(&Scene)) -> Self {
        let scene = Scene::new();
        prepare(&scene);
        let before = scene.state(&scene.copy().path().join("home"));
        let copy = scene.copy();
        let home = copy.path().join("home");
        let traced = Traced::run(&scene, &home, command, true, &CALLS.join(","), "");
        assert_eq!(traced.code, Some(0), "{command:?}: {}", traced.stderr);
        let after = scene.state(&home);
        assert_eq!(scene.run(&home, &["gc"]).code, 0);
        Self {
            moments: moments(&traced.log, &home),
            before,
            after,
            files_after: files(&home),
            command,
            scene,
        }
    }

    /// Does it with a copy of the store, and something at a moment of it.
    fn run(&self, home: &Path, moment: Moment, inject: &str) -> Traced {
        let inject = format!("{inject}:when={}", moment.number);
        Traced::run(&self.scene, home, self.command, moment.threads, moment.calls, &inject)
    }

    /// Fails unless the store is as it was before or as it is after, complete and in order, and the command can be done again.
    fn check(&self, home: &Path, context: &str) {
        let verified = self.scene.run(home, &["verify"]);
        assert_eq!(verified.code, 0, "{context}: {verified:?}");
        let state = self.scene.state(home);
        let is_done = state == self.after;
        assert!(is_done || state == self.before, "{context}: {state:#?}");

        let again = self.scene.run(home, self.command);
        let is_gone = is_done && self.command[0] == "remove";
        assert!(again.code == 0 || is_gone, "{context}: {again:?}");
        assert_eq!(self.scene.state(home), self.after, "{context}");
        let collected = self.scene.run(home, &["gc"]);
        assert_eq!(collected.code, 0, "{context}: {collected:?}");
        assert_eq!(files(home), self.files_after, "{context}");
    }
}

/// The moments at which a command touches the store, from the trace of all its threads.
fn moments(log: &str, home: &Path) -> Vec<Moment> {
    let first = log.split(' ').next().unwrap();
    // The lines of each call, numbered for each thread and each spelling.
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut numbered: BTreeMap<(&'static str, usize), Vec<&str>> = BTreeMap::new();
    for line in log.lines() {
        let Some((thread, call)) = line.split_once(' ') else {
            continue;
        };
        let Some((name, _)) = call.trim_start().split_once('(') else {
            continue;
        };
        let is_meant = |calls: &&str| calls.split(',').any(|call| call.trim_start_matches('?') == name);
        let Some(calls) = CALLS.into_iter().find(is_meant) else {
            continue;
        };
        let count = counts.entry((thread, name)).or_default();
        *count += 1;
        numbered.entry((calls, *count)).or_default().push(line);
    }
    let mut moments = Vec::new();
    for ((calls, number), lines) in numbered {
        let is_first = |line: &&&str| line.starts_with(first);
        // A full disk can still be read, and has room for pipes.
        let writes = |line: &&str| is_in(line, home) && (calls != "openat" || line.contains("O_CREAT"));
        let mut at = |met: &[&str], threads| {
            if met.first().is_some_and(|line| is_in(line, home)) {
                moments.push(Moment {
                    calls,
                    number,
                    threads,
                    writes: met.iter().all(writes),
                });
            }
        };
        at(&lines.iter().filter(is_first).copied().collect::<Vec<_>>(), false);
        // Where the first thread comes first it would be the one that is met, again.
        if !lines.first().is_some_and(|line| is_first(&line)) {
            at(&lines, true);
        }
    }
    moments
}

fn is_in(line: &str, home: &Path) -> bool {
    line.contains(home.to_str().unwrap())
}

/// What strace saw of a command.
struct Traced {
    /// None if it was killed.
    code: Option<i32>,
    stderr: String,
    log: String,
}

impl Traced {
    /// Runs a command, all of its threads or the first one, and does something at some of its system calls.
    fn run(scene: &Scene, home: &Path, command: &[&str], threads: bool, calls: &str, inject: &str) -> Self {
        let log = home.with_extension("log");
        let mut strace = Command::new("strace");
        strace
            .args(["-y", "-qq", "-s", "0", "-e", &format!("trace={calls}"), "-o"])
            .arg(&log);
        if threads {
            // Not the process that compiles: it writes no file.
            strace.args(["-f", "-b", "execve"]);
        }
        if !inject.is_empty() {
            strace.args(["-e", &format!("inject={calls}:{inject}")]);
        }
        strace.arg(env!("CARGO_BIN_EXE_host")).args(command);
        let output = scene.prepare(strace, home).output();
        let output = output.expect("this test needs strace: `apt-get install strace`");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!stderr.starts_with("strace: "), "strace cannot trace here: {stderr}");
        assert!(
            matches!(output.status.signal(), None | Some(9)),
            "{:?}: {stderr}",
            output.status
        );
        Self {
            code: output.status.code(),
            stderr,
            log: fs::read_to_string(log).unwrap(),
        }
    }
}

fn operations() -> Vec<Operation> {
    let first = |scene: &Scene| {
        scene.write("a.wat", &component("one", 1));
        scene.write("b.wat", &component("two", 2));
        scene.do_well(&["add", "a.wat", "--allow-read", "."]);
    };
    let second = |scene: &Scene| {
        first(scene);
        scene.do_well(&["add", "b.wat"]);
    };
    vec![
        Operation::new(&["add", "a.wat"], |scene| scene.write("a.wat", &component("one", 1))),
        Operation::new(&["add", "b.wat", "--allow-write", "."], first),
        Operation::new(&["add", "program.wat"], |scene| {
            first(scene);
            scene.write("program.wat", PROGRAM);
        }),
        // Its code is there already.
        Operation::new(&["add", "b.wat", "--allow-write", "."], |scene| {
            second(scene);
            scene.do_well(&["remove", "b"]);
        }),
        Operation::new(&["add", "a.wat", "--allow-write", "."], second),
        Operation::new(&["update", "a", "--keep-grants"], |scene| {
            second(scene);
            scene.write("a.wat", &component("one", 11));
        }),
        Operation::new(&["update", "--accept-changes"], |scene| {
            second(scene);
            scene.write("a.wat", &component("uno", 1));
        }),
        Operation::new(&["update", "--accept-changes"], |scene| {
            second(scene);
            scene.write("a.wit", &wit("one", "The one and only."));
        }),
        Operation::new(&["remove", "a"], second),
        Operation::new(&["gc"], |scene| {
            second(scene);
            scene.do_well(&["remove", "a"]);
            for file in [".tmp1", "cache/.tmp2", "components/.tmp3", "downloads/4", "running/.tmp5"] {
                scene.write(&format!("home/{file}"), "left behind");
            }
        }),
        Operation::new(&["call", "a", "one"], |scene| {
            second(scene);
            fs::remove_dir_all(scene.home().join("cache")).unwrap();
        }),
    ]
}

/// Does something at each moment of each operation; on two threads.
fn at_each_moment(what: impl Fn(&Operation, Moment) + Sync) {
    let operations = operations();
    let all = operations
        .iter()
        .flat_map(|operation| operation.moments.iter().map(move |moment| (operation, *moment)));
    let left = Mutex::new(all.collect::<Vec<_>>());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = left.lock().unwrap().pop();
                    let Some((operation, moment)) = next else { return };
                    what(operation, moment);
                }
            });
        }
    });
}

#[test]
fn a_kill_at_any_moment_leaves_the_old_or_the_new_state() {
    let kills = AtomicUsize::new(0);
    at_each_moment(|operation, moment| {
        let copy = operation.scene.copy();
        let home = copy.path().join("home");
        let traced = operation.run(&home, moment, "signal=SIGKILL");
        let context = format!(
            "{:?} at {} {}:\n{}",
            operation.command, moment.calls, moment.number, traced.log
        );
        assert_eq!(traced.code, None, "{context}: {}", traced.stderr);
        kills.fetch_add(1, Ordering::Relaxed);
        operation.check(&home, &context);
    });
    let kills = kills.into_inner();
    println!("{kills} kills");
    assert!(kills >= 200);
}

/// On a full disk, and on one that became read-only: what cannot be kept is told, and nothing is left behind.
#[test]
fn an_error_of_the_disk_at_any_moment_leaves_the_old_or_the_new_state_and_is_told() {
    let errors = AtomicUsize::new(0);
    at_each_moment(|operation, moment| {
        let names: &[&str] = match moment.calls.trim_start_matches('?').split(',').next().unwrap() {
            _ if !moment.writes => &[],
            // Threads also wake each other by writing, and no disk makes that fail.
            "write" if moment.threads => &[],
            "write" | "fsync" => &["ENOSPC", "EDQUOT", "EIO"],
            "mkdir" | "openat" | "rename" | "link" => &["ENOSPC", "EROFS"],
            "unlink" => &["EROFS"],
            _ => &[],
        };
        for error in names {
            let copy = operation.scene.copy();
            let home = copy.path().join("home");
            let traced = operation.run(&home, moment, &format!("error={error}"));
            let context = format!(
                "{:?}, {error} at {} {}: {}\n{}",
                operation.command, moment.calls, moment.number, traced.stderr, traced.log
            );
            let mut failed = traced.log.lines().filter(|line| line.contains("(INJECTED)"));
            // After the first error other threads may come to do something else by that number, such as filling a memory.
            if !failed.all(|line| is_in(line, &home)) {
                continue;
            }
            errors.fetch_add(1, Ordering::Relaxed);
            let state = operation.scene.state(&home);
            if traced.code == Some(0) {
                assert_eq!(state, operation.after, "{context}");
            } else {
                assert_eq!(state, operation.before, "{context}");
                let told = &traced.stderr[traced.stderr.find("error: ").expect(&context)..];
                assert_readable(told);
                assert!(*error == "EIO" || told.contains("\nhint: "), "{context}");
            }
            let (known, left) = (files(&operation.scene.home()), files(&home));
            let is_temporary = |path: &&PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(".tmp");
            let mut new = left.iter().filter(is_temporary).filter(|path| !known.contains(path));
            assert_eq!(new.next(), None, "{context}");
            operation.check(&home, &context);
        }
    });
    let errors = errors.into_inner();
    println!("{errors} errors");
    assert!(errors >= 200);
}
