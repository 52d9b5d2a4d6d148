//! A thread with a runtime of its own.
//!
//! What is asked on it begins on it, and is answered there: from one thread to another and back takes longer than most calls do. Guests that
//! take longer go on elsewhere, so nobody waits for them here.

use std::io;
use std::sync::mpsc::sync_channel;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The thread ends when this is dropped. Its runtime is a [current-thread one](Builder::new_current_thread).
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) runtime: Handle,
    _end: DropGuard,
}

impl Lane {
    pub(crate) fn start(name: &str, mut runtime: Builder) -> io::Result<Self> {
        let end = CancellationToken::new();
        let ended = end.clone();
        let (started, starting) = sync_channel(1);
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            // Made here, so that it is never dropped on the thread that asks for it: inside of a runtime that panics.
            let runtime = match runtime.build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(started.send(Err(error))),
            };
            if started.send(Ok(runtime.handle().clone())).is_ok() {
                runtime.block_on(ended.cancelled());
            }
            runtime.shutdown_background();
        })?;
        Ok(Self {
            runtime: starting.recv().map_err(io::Error::other)??,
            _end: end.drop_guard(),
        })
    }
}
