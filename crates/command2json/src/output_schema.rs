//! The JSON Schema of what [`crate::output_to_json`] makes.
//!
//! The schema that somebody gave for the parsed output cannot go to clients as it is. On its way there a value is put in an envelope,
//! tuples become objects, and `null` is filled in for what is missing and may be null; rules that look at lengths, at patterns, or at
//! what is *not* there would then refuse what they allowed before. So clients get the part of it that stays true: types, constants and
//! keys. What is left out only makes it say less, and the program's output is held against the whole schema before.

use serde_json::{Map, Value, json};

use crate::tree::{Format, Output};

type Schema = Map<String, Value>;

/// Keywords that say nothing about validity.
const NOTES: [&str; 5] = ["title", "description", "default", "examples", "deprecated"];
/// Keywords that hold whatever happens to a value on its way.
const RULES: [&str; 4] = ["type", "enum", "const", "required"];

/// Where shared schemas stand, now and in older drafts.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// What the captured output of a command looks like in JSON. Not in the envelope.
pub fn output_schema(output: Option<&Output>) -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let encoding = json!({"type": "string", "enum": ["base64"], "description": "There if the bytes are no text."});
    let dropped = json!({"type": "integer", "minimum": 0, "description": "How many bytes are missing at the end."});
    let mut schema = json!({
        "type": "object",
        "properties": {
            "stdout": text("What the program printed."),
            "stderr": text("What the program printed to its standard error."),
            "exitCode": {"type": "integer", "description": "0 for success."},
            "stdoutEncoding": encoding,
            "stderrEncoding": encoding,
            "stdoutDropped": dropped,
            "stderrDropped": dropped,
            "hint": text("What would help."),
        },
        "required": ["stdout", "stderr", "exitCode"],
        "additionalProperties": false,
    });
    if output.and_then(|output| output.format) == Some(Format::Text) {
        return schema;
    }
    let (parsed, definitions) = parsed_schema(output);
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("json".to_owned(), parsed);
        if output.is_some_and(is_declared) {
            properties.insert("jsonError".to_owned(), text("Why there is no `json`."));
        }
    }
    if let Some(schema) = schema.as_object_mut() {
        schema.extend(definitions);
    }
    schema
}

/// Is it known what the output should be, so that something else is an error?
pub(crate) fn is_declared(output: &Output) -> bool {
    output.schema.is_some() || output.format.is_some_and(|format| format != Format::Text)
}

/// The schema of the parsed output, and the definitions that have to stand at the root for it.
fn parsed_schema(output: Option<&Output>) -> (Value, Schema) {
    let given = output.and_then(|output| output.schema.as_ref()).and_then(Value::as_object);
    let parsed = match (given, output.and_then(|output| output.format)) {
        (Some(given), _) => return embedded(given),
        (None, Some(Format::Table)) => {
            json!({"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string"}}})
        }
        (None, Some(Format::Jsonl)) => json!({"type": "array"}),
        (None, None) => json!({"anyOf": [{"type": "object"}, {"type": "array"}]}),
        (None, Some(_)) => anything_but_null(),
    };
    (described(parsed), Schema::new())
}

fn described(mut schema: Value) -> Value {
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("description".to_owned(), "What the program printed, parsed.".into());
    }
    schema
}

/// A schema that allows null would have it filled in where nothing was parsed.
fn anything_but_null() -> Value {
    json!({"anyOf": [
        {"type": "object"},
        {"type": "array"},
        {"type": "string"},
        {"type": "number"},
        {"type": "boolean"},
    ]})
}

fn embedded(given: &Schema) -> (Value, Schema) {
    let refuses_null = given.get("type").is_some_and(|name| name.is_string() && name != "null");
    let root = match refuses_null && !given.contains_key("$ref") {
        true => "#/properties/json",
        false => "#/properties/json/allOf/0",
    };
    let part = Part { root, given };
    let parsed = Value::Object(part.of(given));
    let parsed = match root.ends_with("json") {
        true => parsed,
        false => json!({"allOf": [parsed, anything_but_null()]}),
    };
    let definitions = DEFINITIONS.into_iter().filter_map(|keyword| {
        let named = given.get(keyword)?.as_object()?;
        Some((keyword.to_owned(), part.of_each(named)))
    });
    (parsed, definitions.collect())
}

