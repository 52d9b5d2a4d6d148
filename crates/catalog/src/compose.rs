//! From what a server says to items of one shape. Nothing is believed and nothing is dropped: a field of a wrong type becomes an
//! extension with an error beside it.

use serde_json::{Map, Value, json};

use crate::document::{Detail, Item, Meta, Problem, Prompt, Resource, ResourceTemplate, ServerInfo, Tool};
use crate::uri_template;

/// What a server answered, as it stood on the wire: the result of the handshake, and the entries of every list.
#[derive(Clone, Debug, Default)]
pub struct Payloads {
    pub server: ServerInfo,
    pub tools: Vec<Value>,
    pub resources: Vec<Value>,
    pub resource_templates: Vec<Value>,
    pub prompts: Vec<Value>,
    /// Lists that could not be read, or not to their end.
    pub problems: Vec<Problem>,
}

/// The items in their order, and what is no item at all.
pub(crate) fn items(payloads: Payloads) -> (Vec<Item>, Vec<Problem>) {
    let Payloads {
        tools,
        resources,
        resource_templates,
        prompts,
        mut problems,
        server: _,
    } = payloads;
    type Read = fn(&mut Fields) -> Detail;
    let lists: [(&str, Vec<Value>, Read); 4] = [
        ("tools/list", tools, tool),
        ("resources/list", resources, resource),
        ("resources/templates/list", resource_templates, resource_template),
        ("prompts/list", prompts, prompt),
    ];
    let mut items = Vec::new();
    for (list, entries, read) in lists {
        let mut read_items = Vec::with_capacity(entries.len());
        let mut others = Vec::new();
        for (place, entry) in entries.into_iter().enumerate() {
            match entry {
                Value::Object(fields) => read_items.push(item(fields, read)),
                other => others.push((place, other)),
            }
        }
        if let Some((place, first)) = others.first() {
            let more = match others.len() {
                1 => String::new(),
                count => format!(", and neither are {} others", count - 1),
            };
            problems.push(Problem {
                list: list.to_owned(),
                message: format!("entry {place} is {}, not an object{more}", kind(first)),
            });
        }
        mark_duplicates(&mut read_items);
        // Stable, so that what is alike stays in the order of the server.
        read_items.sort_by(|a, b| (&a.name, a.detail.address()).cmp(&(&b.name, b.detail.address())));
        items.append(&mut read_items);
    }
    (items, problems)
}

fn item(fields: Map<String, Value>, read: fn(&mut Fields) -> Detail) -> Item {
    let mut fields = Fields {
        fields,
        ui: None,
        errors: Vec::new(),
    };
    let name = fields.text("name");
    let title = fields.text("title");
    let description = fields.text("description");
    let icons = fields.take("icons");
    let meta = fields.take("_meta");
    fields.ui = ui(meta.as_ref());
    let detail = read(&mut fields);
    // Those of a resource are a part of its detail by now.
    let annotations = fields.take("annotations");
    let name = name.unwrap_or_else(|| {
        fields.errors.push("it has no name".to_owned());
        // Servers of the first version of the protocol may have resources without one.
        detail.address().to_owned()
    });
    let errors = fields.errors.join("; ");
    Item {
        detail,
        name,
        title,
        description,
        meta: Meta {
            icons,
            annotations,
            meta,
            extensions: fields.fields,
        },
        error: Some(errors).filter(|errors| !errors.is_empty()),
    }
}

/// The fields of an entry that nobody has taken yet.
struct Fields {
    fields: Map<String, Value>,
    ui: Option<Value>,
    errors: Vec<String>,
}

impl Fields {
    fn take(&mut self, key: &str) -> Option<Value> {
        self.fields.shift_remove(key).filter(|value| !value.is_null())
    }

