//! Telling of what takes long, to whoever shows it to a person.

use std::fmt;
use std::sync::Arc;

/// Something that takes long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Downloading { received: u64, total: Option<u64> },
    Downloaded,
    Compiling { size: u64 },
    Compiled,
}

type Told = dyn Fn(&Event) + Send + Sync;

/// Who is told. Nobody, by default.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<Told>>);

impl Progress {
    pub fn new(told: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(told)))
    }

    pub(crate) fn tell(&self, event: &Event) {
        if let Some(told) = &self.0 {
            told(event);
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress(…)")
    }
}