/// Takes the part of a schema that stays true.
struct Part<'a> {
    /// Where the root of the given schema will be.
    root: &'static str,
    given: &'a Schema,
}

impl Part<'_> {
    fn of(&self, schema: &Schema) -> Schema {
        let mut part = Schema::new();
        let mut keep = |keywords: &[&str]| {
            let kept = keywords.iter().filter_map(|keyword| schema.get_key_value(*keyword));
            part.extend(kept.map(|(keyword, value)| (keyword.clone(), value.clone())));
        };
        keep(&NOTES);
        // Older drafts let a reference stand for everything beside it.
        if let Some(reference) = schema.get("$ref") {
            part.extend(self.target(reference).map(|target| ("$ref".to_owned(), target.into())));
            return part;
        }
        keep(&RULES);
        if let Some(named) = schema.get("properties").and_then(Value::as_object) {
            part.insert("properties".to_owned(), self.of_each(named));
        }
        // What is additional depends on the patterns, which are not kept; likewise for what follows a tuple.
        if !schema.contains_key("patternProperties")
            && let Some(additional) = schema.get("additionalProperties")
        {
            let additional = self.of_any(additional).unwrap_or(Value::Bool(false));
            part.insert("additionalProperties".to_owned(), additional);
        }
        if !schema.contains_key("prefixItems")
            && let Some(items) = schema
                .get("items")
                .filter(|items| !items.is_array())
                .and_then(|items| self.of_any(items))
        {
            part.insert("items".to_owned(), items);
        }
        let types = match part.get("type") {
            Some(Value::Array(types)) => Some(types.iter().map(|name| json!({"type": name})).collect()),
            _ => None,
        };
        if types.is_some() {
            part.shift_remove("type");
        }
        // That no two branches of a `oneOf` hold is not sure to stay true.
        let unions = [types, self.of_list(schema, "anyOf"), self.of_list(schema, "oneOf")];
        let mut unions: Vec<Value> = unions.into_iter().flatten().map(Value::Array).collect();
        part.extend(unions.pop().map(|union| ("anyOf".to_owned(), union)));
        let others = unions.into_iter().map(|union| json!({"anyOf": union}));
        let all: Vec<Value> = self.of_list(schema, "allOf").into_iter().flatten().chain(others).collect();
        if !all.is_empty() {
            part.insert("allOf".to_owned(), Value::Array(all));
        }
        part
    }

    /// Nothing for a schema that refuses everything.
    fn of_any(&self, schema: &Value) -> Option<Value> {
        match schema {
            Value::Bool(false) => None,
            Value::Object(schema) => Some(Value::Object(self.of(schema))),
            _ => Some(json!({})),
        }
    }

    fn of_each(&self, named: &Schema) -> Value {
        let parts = named
            .iter()
            .filter_map(|(name, schema)| Some((name.clone(), self.of_any(schema)?)));
        Value::Object(parts.collect())
    }

    fn of_list(&self, schema: &Schema, keyword: &str) -> Option<Vec<Value>> {
        let parts: Vec<Value> = schema
            .get(keyword)?
            .as_array()?
            .iter()
            .filter_map(|one| self.of_any(one))
            .collect();
        Some(parts).filter(|parts| !parts.is_empty())
    }

    /// Where a reference leads from now on. One that names neither the root nor a definition is not kept, and so allows anything.
    fn target(&self, reference: &Value) -> Option<String> {
        let reference = reference.as_str()?;
        if reference == "#" {
            return Some(self.root.to_owned());
        }
        let (keyword, name) = reference.strip_prefix("#/")?.split_once('/')?;
        let is_plain = !name.contains(['/', '~', '%']);
        let definition = self
            .given
            .get(keyword)
            .filter(|_| DEFINITIONS.contains(&keyword))?
            .get(name)?;
        (is_plain && *definition != Value::Bool(false)).then(|| reference.to_owned())
    }
}
