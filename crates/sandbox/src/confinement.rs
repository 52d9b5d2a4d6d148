//! What one component is confined to: what it may use, how much of it, and how many of its calls run at a time.

use std::sync::Arc;

use policy::{Grants, Limits, Secrets};
use tokio::sync::Semaphore;

use crate::directories::Directories;
use crate::gate::Gate;
use crate::network::Network;

/// Whether calls share what a component remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Every call has an instance of its own, and nothing is remembered.
    #[default]
    Fresh,
    /// One instance takes all calls, one after the other, until one fails.
    Shared,
}

/// The walls around a component. Its directories are opened when this is made, and stay the same whatever their paths lead to later.
#[derive(Debug)]
pub struct Confinement {
    /// What a person knows the component by.
    pub(crate) name: String,
    pub(crate) limits: Limits,
    pub(crate) grants: Grants,
    pub(crate) secrets: Secrets,
    pub(crate) directories: Directories,
    /// The variables of this process that are granted, as they were at the start, and those that were given values.
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) network: Arc<Network>,
    pub(crate) gate: Arc<Gate>,
    /// Calls that may wait for answers at the same time: the others of its places are for those who do not.
    pub(crate) waiting_for_answers: Semaphore,
    pub(crate) sharing: Sharing,
}

impl Confinement {
    pub fn new(name: &str, grants: Grants, limits: Limits, secrets: Secrets, sharing: Sharing, network: Arc<Network>) -> Self {
        let running = match sharing {
            Sharing::Fresh => limits.max_concurrent_calls.get(),
            Sharing::Shared => 1,
        };
        Self {
            gate: Arc::new(Gate::new(running, &limits)),
            waiting_for_answers: Semaphore::new((running / 4).max(1) as usize),
            directories: Directories::open(&grants),
            environment: environment(&grants, &secrets),
            name: name.to_owned(),
            limits,
            grants,
            secrets,
            network,
            sharing,
        }
    }

    /// Nothing but these limits.
    pub fn bare(limits: Limits) -> Self {
        Self::new(
            "",
            Grants::default(),
            limits,
            Secrets::default(),
            Sharing::Fresh,
            Arc::new(Network::none()),
        )
    }

    /// The same places in the queue, with nothing but these limits.
    pub fn with_nothing_granted(&self, limits: Limits) -> Self {
        Self {
            gate: Arc::clone(&self.gate),
            ..Self::bare(limits)
        }
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    pub fn sharing(&self) -> Sharing {
        self.sharing
    }
}

/// What the guest finds in its environment and its configuration.
fn environment(grants: &Grants, secrets: &Secrets) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    if grants.all {
        all.extend(std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))));
    }
    for variable in &grants.environment {
        let name = variable.name.to_string();
        let value = match &variable.value {
            Some(value) => Some(value.clone()),
            None => std::env::var(&name).ok(),
        };
        if let Some(value) = value {
            all.retain(|(known, _)| *known != name);
            all.push((name, value));
        }
    }
    for (name, value) in secrets.iter() {
        all.retain(|(known, _)| *known != name.to_string());
        all.push((name.to_string(), value.expose().to_owned()));
    }
    all
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::error::CallError;

    #[tokio::test]
    async fn with_nothing_granted_there_is_no_second_queue() {
        let limits = Limits {
            max_concurrent_calls: NonZeroU32::MIN,
            max_waiting_calls: 0,
            ..Limits::default()
        };
        let walls = Confinement::bare(limits);
        let bare = walls.with_nothing_granted(Limits::default());
        let place = walls.gate.enter(&walls.limits).await.unwrap();
        assert!(matches!(
            bare.gate.enter(&bare.limits).await,
            Err(CallError::Busy { running: 1 })
        ));
        drop(place);
        assert!(bare.gate.enter(&bare.limits).await.is_ok());
    }
}
