//! Schemas in words: the type of a value, and tables of what an object has.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::prose;
use crate::references::{brief, follow};

/// Objects within objects are rows of the table to this depth.
const MAX_DEPTH: usize = 4;
const MAX_ROWS: usize = 200;
/// Of a table, which references can make much longer than its schema.
const MAX_TABLE: usize = 64 << 10;
/// Of one type in words.
const MAX_TYPE_PARTS: usize = 40;
const MAX_TYPE_DEPTH: usize = 4;
/// Of a description within a table, where more cannot be read.
const MAX_CELL: usize = 2_000;
/// Of a value within a table.
const MAX_VALUE: usize = 100;
/// Of the values of an enumeration.
const MAX_VALUES: usize = 20;

/// Which way the values go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    In,
    Out,
}

/// What a value of this schema has, as a table or in a sentence.
pub(super) fn describe(schema: &Value, way: Way) -> String {
    let mut rows = Rows {
        root: schema,
        rows: Vec::new(),
        open: Vec::new(),
        size: 0,
        is_cut: false,
    };
    rows.collect(follow(schema, schema), "");
    if rows.rows.is_empty() {
        return match (way, follow(schema, schema)) {
            (Way::In, Value::Object(fields)) if !takes_more(fields) => "None.".to_owned(),
            (Way::In, _) => "Any object.".to_owned(),
            (Way::Out, _) => format!("{}.", prose::code(&type_in_words(schema, schema))),
        };
    }
    let has_default = rows.rows.iter().any(|row| row.default.is_some());
    let has_description = rows.rows.iter().any(|row| !row.description.is_empty());
    let required = if way == Way::In { "Required" } else { "Always there" };
    let mut header = vec!["Name".to_owned(), "Type".to_owned(), required.to_owned()];
    if has_default {
        header.push("Default".to_owned());
    }
    if has_description {
        header.push("Description".to_owned());
    }
    let mut table = vec![header];
    for row in rows.rows {
        let mut cells = vec![row.name, row.kind, if row.required { "yes" } else { "" }.to_owned()];
        if has_default {
            cells.push(row.default.unwrap_or_default());
        }
        if has_description {
            cells.push(row.description);
        }
        table.push(cells);
    }
    let mut text = prose::table(&table);
    if rows.is_cut {
        text.push_str("\n\nThere is more, which is not shown here.");
    }
    text
}

/// May an object without properties have some?
fn takes_more(fields: &Map<String, Value>) -> bool {
    let is_listed =
        fields.contains_key("properties") || fields.keys().all(|key| matches!(key.as_str(), "type" | "$schema" | "title"));
    match fields.get("additionalProperties") {
        Some(Value::Bool(more)) => *more,
        Some(_) => true,
        None => !is_listed,
    }
}

struct Row {
    name: String,
    kind: String,
    required: bool,
    default: Option<String>,
    description: String,
}

struct Rows<'a> {
    root: &'a Value,
    rows: Vec<Row>,
    /// The objects that are being told, from the outermost.
    open: Vec<&'a Value>,
    size: usize,
    is_cut: bool,
}

impl<'a> Rows<'a> {
    /// The properties of `schema`, and those of the objects in them.
    fn collect(&mut self, schema: &'a Value, prefix: &str) {
        self.open.push(schema);
        let mut properties = Vec::new();
        let mut required = HashSet::new();
        members(self.root, schema, 0, &mut properties, &mut required);
        for (name, property) in properties {
            if self.rows.len() >= MAX_ROWS || self.size >= MAX_TABLE {
                self.is_cut = true;
                break;
            }
            let path = if prefix.is_empty() {
                name.clone()
            } else {
                format!("{prefix}.{name}")
            };
            let row = Row {
                name: prose::cell_code(&path),
                kind: prose::cell_code(&type_in_words(self.root, property)),
                required: required.contains(name.as_str()),
                default: property.get("default").map(|value| prose::cell_code(&shown(value))),
                description: description(self.root, property),
            };
            self.size += row.name.len() + row.kind.len() + row.description.len();
            self.rows.push(row);
            let Some((inner, suffix)) = object_within(self.root, property) else {
                continue;
            };
            // Within itself an object is not told again.
            if self.open.len() < MAX_DEPTH && !self.open.iter().any(|open| std::ptr::eq(*open, inner)) {
                self.collect(inner, &format!("{path}{suffix}"));
            }
        }
        self.open.pop();
    }
}

