//! Times of many calls, and what is said of them.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// How often it is each one's turn.
const TURNS: usize = 10;

/// How long each of many took, the fastest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// The times of one where each was the time of so many.
    pub(crate) fn per(self, count: u32) -> Self {
        Self(self.0.into_iter().map(|time| time / count).collect())
    }

    pub(crate) fn median(&self) -> Duration {
        self.percentile(50)
    }

    /// The time within which so many of a hundred ended.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let last = self.0.len().saturating_sub(1);
        self.0.get(last * percent / 100).copied().unwrap_or_default()
    }

    pub(crate) fn slowest(&self) -> Duration {
        self.percentile(100)
    }
}

/// How long something takes, so many times.
pub(crate) fn measure(rounds: usize, mut work: impl FnMut() -> Result<()>) -> Result<Times> {
    let times = (0..rounds).map(|_| {
        let begin = Instant::now();
        work()?;
        Ok(begin.elapsed())
    });
    Ok(Times::new(times.collect::<Result<_>>()?))
}

/// Does something for each, in turns: where the machine gets slower or faster meanwhile, it does so for all alike, and ratios stay true.
pub(crate) fn in_turns<T>(all: &mut [T], mut work: impl FnMut(&mut T) -> Result<Times>) -> Result<Vec<Times>> {
    let mut times = vec![Vec::new(); all.len()];
    for _ in 0..TURNS {
        for (one, times) in all.iter_mut().zip(&mut times) {
            times.extend(work(one)?.0);
        }
    }
    Ok(times.into_iter().map(Times::new).collect())
}

/// How many rounds of something make up one turn, if all turns together are to take about this long.
pub(crate) fn rounds_within(budget: Duration, most: usize, mut work: impl FnMut() -> Result<()>) -> Result<usize> {
    const FIRST: u32 = 20;
    let begin = Instant::now();
    for _ in 0..FIRST {
        work()?;
    }
    let one = begin.elapsed() / FIRST;
    let rounds = budget.as_nanos() / one.as_nanos().max(1);
    let rounds = usize::try_from(rounds).context("more rounds than can be counted")?;
    Ok((rounds / TURNS).clamp(2, most / TURNS))
}

pub(crate) fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64().max(f64::MIN_POSITIVE)
}

pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
