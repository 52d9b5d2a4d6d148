//! What somebody says of a tool by hand, in place of what its types say: the author in `NAME.tools.json` beside the component or in a
//! section of it, the person who serves it in the config file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use command2json::Checker;
use component2json::{Icon, ToolAnnotations, ToolMetadata, ToolName, clean_text, custom_section, with_custom_section};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::commands::read_text;
use crate::docs::EmbedError;
use crate::error::LoadError;
use crate::files;
use crate::parameter_headers;

/// The ending of the file beside a component.
const FILE: &str = "tools.json";

/// The custom section that carries the same.
const SECTION: &str = "host:tools";

const MAX_FILE: u64 = 4 << 20;

/// The nodes of a schema and how deep they nest, with all references written out.
const MAX_EXPANDED: usize = 20_000;
const MAX_DEPTH: usize = 200;

/// The longest name of a tool: no model API takes a longer one.
const MAX_NAME: usize = 64;

/// What an icon that is written out may take.
const MAX_ICON: usize = 64 << 10;
const MAX_ICONS: usize = 8;

/// By the name that a tool has by itself.
pub(crate) type Overrides = BTreeMap<String, ToolOverride>;

/// What a tool is called and looks like, where that is not what its types and docs say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default,
    expecting = "an object with what is said of a tool"
)]
pub struct ToolOverride {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// A JSON Schema of the arguments. They are held against it before they are converted.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_schema: Option<Value>,
    /// A JSON Schema of the structured result. What does not fit is not given to the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    annotations: Option<ToolAnnotations>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Value>")]
    icons: Vec<Icon>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `tools` in it")]
struct File {
    tools: Overrides,
}

/// The file that may lie beside a component.
pub(crate) fn side_file(component: &Path) -> Option<PathBuf> {
    Some(component.with_extension(FILE)).filter(|file| file.is_file())
}

/// What comes with a component: in the file beside it, else inside. What is wrong is reported and ignored.
pub(crate) fn read(beside: Option<&str>, bytes: &[u8], warnings: &mut Vec<String>) -> Overrides {
    let section = || custom_section(bytes, SECTION).map(|data| (SECTION, String::from_utf8_lossy(data).into_owned()));
    let found = beside.map(|text| (FILE, text.to_owned())).or_else(section);
    let Some((place, text)) = found else {
        return Overrides::new();
    };
    match parse(&text) {
        Ok(overrides) => overrides,
        Err(problem) => {
            warnings.push(format!("`{place}` was ignored: {problem}"));
            Overrides::new()
        }
    }
}

fn parse(text: &str) -> Result<Overrides, String> {
    if text.len() as u64 > MAX_FILE {
        return Err("it is too large".to_owned());
    }
    let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
    for (name, tool) in &file.tools {
        tool.check().map_err(|problem| format!("`{name}`: {problem}"))?;
    }
    Ok(file.tools)
}

/// The text of a `tools.json`, if nothing is wrong with it.
pub fn check_tools(tools: &Path) -> Result<String, LoadError> {
    let text = read_text(tools).and_then(|text| parse(&text).map(|_| text));
    text.map_err(|problem| LoadError::Description {
        path: tools.to_owned(),
        problem,
    })
}

/// Puts what a `tools.json` says into a component file. Returns how many bytes the file grew by.
pub fn embed_tools(component: &Path, tools: &Path, output: &Path) -> Result<u64, EmbedError> {
    if output == component {
        files::check_binary(component)?;
    }
    let bytes = files::read_component(component)?;
    let text = check_tools(tools)?;
    let with_tools = with_custom_section(&bytes, SECTION, text.as_bytes()).map_err(|error| LoadError::Component {
        path: component.to_owned(),
        error,
    })?;
    files::write_atomically(output, &with_tools).map_err(|error| EmbedError::Write {
        path: output.to_owned(),
        error,
    })?;
    Ok((with_tools.len() as u64).saturating_sub(bytes.len() as u64))
}

/// How large a schema is when everything that it refers to stands where it is referred to: what it takes to check a value grows with
/// that, and a few lines can stand for more than there is time for.
fn expanded<'a>(
    schema: &'a Value,
    root: &'a Value,
    known: &mut BTreeMap<&'a str, Option<usize>>,
    depth: usize,
) -> Result<usize, String> {
    if depth > MAX_DEPTH {
        return Err(format!(
            "it nests more than {MAX_DEPTH} levels deep when its references are written out"
        ));
    }
    let mut size = 1usize;
    let inner: Vec<&Value> = match schema {
        Value::Object(fields) => fields.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => vec![],
    };
    for value in inner {
        size = size.saturating_add(expanded(value, root, known, depth + 1)?);
    }
    for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
        let Some(target) = schema.get(keyword).and_then(Value::as_str) else {
            continue;
        };
        let wrong = || format!("`{target}` is no reference of the form `#/$defs/name`");
        let pointer = target
            .strip_prefix('#')
            .filter(|pointer| pointer.starts_with('/'))
            .ok_or_else(wrong)?;
        size = size.saturating_add(match known.get(target) {
            Some(Some(size)) => *size,
            Some(None) => return Err(format!("`{target}` refers to itself")),
            None => {
                known.insert(target, None);
                let size = expanded(root.pointer(pointer).ok_or_else(wrong)?, root, known, depth + 1)?;
                known.insert(target, Some(size));
                size
            }
        });
    }
    match size {
        ..=MAX_EXPANDED => Ok(size),
        _ => Err(format!(
            "it stands for more than {MAX_EXPANDED} nodes when its references are written out"
        )),
    }
}