/// The properties of an object, its own and those that it takes over with `allOf`.
fn members<'a>(
    root: &'a Value,
    schema: &'a Value,
    depth: usize,
    properties: &mut Vec<(&'a String, &'a Value)>,
    required: &mut HashSet<&'a str>,
) {
    let schema = follow(root, schema);
    if depth >= MAX_DEPTH || properties.len() >= MAX_ROWS {
        return;
    }
    let own = schema.get("properties").and_then(Value::as_object);
    properties.extend(own.into_iter().flatten().take(MAX_ROWS + 1));
    let own = schema.get("required").and_then(Value::as_array);
    required.extend(own.into_iter().flatten().filter_map(Value::as_str));
    let parts = schema.get("allOf").and_then(Value::as_array);
    for part in parts.into_iter().flatten().take(MAX_VALUES) {
        members(root, part, depth + 1, properties, required);
    }
}

/// The object that a property is, that it may be, or that its list is of; with what to write behind its name.
fn object_within<'a>(root: &'a Value, property: &'a Value) -> Option<(&'a Value, &'static str)> {
    let mut suffix = "";
    let mut schema = follow(root, property);
    for _ in 0..3 {
        if schema.get("properties").is_some() || schema.get("allOf").is_some() {
            return Some((schema, suffix));
        }
        let alternatives = ["anyOf", "oneOf"]
            .iter()
            .find_map(|key| schema.get(key))
            .and_then(Value::as_array);
        schema = match (alternatives, schema.get("items")) {
            (Some(alternatives), _) => {
                let mut others = alternatives
                    .iter()
                    .filter(|other| other.get("type").is_none_or(|kind| kind != "null"));
                match (others.next(), others.next()) {
                    (Some(only), None) => follow(root, only),
                    _ => return None,
                }
            }
            (None, Some(items)) if suffix.is_empty() => {
                suffix = "[]";
                follow(root, items)
            }
            _ => return None,
        };
    }
    None
}

/// What a description says, and what the schema forbids.
fn description(root: &Value, property: &Value) -> String {
    let schema = follow(root, property);
    let own = property
        .get("description")
        .or_else(|| schema.get("description"))
        .and_then(Value::as_str);
    let mut parts = Vec::new();
    if property.get("deprecated").or_else(|| schema.get("deprecated")) == Some(&Value::Bool(true)) {
        parts.push("**Deprecated.**".to_owned());
    }
    if let Some(text) = own.filter(|text| !text.trim().is_empty()) {
        parts.push(match text.char_indices().nth(MAX_CELL) {
            Some((end, _)) => format!("{} …", prose::cell(text.get(..end).unwrap_or_default())),
            None => prose::cell(text),
        });
    }
    let limits = limits(schema);
    if !limits.is_empty() {
        let limits = limits.join(", ");
        let mut chars = limits.chars();
        let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
        let text = format!("{first}{}.", chars.as_str());
        // A sentence of ours is not a part of theirs.
        if parts.is_empty() {
            parts.push(text)
        } else {
            parts.push(format!("*{text}*"))
        }
    }
    parts.join(" ")
}

