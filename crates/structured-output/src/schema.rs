//! Schemas: the envelope around them, and `val0…valN` objects in place of tuple-like arrays.
//!
//! References are followed nowhere here: a shared definition is rewritten once, where it stands.

use serde_json::{Map, Value};

use crate::{RESULT, slot_name};

/// Keywords of a root: references name the definitions from there, so they cannot move inwards.
const ROOT_KEYWORDS: [&str; 3] = ["$schema", "$defs", "definitions"];

/// Keywords that say nothing of an object, and so go when a tuple becomes one.
const ARRAY_KEYWORDS: [&str; 10] = [
    "prefixItems",
    "items",
    "additionalItems",
    "unevaluatedItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
];

/// Puts a schema in the envelope, whatever its form; the caller knows that it is bare.
///
/// Definitions move up to the new root, and references into the old root follow it, so that all still point where
/// they did.
pub fn wrap_schema_in_result(mut schema: Value) -> Value {
    rebase_refs(&mut schema);
    let mut of_root = Map::new();
    if let Value::Object(inner) = &mut schema {
        of_root.extend(
            ROOT_KEYWORDS
                .into_iter()
                .filter_map(|keyword| inner.shift_remove_entry(keyword)),
        );
    }
    let mut envelope = Map::from_iter([
        ("type".to_owned(), Value::from("object")),
        (
            "properties".to_owned(),
            Value::from(Map::from_iter([(RESULT.to_owned(), schema)])),
        ),
        ("required".to_owned(), Value::from(vec![RESULT])),
    ]);
    envelope.append(&mut of_root);
    Value::Object(envelope)
}

/// The form in which a schema is stored and sent: in the envelope, with no tuple-like arrays. Absent or null stays absent.
///
/// An object schema whose one property is a required `result` counts as the envelope. Who has a bare schema of just
/// that form calls [`wrap_schema_in_result`] first.
pub fn canonicalize_output_schema(schema: Option<Value>) -> Option<Value> {
    let mut schema = schema.filter(|schema| !schema.is_null())?;
    tuples_to_objects(&mut schema);
    Some(if is_envelope(&schema) {
        schema
    } else {
        wrap_schema_in_result(schema)
    })
}

/// Would [`canonicalize_output_schema`] surely change nothing? Tells without a copy of the schema; may err towards "no".
pub(crate) fn is_canonical(schema: &Value) -> bool {
    fn mentions_tuple(json: &Value) -> bool {
        match json {
            Value::Object(map) => {
                map.contains_key("prefixItems") || map.get("items").is_some_and(Value::is_array) || map.values().any(mentions_tuple)
            }
            Value::Array(list) => list.iter().any(mentions_tuple),
            _ => false,
        }
    }
    is_envelope(schema) && !mentions_tuple(schema)
}

fn is_envelope(schema: &Value) -> bool {
    let only_result = |names: &mut dyn Iterator<Item = &str>| names.eq([RESULT]);
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    schema.get("type").is_some_and(|name| name == "object")
        && properties.is_some_and(|map| only_result(&mut map.keys().map(String::as_str)))
        && required.is_some_and(|list| only_result(&mut list.iter().filter_map(Value::as_str)))
}

/// Does the schema's `type` name `name`? `None` where there is no `type`, and so anything goes.
pub(crate) fn names_type(schema: &Map<String, Value>, name: &str) -> Option<bool> {
    schema.get("type").map(|types| match types {
        Value::Array(types) => types.iter().any(|one| one == name),
        one => one == name,
    })
}

/// Calls `visit` on each schema that stands directly inside this one. Data (`const`, `enum`, `default`…) is not visited.
fn for_each_subschema(schema: &mut Map<String, Value>, visit: &mut dyn FnMut(&mut Value)) {
    for (keyword, inside) in schema.iter_mut() {
        match (keyword.as_str(), inside) {
            ("properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas", Value::Object(named)) => {
                named.values_mut().for_each(&mut *visit)
            }
            ("oneOf" | "anyOf" | "allOf" | "prefixItems" | "items", Value::Array(list)) => list.iter_mut().for_each(&mut *visit),
            (
                "items"
                | "additionalItems"
                | "unevaluatedItems"
                | "contains"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "propertyNames"
                | "contentSchema"
                | "not"
                | "if"
                | "then"
                | "else",
                one,
            ) => visit(one),
            _ => {}
        }
    }
}

