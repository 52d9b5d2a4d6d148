//! The JSON Schema of a command's input.

use component2json::clean_text;
use serde_json::{Map, Value, json};

use crate::plan::{Plan, PlannedFlag, PlannedPositional};
use crate::tree::{Flag, Positional, ValueType};
use crate::values;

/// More often than this no flag is given to count.
pub(crate) const MAX_COUNT: u64 = 64;

/// `{"flags": {…}, "args": …, "stdin": "…"}`, or all of it side by side where the plan is flat.
pub fn input_schema(plan: &Plan) -> Value {
    let mut root = Object::default();
    if plan.flat {
        add_flags(plan, &mut root);
        match &plan.args {
            Some(args) => add_args(args, "", &mut root),
            None => root.add("args", any_args(plan), false),
        }
    } else {
        let mut flags = Object::default();
        add_flags(plan, &mut flags);
        if !flags.properties.is_empty() {
            let required = flags.is_required();
            root.add("flags", flags.schema(), required);
        }
        match plan.args.as_deref() {
            None => root.add("args", any_args(plan), false),
            Some([]) => {}
            Some(named) => {
                let mut args = Object::default();
                add_args(named, "/properties/args", &mut args);
                let required = args.is_required();
                root.add("args", args.schema(), required);
            }
        }
    }
    if plan.stdin {
        root.add(
            "stdin",
            json!({"type": "string", "description": "What the program reads from its standard input"}),
            false,
        );
    }
    root.schema()
}

/// A schema of an object that is being put together.
#[derive(Default)]
pub(crate) struct Object {
    properties: Map<String, Value>,
    required: Vec<Value>,
    /// What has to be given where a key is.
    needed: Map<String, Value>,
}

impl Object {
    fn needs(&mut self, key: &str, others: Vec<&str>) {
        if !others.is_empty() {
            self.needed.insert(key.to_owned(), others.into());
        }
    }

    pub(crate) fn add(&mut self, key: &str, schema: Value, required: bool) {
        if required {
            self.required.push(key.into());
        }
        self.properties.insert(key.to_owned(), schema);
    }

    fn is_required(&self) -> bool {
        !self.required.is_empty()
    }

    pub(crate) fn schema(self) -> Value {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), self.properties.into());
        if !self.required.is_empty() {
            schema.insert("required".to_owned(), self.required.into());
        }
        if !self.needed.is_empty() {
            schema.insert("dependentRequired".to_owned(), self.needed.into());
        }
        schema.insert("additionalProperties".to_owned(), false.into());
        schema.into()
    }
}

fn add_flags(plan: &Plan, to: &mut Object) {
    let section = if plan.flat { "" } else { "/properties/flags" };
    for PlannedFlag { key, flag, .. } in &plan.flags {
        let mut schema = flag_schema(flag);
        let inside = match flag {
            Flag { repeated: true, .. } => "/items",
            Flag {
                optional_value: true, ..
            } => "/anyOf/0",
            _ => "",
        };
        relocate(&mut schema, &format!("#{section}/properties/{key}{inside}"));
        to.add(key, schema, flag.required);
    }
}

fn add_args(args: &[PlannedPositional], section: &str, to: &mut Object) {
    for PlannedPositional { key, positional, .. } in args {
        let mut schema = positional_schema(positional);
        let inside = if positional.variadic { "/items" } else { "" };
        relocate(&mut schema, &format!("#{section}/properties/{key}{inside}"));
        to.add(key, schema, positional.required);
    }
    let plain: Vec<&PlannedPositional> = args.iter().filter(|planned| !planned.positional.after_dashes).collect();
    for (later, planned) in plain.iter().enumerate().filter(|(_, planned)| !planned.positional.required) {
        let earlier = plain.iter().take(later).filter(|earlier| !earlier.positional.required);
        to.needs(&planned.key, earlier.map(|earlier| earlier.key.as_str()).collect());
    }
}

/// Makes the references in a schema right that somebody wrote for itself and that now is a part of another.
fn relocate(schema: &mut Value, place: &str) {
    let Some(schema) = schema.as_object_mut() else { return };
    for key in ["$id", "$schema"] {
        schema.shift_remove(key);
    }
    if let Some(Value::String(reference)) = schema.get_mut("$ref")
        && let Some(pointer) = reference.strip_prefix('#')
        && (pointer.is_empty() || pointer.starts_with('/'))
    {
        *reference = format!("{place}{pointer}");
    }
    // Only where schemas stand: a `$ref` elsewhere is a property or a value of that name.
    for (key, value) in schema.iter_mut() {
        match (key.as_str(), value) {
            ("properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions", Value::Object(schemas)) => {
                schemas.values_mut().for_each(|schema| relocate(schema, place));
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(|schema| relocate(schema, place));
            }
            (
                "items"
                | "additionalProperties"
                | "propertyNames"
                | "contains"
                | "not"
                | "if"
                | "then"
                | "else"
                | "unevaluatedProperties"
                | "unevaluatedItems",
                schema,
            ) => relocate(schema, place),
            _ => {}
        }
    }
}

fn any_args(plan: &Plan) -> Value {
    json!({
        "type": "array",
        "items": {"type": "string"},
        "description": format!("What follows `{}` on the command line, word by word", plan.name()),
    })
}

fn flag_schema(flag: &Flag) -> Value {
    let value = values::schema(flag.ty, &flag.values, flag.jsonschema.as_ref());
    let mut schema = match flag.ty {
        ValueType::Count => json!({"type": "integer", "minimum": 0, "maximum": MAX_COUNT}),
        ValueType::Map | ValueType::IntegerMap | ValueType::Bool => value,
        _ if flag.repeated => json!({"type": "array", "items": value}),
        _ if flag.optional_value => json!({"anyOf": [value, {"type": "boolean"}]}),
        _ => value,
    };
    describe(
        &mut schema,
        &flag.description,
        flag.value_name.as_deref(),
        flag.default.as_ref(),
    );
    schema
}

fn positional_schema(positional: &Positional) -> Value {
    let value = values::schema(positional.ty, &positional.values, positional.jsonschema.as_ref());
    let mut schema = match (positional.variadic, positional.required) {
        (true, true) => json!({"type": "array", "items": value, "minItems": 1}),
        (true, false) => json!({"type": "array", "items": value}),
        (false, _) => value,
    };
    describe(&mut schema, &positional.description, None, positional.default.as_ref());
    schema
}

/// Adds the text and the default. An empty default says nothing.
fn describe(schema: &mut Value, description: &Option<String>, value_name: Option<&str>, default: Option<&Value>) {
    let Some(schema) = schema.as_object_mut() else { return };
    // A description that came inside a program is a stranger's text, like its help.
    if let Some(text) = description.as_deref().or(value_name).and_then(clean_text) {
        schema.insert("description".to_owned(), text.into());
    }
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    if let Some(default) = default.filter(|default| !is_empty(default)) {
        schema.insert("default".to_owned(), default.clone());
    }
}
