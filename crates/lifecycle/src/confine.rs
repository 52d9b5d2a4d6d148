//! What a component may use, put together from everybody who has a say in it, and who that was.

use std::sync::Arc;

use policy::{Contradiction, Grants, LimitSettings, Limits, Permission, Rule, SecretName, Secrets};
use sandbox::{Confinement, Sharing};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::{ComponentConfig, Rules};
use crate::id::ComponentId;
use crate::loaded::{Loaded, Origin};
use crate::manager::LifecycleManager;
use crate::report::RuleReport;

/// Where a rule comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RuleSource {
    // `host grant`, or `host add`: for the bytes that were there then.
    Grant,
    // `[components.ID]` of `host.toml`.
    Component,
    // `[defaults]` of `host.toml`.
    Defaults,
    // The command line of this process, or the policy file that it names.
    CommandLine,
}

impl std::fmt::Display for RuleSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Grant => "host grant",
            Self::Component => "host.toml, this component",
            Self::Defaults => "host.toml, [defaults]",
            Self::CommandLine => "command line",
        })
    }
}

/// Whether the calls of a component share what it remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum InstanceMode {
    // Every call has an instance of its own.
    #[default]
    Fresh,
    // One instance takes all calls, one after the other; after a failure a new one does.
    Shared,
}

/// Everything that is said of one component.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Policy {
    /// Who comes first is heard first: a path inside keeps the directory that it has there.
    pub(crate) layers: Vec<(RuleSource, Grants)>,
    pub(crate) limits: Limits,
    pub(crate) instance: InstanceMode,
}

impl Policy {
    /// All layers together.
    pub(crate) fn grants(&self) -> Grants {
        let mut layers = self.layers.iter().map(|(_, grants)| grants);
        let first = layers.next().cloned().unwrap_or_default();
        layers.fold(first, |all, layer| all.and(layer))
    }

    /// Every rule that holds, with who said it first. One that another place overrules does not hold.
    pub(crate) fn rules(&self) -> Vec<RuleReport> {
        let mut effective = self.grants().rules();
        let mut reports = Vec::new();
        for (source, grants) in &self.layers {
            for rule in grants.rules() {
                if let Some(index) = effective.iter().position(|known| *known == rule) {
                    effective.remove(index);
                    reports.push(RuleReport::new(&rule, *source));
                }
            }
        }
        reports
    }
}

impl LifecycleManager {
    /// Everything that is said of a component.
    pub(crate) fn policy(&self, origin: &Origin) -> Policy {
        let file = self.file();
        let nothing = ComponentConfig::default();
        let own = file.components.get(&origin.id()).unwrap_or(&nothing);
        let granted = match origin {
            Origin::Added(entry) => entry.grants.clone(),
            Origin::File(_) => Grants::default(),
        };
        // The file was checked when it was read: its rules do not contradict each other.
        let of_file = |rules: Rules<'_>| rules.grants().unwrap_or_default();
        let layers = [
            (RuleSource::CommandLine, Grants::clone(&self.config.grants)),
            (RuleSource::Grant, granted),
            (RuleSource::Component, of_file(own.rules())),
            (RuleSource::Defaults, of_file(file.defaults.rules())),
        ];
        Policy {
            layers: layers.into_iter().filter(|(_, grants)| !grants.is_empty()).collect(),
            limits: self.limits_of(&own.limits),
            instance: own.instance.or(file.defaults.instance).unwrap_or_default(),
        }
    }

    /// The command line comes before what is said of a component, and that before what is said of all.
    fn limits_of(&self, own: &LimitSettings) -> Limits {
        let all = self.file().defaults.limits.over(&Limits::default());
        self.config.limits.over(&own.over(&all))
    }

    /// The walls around a component: those that it has already, if nothing about them has changed.
    pub(crate) fn confinement(&self, id: &ComponentId, origin: &Origin, old: Option<&Arc<Loaded>>) -> Arc<Confinement> {
        let policy = self.policy(origin);
        let grants = policy.grants();
        let secrets = self.secrets_for(id, origin, &policy);
        let sharing = match policy.instance {
            InstanceMode::Fresh => Sharing::Fresh,
            InstanceMode::Shared => Sharing::Shared,
        };
        let is_same = |old: &&Arc<Confinement>| {
            *old.grants() == grants && *old.limits() == policy.limits && *old.secrets() == secrets && old.sharing() == sharing
        };
        match old.map(|old| &old.confinement).filter(is_same) {
            Some(old) => Arc::clone(old),
            None => Arc::new(Confinement::new(
                id.as_str(),
                grants,
                policy.limits,
                secrets,
                sharing,
                Arc::clone(&self.network),
            )),
        }
    }