fn tuples_to_objects(schema: &mut Value) {
    let Value::Object(schema) = schema else {
        return;
    };
    for_each_subschema(schema, &mut tuples_to_objects);
    let Some(slots) = take_slots(schema) else {
        return;
    };
    let names: Vec<String> = (0..slots.len()).map(slot_name).collect();
    let kept = std::mem::take(schema);
    schema.insert("type".to_owned(), array_to_object(kept.get("type")));
    schema.insert("properties".to_owned(), names.iter().cloned().zip(slots).collect());
    schema.insert("required".to_owned(), Value::from(names));
    schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    for (keyword, value) in kept {
        if !ARRAY_KEYWORDS.contains(&keyword.as_str()) {
            schema.entry(keyword).or_insert(value);
        }
    }
}

/// Takes the schemas of a tuple's elements out of a tuple-like array schema.
///
/// A schema with `properties` speaks of objects in its own right; to make its tuple one too would mix the two.
fn take_slots(schema: &mut Map<String, Value>) -> Option<Vec<Value>> {
    if names_type(schema, "array") == Some(false) || schema.contains_key("properties") {
        return None;
    }
    ["prefixItems", "items"]
        .into_iter()
        .find_map(|keyword| schema.get_mut(keyword)?.as_array_mut().map(std::mem::take))
}

/// The `type` of a tuple that has become an object; a tuple that may be null still may.
fn array_to_object(types: Option<&Value>) -> Value {
    let Some(Value::Array(types)) = types else {
        return Value::from("object");
    };
    let mut renamed: Vec<Value> = Vec::new();
    for name in types {
        let name = if name == "array" { "object".into() } else { name.clone() };
        if !renamed.contains(&name) {
            renamed.push(name);
        }
    }
    Value::Array(renamed)
}

