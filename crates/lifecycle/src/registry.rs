//! Which tools there are, under which names.
//!
//! A registry is a value: a change makes a new one, and who holds the old one keeps a consistent view.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use component2json::{ExportName, Function, ToolMetadata, ToolName, nearest_first, tool_names};

use crate::id::ComponentId;
use crate::manager::Loaded;

/// Names of the tools with which an agent may manage the host. No component can take one.
pub const RESERVED_NAMES: [&str; 7] = [
    "get_policy",
    "grant_permission",
    "list_components",
    "load_component",
    "reset_permissions",
    "revoke_permission",
    "unload_component",
];

/// A tool: what clients see of it, and what a call needs.
#[derive(Debug)]
pub struct Tool {
    /// As clients see it: schemas in their canonical form.
    pub definition: ToolMetadata,
    pub(crate) component: Arc<Loaded>,
    pub(crate) function: usize,
}

impl Tool {
    pub fn component(&self) -> &ComponentId {
        &self.component.id
    }

    /// The plan that arguments are read by.
    pub fn plan(&self) -> Option<&Function> {
        self.component.metadata.exports.functions.get(self.function)
    }
}

/// The tools of all loaded components, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registry {
    /// In the order in which they were loaded, which decides who keeps a name.
    components: Vec<Arc<Loaded>>,
    tools: BTreeMap<ToolName, Arc<Tool>>,
}

impl Registry {
    pub(crate) fn components(&self) -> &[Arc<Loaded>] {
        &self.components
    }

    pub(crate) fn tools(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.tools.values()
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.get(name)
    }

    /// The names of all tools, the most similar first.
    pub(crate) fn nearest(&self, name: &str) -> Vec<String> {
        nearest_first(name, self.tools.keys().map(ToolName::as_str))
            .into_iter()
            .map(str::to_owned)
            .collect()
    }

    /// The registry with one more component. A tool whose name is taken carries its component's id before it.
    pub(crate) fn with(&self, component: Arc<Loaded>, max_name: usize) -> Self {
        let mut registry = self.clone();
        let exports: Vec<ExportName> = component
            .metadata
            .exports
            .functions
            .iter()
            .map(|function| function.export.clone())
            .collect();
        let mut used: HashSet<ToolName> = registry.tools.keys().cloned().collect();
        used.extend(RESERVED_NAMES.iter().filter_map(|name| ToolName::parse(name)));
        let plain = tool_names(&exports, None, max_name, &HashSet::new());
        let collides: Vec<bool> = plain.iter().map(|name| used.contains(name)).collect();
        // Names that stay must be known before others are chosen around them.
        used.extend(
            plain
                .iter()
                .zip(&collides)
                .filter(|(_, collides)| !**collides)
                .map(|(name, _)| name.clone()),
        );
        let names: Vec<ToolName> = plain
            .into_iter()
            .zip(collides)
            .zip(&exports)
            .flat_map(|((name, collides), export)| {
                if !collides {
                    return vec![name];
                }
                let prefixed = tool_names(std::slice::from_ref(export), Some(component.id.as_str()), max_name, &used);
                used.extend(prefixed.iter().cloned());
                prefixed
            })
            .collect();
        for (function, (name, raw)) in names.into_iter().zip(&component.metadata.tools).enumerate() {
            let definition = ToolMetadata {
                name: name.clone(),
                output_schema: structured_output::canonicalize_output_schema(raw.output_schema.clone()),
                ..raw.clone()
            };
            let tool = Tool {
                definition,
                component: Arc::clone(&component),
                function,
            };
            registry.tools.insert(name, Arc::new(tool));
        }
        registry.components.push(component);
        registry
    }

    /// The registry without a component. The others keep the names that they have.
    pub(crate) fn without(&self, id: &ComponentId) -> Self {
        Self {
            components: self
                .components
                .iter()
                .filter(|component| component.id != *id)
                .cloned()
                .collect(),
            tools: self
                .tools
                .iter()
                .filter(|(_, tool)| tool.component.id != *id)
                .map(|(name, tool)| (name.clone(), Arc::clone(tool)))
                .collect(),
        }
    }
}
