//! The tools of a catalog as an OpenAPI description.
//!
//! An OpenAPI description is one document, so a reference within a schema, such as `#/$defs/path`, would lead to the wrong place there.
//! Every schema is put under `components`, and its references are rewritten so that they lead to where the schema is now. What gives a
//! part of a schema a name of its own (`$id`, `$anchor`) goes: few readers of OpenAPI know it, and nothing refers to it any more.
//! A schema with a reference that leads out of it is left out, because a reader would fetch what it names; so is what only looks like one.

use std::collections::HashMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value, json};
use url::Url;

use crate::document::{Document, Item, Tool};
use crate::references::{Names, Under, follow};
use crate::validate::does_not_compile;

type Object = Map<String, Value>;

/// The base of schemas that have no address.
const NOWHERE: &str = "schema:///";
/// Deeper schemas are left out.
const MAX_DEPTH: usize = 128;

/// What needs no escape in the segment of a path.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// What needs none in a fragment, of what occurs in JSON pointers.
const FRAGMENT: &AsciiSet = &SEGMENT.remove(b'/').remove(b'$');

/// An OpenAPI 3.1 description: one `POST /tools/NAME` for every tool.
///
/// It says how the tools would look as an API; that somebody serves it is not said. Text of the server is in it as it is.
pub fn openapi(document: &Document) -> Value {
    let mut names = Names::default();
    let mut paths = Object::new();
    let mut schemas = general_schemas();
    let mut problems: Vec<String> = document
        .problems
        .iter()
        .map(|problem| format!("{}: {}", problem.list, problem.message))
        .collect();
    for (item, tool) in document.tools() {
        let path = format!("/tools/{}", utf8_percent_encode(&item.name, SEGMENT));
        if item.name.is_empty() {
            problems.push("a tool without a name is left out".to_owned());
        } else if paths.contains_key(&path) {
            // The first is the one that is called.
            problems.push(format!("another tool with the name `{}` is left out", item.name));
        } else {
            let id = names.give(&item.name, '_');
            let operation = operation(item, tool, &id, &mut schemas);
            paths.insert(path, json!({ "post": operation }));
        }
    }
    let mut api = Object::new();
    api.insert("openapi".to_owned(), "3.1.1".into());
    api.insert("info".to_owned(), info(document));
    api.insert("servers".to_owned(), json!([{ "url": "/" }]));
    // None, which is a statement: readers take its absence for an oversight.
    api.insert("security".to_owned(), json!([]));
    api.insert(
        "tags".to_owned(),
        json!([{ "name": "tools", "description": "The tools of the server." }]),
    );
    api.insert("paths".to_owned(), paths.into());
    api.insert(
        "components".to_owned(),
        json!({ "schemas": schemas, "responses": { "Error": error_response() } }),
    );
    if !problems.is_empty() {
        api.insert("x-mcp-problems".to_owned(), problems.into());
    }
    api.into()
}

fn info(document: &Document) -> Value {
    let server = &document.server;
    let text = |key: &str| server.info.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let mut info = Object::new();
    info.insert(
        "title".to_owned(),
        text("title").or_else(|| text("name")).unwrap_or("MCP server").into(),
    );
    info.insert("version".to_owned(), text("version").unwrap_or("unknown").into());
    if let Some(description) = server.instructions.as_deref().or_else(|| text("description")) {
        info.insert("description".to_owned(), description.into());
    }
    info.into()
}

fn operation(item: &Item, tool: &Tool, id: &str, schemas: &mut Object) -> Value {
    let mut errors: Vec<String> = item.error.iter().cloned().collect();
    let mut add = |side: &str, schema: &Value| {
        let name = format!("{id}_{side}");
        let failed = item
            .error
            .as_ref()
            .is_some_and(|error| error.contains(&does_not_compile(side)));
        let moved = if failed { Ok(json!({})) } else { relocate(schema, &name) };
        let moved = moved.unwrap_or_else(|problem| {
            errors.push(format!("the {side} schema is left out: {problem}"));
            json!({})
        });
        schemas.insert(name.clone(), moved);
        json!({ "$ref": format!("#/components/schemas/{name}") })
    };
    let input = add("input", &tool.input);
    let output = tool.output.as_ref().map(|output| add("output", output));
    let output = output.unwrap_or_else(|| json!({ "$ref": "#/components/schemas/ToolResult" }));
    let annotations = item.meta.annotations.as_ref();
    let annotated = || annotations?.get("title")?.as_str();
    let summary = item
        .title
        .as_deref()
        .or_else(annotated)
        .filter(|title| !title.is_empty())
        .unwrap_or(&item.name);

    let mut operation = Object::new();
    operation.insert("operationId".to_owned(), id.into());
    operation.insert("summary".to_owned(), summary.into());
    if let Some(description) = &item.description {
        operation.insert("description".to_owned(), description.as_str().into());
    }
    operation.insert("tags".to_owned(), json!(["tools"]));
    let body = json!({ "required": needs_arguments(&tool.input), "content": { "application/json": { "schema": input } } });
    operation.insert("requestBody".to_owned(), body);
    let result = json!({ "description": "What the tool gives.", "content": { "application/json": { "schema": output } } });
    let error = json!({ "$ref": "#/components/responses/Error" });
    operation.insert(
        "responses".to_owned(),
        json!({ "200": result, "4XX": error, "default": error }),
    );
    let more = [
        ("annotations", annotations),
        ("execution", tool.execution.as_ref()),
        ("meta", item.meta.meta.as_ref()),
    ];
    for (key, value) in more {
        match value {
            Some(value) if has_reference(value) => errors.push(format!("`x-mcp-{key}` is left out: it has a reference in it")),
            Some(value) => {
                operation.insert(format!("x-mcp-{key}"), value.clone());
            }
            None => {}
        }
    }
    if !errors.is_empty() {
        operation.insert("x-mcp-error".to_owned(), errors.join("; ").into());
    }
    operation.into()
}

