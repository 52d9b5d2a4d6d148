//! The threads that connections are served on.
//!
//! A connection stays on one of them, and what is asked over it begins there: from one thread to another and back takes longer than most
//! calls do. Guests that take longer go on elsewhere, so nobody waits for them here.

use std::io;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

/// One for each core.
pub(super) struct Lanes {
    all: Vec<Handle>,
    next: usize,
    end: CancellationToken,
}

impl Lanes {
    pub(super) fn start() -> io::Result<Self> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let mut lanes = Self {
            all: Vec::with_capacity(cores),
            next: 0,
            end: CancellationToken::new(),
        };
        for _ in 0..cores {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            lanes.all.push(runtime.handle().clone());
            let end = lanes.end.clone();
            thread::Builder::new().name("http".to_owned()).spawn(move || {
                runtime.block_on(end.cancelled());
                runtime.shutdown_background();
            })?;
        }
        Ok(lanes)
    }

    /// The one that has waited for longest.
    pub(super) fn next(&mut self) -> Option<&Handle> {
        self.next = (self.next + 1) % self.all.len().max(1);
        self.all.get(self.next)
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.end.cancel();
    }
}
