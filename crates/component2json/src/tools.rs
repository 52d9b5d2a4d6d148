//! Exported functions as tool definitions.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::component::Exports;
use crate::names::{self, ToolName};
use crate::types::Function;
use crate::{DEFAULT_MAX_TOOL_NAME, Docs, Error, schema};

/// A WIT name in a description is cut at this many characters: components may have names of 100 000.
const MAX_NAME_CHARS: usize = 200;

/// A function as MCP clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolMetadata {
    pub name: ToolName,
    pub title: String,
    pub description: String,
    pub input_schema: Value,
    /// In its envelope; none for a function that returns nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
}

/// A picture for a tool. The keys are those of MCP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Icon {
    /// `https://…` or `data:…`.
    pub src: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// As in `48x48`, or `any`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<Theme>,
}

/// The background that a picture is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Theme {
    Light,
    Dark,
}

/// What a tool does to the world, as far as somebody said so. The keys are those of MCP.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolAnnotations {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl ToolAnnotations {
    /// Takes over what others say.
    pub fn update(&mut self, others: &Self) {
        let others = others.clone();
        self.title = others.title.or(self.title.take());
        self.read_only_hint = others.read_only_hint.or(self.read_only_hint);
        self.destructive_hint = others.destructive_hint.or(self.destructive_hint);
        self.idempotent_hint = others.idempotent_hint.or(self.idempotent_hint);
        self.open_world_hint = others.open_world_hint.or(self.open_world_hint);
    }

    /// What holds of a tool that does any one of several things: the worst of all, and nothing where one is not known.
    pub fn of_all(all: &[Option<Self>]) -> Option<Self> {
        let every = |hint: fn(&Self) -> Option<bool>, harmless: bool| -> Option<bool> {
            let hints: Vec<Option<bool>> = all.iter().map(|one| one.as_ref().and_then(hint)).collect();
            if hints.contains(&Some(!harmless)) {
                return Some(!harmless);
            }
            hints.iter().all(Option::is_some).then_some(harmless)
        };
        let together = Self {
            title: None,
            read_only_hint: every(|one| one.read_only_hint, true),
            destructive_hint: every(|one| one.destructive_hint, false),
            idempotent_hint: every(|one| one.idempotent_hint, true),
            open_world_hint: every(|one| one.open_world_hint, false),
        };
        (together != Self::default()).then_some(together)
    }
}

/// The tools of a component, under the names they have when nothing else is loaded, in the order of its exports.
pub fn component_exports_to_tools(exports: &Exports) -> Vec<ToolMetadata> {
    let names = names::tool_names(&exports.name_parts(), None, DEFAULT_MAX_TOOL_NAME, &HashSet::new());
    exports
        .functions
        .iter()
        .zip(names)
        .map(|(function, name)| describe(exports, function, name))
        .collect()
}

/// The tools of a component as `{"tools": [ … ]}`, straight from its bytes.
pub fn component_exports_to_json_schema(component: &[u8], docs: Option<&Docs>) -> Result<Value, Error> {
    let (exports, _) = crate::read_exports(component, docs)?;
    let tools: Vec<Value> = component_exports_to_tools(&exports)
        .iter()
        .map(|tool| serde_json::to_value(tool).map_err(|error| Error::Malformed(error.to_string())))
        .collect::<Result<_, _>>()?;
    Ok(json!({ "tools": tools }))
}

/// The definition of one function under a given name.
pub fn describe(exports: &Exports, function: &Function, name: ToolName) -> ToolMetadata {
    ToolMetadata {
        name,
        title: names::title(&function.export.function),
        description: description(exports, function),
        input_schema: schema::input_schema(function),
        output_schema: schema::output_schema(function),
        annotations: None,
        icons: Vec::new(),
    }
}

/// What the function says about itself, else its signature; then what it is part of, which is often where the context is.
fn description(exports: &Exports, function: &Function) -> String {
    let interface = function.export.interface.as_deref();
    let what = match &function.docs {
        Some(docs) => docs.clone(),
        None => crate::docs::cap(&function.signature(), 1024),
    };
    let about = match (exports.scope_docs(interface), interface) {
        (Some(docs), Some(interface)) => format!("\n\nPart of {}: {docs}", crate::docs::cap(interface, MAX_NAME_CHARS)),
        (Some(docs), None) => format!("\n\nPart of: {docs}"),
        (None, Some(interface)) if function.docs.is_none() => {
            format!("\n\nPart of {}.", crate::docs::cap(interface, MAX_NAME_CHARS))
        }
        (None, _) => String::new(),
    };
    what + &about
}
