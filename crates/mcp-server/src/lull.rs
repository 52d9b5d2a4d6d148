//! The moment between an answer and what the client says next.
//!
//! A thread that waits is put to sleep, and to wake it takes longer than most calls do. Who has just been asked again at once stays awake
//! for a moment after its answer, and looks for itself whether more has come. One such moment passes in vain for each time that a client
//! stops asking, and none where it thinks for longer between its requests.

use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use tokio::time::Instant;

/// What comes within this was said at once, even if both sides had to be woken up. So long a thread stays awake.
const AT_ONCE: Duration = Duration::from_micros(150);

/// Where there is but one core, the client needs it.
static HAS_CORES: LazyLock<bool> = LazyLock::new(|| thread::available_parallelism().is_ok_and(|cores| cores.get() > 1));

pub(crate) struct Lull {
    has_cores: bool,
    since: Option<Instant>,
    /// Whether the last one ended at once.
    was_short: bool,
}

impl Lull {
    pub(crate) fn new() -> Self {
        Self {
            has_cores: *HAS_CORES,
            since: None,
            was_short: false,
        }
    }

    /// Something was answered, or the first part of it. What else is said before the client says something does not make it longer.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// The client has said something, or a part of it: what follows in the same request changes nothing.
    pub(crate) fn end(&mut self, now: Instant) {
        if self.since.is_some() {
            self.was_short = self.is_young(now);
            self.since = None;
        }
    }

    /// Whether to look for more without going to sleep.
    pub(crate) fn is_watched(&self, now: Instant) -> bool {
        self.has_cores && self.was_short && self.is_young(now)
    }

    fn is_young(&self, now: Instant) -> bool {
        self.since.is_some_and(|since| now.duration_since(since) < AT_ONCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_is_asked_again_at_once_stays_awake() {
        let mut now = Instant::now();
        let mut lull = Lull {
            has_cores: true,
            ..Lull::new()
        };
        let almost = AT_ONCE - Duration::from_nanos(1);
        for (pause, stayed_awake) in [
            (almost, false),
            (almost, true),
            (almost, true),
            (AT_ONCE, true),
            (AT_ONCE, false),
            (almost, false),
            (almost, true),
        ] {
            lull.begin(now);
            assert_eq!(lull.is_watched(now + almost), stayed_awake);
            lull.begin(now + almost);
            assert!(!lull.is_watched(now + AT_ONCE), "not for longer than a moment");
            now += pause;
            for _ in 0..2 {
                lull.end(now);
                assert!(!lull.is_watched(now), "there is something to do");
                now += AT_ONCE;
            }
        }
        lull.begin(now);
        assert!(lull.is_watched(now));
        lull.has_cores = false;
        assert!(!lull.is_watched(now));
    }
}
