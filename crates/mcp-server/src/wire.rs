//! What components say, in the types of the protocol.
//!
//! rmcp's types are made from their JSON, which is the protocol itself: their constructors do not cover everything.

use component2json::Icon;
use lifecycle::{Annotations, Block, Filled, Prompt, Resource, ResourceBlock, ResourceBody, ResourceContents, Speaker, Template};
use rmcp::ErrorData;
use rmcp::model as mcp;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// An object without those of its fields that are null.
fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let there = fields.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(there.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
}

/// What is not what the protocol allows is the component's mistake.
fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value)
        .map_err(|error| ErrorData::internal_error(format!("the component gave what the protocol does not allow: {error}"), None))
}

fn role(speaker: Speaker) -> &'static str {
    match speaker {
        Speaker::User => "user",
        Speaker::Assistant => "assistant",
    }
}

fn annotations(annotations: Option<Annotations>) -> Value {
    let Some(annotations) = annotations else { return Value::Null };
    let audience: Vec<&str> = annotations.audience.into_iter().map(role).collect();
    object([
        ("audience", if audience.is_empty() { Value::Null } else { json!(audience) }),
        (
            "priority",
            json!(annotations.priority.map(|priority| priority.clamp(0.0, 1.0))),
        ),
        ("lastModified", json!(annotations.last_modified)),
    ])
}

fn contents(contents: ResourceContents) -> Value {
    let (key, body) = match contents.body {
        ResourceBody::Text(text) => ("text", text),
        ResourceBody::Blob(data) => ("blob", data),
    };
    object([
        ("uri", contents.uri.into()),
        ("mimeType", json!(contents.mime_type)),
        (key, body.into()),
    ])
}

fn block_value(block: Block) -> Value {
    let media = |kind: &str, block: lifecycle::MediaBlock| {
        object([
            ("type", kind.into()),
            ("data", block.data.into()),
            ("mimeType", block.mime_type.into()),
            ("annotations", annotations(block.annotations)),
        ])
    };
    match block {
        Block::Text(block) => object([
            ("type", "text".into()),
            ("text", block.text.into()),
            ("annotations", annotations(block.annotations)),
        ]),
        Block::Image(block) => media("image", block),
        Block::Audio(block) => media("audio", block),
        Block::Link(link) => {
            let mut link = resource_value(link);
            if let Some(fields) = link.as_object_mut() {
                fields.insert("type".to_owned(), "resource_link".into());
            }
            link
        }
        Block::Embedded(ResourceBlock {
            resource,
            annotations: about,
        }) => object([
            ("type", "resource".into()),
            ("resource", contents(resource)),
            ("annotations", annotations(about)),
        ]),
    }
}

fn resource_value(resource: Resource) -> Value {
    object([
        ("uri", resource.uri.into()),
        ("name", resource.name.into()),
        ("title", json!(resource.title)),
        ("description", json!(resource.description)),
        ("mimeType", json!(resource.mime_type)),
        ("size", json!(resource.size)),
        ("annotations", annotations(resource.annotations)),
    ])
}

/// Blocks as clients see them.
pub fn content_json(blocks: &[Block]) -> Value {
    blocks.iter().cloned().map(block_value).collect()
}

pub(crate) fn block(block: Block) -> Result<mcp::ContentBlock, ErrorData> {
    typed(block_value(block))
}

pub(crate) fn resource(resource: Resource) -> Result<mcp::Resource, ErrorData> {
    typed(resource_value(resource))
}

pub(crate) fn template(template: Template) -> Result<mcp::ResourceTemplate, ErrorData> {
    typed(object([
        ("uriTemplate", template.uri_template.into()),
        ("name", template.name.into()),
        ("title", json!(template.title)),
        ("description", json!(template.description)),
        ("mimeType", json!(template.mime_type)),
        ("annotations", annotations(template.annotations)),
    ]))
}

pub(crate) fn resource_contents(read: ResourceContents) -> Result<mcp::ResourceContents, ErrorData> {
    typed(contents(read))
}

pub(crate) fn prompt(prompt: Prompt) -> Result<mcp::Prompt, ErrorData> {
    let argument = |argument: lifecycle::PromptArgument| {
        object([
            ("name", argument.name.into()),
            ("title", json!(argument.title)),
            ("description", json!(argument.description)),
            ("required", argument.required.into()),
        ])
    };
    let arguments: Vec<Value> = prompt.arguments.into_iter().map(argument).collect();
    typed(object([
        ("name", prompt.name.into()),
        ("title", json!(prompt.title)),
        ("description", json!(prompt.description)),
        ("arguments", if arguments.is_empty() { Value::Null } else { json!(arguments) }),
    ]))
}

pub(crate) fn filled(filled: Filled) -> Result<mcp::GetPromptResult, ErrorData> {
    let message =
        |message: lifecycle::PromptMessage| json!({ "role": role(message.role), "content": block_value(message.content) });
    let messages: Vec<Value> = filled.messages.into_iter().map(message).collect();
    typed(object([
        ("description", json!(filled.description)),
        ("messages", json!(messages)),
        ("resultType", "complete".into()),
    ]))
}

pub(crate) fn icon(icon: &Icon) -> Option<mcp::Icon> {
    // The keys are the same.
    serde_json::from_value(serde_json::to_value(icon).ok()?).ok()
}
