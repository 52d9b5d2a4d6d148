//! How long the calls of a function take. To another thread and back costs more than a short call does, so it is worth knowing
//! which are short.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A call that takes longer is worth a change of threads.
const SHORT: Duration = Duration::from_micros(100);

/// How many short calls it takes to be trusted again after one that was not.
const DOUBTS: u32 = 10;

/// What the last calls were like. One that is taken for short and is not holds up others for a moment, so it is not soon taken for
/// short again.
#[derive(Debug)]
pub(crate) struct Pace {
    doubts: AtomicU32,
}

impl Default for Pace {
    /// Nothing is known, so the first call counts as long.
    fn default() -> Self {
        Self {
            doubts: AtomicU32::new(1),
        }
    }
}

impl Pace {
    /// Whether the next call will be short, as far as the last ones tell.
    pub(crate) fn is_short(&self) -> bool {
        self.doubts.load(Ordering::Relaxed) == 0
    }

    /// Notes how long a call took; none if it had to wait for something.
    pub(crate) fn took(&self, time: Option<Duration>) {
        let now = match time {
            Some(time) if time <= SHORT => self.doubts.load(Ordering::Relaxed).saturating_sub(1),
            _ => DOUBTS,
        };
        // Calls that end at the same time may lose each other's note; the next one tells as well.
        self.doubts.store(now, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_is_lost_at_once_and_won_slowly() {
        let pace = Pace::default();
        assert!(!pace.is_short(), "nothing is known of it");
        pace.took(Some(SHORT));
        assert!(pace.is_short());
        for long in [Some(SHORT * 2), None] {
            pace.took(long);
            for _ in 0..DOUBTS {
                assert!(!pace.is_short());
                pace.took(Some(SHORT));
            }
            assert!(pace.is_short());
        }
    }
}
