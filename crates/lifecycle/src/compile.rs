//! Compiling in a process of its own, which can be ended: nothing else stops a compiler that somebody made slow or greedy on purpose.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};

use policy::Timeout;
use sandbox::{CodeError, CodeKey, CodeKind, Sandbox};

/// The most functions that are compiled. An interpreter with its library has some tens of thousands.
const MAX_FUNCTIONS: u32 = 300_000;

/// What the compiler may have of memory: of addresses, most of which it never touches.
const MAX_MEMORY: u64 = 8 << 30;

/// What is kept of what a compiler complains about.
const MAX_COMPLAINT: u64 = 16 << 10;

/// A program that compiles what it reads: this one, with a hidden command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileWorker {
    pub program: PathBuf,
}

/// Refuses what has more functions than anything has that somebody wrote.
pub(crate) fn check_size(bytes: &[u8]) -> Result<(), CodeError> {
    let functions = component2json::count_functions(bytes);
    if functions > MAX_FUNCTIONS {
        return Err(CodeError::TooManyFunctions {
            functions,
            limit: MAX_FUNCTIONS,
        });
    }
    Ok(())
}

impl CompileWorker {
    /// The code for bytes, within a time.
    pub(crate) fn compile(&self, bytes: &[u8], kind: CodeKind, key: &CodeKey, within: Timeout) -> Result<Vec<u8>, CodeError> {
        let failed = |what: &str, error: std::io::Error| CodeError::Worker(format!("{what}: {error}"));
        let child = Command::new(&self.program)
            .args(["compile-worker", kind.name(), key.as_str()])
            // It needs nothing of what this process was told.
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed("it could not be started", error))?;
        let mut child = Ended(child);
        let (Some(mut input), Some(mut output), Some(complaint)) =
            (child.0.stdin.take(), child.0.stdout.take(), child.0.stderr.take())
        else {
            return Err(CodeError::Worker("it has no pipes".to_owned()));
        };
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|threads| {
            threads.spawn(move || {
                // A compiler that gives up does not read to the end.
                let _ = input.write_all(bytes);
            });
            let complaint = threads.spawn(move || {
                let mut text = Vec::new();
                let _ = complaint.take(MAX_COMPLAINT).read_to_end(&mut text);
                String::from_utf8_lossy(&text).trim().to_owned()
            });
            threads.spawn(move || {
                let mut code = Vec::new();
                let read = output.read_to_end(&mut code).map(|_| code);
                // Whoever waited may have given up.
                let _ = sender.send(read);
            });
            let code = receiver.recv_timeout(within.duration());
            // In any case: what still runs is of no use, and the threads wait for it.
            let is_slow = code.is_err();
            if is_slow {
                child.end();
            }
            let status = child.0.wait().map_err(|error| failed("it got lost", error))?;
            let complaint = complaint.join().unwrap_or_default();
            match code {
                Err(_) => Err(CodeError::CompileDeadline(within)),
                Ok(code) if status.success() => code.map_err(|error| failed("its code could not be read", error)),
                Ok(_) if complaint.is_empty() => Err(CodeError::Worker(format!("it ended with {status}"))),
                Ok(_) => Err(CodeError::Compile(complaint)),
            }
        })
    }
}

/// How many compile at a time, in this process or for it: each takes all the processors and memory that it gets.
#[derive(Debug)]
pub(crate) struct Slots {
    free: Mutex<u32>,
    freed: Condvar,
}

impl Default for Slots {
    fn default() -> Self {
        Self {
            free: Mutex::new(2),
            freed: Condvar::new(),
        }
    }
}

/// A place among those who compile.
pub(crate) struct Slot<'a>(&'a Slots);

impl Slots {
    /// Waits for a place. For threads that may block.
    pub(crate) fn enter(&self) -> Slot<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |free: &mut u32| *free == 0;
        let mut free = self.freed.wait_while(free, is_full).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Slot(self)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}

/// A process that does not outlive this.
struct Ended(Child);

impl Ended {
    fn end(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.end();
        let _ = self.0.wait();
    }
}

/// What the worker does: compiles what it reads, for the engine that is named, and gives the code.
pub fn compile_in_worker(kind: &str, key: &str) -> Result<Vec<u8>, String> {
    bound_memory();
    let kind = CodeKind::from_name(kind).ok_or_else(|| format!("`{kind}` is no kind of code"))?;
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let (code, own_key) = Sandbox::compile_apart(&bytes, kind).map_err(|error| match error {
        CodeError::Compile(reason) => reason,
        other => other.to_string(),
    })?;
    if own_key.as_str() != key {
        return Err("the program on disk is not the one that runs; restart it".to_owned());
    }
    Ok(code)
}

#[cfg(unix)]
fn bound_memory() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let before = getrlimit(Resource::As);
    let current = before.current.map_or(MAX_MEMORY, |limit| limit.min(MAX_MEMORY));
    let bounded = Rlimit {
        current: Some(current),
        maximum: before.maximum,
    };
    // A lower limit can always be set.
    let _ = setrlimit(Resource::As, bounded);
    // Who is to have the code may be killed.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
}

#[cfg(not(unix))]
fn bound_memory() {}
