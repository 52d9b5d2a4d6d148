//! Who may run now, who waits, and who is told to come back later.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use policy::Limits;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::CallError;

/// Lets a number of calls run, and a number of others wait.
#[derive(Debug)]
pub(crate) struct Gate {
    permits: Arc<Semaphore>,
    waiting: AtomicU32,
    running: u32,
    max_waiting: u32,
}

impl Gate {
    /// For this many at a time.
    pub(crate) fn new(running: u32, limits: &Limits) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(running as usize)),
            waiting: AtomicU32::new(0),
            running,
            max_waiting: limits.max_waiting_calls,
        }
    }

    /// Whether nobody more can wait.
    pub(crate) fn is_full(&self) -> bool {
        self.permits.available_permits() == 0 && self.waiting.load(Ordering::SeqCst) >= self.max_waiting
    }

    /// Whether one runs and nobody waits.
    pub(crate) fn is_alone(&self) -> bool {
        self.permits.available_permits() + 1 == self.running as usize && self.waiting.load(Ordering::SeqCst) == 0
    }

    /// Waits for a place, for no longer than a call may take.
    pub(crate) async fn enter(&self, limits: &Limits) -> Result<OwnedSemaphorePermit, CallError> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(permit);
        }
        let busy = || CallError::Busy { running: self.running };
        let _waiting = Waiting::begin(&self.waiting, self.max_waiting).ok_or_else(busy)?;
        let permit = Arc::clone(&self.permits).acquire_owned();
        match tokio::time::timeout(limits.timeout.duration(), permit).await {
            // The semaphore is never closed.
            Ok(permit) => permit.map_err(|_| CallError::Stopped),
            Err(_) => Err(busy()),
        }
    }
}

/// One who waits; a call that is cancelled meanwhile waits no more.
struct Waiting<'a>(&'a AtomicU32);

impl<'a> Waiting<'a> {
    fn begin(count: &'a AtomicU32, max: u32) -> Option<Self> {
        let waiting = Self(count);
        // Counted first, so that two do not take the last place together; dropping takes the count back.
        (count.fetch_add(1, Ordering::SeqCst) < max).then_some(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
