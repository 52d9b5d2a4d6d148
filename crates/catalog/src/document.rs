//! The shape of a catalog: what is written with `--json`, and what generators read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

/// The version of the shape. A reader that knows `1` can read every catalog of version `1`: keys may be added to it, none change or go.
pub const SCHEMA_VERSION: u32 = 1;

type Object = Map<String, Value>;

/// What a server offers.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "MCP catalog")]
pub struct Document {
    /// The version of this shape.
    #[schemars(extend("const" = SCHEMA_VERSION))]
    pub schema_version: u32,
    pub server: ServerInfo,
    /// By type (tools, resources, resource templates, prompts), then by name.
    pub items: Vec<Item>,
    /// What could not be read, so that this catalog is not all that the server has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}

/// What a server says of itself.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerInfo {
    /// `name`, `version`, and whatever else it says.
    pub info: Object,
    pub capabilities: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    pub protocol: Protocol,
}

/// The versions of the protocol.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Protocol {
    /// The one that was spoken when this was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// All that the server speaks, where it says so: since 2026-07-28.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub supported: Vec<String>,
}

/// A part of the catalog that could not be read, or not to its end.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Problem {
    /// The list, by the method that asks for it.
    pub list: String,
    pub message: String,
}

/// One thing that a server offers.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct Item {
    #[serde(flatten)]
    pub detail: Detail,
    /// Unique within its type, if the server keeps to the protocol. Empty if there is none.
    pub name: String,
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub meta: Meta,
    /// Why this item cannot be used, or not fully: a schema that does not compile, a field of a wrong type.
    #[serde(default)]
    pub error: Option<String>,
}

/// What else the server says of an item. Nothing is dropped.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Meta {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Value>,
    /// Hints about a tool: `readOnlyHint` and the like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
    /// The `_meta` of the protocol.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
    /// Fields that the protocol does not know, and fields of a type that it does not allow.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extensions: Object,
}

/// What differs by the type of an item.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "detail", rename_all = "kebab-case")]
pub enum Detail {
    Tool(Tool),
    Resource(Resource),
    ResourceTemplate(ResourceTemplate),
    Prompt(Prompt),
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Tool {
    /// The JSON Schema of the arguments.
    pub input: Value,
    /// The JSON Schema of the structured result, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// The view that an MCP app shows for the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ui: Option<Value>,
    /// How it runs, as in `{"taskSupport": "optional"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    pub uri: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// In bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Whom it is for, and how much it matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
    /// What it needs when it is the view of an MCP app.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ui: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplate {
    /// As in RFC 6570.
    pub uri_template: String,
    /// The variables of the template, in its order.
    pub variables: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Prompt {
    /// As the server lists them.
    pub arguments: Vec<Value>,
    /// The same as a JSON Schema.
    pub input: Value,
}

impl Detail {
    /// The order of the catalog, and of its headings.
    pub const TYPES: [&'static str; 4] = ["tool", "resource", "resource-template", "prompt"];

    /// As in the key `type`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Tool(_) => "tool",
            Self::Resource(_) => "resource",
            Self::ResourceTemplate(_) => "resource-template",
            Self::Prompt(_) => "prompt",
        }
    }

    /// What tells two items of one type and name apart.
    pub fn address(&self) -> &str {
        match self {
            Self::Resource(resource) => &resource.uri,
            Self::ResourceTemplate(template) => &template.uri_template,
            Self::Tool(_) | Self::Prompt(_) => "",
        }
    }
}

/// By hand, because a derived one would put `detail`, the longest part, before the name.
impl Serialize for Item {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Written<'a> {
            r#type: &'static str,
            name: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            title: &'a Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            description: &'a Option<String>,
            meta: &'a Meta,
            detail: Content<'a>,
            #[serde(skip_serializing_if = "Option::is_none")]
            error: &'a Option<String>,
        }

        #[derive(Serialize)]
        #[serde(untagged)]
        enum Content<'a> {
            Tool(&'a Tool),
            Resource(&'a Resource),
            ResourceTemplate(&'a ResourceTemplate),
            Prompt(&'a Prompt),
        }

        let written = Written {
            r#type: self.detail.type_name(),
            name: &self.name,
            title: &self.title,
            description: &self.description,
            meta: &self.meta,
            detail: match &self.detail {
                Detail::Tool(tool) => Content::Tool(tool),
                Detail::Resource(resource) => Content::Resource(resource),
                Detail::ResourceTemplate(template) => Content::ResourceTemplate(template),
                Detail::Prompt(prompt) => Content::Prompt(prompt),
            },
            error: &self.error,
        };
        written.serialize(serializer)
    }
}

impl Item {
    pub(crate) fn add_error(&mut self, error: String) {
        self.error = Some(match self.error.take() {
            // Read from a file that was written with it.
            Some(known) if known.contains(&error) => known,
            Some(known) => format!("{known}; {error}"),
            None => error,
        });
    }
}

impl Document {
    /// The tools, by name.
    pub fn tools(&self) -> impl Iterator<Item = (&Item, &Tool)> {
        self.items.iter().filter_map(|item| match &item.detail {
            Detail::Tool(tool) => Some((item, tool)),
            _ => None,
        })
    }
}
