//! How long a call may still take. The time in which it waits for a person does not count.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// The end of a call; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Deadline {
    state: Arc<Mutex<State>>,
    resumed: Arc<Notify>,
}

#[derive(Debug)]
struct State {
    end: Instant,
    /// Since when nothing counts, and how many have a reason for it.
    paused: Option<(Instant, usize)>,
}

impl Deadline {
    pub(crate) fn after(time: Duration) -> Self {
        let state = State {
            end: Instant::now() + time,
            paused: None,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            resumed: Arc::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is left of the time.
    pub(crate) fn left(&self) -> Duration {
        let state = self.state();
        let now = state.paused.map_or_else(Instant::now, |(since, _)| since);
        state.end.saturating_duration_since(now)
    }

    pub(crate) fn has_passed(&self) -> bool {
        self.left().is_zero()
    }

    /// Nothing counts until what is returned is dropped.
    pub(crate) fn pause(&self) -> Pause {
        let mut state = self.state();
        let (since, reasons) = state.paused.unwrap_or((Instant::now(), 0));
        state.paused = Some((since, reasons + 1));
        Pause(self.clone())
    }

    /// Waits for the end.
    pub(crate) async fn passed(&self) {
        loop {
            let resumed = self.resumed.notified();
            let (left, is_paused) = (self.left(), self.state().paused.is_some());
            match (left.is_zero(), is_paused) {
                (true, false) => return,
                (_, true) => resumed.await,
                (false, false) => tokio::time::sleep(left).await,
            }
        }
    }
}

/// A time that does not count.
pub(crate) struct Pause(Deadline);

impl Drop for Pause {
    fn drop(&mut self) {
        let mut state = self.0.state();
        match state.paused {
            Some((since, 1)) => {
                state.end += since.elapsed();
                state.paused = None;
                self.0.resumed.notify_waiters();
            }
            Some((since, reasons)) => state.paused = Some((since, reasons - 1)),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_waited_does_not_count() {
        let deadline = Deadline::after(Duration::from_millis(50));
        let pause = deadline.pause();
        tokio::time::sleep(Duration::from_millis(120)).await;
        assert!(!deadline.has_passed());
        let other = deadline.pause();
        drop(pause);
        assert!(!deadline.has_passed(), "one reason is left");
        drop(other);
        assert!(!deadline.has_passed());
        deadline.passed().await;
        assert!(deadline.has_passed());
    }
}