impl ToolOverride {
    /// What is wrong with it.
    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some(name) = &self.name
            && ToolName::parse(name).is_none()
        {
            return Err(format!(
                "`{name}` is no name of a tool: it has small letters, digits and `_`, and begins with a letter"
            ));
        }
        if self.name.as_ref().is_some_and(|name| name.len() > MAX_NAME) {
            return Err(format!("the name of a tool has at most {MAX_NAME} characters"));
        }
        for (which, schema) in [("inputSchema", &self.input_schema), ("outputSchema", &self.output_schema)] {
            let Some(schema) = schema else { continue };
            if schema.get("type").and_then(Value::as_str) != Some("object") {
                return Err(format!("{which} must have `\"type\": \"object\"` at its root"));
            }
            let problem = |problem: String| format!("{which}: {problem}");
            expanded(schema, schema, &mut BTreeMap::new(), 0).map_err(problem)?;
            Checker::new(schema).compiles().map_err(problem)?;
        }
        if let Some(schema) = &self.input_schema {
            parameter_headers::check(schema).map_err(|problem| format!("inputSchema: {problem}"))?;
        }
        if self.icons.len() > MAX_ICONS {
            return Err(format!("more than {MAX_ICONS} icons"));
        }
        let is_wrong =
            |icon: &&Icon| !(icon.src.starts_with("https://") || icon.src.starts_with("data:")) || icon.src.len() > MAX_ICON;
        match self.icons.iter().find(is_wrong) {
            Some(_) => Err(format!(
                "an icon is `https://…` or `data:…`, with at most {MAX_ICON} characters"
            )),
            None => Ok(()),
        }
    }

    /// The name in place of a tool's own.
    pub(crate) fn name(&self) -> Option<ToolName> {
        ToolName::parse(self.name.as_deref()?)
    }

    /// What both say; this one where they differ.
    pub(crate) fn over(&self, other: Option<&Self>) -> Self {
        let Some(other) = other else { return self.clone() };
        let annotations = match (&self.annotations, &other.annotations) {
            (Some(own), Some(others)) => {
                let mut both = others.clone();
                both.update(own);
                Some(both)
            }
            (own, others) => own.clone().or(others.clone()),
        };
        Self {
            name: self.name.clone().or(other.name.clone()),
            title: self.title.clone().or(other.title.clone()),
            description: self.description.clone().or(other.description.clone()),
            input_schema: self.input_schema.clone().or(other.input_schema.clone()),
            output_schema: self.output_schema.clone().or(other.output_schema.clone()),
            annotations,
            icons: if self.icons.is_empty() { &other.icons } else { &self.icons }.clone(),
        }
    }

    /// Changes the definition of a tool.
    pub(crate) fn apply(&self, definition: &mut ToolMetadata) -> Given {
        let text = |text: &Option<String>| text.as_deref().and_then(clean_text);
        definition.title = text(&self.title).unwrap_or(std::mem::take(&mut definition.title));
        definition.description = text(&self.description).unwrap_or(std::mem::take(&mut definition.description));
        if let Some(annotations) = &self.annotations {
            definition.annotations.get_or_insert_default().update(annotations);
        }
        if let Some(schema) = &self.input_schema {
            definition.input_schema = schema.clone();
        }
        if let Some(schema) = &self.output_schema {
            definition.output_schema = Some(schema.clone());
        }
        definition.icons.clone_from(&self.icons);
        Given {
            input: self.input_schema.as_ref().map(Checker::new),
            output: self.output_schema.as_ref().map(Checker::new),
        }
    }
}

/// What was given for a tool by hand and is no part of its definition.
#[derive(Debug, Default)]
pub(crate) struct Given {
    /// What arguments are held against.
    pub(crate) input: Option<Checker>,
    /// What structured results are held against.
    pub(crate) output: Option<Checker>,
}
