//! What the host says about itself, to agents through the management tools and to scripts through `--json`.
//!
//! Wire contract: keys are camelCase and stay as they are, lists are sorted, and a tool's `outputSchema` is derived from these
//! types, with the comments as its descriptions. What is not known is null.

use policy::{Access, DirectoryGrant, Grants, Limits, Permission, Rule, Variable};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::confine::{InstanceMode, RuleSource};
use crate::id::ComponentId;

/// All components.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct ComponentList {
    /// Sorted by id.
    pub components: Vec<ComponentReport>,
}

/// One component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct ComponentReport {
    /// The name by which the other management tools know it.
    #[schemars(with = "String")]
    pub id: ComponentId,
    /// A broken component offers no tools.
    pub status: Status,
    /// Why it is broken.
    pub reason: Option<String>,
    /// Where it came from: a file, or an address.
    pub source: String,
    /// The digest of its bytes, as in `sha256:9f86…`; null where they could not be read.
    pub digest: Option<String>,
    /// In bytes.
    pub size: u64,
    /// The names of its tools, sorted.
    pub tools: Vec<String>,
    /// What it may use, and no other component.
    pub grants: Vec<GrantReport>,
    /// When it was added, as in `2026-11-16T08:30:00Z`.
    pub added_at: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Status {
    Ready,
    Broken,
}

/// What became of a component that was to be loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct LoadReport {
    /// What is loaded now.
    pub component: ComponentReport,
    /// Whether it is new, or was there already.
    pub outcome: LoadOutcome,
    /// What else should be known of it, such as a policy that came with it and was not applied.
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum LoadOutcome {
    Added,
    Unchanged,
}

/// What became of a component that was to be taken away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct UnloadReport {
    /// The component that is gone.
    #[schemars(with = "String")]
    pub id: ComponentId,
    /// Its tools and grants went with it.
    pub outcome: UnloadOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UnloadOutcome {
    Removed,
}

/// What a component may use, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct PolicyReport {
    /// The component.
    #[schemars(with = "String")]
    pub id: ComponentId,
    /// The digest of its bytes: grants are given to these.
    pub digest: Option<String>,
    /// What it may use, and no other component.
    pub grants: Vec<GrantReport>,
    /// What every component may use, since the host was started so. Cannot be revoked here.
    pub server_grants: Vec<GrantReport>,
    /// Every rule that holds for it, directories and all else, and who said so.
    pub rules: Vec<RuleReport>,
    /// Whether its calls share what it remembers.
    pub instance: InstanceMode,
    /// What it imports and was not granted at all.
    pub not_granted: Vec<MissingReport>,
    /// What one call may use up.
    pub limits: LimitsReport,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct RuleReport {
    /// As on the command line; the value of a variable is left out.
    pub rule: String,
    /// Who said so.
    pub from: RuleSource,
}

impl RuleReport {
    pub(crate) fn new(rule: &Rule, from: RuleSource) -> Self {
        let shown = match rule {
            Rule::Allow(Permission::Env(variable)) => Rule::Allow(Permission::Env(Variable {
                name: variable.name.clone(),
                value: variable.value.as_ref().map(|_| "…".to_owned()),
            })),
            other => other.clone(),
        };
        Self {
            rule: shown.to_string(),
            from,
        }
    }
}

/// Something that a component imports and has no use of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct MissingReport {
    /// What it is.
    pub what: String,
    /// The option that grants some of it.
    pub option: String,
}

/// A directory that a guest can reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct GrantReport {
    /// What may be done in it. `write` includes reading.
    #[schemars(schema_with = "access_schema")]
    pub kind: Access,
    /// The directory of this machine.
    pub host: String,
    /// The path under which the component finds it.
    pub guest: String,
}

/// What an agent wants to grant or revoke: a [`GrantReport`] is one, too.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DirectoryPermission {
    pub kind: Access,
    pub host: String,
    #[serde(default)]
    pub guest: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct LimitsReport {
    /// The time that a call may take, in milliseconds.
    pub timeout_ms: u64,
    /// The time that a call may compute, without waiting, in milliseconds.
    pub max_cpu_ms: u64,
    /// The memory of one call.
    pub max_memory_bytes: u64,
    /// What one call may give back.
    pub max_output_bytes: u64,
    /// What is kept of what a call prints to each stream.
    pub max_stdio_bytes: u64,
    /// What one call may receive over HTTP.
    pub max_received_bytes: u64,
    /// The time to reach a server, in milliseconds.
    pub connect_timeout_ms: u64,
    /// Files, connections and the like that one call has open at a time.
    pub max_handles: u32,
    /// Calls that run at the same time; others wait.
    pub max_concurrent_calls: u32,
    /// Calls that wait; others are told to come back.
    pub max_waiting_calls: u32,
}

/// `policy` knows no schemas.
fn access_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["read", "write"]})
}

impl GrantReport {
    /// Sorted by the path inside.
    pub fn all(grants: &Grants) -> Vec<Self> {
        let mut all: Vec<Self> = grants.directories.iter().map(Self::from).collect();
        all.sort_by(|a, b| (&a.guest, &a.host, a.kind).cmp(&(&b.guest, &b.host, b.kind)));
        all
    }
}

