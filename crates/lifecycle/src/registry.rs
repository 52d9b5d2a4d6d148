//! Which tools there are, under which names.
//!
//! A registry is a value: a change makes a new one, and who holds the old one keeps a consistent view.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use command2json::{CommandTool, Offer, Target};
use component2json::{Function, Icon, NameParts, ToolMetadata, ToolName, nearest_first, tool_names, tool_names_unlike};

use crate::id::ComponentId;
use crate::loaded::{Code, Loaded, Origin};
use crate::metadata::Interface;
use crate::overrides::{Given, Overrides, ToolOverride};

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
    pub(crate) action: Action,
    pub(crate) given: Given,
}

/// On what terms the tools of a component are offered here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    pub(crate) offer: Offer,
    /// What the person who serves them says of them.
    pub(crate) overrides: Overrides,
}

/// What a call does.
#[derive(Debug)]
pub(crate) enum Action {
    /// Calls the function with this index among the exports.
    Function(usize),
    Command(Box<Target>),
}

/// What arguments are read by.
#[derive(Clone, Copy, Debug)]
pub enum Plan<'a> {
    Function(&'a Function),
    Command(&'a Target),
}

impl Tool {
    pub fn component(&self) -> &ComponentId {
        &self.component.id
    }

    /// Pictures for it.
    pub fn icons(&self) -> &[Icon] {
        &self.definition.icons
    }

    /// Whether its component imports an interface of `host:mcp`.
    pub fn imports_mcp(&self, interface: &str) -> bool {
        self.component.revision.metadata.interface.exports().imports_mcp(interface)
    }

    /// Whether a call is arguments in and one answer out: its component has nothing to say to a client meanwhile, and its schema is what
    /// its types say.
    pub fn is_plain(&self) -> bool {
        self.given.input.is_none() && !self.component.revision.metadata.interface.exports().imports_any_mcp()
    }

    /// Whether a call can say nothing but its answer. A program could be asked how much it has printed.
    pub fn is_silent(&self) -> bool {
        matches!(self.action, Action::Function(_)) && self.is_plain()
    }

    /// Whether the next call will be short, as far as the last ones tell.
    pub fn is_short(&self) -> bool {
        match (self.component.revision.linked(), &self.action) {
            (Some(Code::Functions(program)), Action::Function(index)) => program.is_short(*index),
            (Some(Code::Program(executable)), Action::Command(_)) => executable.is_short(),
            _ => false,
        }
    }

    pub fn plan(&self) -> Option<Plan<'_>> {
        match &self.action {
            Action::Function(index) => {
                let exports = self.component.revision.metadata.interface.exports();
                exports.functions.get(*index).map(Plan::Function)
            }
            Action::Command(target) => Some(Plan::Command(target)),
        }
    }
}

/// A tool that has no name yet.
enum Nameless {
    Function {
        index: usize,
        name: NameParts,
        definition: ToolMetadata,
    },
    Command(CommandTool),
}

impl Nameless {
    /// What a component offers.
    fn all(component: &Loaded, offer: &Offer) -> Vec<Self> {
        match &component.revision.metadata.interface {
            Interface::Functions { exports, tools } => exports
                .name_parts()
                .into_iter()
                .zip(tools)
                .enumerate()
                .map(|(index, (name, tool))| Self::Function {
                    index,
                    name,
                    definition: tool.clone(),
                })
                .collect(),
            Interface::Program(program) => {
                let (tools, warnings) = command2json::tools(&program.command, offer);
                for warning in warnings {
                    tracing::warn!("{}: {warning}", component.id);
                }
                tools.into_iter().map(Self::Command).collect()
            }
        }
    }

    fn name(&self) -> NameParts {
        match self {
            Self::Function { name, .. } => name.clone(),
            Self::Command(tool) => tool.name.clone(),
        }
    }

    fn named(self, name: ToolName) -> (ToolMetadata, Action) {
        match self {
            Self::Function { index, definition, .. } => (ToolMetadata { name, ..definition }, Action::Function(index)),
            Self::Command(tool) => (tool.definition(name), Action::Command(Box::new(tool.target))),
        }
    }
}

/// A tool that may yet have to give way to another of its name.
struct Unnamed {
    name: ToolName,
    parts: NameParts,
    tool: Nameless,
    given: ToolOverride,
}

/// The tools of all loaded components, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registry {
    /// In the order in which they were loaded, which decides who keeps a name.
    components: Vec<Arc<Loaded>>,
    tools: BTreeMap<ToolName, Arc<Tool>>,
    broken: Vec<Broken>,
}

/// A component that was to be served and cannot be. It hides no other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Broken {
    pub(crate) id: ComponentId,
    pub(crate) origin: Origin,
    pub(crate) reason: String,
}

impl Broken {
    fn of(component: &Loaded, reason: String) -> Self {
        Self {
            id: component.id.clone(),
            origin: component.origin.clone(),
            reason,
        }
    }
}

impl Registry {
    pub(crate) fn components(&self) -> &[Arc<Loaded>] {
        &self.components
    }