    /// A field that the type allows, or an error; then the field stays where it is.
    fn typed<T>(&mut self, key: &str, expected: &str, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
        let value = self.fields.get(key)?;
        if value.is_null() {
            self.fields.shift_remove(key);
            return None;
        }
        let read = read(value);
        match read {
            Some(_) => {
                self.fields.shift_remove(key);
            }
            None => {
                let found = kind(value);
                self.errors.push(format!("`{key}` is {found}, not {expected}"));
            }
        }
        read
    }

    fn text(&mut self, key: &str) -> Option<String> {
        self.typed(key, "text", |value| value.as_str().map(str::to_owned))
    }

    /// A text that has to be there.
    fn required_text(&mut self, key: &str) -> String {
        if self.fields.get(key).is_none_or(Value::is_null) {
            self.errors.push(format!("it has no `{key}`"));
        }
        self.text(key).unwrap_or_default()
    }
}

fn tool(fields: &mut Fields) -> Detail {
    let input = fields.take("inputSchema").unwrap_or_else(|| {
        fields
            .errors
            .push("it has no `inputSchema`; any object is taken for valid".to_owned());
        json!({ "type": "object" })
    });
    Detail::Tool(Tool {
        input,
        output: fields.take("outputSchema"),
        ui: fields.ui.take(),
        execution: fields.take("execution"),
    })
}

fn resource(fields: &mut Fields) -> Detail {
    Detail::Resource(Resource {
        uri: fields.required_text("uri"),
        mime_type: fields.text("mimeType"),
        size: fields.typed("size", "a number of bytes", Value::as_u64),
        annotations: fields.take("annotations"),
        ui: fields.ui.take(),
    })
}

fn resource_template(fields: &mut Fields) -> Detail {
    let uri_template = fields.required_text("uriTemplate");
    let variables = uri_template::variables(&uri_template).unwrap_or_else(|problem| {
        fields.errors.push(problem);
        Vec::new()
    });
    Detail::ResourceTemplate(ResourceTemplate {
        uri_template,
        variables,
        mime_type: fields.text("mimeType"),
    })
}

fn prompt(fields: &mut Fields) -> Detail {
    let arguments = fields
        .typed("arguments", "a list", |value| value.as_array().cloned())
        .unwrap_or_default();
    let mut properties = Map::new();
    let mut required = Vec::new();
    for argument in &arguments {
        let Some(name) = argument.get("name").and_then(Value::as_str) else {
            fields.errors.push("an argument has no name".to_owned());
            continue;
        };
        let mut schema = Map::new();
        schema.insert("type".to_owned(), "string".into());
        for key in ["title", "description"] {
            if let Some(text) = argument.get(key).filter(|text| text.is_string()) {
                schema.insert(key.to_owned(), text.clone());
            }
        }
        if properties.insert(name.to_owned(), schema.into()).is_some() {
            fields.errors.push(format!("two arguments are named `{name}`"));
        } else if argument.get("required") == Some(&Value::Bool(true)) {
            required.push(name.to_owned());
        }
    }
    let mut input = Map::new();
    input.insert("type".to_owned(), "object".into());
    input.insert("properties".to_owned(), properties.into());
    if !required.is_empty() {
        input.insert("required".to_owned(), required.into());
    }
    input.insert("additionalProperties".to_owned(), false.into());
    Detail::Prompt(Prompt {
        arguments,
        input: input.into(),
    })
}

/// What `_meta` says about the view of an MCP app, in either of its spellings.
fn ui(meta: Option<&Value>) -> Option<Value> {
    let meta = meta?;
    let older = || Some(json!({ "resourceUri": meta.get("ui/resourceUri")? }));
    meta.get("ui").cloned().or_else(older)
}

/// Two tools of one name cannot both be called.
fn mark_duplicates(items: &mut [Item]) {
    let mut seen = std::collections::HashSet::new();
    for item in items {
        if !seen.insert((item.name.clone(), item.detail.address().to_owned())) && !item.name.is_empty() {
            item.add_error(format!("another {} has the same name", item.detail.type_name()));
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