impl From<&DirectoryGrant> for GrantReport {
    fn from(grant: &DirectoryGrant) -> Self {
        Self {
            kind: grant.access,
            host: grant.directory.host.display().to_string(),
            guest: grant.directory.guest_path(),
        }
    }
}

impl From<&Limits> for LimitsReport {
    fn from(limits: &Limits) -> Self {
        let milliseconds = |timeout: policy::Timeout| timeout.duration().as_millis().try_into().unwrap_or(u64::MAX);
        Self {
            timeout_ms: milliseconds(limits.timeout),
            max_cpu_ms: milliseconds(limits.max_cpu),
            max_memory_bytes: limits.max_memory.bytes(),
            max_output_bytes: limits.max_output.bytes(),
            max_stdio_bytes: limits.max_stdio.bytes(),
            max_received_bytes: limits.max_received.bytes(),
            connect_timeout_ms: milliseconds(limits.connect_timeout),
            max_handles: limits.max_handles.get(),
            max_concurrent_calls: limits.max_concurrent_calls.get(),
            max_waiting_calls: limits.max_waiting_calls,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn grants(texts: &[(&str, Access)]) -> Grants {
        let grant = |(text, access): &(&str, Access)| DirectoryGrant {
            directory: text.parse().unwrap(),
            access: *access,
        };
        Grants {
            directories: texts.iter().map(grant).collect(),
            ..Grants::default()
        }
    }

    fn component(id: &str) -> ComponentReport {
        ComponentReport {
            id: id.to_owned().into(),
            status: Status::Ready,
            reason: None,
            source: format!("oci://example.com/{id}:1"),
            digest: Some("sha256:00".to_owned()),
            size: 5,
            tools: vec!["a".to_owned(), "b".to_owned()],
            grants: GrantReport::all(&grants(&[("/srv:/z", Access::Write), ("/srv/data", Access::Read)])),
            added_at: Some("2026-11-16T08:30:00Z".to_owned()),
        }
    }

    /// Clients and scripts rely on all of this.
    #[test]
    fn the_keys_are_these() {
        let list = ComponentList {
            components: ["a", "b", "c"].map(component).into(),
        };
        let list = serde_json::to_value(list).unwrap();
        let expected = json!({
            "id": "b",
            "status": "ready",
            "reason": null,
            "source": "oci://example.com/b:1",
            "digest": "sha256:00",
            "size": 5,
            "tools": ["a", "b"],
            "grants": [
                {"kind": "read", "host": "/srv/data", "guest": "/srv/data"},
                {"kind": "write", "host": "/srv", "guest": "/z"},
            ],
            "addedAt": "2026-11-16T08:30:00Z",
        });
        assert_eq!(list["components"][1], expected);
        assert_eq!(list.as_object().unwrap().len(), 1);

        let load = LoadReport {
            component: component("b"),
            outcome: LoadOutcome::Unchanged,
            notes: vec!["x".to_owned()],
        };
        assert_eq!(
            serde_json::to_value(load).unwrap(),
            json!({"component": expected, "outcome": "unchanged", "notes": ["x"]})
        );

        let unload = UnloadReport {
            id: "b".to_owned().into(),
            outcome: UnloadOutcome::Removed,
        };
        assert_eq!(
            serde_json::to_value(unload).unwrap(),
            json!({"id": "b", "outcome": "removed"})
        );

        let policy = PolicyReport {
            id: "b".to_owned().into(),
            digest: Some("sha256:00".to_owned()),
            grants: vec![],
            server_grants: GrantReport::all(&grants(&[("/c", Access::Read), ("/a", Access::Read), ("/b", Access::Write)])),
            rules: vec![RuleReport::new(
                &"--allow-env=TZ=UTC".parse().unwrap(),
                RuleSource::CommandLine,
            )],
            instance: InstanceMode::Fresh,
            not_granted: vec![],
            limits: (&Limits::default()).into(),
        };
        let policy = serde_json::to_value(policy).unwrap();
        assert_eq!(
            policy["serverGrants"][1],
            json!({"kind": "write", "host": "/b", "guest": "/b"})
        );
        assert_eq!(
            policy["limits"],
            json!({
                "timeoutMs": 30_000,
                "maxCpuMs": 30_000,
                "maxMemoryBytes": 512 << 20,
                "maxOutputBytes": 8 << 20,
                "maxStdioBytes": 1 << 20,
                "maxReceivedBytes": 64 << 20,
                "connectTimeoutMs": 10_000,
                "maxHandles": 1_000,
                "maxConcurrentCalls": 64,
                "maxWaitingCalls": 512,
            })
        );
        let keys: Vec<&String> = policy.as_object().unwrap().keys().collect();
        assert_eq!(
            keys,
            [
                "id",
                "digest",
                "grants",
                "serverGrants",
                "rules",
                "instance",
                "notGranted",
                "limits"
            ]
        );
        assert_eq!(
            policy["rules"][0],
            json!({"rule": "--allow-env=TZ=…", "from": "command-line"})
        );
    }

    #[test]
    fn what_is_reported_can_be_revoked() {
        let report = GrantReport {
            kind: Access::Read,
            host: "/srv".to_owned(),
            guest: "/data".to_owned(),
        };
        let permission: DirectoryPermission = serde_json::from_value(serde_json::to_value(report).unwrap()).unwrap();
        assert_eq!(permission.guest.as_deref(), Some("/data"));
    }
}