/// What is asked of a value beyond its type, and of the values of a list.
fn limits(schema: &Value) -> Vec<String> {
    let number = |key: &str| schema.get(key).filter(|value| value.is_number()).map(Value::to_string);
    let text = |key: &str| {
        schema
            .get(key)
            .and_then(Value::as_str)
            .map(|text| prose::cell_code(&cut(text)))
    };
    let mut limits = Vec::new();
    let range = |least: Option<String>, most: Option<String>| match (least, most) {
        (Some(least), Some(most)) if least == most => Some(format!("exactly {least}")),
        (Some(least), Some(most)) => Some(format!("{least} to {most}")),
        (Some(least), None) => Some(format!("at least {least}")),
        (None, Some(most)) => Some(format!("at most {most}")),
        (None, None) => None,
    };
    limits.extend(range(number("minimum"), number("maximum")));
    limits.extend(number("exclusiveMinimum").map(|least| format!("more than {least}")));
    limits.extend(number("exclusiveMaximum").map(|most| format!("less than {most}")));
    limits.extend(number("multipleOf").map(|of| format!("a multiple of {of}")));
    let least_text = number("minLength").filter(|least| least != "0");
    limits.extend(range(least_text, number("maxLength")).map(|range| format!("{range} characters")));
    let least_items = number("minItems").filter(|least| least != "0");
    limits.extend(range(least_items, number("maxItems")).map(|range| format!("{range} items")));
    limits.extend(range(number("minProperties"), number("maxProperties")).map(|range| format!("{range} properties")));
    if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
        limits.push("no item twice".to_owned());
    }
    limits.extend(text("format").map(|format| format!("format {format}")));
    limits.extend(text("pattern").map(|pattern| format!("pattern {pattern}")));
    limits
}

/// The type of a value, as in `integer`, `"a" | "b"`, `list of string`.
pub(super) fn type_in_words(root: &Value, schema: &Value) -> String {
    let mut left = MAX_TYPE_PARTS;
    words(root, schema, 0, &mut left)
}

fn words(root: &Value, schema: &Value, depth: usize, left: &mut usize) -> String {
    if *left == 0 || depth > MAX_TYPE_DEPTH {
        return "…".to_owned();
    }
    *left -= 1;
    let schema = follow(root, schema);
    let fields = match schema {
        Value::Object(fields) => fields,
        Value::Bool(false) => return "nothing".to_owned(),
        _ => return "anything".to_owned(),
    };
    if fields.contains_key("$ref") || fields.contains_key("$dynamicRef") {
        return "defined elsewhere".to_owned();
    }
    if let Some(value) = fields.get("const") {
        return shown(value);
    }
    if let Some(values) = fields.get("enum").and_then(Value::as_array) {
        return join(values.iter().take(MAX_VALUES).map(shown).collect(), values.len() > MAX_VALUES);
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(parts) = fields.get(key).and_then(Value::as_array) {
            let named = fields.get("type").is_some_and(|kind| kind == "object");
            // Often no types, but which of the properties go together.
            if named {
                return "object".to_owned();
            }
            let shown = parts
                .iter()
                .take(MAX_VALUES)
                .map(|part| words(root, part, depth + 1, left))
                .collect();
            return join(shown, parts.len() > MAX_VALUES);
        }
    }
    match fields.get("type") {
        Some(Value::String(kind)) => one_type(root, fields, kind, depth, left),
        Some(Value::Array(kinds)) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).take(MAX_VALUES).collect();
            join(
                kinds.iter().map(|kind| one_type(root, fields, kind, depth, left)).collect(),
                false,
            )
        }
        _ if fields.contains_key("properties") || fields.contains_key("allOf") => "object".to_owned(),
        _ if fields.contains_key("items") => one_type(root, fields, "array", depth, left),
        _ => "anything".to_owned(),
    }
}

fn one_type(root: &Value, fields: &Map<String, Value>, kind: &str, depth: usize, left: &mut usize) -> String {
    let of = |what: &str, inner: String| {
        if inner.contains(" | ") {
            format!("{what} of ({inner})")
        } else {
            format!("{what} of {inner}")
        }
    };
    match kind {
        "array" => match (fields.get("items"), fields.get("prefixItems").and_then(Value::as_array)) {
            (_, Some(parts)) => {
                let parts: Vec<String> = parts
                    .iter()
                    .take(MAX_VALUES)
                    .map(|part| words(root, part, depth + 1, left))
                    .collect();
                format!("[{}]", parts.join(", "))
            }
            (Some(items @ Value::Object(_)), None) => of("list", words(root, items, depth + 1, left)),
            _ => "list".to_owned(),
        },
        "object" if !fields.contains_key("properties") => match fields.get("additionalProperties") {
            Some(values @ Value::Object(_)) => of("map", words(root, values, depth + 1, left)),
            _ => "object".to_owned(),
        },
        other => cut(other),
    }
}

