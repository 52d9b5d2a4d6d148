//! The clock that interrupts guests: while calls run, it advances the engine's epoch; otherwise it sleeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use wasmtime::Engine;

/// How often a running guest is made to look at its deadline and let others run.
pub(crate) const TICK: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) struct Ticker {
    running: Arc<AtomicUsize>,
    thread: Thread,
}

/// Keeps the clock going until it is dropped.
#[derive(Debug)]
pub(crate) struct Ticking(Arc<AtomicUsize>);

impl Ticker {
    pub(crate) fn new(engine: &Engine) -> std::io::Result<Self> {
        let running = Arc::new(AtomicUsize::new(0));
        let engine = engine.weak();
        let calls = Arc::clone(&running);
        let thread = thread::Builder::new().name("epoch".into()).spawn(move || {
            loop {
                if calls.load(Ordering::SeqCst) == 0 {
                    thread::park();
                }
                thread::sleep(TICK);
                match engine.upgrade() {
                    Some(engine) => engine.increment_epoch(),
                    None => return,
                }
            }
        })?;
        Ok(Self {
            running,
            thread: thread.thread().clone(),
        })
    }

    pub(crate) fn start(&self) -> Ticking {
        if self.running.fetch_add(1, Ordering::SeqCst) == 0 {
            self.thread.unpark();
        }
        Ticking(Arc::clone(&self.running))
    }
}

impl Drop for Ticker {
    /// Wakes the thread so that it sees that its engine is gone.
    fn drop(&mut self) {
        self.running.fetch_add(1, Ordering::SeqCst);
        self.thread.unpark();
    }
}

impl Drop for Ticking {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