fn needs_arguments(input: &Value) -> bool {
    let required = follow(input, input).get("required").and_then(Value::as_array);
    required.is_some_and(|required| !required.is_empty())
}

/// What the tools that have no schema for their results give.
fn general_schemas() -> Object {
    let content = json!({
        "type": "object",
        "description": "A part of a result: text, an image, sound, or a resource.",
        "properties": { "type": { "type": "string" } },
        "required": ["type"],
    });
    let result = json!({
        "type": "object",
        "description": "The result of a tool.",
        "properties": {
            "content": { "type": "array", "items": { "$ref": "#/components/schemas/Content" } },
            "structuredContent": { "type": "object" },
            "isError": { "type": "boolean", "default": false },
        },
        "required": ["content"],
    });
    let mut schemas = Object::new();
    schemas.insert("Content".to_owned(), content);
    schemas.insert("ToolResult".to_owned(), result);
    schemas
}

fn error_response() -> Value {
    json!({
        "description": "The arguments are not valid, or the tool failed; the text of the result says why.",
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/ToolResult" } } },
    })
}

/// The schema for its place under `components`.
fn relocate(schema: &Value, name: &str) -> Result<Value, String> {
    match schema {
        Value::Object(_) => {}
        // They are schemas, too, but not everybody who reads components knows.
        Value::Bool(true) => return Ok(json!({})),
        Value::Bool(false) => return Ok(json!({ "not": {} })),
        _ => return Err("it is no schema".to_owned()),
    }
    let base = Url::parse(NOWHERE).map_err(|problem| problem.to_string())?;
    let mut places = Places {
        root: schema,
        name,
        renamed: HashMap::new(),
        has_tuples: false,
        by_address: HashMap::new(),
        anchors: HashMap::new(),
        dynamic: HashMap::new(),
    };
    places.by_address.insert(base.to_string(), String::new());
    places.find(schema, Under::Schemas, &base, &mut Vec::new())?;
    let moved = places.rewrite(schema, Under::Schemas, &base)?;
    if jsonschema::draft202012::meta::is_valid(&moved) {
        Ok(moved)
    } else {
        Err("it is no schema of JSON Schema 2020-12, the version that OpenAPI has".to_owned())
    }
}

/// What references can name, and where it is: JSON pointers from the root of the schema.
struct Places<'a> {
    root: &'a Value,
    name: &'a str,
    /// The definitions whose names are not of the kind that OpenAPI has for components, which some readers ask of these, too.
    renamed: HashMap<*const Object, HashMap<String, String>>,
    /// Tuples are rewritten, so that what the schema says of its version is not so any more.
    has_tuples: bool,
    /// Of schemas with an `$id`; the root has one in any case.
    by_address: HashMap<String, String>,
    /// With an `$anchor`, by the address of the schema they are in, with the anchor as its fragment.
    anchors: HashMap<String, String>,
    /// How often a `$dynamicAnchor` occurs.
    dynamic: HashMap<String, usize>,
}

