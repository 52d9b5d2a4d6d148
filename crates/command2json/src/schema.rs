//! JSON Schemas that somebody gave: compiled without ever fetching what they refer to.

use std::sync::{Arc, OnceLock};

use jsonschema::Validator;
use serde_json::Value;

/// What is told of a value that does not fit.
pub(crate) const MAX_PROBLEM: usize = 300;

/// A schema that values are held against. It is compiled when it is first needed, once for all clones.
#[derive(Clone, Debug)]
pub struct Checker {
    schema: Value,
    compiled: Arc<OnceLock<Result<Validator, String>>>,
}

impl Checker {
    pub fn new(schema: &Value) -> Self {
        Self {
            schema: schema.clone(),
            compiled: Arc::default(),
        }
    }

    /// What is wrong with the schema itself, if anything is.
    pub fn compiles(&self) -> Result<(), String> {
        let compiled = self.compiled.get_or_init(|| compile(&self.schema));
        compiled.as_ref().map(|_| ()).map_err(Clone::clone)
    }

    /// What is wrong with a value, if anything is.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        let validator = self.compiled.get_or_init(|| compile(&self.schema)).as_ref();
        let validator = validator.map_err(|error| format!("the schema is wrong: {error}"))?;
        validator
            .validate(value)
            .map_err(|error| one_line(&format!("at {}: {error}", place(error.instance_path().as_str())), MAX_PROBLEM))
    }
}

/// Compiles a schema. A reference to another document is an error, whatever features `jsonschema` is built with.
pub(crate) fn compile(schema: &Value) -> Result<Validator, String> {
    if !schema.is_object() {
        return Err("it is no object; a schema that allows anything is `{}`".to_owned());
    }
    jsonschema::options()
        .offline()
        .build(schema)
        .map_err(|error| one_line(&format!("at {}: {error}", place(error.instance_path().as_str())), MAX_PROBLEM))
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
