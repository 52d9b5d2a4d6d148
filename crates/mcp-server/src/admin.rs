//! The tools with which an agent manages the host. They exist only where the person who started it said so.
//!
//! Their inputs are described and read like those of any function of a component, so that a mistake is told in the same words.
//! What an agent may load or grant is decided by `lifecycle`.

mod schema;

use std::collections::BTreeMap;
use std::sync::Arc;

use component2json::{ArgumentErrors, ExportName, Field, Function, Kind, Label, Type, TypeRef, input_schema, json_to_arguments};
use lifecycle::{
    AdminError, AuditError, CallOutcome, ComponentId, ComponentList, DirectoryPermission, LifecycleManager, LoadReport,
    PolicyReport, UnloadReport,
};
use rmcp::model::{Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::handler::object;

/// A management tool.
#[derive(Debug)]
pub(crate) struct AdminTool {
    action: Action,
    /// What arguments are read by.
    plan: Function,
    /// As clients see it.
    pub(crate) definition: Tool,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    GetPolicy,
    Grant,
    List,
    Load,
    Reset,
    Revoke,
    Unload,
}

/// Why a management tool did nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{0}")]
    Arguments(ArgumentErrors),
    #[error(transparent)]
    Refused(#[from] AdminError),
    #[error(transparent)]
    Audit(#[from] AuditError),
    #[error("the host itself failed in this call: {0}. Please report this")]
    Json(#[from] serde_json::Error),
}

/// All of them, by name.
pub(crate) fn tools() -> BTreeMap<&'static str, Arc<AdminTool>> {
    let id = || field("id", "The component, as `list_components` names it", text());
    let read_only = ToolAnnotations::new().read_only(true).open_world(false);
    let additive = ToolAnnotations::new().destructive(false).idempotent(true).open_world(false);
    let destructive = ToolAnnotations::new().destructive(true).idempotent(true).open_world(false);
    let all = [
        tool::<PolicyReport>(
            Action::GetPolicy,
            ("get_policy", "Get policy"),
            "Show what a component may use: every rule that holds for it and who said so, what it asks for and was not granted, and its limits.",
            vec![id()],
            read_only.clone(),
        ),
        tool::<PolicyReport>(
            Action::Grant,
            ("grant_permission", "Grant permission"),
            "Let a component use a directory of this machine. The owner of this host decides which directories can be granted. \
             Returns what the component may use then.",
            vec![id(), permission("What to grant")],
            additive,
        ),
        tool::<ComponentList>(
            Action::List,
            ("list_components", "List components"),
            "List all components: whether they work, where they came from, their tools, and what was granted to them.",
            vec![],
            read_only,
        ),
        tool::<LoadReport>(
            Action::Load,
            ("load_component", "Load component"),
            "Load a WebAssembly component or command-line program, and offer its functions or commands as tools: list the tools \
             again to see them. It may use nothing of this machine until that is granted. The owner of this host decides what can \
             be loaded. What has that name already is never replaced.",
            vec![
                field(
                    "source",
                    "Where it is: an absolute path, `https://…`, or `oci://REGISTRY/NAME:TAG`",
                    text(),
                ),
                field(
                    "name",
                    "What to call it, in place of a name made from the source",
                    optional(text()),
                ),
                field(
                    "sha256",
                    "The SHA-256 of its bytes as 64 hexadecimal digits; any other bytes are refused",
                    optional(text()),
                ),
            ],
            ToolAnnotations::new().destructive(false).idempotent(true).open_world(true),
        ),
        tool::<PolicyReport>(
            Action::Reset,
            ("reset_permissions", "Reset permissions"),
            "Take back all that was granted to a component. What was granted to all components stays. Returns what the component \
             may use then.",
            vec![id()],
            destructive.clone(),
        ),
        tool::<PolicyReport>(
            Action::Revoke,
            ("revoke_permission", "Revoke permission"),
            "Take back something that was granted to a component. What was granted to all components stays. Returns what the \
             component may use then.",
            vec![
                id(),
                permission("What to take back, as `get_policy` shows it among the `grants`"),
            ],
            destructive.clone(),
        ),
        tool::<UnloadReport>(
            Action::Unload,
            ("unload_component", "Unload component"),
            "Remove a component, its tools, and what was granted to it. Calls that are running come to their end.",
            vec![id()],
            destructive,
        ),
    ];
    all.into_iter().collect()
}

fn tool<T: JsonSchema>(
    action: Action,
    (name, title): (&'static str, &str),
    description: &'static str,
    params: Vec<Field<TypeRef>>,
    annotations: ToolAnnotations,
) -> (&'static str, Arc<AdminTool>) {
    let plan = Function {
        export: ExportName {
            interface: None,
            function: name.to_owned(),
        },
        docs: None,
        params,
        result: None,
        is_async: false,
        answers_content: false,
    };
    let definition = Tool::new(name, description, object(&input_schema(&plan)))
        .with_title(title)
        .with_raw_output_schema(object(&schema::of_result::<T>()))
        .with_annotations(annotations);
    let tool = AdminTool {
        action,
        plan,
        definition,
    };
    (name, Arc::new(tool))
}

fn ty(kind: Kind<TypeRef>) -> TypeRef {
    TypeRef::new(Type {
        name: None,
        docs: None,
        kind,
    })
}

fn text() -> TypeRef {
    ty(Kind::String)
}

fn optional(inner: TypeRef) -> TypeRef {
    ty(Kind::Option(inner))
}

fn field(name: &str, docs: &str, ty: TypeRef) -> Field<TypeRef> {
    Field::new(name, Some(docs.to_owned()), ty)
}

/// A [`DirectoryPermission`].
fn permission(docs: &str) -> Field<TypeRef> {
    let label = |name: &str| Label {
        name: name.to_owned(),
        docs: None,
    };
    let kind = ty(Kind::Enum(vec![label("read"), label("write")]));
    let record = Kind::Record(vec![
        field("kind", "What may be done in the directory; `write` includes reading", kind),
        field("host", "The directory of this machine, as an absolute path", text()),
        field(
            "guest",
            "The path under which the component finds it; without this, the same path",
            optional(text()),
        ),
    ]);
    field("permission", docs, ty(record))
}

#[derive(Deserialize)]
struct Load {
    source: String,
    name: Option<String>,
    sha256: Option<String>,
}

#[derive(Deserialize)]
struct Named {
    id: ComponentId,
}

#[derive(Deserialize)]
struct Change {
    id: ComponentId,
    permission: DirectoryPermission,
}

impl AdminTool {
    pub(crate) async fn call(&self, manager: &Arc<LifecycleManager>, arguments: Value) -> Result<CallOutcome, Failure> {
        match self.action {
            Action::List => {
                self.read::<Value>(arguments)?;
                answer(manager.list_components())
            }
            Action::GetPolicy => {
                let Named { id } = self.read(arguments)?;
                answer(manager.policy_report(&id)?)
            }
            Action::Load => {
                let Load { source, name, sha256 } = self.read(arguments)?;
                answer(manager.agent_load(&source, name.as_deref(), sha256.as_deref()).await?)
            }
            Action::Unload => {
                let Named { id } = self.read(arguments)?;
                answer(manager.agent_unload(&id).await?)
            }
            Action::Grant => {
                let Change { id, permission } = self.read(arguments)?;
                answer(manager.agent_grant(&id, &permission).await?)
            }
            Action::Revoke => {
                let Change { id, permission } = self.read(arguments)?;
                answer(manager.agent_revoke(&id, &permission).await?)
            }
            Action::Reset => {
                let Named { id } = self.read(arguments)?;
                answer(manager.agent_reset(&id).await?)
            }
        }
    }

    /// The plan finds all mistakes, each with its place; what it lets through has the right shape.
    fn read<T: DeserializeOwned>(&self, arguments: Value) -> Result<T, Failure> {
        json_to_arguments(&self.plan, &arguments).map_err(Failure::Arguments)?;
        Ok(serde_json::from_value(arguments)?)
    }
}

fn answer(report: impl Serialize) -> Result<CallOutcome, Failure> {
    Ok(CallOutcome {
        structured: Some(json!({ "result": serde_json::to_value(report)? })),
        text: None,
        is_error: false,
        notes: vec![],
        blocks: None,
    })
}

#[cfg(test)]
mod tests;
