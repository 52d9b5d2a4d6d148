//! The threads that connections are served on. A connection stays on one of them.

use std::io;
use std::thread;

use tokio::runtime::{Builder, Handle};

use crate::lane::Lane;

/// One for each core.
pub(super) struct Lanes {
    all: Vec<Lane>,
    next: usize,
}

impl Lanes {
    pub(super) fn start() -> io::Result<Self> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let start = |_| {
            let mut runtime = Builder::new_current_thread();
            runtime.enable_all();
            Lane::start("http", runtime)
        };
        let all = (0..cores).map(start).collect::<io::Result<_>>()?;
        Ok(Self { all, next: 0 })
    }

    /// The one that has waited for longest.
    pub(super) fn next(&mut self) -> Option<&Handle> {
        self.next = (self.next + 1) % self.all.len().max(1);
        Some(&self.all.get(self.next)?.runtime)
    }
}
