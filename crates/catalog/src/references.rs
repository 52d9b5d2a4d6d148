//! What all readers of schemas need: references from one place to another (`#/$defs/path` and the like), types, and short texts.
//!
//! Nothing is fetched, and nothing goes on for ever: a chain that is too long, or that leads to itself, ends where it is.

use std::collections::HashMap;
use std::io;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

/// Of one chain of references.
const MAX_HOPS: usize = 16;

/// What is under `key` of a schema, by the name of the keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Under {
    /// A schema, or a list of schemas.
    Schemas,
    /// Schemas by names that the writer chose, so that `$ref` may be one of them.
    Named,
    /// Values, in which `$ref` means nothing.
    Values,
}

impl Under {
    pub(crate) fn keyword(key: &str) -> Self {
        match key {
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies" => Self::Named,
            "const" | "enum" | "default" | "examples" | "example" | "required" | "dependentRequired" | "$vocabulary" => {
                Self::Values
            }
            _ => Self::Schemas,
        }
    }
}

/// The place that a reference within `root` names.
pub(crate) fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let fragment = reference.strip_prefix('#')?;
    root.pointer(&percent_decode_str(fragment).decode_utf8().ok()?)
}

/// The schema that says what `schema` is: it, or what it refers to. An `allOf` of one is a reference that has been written so that it
/// can have a description beside it.
pub(crate) fn follow<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut current = schema;
    for _ in 0..MAX_HOPS {
        match next(root, current) {
            Some(next) => current = next,
            None => break,
        }
    }
    current
}

fn next<'a>(root: &'a Value, schema: &'a Value) -> Option<&'a Value> {
    let fields = schema.as_object()?;
    match fields.get("$ref").and_then(Value::as_str) {
        Some(reference) => target(root, reference),
        None if says_nothing_else(fields) => match fields.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
            Some([only]) => Some(only),
            _ => None,
        },
        None => None,
    }
}

fn says_nothing_else(fields: &Map<String, Value>) -> bool {
    fields.keys().all(|key| key == "allOf" || is_annotation(key))
}

/// Keywords that say something about a value and forbid none.
pub(crate) fn is_annotation(key: &str) -> bool {
    matches!(
        key,
        "title" | "description" | "default" | "examples" | "example" | "deprecated" | "readOnly" | "writeOnly" | "$comment"
    ) || key.starts_with("x-")
}

/// The type of a value, as schemas name it.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A value as JSON, cut after so many characters; it need not be written as a whole for that.
pub(crate) fn brief(value: &Value, most: usize) -> String {
    /// Takes what there is room for.
    struct Start(Vec<u8>, usize);
    impl io::Write for Start {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = self.1.saturating_sub(self.0.len());
            self.0.extend(bytes.iter().take(room));
            if bytes.len() > room {
                Err(io::ErrorKind::StorageFull.into())
            } else {
                Ok(bytes.len())
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    // A character has at most four bytes. One that was cut in two is behind those that are kept.
    let mut start = Start(Vec::new(), 4 * (most + 1));
    let is_whole = serde_json::to_writer(&mut start, value).is_ok();
    let text = String::from_utf8_lossy(&start.0);
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None if is_whole => text.into_owned(),
        None => format!("{text}…"),
    }
}

/// Names that are each given once: what is taken gets a number behind it.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<String, usize>);

impl Names {
    /// `wanted` in letters, digits, `-` and `_`, as it is or with a number.
    pub(crate) fn give(&mut self, wanted: &str, separator: char) -> String {
        let safe = |c: char| {
            if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') {
                c
            } else {
                separator
            }
        };
        let base: String = wanted.chars().map(safe).collect();
        let mut count = self.0.get(&base).copied().unwrap_or(0);
        loop {
            count += 1;
            let name = if count == 1 {
                base.clone()
            } else {
                format!("{base}{separator}{count}")
            };
            // Somebody else may be named like this one with its number.
            if count == 1 || !self.0.contains_key(&name) {
                self.0.entry(name.clone()).or_insert(1);
                self.0.insert(base, count);
                return name;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_given_once() {
        let mut names = Names::default();
        let given: Vec<String> = ["a", "a", "a_2", "a", "a/b", "a b", "a_2"]
            .iter()
            .map(|name| names.give(name, '_'))
            .collect();
        assert_eq!(given, ["a", "a_2", "a_2_2", "a_3", "a_b", "a_b_2", "a_2_3"]);
    }

    #[test]
    fn values_are_cut() {
        let value = json!(["ä".repeat(1000), 1]);
        assert_eq!(brief(&value, 4), "[\"ää…");
        assert_eq!(brief(&json!([1, 2]), 5), "[1,2]");
        assert_eq!(brief(&json!([1, 2]), 4), "[1,2…");
    }

    #[test]
    fn references_are_followed_to_their_end() {
        let root = json!({
            "$defs": { "a": { "$ref": "#/$defs/b%20c" }, "b c": { "type": "string" }, "round": { "$ref": "#/$defs/round" } },
            "properties": { "x": { "allOf": [{ "$ref": "#/$defs/a" }], "description": "of x" } },
        });
        let schema = |text: &str| target(&root, text).unwrap();
        assert_eq!(follow(&root, schema("#/properties/x")), &json!({ "type": "string" }));
        assert_eq!(follow(&root, schema("#/$defs/round")), schema("#/$defs/round"));
        assert_eq!(
            follow(&root, &json!({ "$ref": "https://example.com" })),
            &json!({ "$ref": "https://example.com" })
        );
    }
}
