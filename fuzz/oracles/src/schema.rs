//! What holds of every schema that a client is shown.

use jsonschema::Validator;
use serde_json::Value;

use crate::{Broken, ensure};

/// What model APIs take as a property name.
const MAX_KEY: usize = 64;

/// Checks the schema of a tool's input or output, and makes it ready to check values with.
pub(crate) fn checked(schema: &Value) -> Result<Validator, Broken> {
    check(schema)?;
    compiled(schema)
}

/// Checks all that can be seen without knowing what the words mean.
pub(crate) fn check(schema: &Value) -> Result<(), Broken> {
    ensure!(
        schema.get("type") == Some(&Value::from("object")),
        "the root is no object: {schema}"
    );
    for key in ["oneOf", "anyOf", "allOf", "$ref"] {
        ensure!(schema.get(key).is_none(), "`{key}` at the root: {schema}");
    }
    check_form(schema)?;
    // The text is what goes to the client, and a reader there gives up at a certain depth.
    let text = schema.to_string();
    let read: Value = serde_json::from_str(&text).map_err(|error| Broken(format!("unreadable schema: {error}")))?;
    ensure!(read == *schema, "the schema is another one after a round trip: {text}");
    Ok(())
}

pub(crate) fn compiled(schema: &Value) -> Result<Validator, Broken> {
    jsonschema::validator_for(schema).map_err(|error| Broken(format!("no schema: {error}: {schema}")))
}

/// Whether a schema uses only what all clients understand.
fn check_form(schema: &Value) -> Result<(), Broken> {
    let Some(object) = schema.as_object() else {
        return Err(Broken(format!("a schema that is no object: {schema}")));
    };
    for (key, value) in object {
        match (key.as_str(), value) {
            ("$id" | "prefixItems", _) => return Err(Broken(format!("`{key}` in a schema"))),
            ("type", value) => ensure!(value.is_string(), "a `type` that is no word: {value}"),
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    ensure!(
                        !name.is_empty() && name.len() <= MAX_KEY,
                        "the property `{name}` has no good name"
                    );
                    check_form(property)?;
                }
            }
            ("$defs", Value::Object(schemas)) => schemas.values().try_for_each(check_form)?,
            ("oneOf" | "anyOf", Value::Array(schemas)) => schemas.iter().try_for_each(check_form)?,
            ("items", schema) => check_form(schema)?,
            ("additionalProperties", schema) if *schema != Value::Bool(false) => check_form(schema)?,
            _ => {}
        }
    }
    Ok(())
}