    pub(crate) fn broken(&self) -> &[Broken] {
        &self.broken
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

    /// The registry of these components. The order decides who keeps a name, and is the same after a restart.
    pub(crate) fn of(components: Vec<Arc<Loaded>>, broken: Vec<Broken>, terms: impl Fn(&Loaded) -> Terms, max_name: usize) -> Self {
        let mut registry = Self {
            broken,
            ..Self::default()
        };
        for component in components {
            let tools = registry.named(&component, &terms(&component), max_name);
            let offers_more = !component.revision.metadata.interface.exports().offers.is_empty();
            if tools.is_empty() && !offers_more {
                let reason =
                    "nothing of it is left to be offered: all that it has is hidden, deprecated, or not among what was chosen";
                registry.broken.push(Broken::of(&component, reason.to_owned()));
                continue;
            }
            let by_name = tools.into_iter().map(|tool| (tool.definition.name.clone(), Arc::new(tool)));
            registry.tools.extend(by_name);
            registry.components.push(component);
        }
        registry
    }

    /// Whether a client that knows the other registry knows this one: its definitions, and the bytes that stand behind them.
    pub(crate) fn looks_like(&self, other: &Self) -> bool {
        let same_bytes = |a: &Arc<Loaded>, b: &Arc<Loaded>| a.id == b.id && Arc::ptr_eq(&a.revision, &b.revision);
        let same_definition = |a: &Arc<Tool>, b: &Arc<Tool>| a.definition == b.definition;
        self.components.len() == other.components.len()
            && self.tools.len() == other.tools.len()
            && self.components.iter().zip(&other.components).all(|(a, b)| same_bytes(a, b))
            && self
                .tools
                .values()
                .zip(other.tools.values())
                .all(|(a, b)| same_definition(a, b))
    }

    /// Whether a component offers prompts, or a command has examples that would make one.
    pub(crate) fn may_have_prompts(&self) -> bool {
        let offers = |loaded: &Arc<Loaded>| {
            loaded
                .revision
                .metadata
                .interface
                .exports()
                .offer("prompts", "list")
                .is_some()
        };
        self.components.iter().any(offers) || self.tools.values().any(|tool| !tool.examples().is_empty())
    }

    /// The tools that a component would have here, in its own order. One whose name is taken carries its component's id before it.
    pub(crate) fn named(&self, component: &Arc<Loaded>, terms: &Terms, max_name: usize) -> Vec<Tool> {
        let tools = Nameless::all(component, &terms.offer);
        let parts: Vec<NameParts> = tools.iter().map(Nameless::name).collect();
        let plain = tool_names(&parts, None, max_name, &HashSet::new());
        let by_author = &component.revision.metadata.overrides;
        let overridden = |name: &ToolName| match terms.overrides.get(name.as_str()) {
            Some(here) => here.over(by_author.get(name.as_str())),
            None => by_author.get(name.as_str()).cloned().unwrap_or_default(),
        };
        let own_names: HashSet<ToolName> = plain.iter().cloned().collect();
        let unknown = by_author
            .keys()
            .chain(terms.overrides.keys())
            .filter(|name| !own_names.contains(name.as_str()));
        for name in unknown {
            tracing::warn!(
                "something is said of the tool `{}` of {}, which has none of this name",
                name.escape_debug(),
                component.id
            );
        }
        let mut renamed = HashSet::new();
        let chosen: Vec<Unnamed> = plain
            .into_iter()
            .zip(parts)
            .zip(tools)
            .map(|((own, parts), tool)| {
                let given = overridden(&own);
                let is_short = |name: &ToolName| {
                    let is_short = name.as_str().len() <= max_name;
                    if !is_short {
                        tracing::warn!(
                            "the tool `{own}` of {} is not called `{name}`: that is longer than {max_name} characters",
                            component.id
                        );
                    }
                    is_short
                };
                // A name that another one has, or wants before, is not given twice.
                let name = given
                    .name()
                    .filter(is_short)
                    .filter(|name| !own_names.contains(name) && renamed.insert(name.clone()));
                let name = name.unwrap_or(own);
                Unnamed {
                    name,
                    parts,
                    tool,
                    given,
                }
            })
            .filter(|tool| terms.offer.tools.admit_tool(tool.name.as_str()))
            .collect();
        let is_taken = |name: &str| self.tools.contains_key(name) || RESERVED_NAMES.contains(&name);
        let collides: Vec<bool> = chosen.iter().map(|tool| is_taken(tool.name.as_str())).collect();
        // Names that stay must be known before others are chosen around them.
        let stay = chosen.iter().zip(&collides).filter(|(_, collides)| !**collides);
        let mut used: HashSet<ToolName> = stay.map(|(tool, _)| tool.name.clone()).collect();
        let tool = |(
            Unnamed {
                name,
                parts,
                tool,
                given,
            },
            collides,
        ): (Unnamed, bool)| {
            let name = if collides {
                let is_used = |name: &str| used.contains(name) || is_taken(name);
                let prefixed = tool_names_unlike(&[parts], Some(component.id.as_str()), max_name, is_used);
                used.extend(prefixed.iter().cloned());
                prefixed.into_iter().next()?
            } else {
                name
            };
            let (mut definition, action) = tool.named(name);
            definition.output_schema = structured_output::canonicalize_output_schema(definition.output_schema);
            let given = given.apply(&mut definition);
            Some(Tool {
                definition,
                given,
                component: Arc::clone(component),
                action,
            })
        };
        chosen.into_iter().zip(collides).filter_map(tool).collect()
    }
}
