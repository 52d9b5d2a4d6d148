//! What one component is confined to: what it may use, how much of it, and how many of its calls run at a time.

use std::sync::{Arc, Mutex, PoisonError};

use policy::{Grants, Limits, Secrets};

use crate::directories::Directories;
use crate::gate::Gate;
use crate::invoke::Resident;
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
    pub(crate) limits: Limits,
    pub(crate) grants: Grants,
    pub(crate) secrets: Secrets,
    pub(crate) directories: Directories,
    /// The variables of this process that are granted, as they were at the start, and those that were given values.
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) network: Arc<Network>,
    pub(crate) gate: Gate,
    pub(crate) sharing: Sharing,
    /// The instance that is shared, while no call has it.
    resident: Mutex<Option<Resident>>,
}

impl Confinement {
    pub fn new(grants: Grants, limits: Limits, secrets: Secrets, sharing: Sharing, network: Arc<Network>) -> Self {
        let running = match sharing {
            Sharing::Fresh => limits.max_concurrent_calls.get(),
            Sharing::Shared => 1,
        };
        Self {
            gate: Gate::new(running, &limits),
            directories: Directories::open(&grants),
            environment: environment(&grants, &secrets),
            limits,
            grants,
            secrets,
            network,
            sharing,
            resident: Mutex::default(),
        }
    }

    /// Nothing but these limits.
    pub fn bare(limits: Limits) -> Self {
        Self::new(
            Grants::default(),
            limits,
            Secrets::default(),
            Sharing::Fresh,
            Arc::new(Network::none()),
        )
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

    pub(crate) fn take_resident(&self) -> Option<Resident> {
        self.resident.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn put_resident(&self, resident: Resident) {
        *self.resident.lock().unwrap_or_else(PoisonError::into_inner) = Some(resident);
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