impl Places<'_> {
    fn find(&mut self, value: &Value, under: Under, base: &Url, path: &mut Vec<String>) -> Result<(), String> {
        if path.len() > MAX_DEPTH {
            return Err(format!("it is nested more than {MAX_DEPTH} deep"));
        }
        match value {
            Value::Object(fields) => {
                let base = self.note(fields, under, base, path);
                for (key, value) in fields {
                    let inner = inner(under, key);
                    self.has_tuples |= under == Under::Schemas && key == "items" && value.is_array();
                    if under == Under::Schemas && is_definitions(key) {
                        self.rename(value);
                    }
                    if inner != Under::Values {
                        path.push(key.clone());
                        self.find(value, inner, &base, path)?;
                        path.pop();
                    }
                }
            }
            Value::Array(values) => {
                for (place, value) in values.iter().enumerate() {
                    path.push(place.to_string());
                    self.find(value, Under::Schemas, base, path)?;
                    path.pop();
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn rename(&mut self, definitions: &Value) {
        let Value::Object(fields) = definitions else { return };
        let is_safe = |name: &String| {
            !name.is_empty()
                && name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        if fields.keys().all(is_safe) {
            return;
        }
        let mut names = Names::default();
        let renamed = fields
            .keys()
            .map(|name| (name.clone(), names.give(if name.is_empty() { "_" } else { name }, '_')));
        self.renamed.insert(fields, renamed.collect());
    }

    /// The name of a field where it is written.
    fn written<'k>(&'k self, fields: &Object, under: Under, key: &'k str) -> &'k str {
        let is_tuple = || fields.get("items").is_some_and(Value::is_array);
        match (under, key) {
            // Tuples as before 2020-12, which OpenAPI does not know.
            (Under::Schemas, "items") if is_tuple() => "prefixItems",
            (Under::Schemas, "additionalItems") if is_tuple() => "items",
            (Under::Named, _) => {
                let renamed = self
                    .renamed
                    .get(&std::ptr::from_ref(fields))
                    .and_then(|renamed| renamed.get(key));
                renamed.map_or(key, String::as_str)
            }
            _ => key,
        }
    }

    /// Where the place is that was at this pointer, if there was one and it was a schema.
    fn moved(&self, pointer: &str) -> Option<String> {
        let mut value = self.root;
        let mut under = Under::Schemas;
        let mut moved = String::new();
        for part in pointer.split('/').skip(1) {
            let key = part.replace("~1", "/").replace("~0", "~");
            let written = match value {
                Value::Object(fields) => {
                    let written = self.written(fields, under, &key).to_owned();
                    let was_schema = under == Under::Schemas;
                    value = fields.get(&key)?;
                    under = inner(under, &key);
                    if under == Under::Values || (was_schema && is_dropped(&key)) {
                        return None;
                    }
                    written
                }
                Value::Array(values) => {
                    value = values.get(key.parse::<usize>().ok()?)?;
                    key
                }
                _ => return None,
            };
            moved.push('/');
            moved.push_str(&written.replace('~', "~0").replace('/', "~1"));
        }
        matches!(value, Value::Object(_) | Value::Bool(_)).then_some(moved)
    }

    /// Notes the names of this schema; gives the base of its references.
    fn note(&mut self, fields: &Object, under: Under, base: &Url, path: &[String]) -> Url {
        if under != Under::Schemas {
            return base.clone();
        }
        let pointer = || {
            path.iter()
                .map(|part| format!("/{}", part.replace('~', "~0").replace('/', "~1")))
                .collect::<String>()
        };
        let base = own_base(fields, base);
        if has_id(fields) {
            self.by_address.entry(base.to_string()).or_insert_with(pointer);
        }
        let text = |key: &str| fields.get(key).and_then(Value::as_str);
        // In draft 7 an `$id` of a fragment alone is an anchor.
        let older = text("$id")
            .and_then(|id| id.strip_prefix('#'))
            .filter(|anchor| !anchor.is_empty());
        for anchor in [text("$anchor"), text("$dynamicAnchor"), older].into_iter().flatten() {
            self.anchors.entry(format!("{base}#{anchor}")).or_insert_with(pointer);
        }
        if let Some(anchor) = text("$dynamicAnchor") {
            *self.dynamic.entry(anchor.to_owned()).or_default() += 1;
        }
        base
    }

    /// As deep as `find` went.
    fn rewrite(&self, value: &Value, under: Under, base: &Url) -> Result<Value, String> {
        let fields = match value {
            Value::Object(fields) => fields,
            Value::Array(values) => {
                let values: Result<Vec<Value>, String> =
                    values.iter().map(|value| self.rewrite(value, Under::Schemas, base)).collect();
                return values.map(Value::Array);
            }
            other => return Ok(other.clone()),
        };
        let is_schema = under == Under::Schemas;
        let base = if is_schema { own_base(fields, base) } else { base.clone() };
        let mut written = Object::new();
        for (key, value) in fields {
            match (key.as_str(), value) {
                ("$id" | "$anchor" | "$dynamicAnchor" | "$recursiveAnchor", _) if is_schema => {}
                ("$schema", _) if is_schema && self.has_tuples => {}
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) if is_schema => {
                    let place = self.place(reference, key, &base)?;
                    if written.insert("$ref".to_owned(), place.into()).is_some() {
                        return Err("it has two references in one place".to_owned());
                    }
                }
                ("$ref" | "$dynamicRef" | "$recursiveRef", _) if is_schema => return Err(format!("`{key}` is no text")),
                // Under the name `$ref` it would be taken for a reference.
                (_, Value::String(_)) if under == Under::Named => return Err(format!("`{key}` is no schema")),
                ("discriminator", discriminator) if is_schema => {
                    if let Some(discriminator) = self.discriminator(discriminator, &base) {
                        written.insert(key.clone(), discriminator);
                    }
                }
                // They mean something in OpenAPI, which nobody who wrote a schema for MCP meant.
                ("xml" | "externalDocs", _) if is_schema => {}
                ("default" | "examples" | "example", value) if is_schema && has_reference(value) => {}
                (_, value) if inner(under, key) == Under::Values && has_reference(value) => {
                    return Err(format!("a value of `{key}` would be taken for a reference"));
                }
                _ => {
                    let inner = inner(under, key);
                    let value = if inner == Under::Values {
                        value.clone()
                    } else {
                        self.rewrite(value, inner, &base)?
                    };
                    written.insert(self.written(fields, under, key).to_owned(), value);
                }
            }
        }
        Ok(written.into())
    }

    /// Which value of a property stands for which schema: a hint that is dropped if it does not hold.
    fn discriminator(&self, value: &Value, base: &Url) -> Option<Value> {
        let property = value.get("propertyName")?.as_str()?;
        let mut mapping = Object::new();
        for (value, reference) in value.get("mapping").and_then(Value::as_object).into_iter().flatten() {
            mapping.insert(value.clone(), self.place(reference.as_str()?, "$ref", base).ok()?.into());
        }
        Some(json!({ "propertyName": property, "mapping": mapping }))
    }

    /// Where a reference leads, in the whole description.
    fn place(&self, reference: &str, key: &str, base: &Url) -> Result<String, String> {
        let nowhere = || format!("`{reference}` leads nowhere within it");
        let target = base.join(reference).map_err(|_| nowhere())?;
        let fragment = target.fragment().unwrap_or_default().to_owned();
        let mut resource = target;
        resource.set_fragment(None);
        let fragment = percent_decode_str(&fragment).decode_utf8().map_err(|_| nowhere())?;
        let pointer = if fragment.is_empty() || fragment.starts_with('/') {
            let start = self.by_address.get(resource.as_str()).ok_or_else(nowhere)?;
            format!("{start}{fragment}")
        } else {
            if key == "$dynamicRef" && self.dynamic.get(fragment.as_ref()).is_some_and(|count| *count > 1) {
                return Err(format!("`{reference}` can lead to several places"));
            }
            self.anchors
                .get(&format!("{resource}#{fragment}"))
                .ok_or_else(nowhere)?
                .clone()
        };
        let moved = self.moved(&pointer).ok_or_else(nowhere)?;
        Ok(format!(
            "#/components/schemas/{}{}",
            self.name,
            utf8_percent_encode(&moved, FRAGMENT)
        ))
    }
}

fn is_definitions(key: &str) -> bool {
    matches!(key, "$defs" | "definitions")
}

/// Is it written anew, or not at all?
fn is_dropped(keyword: &str) -> bool {
    matches!(keyword, "discriminator" | "xml" | "externalDocs")
}

/// Is something in a value that readers take for a reference? Many look for `$ref` everywhere, and read the file that it names.
fn has_reference(value: &Value) -> bool {
    let mut waiting = vec![value];
    while let Some(value) = waiting.pop() {
        match value {
            Value::Object(fields) => {
                if ["$ref", "$dynamicRef"]
                    .iter()
                    .any(|key| fields.get(*key).is_some_and(Value::is_string))
                {
                    return true;
                }
                waiting.extend(fields.values());
            }
            Value::Array(values) => waiting.extend(values),
            _ => {}
        }
    }
    false
}

/// What is under a key of an object that is itself under something.
fn inner(under: Under, key: &str) -> Under {
    match under {
        Under::Schemas => Under::keyword(key),
        Under::Named => Under::Schemas,
        Under::Values => Under::Values,
    }
}

fn has_id(fields: &Object) -> bool {
    fields
        .get("$id")
        .and_then(Value::as_str)
        .is_some_and(|id| !id.starts_with('#'))
}

fn own_base(fields: &Object, base: &Url) -> Url {
    let id = fields.get("$id").and_then(Value::as_str).filter(|id| !id.starts_with('#'));
    let mut base = id.and_then(|id| base.join(id).ok()).unwrap_or_else(|| base.clone());
    base.set_fragment(None);
    base
}
