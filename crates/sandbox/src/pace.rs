//! How long the calls of a function take. To another thread and back costs more than a short call does, so it is worth knowing
//! which are short.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A call that takes longer is worth a change of threads, if anybody else has something to do meanwhile.
const SHORT: Duration = Duration::from_micros(200);

/// A call that takes longer is worth one in any case: whatever is asked while it runs would wait for it.
const BRIEF: Duration = Duration::from_millis(1);

/// What a longer call adds to the doubts; one within the bound takes one of them away. So many at most, and so many are too many: one call
/// that was held up says nothing, two in a row do.
const LONG: u32 = 4;
const MOST: u32 = 10;
const TOO_MANY: u32 = 5;

/// What the last calls were like. One that is taken for short and is not holds up others for a moment.
#[derive(Debug)]
pub(crate) struct Pace {
    short: Bound,
    brief: Bound,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            short: Bound::of(SHORT),
            brief: Bound::of(BRIEF),
        }
    }
}

impl Pace {
    /// Whether the next call will be short, as far as the last ones tell.
    pub(crate) fn is_short(&self) -> bool {
        self.short.doubts() < TOO_MANY
    }

    /// Whether the next call may be short: nothing speaks against it, or not enough, and there may have been none yet.
    pub(crate) fn may_be_short(&self) -> bool {
        self.short.doubts() <= TOO_MANY
    }

    /// Whether the next call will be so short, as far as the last ones tell, that it is worth no change of threads while nobody else has
    /// something to do.
    pub(crate) fn is_brief(&self) -> bool {
        self.brief.doubts() < TOO_MANY
    }

    /// Notes how long a call took; none if it had to wait for something.
    pub(crate) fn took(&self, time: Option<Duration>) {
        self.short.took(time);
        self.brief.took(time);
    }
}

/// Whether calls stay within a time.
#[derive(Debug)]
struct Bound {
    time: Duration,
    doubts: AtomicU32,
}

impl Bound {
    /// Nothing is known.
    fn of(time: Duration) -> Self {
        Self {
            time,
            doubts: AtomicU32::new(TOO_MANY),
        }
    }

    fn doubts(&self) -> u32 {
        self.doubts.load(Ordering::Relaxed)
    }

    fn took(&self, time: Option<Duration>) {
        let doubts = self.doubts();
        let now = match time {
            Some(time) if time <= self.time => doubts.saturating_sub(1),
            _ => (doubts + LONG).min(MOST),
        };
        // Calls that end at the same time may lose each other's note; the next one tells as well.
        self.doubts.store(now, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_long_call_says_nothing_and_two_do() {
        let pace = Pace::default();
        assert!(!pace.is_short() && pace.may_be_short(), "nothing is known of it");
        for _ in 0..TOO_MANY {
            pace.took(Some(SHORT));
            assert!(pace.is_short());
        }
        for long in [Some(SHORT * 2), None] {
            pace.took(long);
            assert!(pace.is_short(), "it may have been held up");
            pace.took(long);
            assert!(!pace.is_short() && !pace.may_be_short());
            pace.took(long);
            for _ in TOO_MANY..MOST {
                pace.took(Some(SHORT));
                assert!(!pace.is_short(), "trust is won slowly");
            }
            for _ in 0..TOO_MANY {
                pace.took(Some(SHORT));
                assert!(pace.is_short());
            }
        }
    }

    #[test]
    fn what_is_too_long_to_be_short_may_be_brief() {
        let pace = Pace::default();
        assert!(!pace.is_brief(), "nothing is known of it");
        for _ in 0..TOO_MANY {
            pace.took(Some(BRIEF));
        }
        assert!(pace.is_brief() && !pace.may_be_short());
        for long in [Some(BRIEF * 2), None] {
            pace.took(long);
        }
        assert!(!pace.is_brief());
        for _ in 0..MOST {
            pace.took(Some(SHORT));
        }
        assert!(pace.is_brief() && pace.is_short());
    }
}
