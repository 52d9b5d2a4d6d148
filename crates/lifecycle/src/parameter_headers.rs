//! `x-mcp-header` in a schema that somebody wrote by hand: which arguments clients send as headers, too.
//!
//! Clients hide a tool whose schema says this where it may not be said, so it is found out here, where somebody can still change it.

use std::collections::HashSet;

use serde_json::Value;

const KEYWORD: &str = "x-mcp-header";

/// Where in a schema something stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    /// Reached from the root by names of properties alone, so that there is one value that it speaks of.
    Property,
    Elsewhere,
}

/// What is wrong with the headers of a schema of arguments. How deep that nests was checked before.
pub(crate) fn check(schema: &Value) -> Result<(), String> {
    check_at(schema, Place::Root, &mut HashSet::new())
}

fn check_at(schema: &Value, place: Place, known: &mut HashSet<String>) -> Result<(), String> {
    let fields = match schema {
        Value::Object(fields) => fields,
        Value::Array(items) => return items.iter().try_for_each(|item| check_at(item, Place::Elsewhere, known)),
        _ => return Ok(()),
    };
    if let Some(header) = fields.get(KEYWORD) {
        check_header(header, fields.get("type"), place, known)?;
    }
    for (key, value) in fields {
        let of_properties = match place {
            Place::Elsewhere => Place::Elsewhere,
            Place::Root | Place::Property => Place::Property,
        };
        match (key.as_str(), value) {
            // Values, not schemas.
            ("const" | "default" | "enum" | "examples", _) => {}
            ("properties", Value::Object(all)) => all.values().try_for_each(|one| check_at(one, of_properties, known))?,
            // Their keys are names, not keywords.
            ("$defs" | "definitions" | "dependentSchemas" | "patternProperties", Value::Object(all)) => {
                all.values().try_for_each(|one| check_at(one, Place::Elsewhere, known))?;
            }
            _ => check_at(value, Place::Elsewhere, known)?,
        }
    }
    Ok(())
}

fn check_header(header: &Value, ty: Option<&Value>, place: Place, known: &mut HashSet<String>) -> Result<(), String> {
    if place != Place::Property {
        return Err(format!("`{KEYWORD}` stands only in what is reached by `properties` alone"));
    }
    let is_token = |name: &&str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|c| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&c))
    };
    let Some(name) = header.as_str().filter(is_token) else {
        return Err(format!("`{KEYWORD}`: {header} is no name of a header"));
    };
    if !known.insert(name.to_ascii_lowercase()) {
        return Err(format!("`{KEYWORD}`: `{name}` is there twice"));
    }
    match ty.and_then(Value::as_str) {
        Some("string" | "integer" | "boolean") => Ok(()),
        _ => Err(format!(
            "`{KEYWORD}`: `{name}` is for a `string`, `integer` or `boolean`, and for nothing else"
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(properties: Value) -> Value {
        json!({"type": "object", "properties": properties})
    }

    #[test]
    fn headers_stand_where_they_may() {
        let nested = with(json!({"c": {"type": "boolean", "x-mcp-header": "C"}}));
        let fine = with(
            json!({"a": {"type": "string", "x-mcp-header": "A-1"}, "b": {"type": "integer", "x-mcp-header": "B"}, "n": nested}),
        );
        assert_eq!(check(&fine), Ok(()));
        // The name of a property, and a value, are no keywords.
        let plain = with(json!({"x-mcp-header": {"type": "object", "default": {"x-mcp-header": 1}}}));
        assert_eq!(check(&plain), Ok(()));
        let header = json!({"type": "string", "x-mcp-header": "A"});
        for wrong in [
            json!({"type": "object", "x-mcp-header": "A"}),
            with(json!({"a": {"type": "string", "x-mcp-header": ""}})),
            with(json!({"a": {"type": "string", "x-mcp-header": "a b"}})),
            with(json!({"a": {"type": "string", "x-mcp-header": "ä"}})),
            with(json!({"a": {"type": "string", "x-mcp-header": 1}})),
            with(json!({"a": {"type": "number", "x-mcp-header": "A"}})),
            with(json!({"a": {"type": ["string", "null"], "x-mcp-header": "A"}})),
            with(json!({"a": {"x-mcp-header": "A"}})),
            with(json!({"a": header, "b": {"type": "string", "x-mcp-header": "a"}})),
            with(json!({"a": {"type": "array", "items": header}})),
            with(json!({"a": {"anyOf": [header]}})),
            with(json!({"a": {"additionalProperties": {"type": "object", "properties": {"b": header}}}})),
            json!({"type": "object", "$defs": {"a": header}}),
            json!({"type": "object", "allOf": [with(json!({"a": header}))]}),
        ] {
            assert!(check(&wrong).is_err(), "{wrong}");
        }
    }
}
