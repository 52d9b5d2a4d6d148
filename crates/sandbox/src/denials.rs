//! What a guest asked for and did not get, so that whoever reads the result can be told which grant would have helped.

use std::sync::{Arc, Mutex, PoisonError};

use policy::{Refusal, Rule};

/// No more are remembered of one call: a guest that tries a thousand hosts learns nothing, and neither does its reader.
const REMEMBERED: usize = 16;

/// One thing that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// What was asked for, and why it was refused.
    pub what: String,
    /// The rule that would allow it, where there is one.
    pub remedy: Option<Rule>,
}

impl From<Refusal> for Denied {
    fn from(refusal: Refusal) -> Self {
        Self {
            what: refusal.to_string(),
            remedy: refusal.remedy,
        }
    }
}

/// The denials of one call; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Denials(Arc<Mutex<Vec<Denied>>>);

impl Denials {
    pub(crate) fn add(&self, denied: impl Into<Denied>) {
        let denied = denied.into();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < REMEMBERED && !all.contains(&denied) {
            all.push(denied);
        }
    }

    /// All of them. There are none afterwards.
    pub(crate) fn take(&self) -> Vec<Denied> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