    /// The secrets of a component that it may have. Those of an id that a config file names go to a file of that name only if its bytes are
    /// named there, too: any file can have any name.
    fn secrets_for(&self, id: &ComponentId, origin: &Origin, policy: &Policy) -> Secrets {
        let is_pinned = self.file().components.get(id).is_some_and(|own| own.sha256.is_some());
        let counts = |source: &RuleSource| match (origin, source) {
            (Origin::Added(_), _) | (_, RuleSource::CommandLine) => true,
            (Origin::File(_), _) => is_pinned,
        };
        let layers = policy.layers.iter().filter(|(source, _)| counts(source));
        let layers: Vec<&Grants> = layers.map(|(_, grants)| grants).collect();
        let has_all = layers.iter().any(|grants| grants.all);
        let named: Vec<&SecretName> = layers.iter().flat_map(|grants| &grants.secrets).collect();
        if named.is_empty() && !has_all {
            return Secrets::default();
        }
        let granted = |name: &SecretName| has_all || named.contains(&name);
        let secrets = match self.store().and_then(|store| store.granted_secrets(id, granted)) {
            Ok(secrets) => secrets,
            Err(error) => {
                tracing::error!("{error}");
                return Secrets::default();
            }
        };
        for name in named {
            if !secrets.iter().any(|(known, _)| known == name) {
                tracing::warn!(
                    "the secret `{name}` is granted to `{id}`, and has no value: `host secret set {id} {name}` gives it one"
                );
            }
        }
        secrets
    }
}

impl Rules<'_> {
    /// What these rules grant.
    pub(crate) fn grants(&self) -> Result<Grants, Contradiction> {
        let mut grants = Grants::default();
        for permission in self.allow {
            grants.allow(permission.clone())?;
        }
        for denial in self.deny {
            grants.deny(denial.clone());
        }
        for (name, value) in self.env {
            let variable = policy::Variable {
                name: name.clone(),
                value: Some(value.clone()),
            };
            grants.allow(Permission::Env(variable))?;
        }
        for name in self.secrets {
            grants.allow(Permission::Secret(name.clone()))?;
        }
        Ok(grants)
    }
}

/// What a component imports and was not granted, in words, with the option that would grant it.
pub(crate) fn not_granted(imports: &[String], grants: &Grants) -> Vec<(String, &'static str)> {
    if grants.all {
        return Vec::new();
    }
    let has = |prefixes: &[&str]| {
        imports
            .iter()
            .any(|import| prefixes.iter().any(|prefix| import.starts_with(prefix)))
    };
    let wants = [
        (
            has(&["wasi:filesystem/", "wasi_snapshot_preview1.path_"]) && grants.directories.is_empty(),
            "files",
            "--allow-read=DIR",
        ),
        (
            has(&["wasi:http/outgoing-handler", "wasi:http/client"]) && grants.network.is_empty(),
            "HTTP requests",
            "--allow-net=HOST",
        ),
        (
            has(&["wasi:sockets/tcp", "wasi:sockets/udp", "wasi:sockets/types"]) && grants.network.is_empty(),
            "sockets",
            "--allow-net=HOST:PORT",
        ),
        (
            has(&["wasi:cli/environment", "wasi_snapshot_preview1.environ_get"])
                && grants.environment.is_empty()
                && grants.secrets.is_empty(),
            "environment variables",
            "--allow-env=NAME",
        ),
        (
            has(&["wasi:config/"]) && grants.environment.is_empty() && grants.secrets.is_empty(),
            "configuration",
            "--allow-secret=NAME",
        ),
    ];
    let missing = wants.into_iter().filter(|(is_missing, ..)| *is_missing);
    missing.map(|(_, what, option)| (what.to_owned(), option)).collect()
}

/// How a person allows something: for good where the component was added, else when the host is started.
pub(crate) fn remedy(origin: &Origin, rule: &Rule) -> String {
    match origin {
        Origin::Added(entry) => format!(
            "`host grant {} {rule}` allows it, or `{rule}` when the host is started",
            entry.id
        ),
        Origin::File(_) => format!("`{rule}` allows it when the host is started"),
    }
}
