//! Rust types as JSON Schema, in the form in which those of components come: see `component2json`'s `schema.rs`.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

/// The schema of a result of this type, in its envelope.
pub(super) fn of_result<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let generator = settings.with_transform(RecursiveTransform(simplify)).into_generator();
    structured_output::wrap_schema_in_result(generator.into_root_schema_for::<T>().to_value())
}

/// Takes away what some client stumbles over, and the names of Rust types.
fn simplify(schema: &mut Schema) {
    // `additionalProperties: false` is a schema, too.
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    object.shift_remove("title");
    object.shift_remove("format");
    if let Some(Value::Array(types)) = object.get("type") {
        let choices: Vec<Value> = types.iter().map(|one| json!({ "type": one })).collect();
        object.shift_remove("type");
        object.insert("anyOf".into(), choices.into());
    }
}
