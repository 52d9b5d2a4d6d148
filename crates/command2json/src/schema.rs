//! JSON Schemas that somebody gave: compiled without ever fetching what they refer to.

use jsonschema::Validator;
use serde_json::Value;

/// Compiles a schema. A reference to another document is an error, whatever features `jsonschema` is built with.
pub(crate) fn compile(schema: &Value) -> Result<Validator, String> {
    if !schema.is_object() {
        return Err("it is no object; a schema that allows anything is `{}`".to_owned());
    }
    jsonschema::options()
        .offline()
        .build(schema)
        .map_err(|error| one_line(&format!("at {}: {error}", place(error.instance_path().as_str())), 300))
}

/// A JSON pointer in a message.
pub(crate) fn place(pointer: &str) -> &str {
    if pointer.is_empty() { "its root" } else { pointer }
}

/// The text in one line and with at most `most` characters: enough for a message.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.replace(char::is_control, "\u{fffd}");
    match line.char_indices().nth(most.saturating_sub(1)) {
        Some((cut, last)) if cut + last.len_utf8() < line.len() => line.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        _ => line,
    }
}