/// Follows the root of a schema to its place in the envelope: `#` becomes `#/properties/result`.
fn rebase_refs(schema: &mut Value) {
    let Value::Object(schema) = schema else {
        return;
    };
    if let Some(Value::String(reference)) = schema.get_mut("$ref")
        && let Some(path) = reference.strip_prefix('#')
        && (path.is_empty() || path.starts_with('/'))
        && !["/$defs/", "/definitions/"].iter().any(|hoisted| path.starts_with(hoisted))
    {
        *reference = format!("#/properties/{RESULT}{path}");
    }
    for_each_subschema(schema, &mut rebase_refs);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn canonical(schema: Value) -> Value {
        canonicalize_output_schema(Some(schema)).unwrap()
    }

    /// What stands inside the envelope once `schema` is canonical.
    fn inner(schema: Value) -> Value {
        canonical(schema)["properties"][RESULT].clone()
    }

    #[test]
    fn absent_stays_absent() {
        assert_eq!(canonicalize_output_schema(None), None);
        assert_eq!(canonicalize_output_schema(Some(Value::Null)), None);
    }

    #[test]
    fn the_envelope_is_written_in_a_fixed_order() {
        let schema = json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}, "title": "N"});
        assert_eq!(
            wrap_schema_in_result(schema).to_string(),
            r##"{"type":"object","properties":{"result":{"$ref":"#/$defs/n","title":"N"}},"required":["result"],"$defs":{"n":{"type":"integer"}}}"##
        );
    }

    #[test]
    fn references_follow_their_root() {
        for (before, after) in [
            ("#", "#/properties/result"),
            ("#/properties/next", "#/properties/result/properties/next"),
            ("#/$defs/node", "#/$defs/node"),
            ("#/definitions/node", "#/definitions/node"),
            ("#node", "#node"),
            ("https://example.com/s#/a", "https://example.com/s#/a"),
        ] {
            let schema = json!({"type": "object", "properties": {"next": {"$ref": before}}, "default": {"$ref": "#"}});
            assert_eq!(
                inner(schema),
                json!({"type": "object", "properties": {"next": {"$ref": after}}, "default": {"$ref": "#"}})
            );
        }
    }

    #[test]
    fn only_an_envelope_is_left_unwrapped() {
        for (is, schema) in [
            (
                true,
                json!({"type": "object", "properties": {"result": {}}, "required": ["result"]}),
            ),
            (
                true,
                json!({"description": "d", "properties": {"result": true}, "required": ["result"], "type": "object", "$defs": {}}),
            ),
            (false, json!({"type": "object", "properties": {"result": {}}})),
            (
                false,
                json!({"type": "object", "properties": {"result": {}, "more": {}}, "required": ["result"]}),
            ),
            (false, json!({"properties": {"result": {}}, "required": ["result"]})),
            (false, json!({"type": "integer"})),
            (false, json!(true)),
        ] {
            let once = canonical(schema.clone());
            assert_eq!(once == schema, is, "{schema}");
            assert_eq!(canonical(once.clone()).to_string(), once.to_string());
        }
    }

    #[test]
    fn tuples_become_objects_wherever_a_schema_can_stand() {
        let tuples = [
            json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false, "minItems": 2, "maxItems": 2}),
            json!({"type": "array", "items": [{"type": "integer"}, {"type": "string"}], "additionalItems": false}),
            json!({"prefixItems": [{"type": "integer"}, {"type": "string"}]}),
        ];
        let object = json!({
            "type": "object",
            "properties": {"val0": {"type": "integer"}, "val1": {"type": "string"}},
            "required": ["val0", "val1"],
            "additionalProperties": false,
        });
        let places: [fn(Value) -> Value; 12] = [
            |s| s,
            |s| json!({"oneOf": [{"type": "null"}, s]}),
            |s| json!({"anyOf": [s, {"type": "null"}]}),
            |s| json!({"allOf": [s]}),
            |s| json!({"not": s}),
            |s| json!({"type": "array", "items": s}),
            |s| json!({"type": "object", "properties": {"a": s, "items": {"type": "null"}}}),
            |s| json!({"type": "object", "patternProperties": {"^a": s}}),
            |s| json!({"type": "object", "additionalProperties": s}),
            |s| json!({"if": s, "then": {"items": {"items": s}}}),
            |s| json!({"type": "object", "properties": {"properties": {"properties": {"items": s}}}}),
            // Data that looks like a schema is data.
            |s| json!({"anyOf": [s, {"const": {"prefixItems": [1]}}]}),
        ];
        for place in places {
            for tuple in &tuples {
                assert_eq!(inner(place(tuple.clone())), place(object.clone()));
            }
        }
        let shared = canonical(json!({"$ref": "#/$defs/t", "$defs": {"t": tuples[0]}}));
        assert_eq!(shared["$defs"]["t"], object);
    }

    #[test]
    fn tuples_nest_and_keep_their_words() {
        let nested = json!({
            "description": "a pair",
            "type": ["array", "null"],
            "prefixItems": [{"type": "array", "items": [true]}],
        });
        assert_eq!(
            inner(nested).to_string(),
            r#"{"type":["object","null"],"properties":{"val0":{"type":"object","properties":{"val0":true},"required":["val0"],"additionalProperties":false}},"required":["val0"],"additionalProperties":false,"description":"a pair"}"#
        );
    }

    #[test]
    fn what_is_no_tuple_is_left_alone() {
        for schema in [
            json!({"type": "array", "items": {"type": "integer"}, "minItems": 2}),
            json!({"type": "object", "prefixItems": [true]}),
            json!({"properties": {"a": true}, "prefixItems": [true]}),
            json!({"prefixItems": 1}),
            json!(false),
            json!("not a schema"),
        ] {
            assert_eq!(inner(schema.clone()), schema);
        }
    }
}