/// Alternatives, each once.
fn join(parts: Vec<String>, is_cut: bool) -> String {
    let mut seen: Vec<String> = Vec::new();
    for part in parts {
        if !seen.contains(&part) {
            seen.push(part);
        }
    }
    if is_cut {
        seen.push("…".to_owned());
    }
    if seen.is_empty() {
        "nothing".to_owned()
    } else {
        seen.join(" | ")
    }
}

fn shown(value: &Value) -> String {
    brief(value, MAX_VALUE)
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_VALUE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Arguments that this schema takes: those that are required, with values that it names or that fit. None where that cannot be told.
pub(super) fn example(schema: &Value) -> Option<Value> {
    let mut left = MAX_ROWS;
    let example = example_of(schema, schema, 0, &mut left)?;
    example
        .as_object()
        .is_some_and(|fields| !fields.is_empty())
        .then_some(example)
}

fn example_of(root: &Value, schema: &Value, depth: usize, left: &mut usize) -> Option<Value> {
    *left = left.checked_sub(1)?;
    let target = follow(root, schema);
    let fields = target.as_object()?;
    let given = |key: &str| schema.get(key).or_else(|| fields.get(key));
    let listed = |key: &str| given(key).and_then(Value::as_array)?.first();
    let known = listed("examples")
        .or_else(|| given("default"))
        .or_else(|| fields.get("const"))
        .or_else(|| listed("enum"));
    if let Some(known) = known {
        return (!brief(known, MAX_CELL).ends_with('…')).then(|| known.clone());
    }
    // What these ask for is not worked out.
    let unclear = [
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "if",
        "pattern",
        "minProperties",
        "contains",
        "prefixItems",
        "multipleOf",
    ];
    if depth > MAX_DEPTH || fields.contains_key("$ref") || unclear.iter().any(|key| fields.contains_key(*key)) {
        return None;
    }
    let count = |key: &str| fields.get(key).and_then(Value::as_u64).unwrap_or(0);
    match fields.get("type").and_then(Value::as_str)? {
        "boolean" => Some(true.into()),
        "null" => Some(Value::Null),
        kind @ ("integer" | "number") => {
            if fields.contains_key("exclusiveMinimum") || fields.contains_key("exclusiveMaximum") {
                return None;
            }
            let (least, most) = (fields.get("minimum"), fields.get("maximum"));
            let fits = |value: &&Value| kind == "number" || value.is_i64();
            match (least, most) {
                (None, None) => Some(1.into()),
                (Some(limit), _) | (None, Some(limit)) => Some(limit).filter(fits).cloned(),
            }
        }
        "string" => {
            let text = match fields.get("format").and_then(Value::as_str) {
                None => "text",
                Some("uri" | "url" | "uri-reference") => "https://example.com/",
                Some("email") => "somebody@example.com",
                Some("date") => "2026-01-31",
                Some("date-time") => "2026-01-31T12:00:00Z",
                Some(_) => return None,
            };
            let most = fields.get("maxLength").and_then(Value::as_u64).unwrap_or(u64::MAX);
            let length = text.len() as u64;
            (count("minLength") <= length && length <= most).then(|| text.into())
        }
        "array" => {
            let wanted = match count("minItems") {
                0 if fields.get("maxItems").is_some_and(|most| most == 0) => 0,
                0 | 1 => 1,
                _ => return None,
            };
            let item = match fields.get("items") {
                Some(items) => example_of(root, items, depth + 1, left)?,
                None => "text".into(),
            };
            Some(vec![item; wanted].into())
        }
        "object" => {
            let properties = fields.get("properties").and_then(Value::as_object);
            let mut object = Map::new();
            for name in fields.get("required").and_then(Value::as_array).into_iter().flatten() {
                let name = name.as_str()?;
                object.insert(name.to_owned(), example_of(root, properties?.get(name)?, depth + 1, left)?);
            }
            Some(object.into())
        }
        _ => None,
    }
}
