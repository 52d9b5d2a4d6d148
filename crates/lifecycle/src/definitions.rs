//! What changed between the tools that were accepted and those that a new revision would offer.

use component2json::ToolMetadata;
use serde_json::{Value, json};
use similar::TextDiff;

/// A difference in one tool.
#[derive(Clone, Debug, PartialEq)]
pub enum DefinitionChange {
    Added(ToolMetadata),
    Removed(ToolMetadata),
    /// What the component says about itself as a whole, which clients pass on to the model, is another.
    About {
        before: String,
        after: String,
    },
    /// Its description, a schema or an annotation is another.
    Changed {
        before: Box<ToolMetadata>,
        after: Box<ToolMetadata>,
    },
}

/// The differences, in the order of the tools' names.
pub(crate) fn changes(before: &[ToolMetadata], after: &[ToolMetadata]) -> Vec<DefinitionChange> {
    let find = |tools: &[ToolMetadata], name: &ToolMetadata| tools.iter().find(|tool| tool.name == name.name).cloned();
    let mut changes: Vec<DefinitionChange> = before
        .iter()
        .filter_map(|old| match find(after, old) {
            None => Some(DefinitionChange::Removed(old.clone())),
            Some(new) if new == *old => None,
            Some(new) => Some(DefinitionChange::Changed {
                before: Box::new(old.clone()),
                after: Box::new(new),
            }),
        })
        .collect();
    changes.extend(
        after
            .iter()
            .filter(|new| find(before, new).is_none())
            .cloned()
            .map(DefinitionChange::Added),
    );
    changes.sort_by(|a, b| a.name().cmp(b.name()));
    changes
}

impl DefinitionChange {
    /// The difference in what a component says about itself.
    pub(crate) fn of_about(before: Option<String>, after: Option<String>) -> Option<Self> {
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        (before != after).then_some(Self::About { before, after })
    }

    /// The tool's name.
    fn name(&self) -> &str {
        match self {
            Self::About { .. } => "",
            Self::Added(tool) | Self::Removed(tool) => tool.name.as_str(),
            Self::Changed { after, .. } => after.name.as_str(),
        }
    }

    /// What a person reads before accepting it: `+` and `-` before lines of the definition.
    pub fn text(&self) -> String {
        match self {
            Self::Added(tool) => {
                let description = format!("{}\n{}", tool.title, tool.description);
                let description: String = description.lines().map(|line| format!("+ {line}\n")).collect();
                format!("+ tool `{}` ({})\n{description}", tool.name, inputs(tool))
            }
            Self::Removed(tool) => format!("- tool `{}`\n", tool.name),
            Self::Changed { before, after } => format!("~ tool `{}`\n{}", self.name(), difference(&text(before), &text(after))),
            Self::About { before, after } => {
                let lines = difference(&format!("{before}\n"), &format!("{after}\n"));
                format!("~ what it says about itself\n{lines}")
            }
        }
    }
}

fn difference(before: &str, after: &str) -> String {
    TextDiff::from_lines(before, after)
        .unified_diff()
        .context_radius(2)
        .to_string()
}

/// The names of what a tool takes.
fn inputs(tool: &ToolMetadata) -> String {
    let properties = tool.input_schema.get("properties").and_then(Value::as_object);
    let names: Vec<&str> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    names.join(", ")
}

/// A definition line by line, so that a difference shows where it is.
fn text(tool: &ToolMetadata) -> String {
    let json = |name: &str, value: Value| match value {
        Value::Null => String::new(),
        value => format!("{name}: {value:#}\n"),
    };
    [
        format!("title: {}\ndescription: {}\n", tool.title, tool.description),
        json("input", tool.input_schema.clone()),
        json("output", json!(tool.output_schema)),
        json("annotations", json!(tool.annotations)),
        json(
            "icons",
            if tool.icons.is_empty() {
                Value::Null
            } else {
                json!(tool.icons)
            },
        ),
    ]
    .concat()
}
