//! What guests say beyond plain values, as `host:mcp` has it: blocks of content, resources, prompts.
//!
//! It comes out of a guest as the JSON of its WIT types; these types read that back.

use component2json::clean_text;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// What the answer of a tool consists of.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Content {
    pub blocks: Vec<Block>,
    /// JSON text.
    pub(crate) structured: Option<String>,
}

/// A piece of content.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "tag", content = "val", rename_all = "kebab-case")]
pub enum Block {
    Text(TextBlock),
    Image(MediaBlock),
    Audio(MediaBlock),
    Link(Resource),
    Embedded(ResourceBlock),
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct TextBlock {
    pub text: String,
    pub annotations: Option<Annotations>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct MediaBlock {
    /// In base64.
    pub data: String,
    pub mime_type: String,
    pub annotations: Option<Annotations>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ResourceBlock {
    pub resource: ResourceContents,
    pub annotations: Option<Annotations>,
}

/// How a client may treat something.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Annotations {
    pub audience: Vec<Speaker>,
    #[serde(deserialize_with = "number")]
    pub priority: Option<f64>,
    pub last_modified: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Speaker {
    User,
    Assistant,
}

/// A resource, without what is in it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Resource {
    pub uri: String,
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub mime_type: Option<String>,
    #[serde(deserialize_with = "size")]
    pub size: Option<u64>,
    pub annotations: Option<Annotations>,
}

/// Many resources of one kind.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Template {
    pub uri_template: String,
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub mime_type: Option<String>,
    pub annotations: Option<Annotations>,
}

/// What is in a resource.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ResourceContents {
    pub uri: String,
    pub mime_type: Option<String>,
    pub body: ResourceBody,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "tag", content = "val", rename_all = "kebab-case")]
pub enum ResourceBody {
    Text(String),
    /// In base64.
    Blob(String),
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Prompt {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub arguments: Vec<PromptArgument>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct PromptArgument {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub required: bool,
}

/// A prompt with its arguments in place.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Filled {
    pub description: Option<String>,
    pub messages: Vec<PromptMessage>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct PromptMessage {
    pub role: Speaker,
    pub content: Block,
}

/// What could stand for the beginning of an argument.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Completion {
    pub values: Vec<String>,
    pub total: Option<u32>,
}

/// A number, unless it is none that JSON has.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Ok(Value::deserialize(deserializer)?.as_f64())
}

/// Large numbers are texts.
fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(value.as_u64().or_else(|| value.as_str()?.parse().ok()))
}

/// Texts that people and models read are data: they steer no terminal and hide nothing.
fn clean(text: &mut Option<String>) {
    *text = text.as_deref().and_then(clean_text);
}

impl Resource {
    pub(crate) fn cleaned(mut self) -> Self {
        clean(&mut self.title);
        clean(&mut self.description);
        self.name = clean_text(&self.name).unwrap_or_else(|| self.uri.clone());
        self
    }
}

impl Template {
    pub(crate) fn cleaned(mut self) -> Self {
        clean(&mut self.title);
        clean(&mut self.description);
        self.name = clean_text(&self.name).unwrap_or_else(|| self.uri_template.clone());
        self
    }

    /// How many variables it has at most.
    pub(crate) fn variables(&self) -> usize {
        self.uri_template.matches('{').count()
    }

    /// Whether a URI fits: every `{name}` stands for one or more characters, which are no slashes unless it is `{+name}`.
    pub(crate) fn fits(&self, uri: &str) -> bool {
        fits(&self.uri_template, uri)
    }
}

fn fits(template: &str, uri: &str) -> bool {
    // Where in the URI the part of the template that was read so far can end. Each part is one pass over it.
    let mut ends = vec![false; uri.len() + 1];
    if let Some(start) = ends.first_mut() {
        *start = true;
    }
    let mut rest = template;
    while !rest.is_empty() {
        let variable = rest.strip_prefix('{').and_then(|inside| inside.split_once('}'));
        let next = match variable {
            Some((name, after)) => {
                rest = after;
                after_variable(uri, &ends, name.starts_with('+'))
            }
            None => {
                let length = rest
                    .char_indices()
                    .skip(1)
                    .find(|(_, c)| *c == '{')
                    .map_or(rest.len(), |(at, _)| at);
                let (literal, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
                rest = after;
                after_literal(uri, &ends, literal)
            }
        };
        // Many templates are held against one URI, and most of them differ at their beginning.
        if !next.contains(&true) {
            return false;
        }
        ends = next;
    }
    ends.last() == Some(&true)
}

fn after_literal(uri: &str, ends: &[bool], literal: &str) -> Vec<bool> {
    let mut next = vec![false; ends.len()];
    for (at, _) in ends.iter().enumerate().filter(|(_, can_end)| **can_end) {
        if uri.get(at..).is_some_and(|rest| rest.starts_with(literal))
            && let Some(end) = next.get_mut(at + literal.len())
        {
            *end = true;
        }
    }
    next
}

/// One or more characters.
fn after_variable(uri: &str, ends: &[bool], may_have_slashes: bool) -> Vec<bool> {
    let mut next = vec![false; ends.len()];
    let mut is_within = false;
    for (at, c) in uri.char_indices() {
        is_within |= ends.get(at) == Some(&true);
        is_within &= may_have_slashes || c != '/';
        if is_within && let Some(end) = next.get_mut(at + c.len_utf8()) {
            *end = true;
        }
    }
    next
}

impl Prompt {
    pub(crate) fn cleaned(mut self) -> Self {
        clean(&mut self.title);
        clean(&mut self.description);
        for argument in &mut self.arguments {
            clean(&mut argument.title);
            clean(&mut argument.description);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_fit_what_they_describe() {
        for (template, uri, expected) in [
            ("test://template/{id}/data", "test://template/1/data", true),
            ("test://template/{id}/data", "test://template//data", false),
            ("test://template/{id}/data", "test://template/a/b/data", false),
            ("help://tool/{+command}", "help://tool/a/b", true),
            ("note://{year}/{title}", "note://2026/x", true),
            ("note://{year}/{title}", "note://2026", false),
            ("note://plain", "note://plain", true),
            ("note://{open", "note://x", false),
            ("note://{open", "note://{open", true),
            (
                "x://{+a}{+b}{+c}{+d}{+e}{+f}{+g}{+h}{+i}Z",
                &format!("x://{}", "a".repeat(4_000)),
                false,
            ),
            ("x://{a}/é{b}", "x://ü/éß", true),
        ] {
            assert_eq!(fits(template, uri), expected, "{template} {uri}");
        }
    }
}
