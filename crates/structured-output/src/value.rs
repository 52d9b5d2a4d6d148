//! Values: aligned with the canonical form of their schema.
//!
//! The work follows the value, never the schema on its own: recursive definitions end where the value does, and
//! shared ones are looked at once for each part of the value.

use std::{borrow::Cow, collections::HashMap};

use serde_json::{Map, Value};

use crate::{
    RESULT, canonicalize_output_schema,
    schema::{is_canonical, names_type},
    slot_name,
};

type Schema = Map<String, Value>;

/// How deep a look goes: the value and its direct members. Tags, keys and types mostly tell branches apart by then.
const GLANCE: usize = 2;
const THROUGHOUT: usize = usize::MAX;

static NULL: Value = Value::Null;

/// Brings a value into the form that the canonical form of `schema` describes: in the envelope, with tuples as
/// `val0…valN` objects, and with `null` for each missing property that may be null. No schema, no structured result.
///
/// A value `{"result": …}` counts as being in the envelope unless only the value as a whole fits what the envelope
/// should hold. For a few types both readings fit (an optional record with one optional field `result`); a caller that
/// knows its value to be bare writes the envelope itself and leaves nothing to guess.
pub fn ensure_structured_result(schema: Option<&Value>, value: Value) -> Option<Value> {
    let schema = schema.filter(|schema| !schema.is_null())?;
    let root = if is_canonical(schema) {
        Cow::Borrowed(schema)
    } else {
        Cow::Owned(canonicalize_output_schema(Some(schema.clone()))?)
    };
    let result = root.get("properties")?.get(RESULT)?;
    let aligner = Aligner { root: &root };

    let mut value = if is_enveloped(&value) { value } else { envelope(value) };
    if aligner.is_bare(result, &value) {
        value = envelope(value);
    }
    // A branch of a union can fit only once the value is aligned, so one pass may call for another. Each turns an array
    // into an object or adds a key that the schema names, so they come to an end; an aligned value takes one.
    if let Some(inner) = value.get_mut(RESULT) {
        while aligner.align(&[result], inner) {}
    }
    Some(value)
}

fn envelope(inner: Value) -> Value {
    Value::Object(Map::from_iter([(RESULT.to_owned(), inner)]))
}

fn is_enveloped(value: &Value) -> bool {
    value.as_object().is_some_and(|members| members.keys().eq([RESULT]))
}

struct Aligner<'a> {
    /// Where references start.
    root: &'a Value,
}

/// What is known of pairs of a shared definition and a part of the value. Only a reference can lead to the same pair
/// twice; without this memory, definitions that refer twice to the next one would cost 2^n.
type Known = HashMap<(*const Value, *const Value), bool>;

impl<'a> Aligner<'a> {
    /// Does `{"result": …}` fit only as what the envelope should hold, not as the envelope?
    fn is_bare(&self, result: &'a Value, value: &Value) -> bool {
        self.fits(result, value, GLANCE)
            && value.get(RESULT).is_some_and(|inner| !self.fits(result, inner, THROUGHOUT))
            && self.fits(result, value, THROUGHOUT)
    }

    /// Aligns `value` with all of `schemas`, in place. Tells whether anything changed.
    fn align(&self, schemas: &[&'a Value], value: &mut Value) -> bool {
        if schemas.is_empty() || !(value.is_array() || value.is_object()) {
            return false;
        }
        let schemas = self.applicable(schemas, value);
        let mut changed = false;
        if let Value::Array(items) = value
            && let Some(slots) = schemas.iter().find_map(|schema| slots(schema))
            && items.len() <= slots.len()
        {
            let items = std::mem::take(items).into_iter().enumerate();
            *value = items.map(|(index, item)| (slot_name(index), item)).collect();
            changed = true;
        }
        match value {
            Value::Array(items) => {
                let of_items: Vec<_> = schemas.iter().filter_map(|schema| schema.get("items")).collect();
                for item in items {
                    changed |= self.align(&of_items, item);
                }
            }
            Value::Object(members) => {
                for (key, member) in members.iter_mut() {
                    changed |= self.align(&properties(&schemas, key), member);
                }
                changed |= self.fill(&schemas, members);
            }
            _ => {}
        }
        changed
    }

    /// Adds `null` for each property that is missing and that all schemas allow to be null.
    fn fill(&self, schemas: &[&'a Schema], members: &mut Map<String, Value>) -> bool {
        let before = members.len();
        let named = schemas.iter().filter_map(|schema| schema.get("properties")?.as_object());
        for key in named.flat_map(Map::keys) {
            if !members.contains_key(key) && properties(schemas, key).iter().all(|schema| self.allows_null(schema)) {
                members.insert(key.clone(), Value::Null);
            }
        }
        members.len() > before
    }

    /// All schemas that hold of this value: through references, every `allOf`, and the fitting branch of each union.
    fn applicable(&self, schemas: &[&'a Value], value: &Value) -> Vec<&'a Schema> {
        let mut open = schemas.to_vec();
        let mut found: Vec<&'a Schema> = Vec::new();
        while let Some(schema) = open.pop() {
            let Value::Object(schema) = schema else {
                continue;
            };
            if found.iter().any(|known| std::ptr::eq(*known, schema)) {
                continue;
            }
            found.push(schema);
            open.extend(self.target(schema));
            open.extend(list(schema, "allOf").into_iter().flatten());
            for union in ["oneOf", "anyOf"] {
                open.extend(list(schema, union).and_then(|branches| self.choose(branches, value)));
            }
        }
        found
    }

    /// The first branch that fits throughout, else the first that fits at a glance.
    fn choose(&self, branches: &'a [Value], value: &Value) -> Option<&'a Value> {
        let likely: Vec<_> = branches.iter().filter(|branch| self.fits(branch, value, GLANCE)).collect();
        match likely.as_slice() {
            [] => None,
            [only] => Some(only),
            [first, ..] => {
                let best = likely.iter().find(|branch| self.fits(branch, value, THROUGHOUT));
                Some(best.unwrap_or(first))
            }
        }
    }

    fn allows_null(&self, schema: &'a Value) -> bool {
        self.fits(schema, &NULL, THROUGHOUT)
    }

    /// Can `value`, once aligned, have the shape of `schema`, looking `depth` levels into it? Types, constants and keys
    /// count; ranges, lengths and patterns do not, because alignment cannot change them.
    fn fits(&self, schema: &'a Value, value: &Value, depth: usize) -> bool {
        self.fits_known(schema, value, depth, &mut Known::new())
    }

    fn fits_known(&self, schema: &'a Value, value: &Value, depth: usize, known: &mut Known) -> bool {
        let schema = match schema {
            Value::Bool(anything) => return *anything,
            Value::Object(schema) if depth > 0 => schema,
            _ => return true,
        };
        type_admits(schema, value)
            && schema.get("const").is_none_or(|constant| constant == value)
            && list(schema, "enum").is_none_or(|values| values.contains(value))
            && self.parts_fit(schema, value, depth - 1, known)
            && list(schema, "allOf").is_none_or(|all| all.iter().all(|one| self.fits_known(one, value, depth, known)))
            && ["oneOf", "anyOf"]
                .iter()
                .all(|union| list(schema, union).is_none_or(|any| any.iter().any(|one| self.fits_known(one, value, depth, known))))
            && self.target(schema).is_none_or(|target| {
                let pair = (std::ptr::from_ref(target), std::ptr::from_ref(value));
                if let Some(fits) = known.get(&pair) {
                    return *fits;
                }
                // A definition that leads back to itself at the same value has no more to say of it.
                known.insert(pair, false);
                let fits = self.fits_known(target, value, depth, known);
                known.insert(pair, fits);
                fits
            })
    }

    /// Do the members or items of `value` fit, with `null` for those that are missing?
    fn parts_fit(&self, schema: &'a Schema, value: &Value, depth: usize, known: &mut Known) -> bool {
        let mut fits = |of: &'a Value, part: &Value| self.fits_known(of, part, depth, known);
        match value {
            Value::Object(members) => {
                let required = list(schema, "required").into_iter().flatten();
                let mut missing = required.filter_map(Value::as_str).filter(|key| !members.contains_key(*key));
                missing.all(|key| declared(schema, key).is_some_and(|of| fits(of, &NULL)))
                    && members
                        .iter()
                        .all(|(key, part)| property(schema, key).is_none_or(|of| fits(of, part)))
            }
            Value::Array(items) => match slots(schema) {
                Some(slots) => {
                    let items_and_nulls = items.iter().chain(std::iter::repeat(&NULL));
                    items.len() <= slots.len() && slots.iter().zip(items_and_nulls).all(|(of, part)| fits(of, part))
                }
                None => {
                    let of = schema.get("items");
                    of.is_none_or(|of| items.iter().all(|part| fits(of, part)))
                }
            },
            _ => true,
        }
    }

    /// The schema that a `$ref` names. One that leads out of this document is unknown, and so holds of anything.
    fn target(&self, schema: &Schema) -> Option<&'a Value> {
        self.root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
    }
}

fn list<'a>(schema: &'a Schema, keyword: &str) -> Option<&'a Vec<Value>> {
    schema.get(keyword)?.as_array()
}

fn declared<'a>(schema: &'a Schema, key: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(key)
}

/// What this schema says of the member `key` of an object.
fn property<'a>(schema: &'a Schema, key: &str) -> Option<&'a Value> {
    declared(schema, key).or_else(|| {
        // Which keys a pattern covers is not known here, so with patterns nothing is said of the other keys.
        let patterns = schema.contains_key("patternProperties");
        schema.get("additionalProperties").filter(|_| !patterns)
    })
}

fn properties<'a>(schemas: &[&'a Schema], key: &str) -> Vec<&'a Value> {
    schemas.iter().filter_map(|schema| property(schema, key)).collect()
}

/// The elements of a canonical tuple: an object, and no array, whose properties are `val0…valN`.
fn slots(schema: &Schema) -> Option<Vec<&Value>> {
    let properties = schema.get("properties")?.as_object()?;
    let is_object = names_type(schema, "object") == Some(true) && names_type(schema, "array") == Some(false);
    // An object with no properties may have any, unless it says otherwise.
    let is_open = properties.is_empty() && schema.get("additionalProperties") != Some(&Value::Bool(false));
    if !is_object || is_open {
        return None;
    }
    (0..properties.len()).map(|index| properties.get(&slot_name(index))).collect()
}

fn type_admits(schema: &Schema, value: &Value) -> bool {
    let named = |name| names_type(schema, name).unwrap_or(true);
    match value {
        Value::Null => named("null"),
        Value::Bool(_) => named("boolean"),
        // `5.0` is an integer to JSON Schema.
        Value::Number(number) => named("number") || named("integer") && number.as_f64().is_some_and(|float| float.fract() == 0.0),
        Value::String(_) => named("string"),
        Value::Array(_) => named("array") || slots(schema).is_some(),
        Value::Object(_) => named("object"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Aligns twice: the second time must change nothing, and the canonical schema must serve as well as the given one.
    fn aligned(schema: &Value, value: &Value) -> Value {
        let once = ensure_structured_result(Some(schema), value.clone()).unwrap();
        let canonical = canonicalize_output_schema(Some(schema.clone()));
        for schema in [Some(schema), canonical.as_ref()] {
            let twice = ensure_structured_result(schema, once.clone()).unwrap();
            assert_eq!(twice.to_string(), once.to_string());
        }
        once
    }

    /// Checks rows of a bare value and what the envelope should hold, for the value bare and for it in an envelope.
    fn check(schema: Value, rows: &[(Value, Value)]) {
        for (value, expected) in rows {
            for given in [value.clone(), envelope(value.clone())] {
                assert_eq!(aligned(&schema, &given), envelope(expected.clone()), "{given} by {schema}");
            }
        }
    }

    fn pair() -> Value {
        json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]})
    }

    fn option(schema: Value) -> Value {
        json!({"anyOf": [schema, {"type": "null"}]})
    }

    #[test]
    fn without_a_schema_there_is_no_structured_result() {
        assert_eq!(ensure_structured_result(None, json!(1)), None);
        assert_eq!(ensure_structured_result(Some(&Value::Null), json!(1)), None);
    }

    #[test]
    fn bare_values_are_wrapped() {
        check(json!({"type": "integer"}), &[(json!(42), json!(42))]);
        check(
            option(json!({"type": "string"})),
            &[(json!(null), json!(null)), (json!("a"), json!("a"))],
        );
        check(
            json!({"type": "object"}),
            &[(json!({"a": 1, "b": 2}), json!({"a": 1, "b": 2}))],
        );
        check(json!({}), &[(json!([1]), json!([1]))]);
        check(json!(true), &[(json!(1), json!(1))]);
    }

    #[test]
    fn tuples_become_objects() {
        let object = json!({"val0": 1, "val1": "a"});
        check(pair(), &[(json!([1, "a"]), object.clone()), (object.clone(), object.clone())]);
        check(
            json!({"type": "array", "items": pair()}),
            &[(json!([[1, "a"], [1, "a"]]), json!([object, object])), (json!([]), json!([]))],
        );
        check(
            json!({"type": "object", "additionalProperties": pair()}),
            &[(json!({"k": [1, "a"], "l": [1, "a"]}), json!({"k": object, "l": object}))],
        );
        check(
            json!({"type": "array", "items": [pair(), {"type": "array", "items": {"type": "integer"}}]}),
            &[(json!([[1, "a"], [1, 2]]), json!({"val0": object, "val1": [1, 2]}))],
        );
        check(json!({"allOf": [{"description": "d"}, pair()]}), &[(json!([1, "a"]), object)]);
        check(json!({"type": "array", "prefixItems": []}), &[(json!([]), json!({}))]);
        // Too long for the tuple: not ours to cut.
        check(pair(), &[(json!([1, "a", 2]), json!([1, "a", 2]))]);
    }

    #[test]
    fn missing_properties_that_may_be_null_are_null() {
        let record = json!({
            "type": "object",
            "properties": {
                "id": {"type": "integer"},
                "name": option(json!({"type": "string"})),
                "either": {"type": ["string", "null"]},
                "nothing": {"$ref": "#/$defs/nothing"},
                "level": {"enum": ["low", null]},
                "rest": {"type": "string"},
            },
            "required": ["id"],
            "additionalProperties": false,
            "$defs": {"nothing": {"type": "null"}},
        });
        let filled = json!({"id": 1, "name": null, "either": null, "nothing": null, "level": null});
        check(record, &[(json!({"id": 1}), filled.clone()), (filled.clone(), filled)]);
        let maybe_pair = json!({"prefixItems": [{"type": "integer"}, option(json!({"type": "string"}))]});
        check(maybe_pair, &[(json!([1]), json!({"val0": 1, "val1": null}))]);
        // One schema of several forbids the null.
        check(
            json!({"allOf": [{"properties": {"a": true}}, {"properties": {"a": {"type": "string"}}}]}),
            &[(json!({"b": 1, "c": 2}), json!({"b": 1, "c": 2}))],
        );
    }

    #[test]
    fn the_fitting_branch_is_taken() {
        let object = json!({"val0": 1, "val1": "a"});
        let case = |tag: &str, val: Value| {
            json!({
                "type": "object",
                "properties": {"tag": {"const": tag}, "val": val},
                "required": ["tag", "val"],
                "additionalProperties": false,
            })
        };
        let list = json!({"type": "array", "items": {}});
        check(
            json!({"oneOf": [case("list", list.clone()), case("pair", pair()), case("maybe", option(pair()))]}),
            &[
                (
                    json!({"tag": "list", "val": [1, "a"]}),
                    json!({"tag": "list", "val": [1, "a"]}),
                ),
                (json!({"tag": "pair", "val": [1, "a"]}), json!({"tag": "pair", "val": object})),
                (
                    json!({"tag": "maybe", "val": [1, "a"]}),
                    json!({"tag": "maybe", "val": object}),
                ),
                (json!({"tag": "maybe"}), json!({"tag": "maybe", "val": null})),
                (
                    json!({"tag": "other", "val": [1, "a"]}),
                    json!({"tag": "other", "val": [1, "a"]}),
                ),
            ],
        );
        let arm = |name: &str, of: Value| json!({"type": "object", "properties": {name: of}, "required": [name], "additionalProperties": false});
        check(
            json!({"oneOf": [arm("ok", pair()), arm("err", list)]}),
            &[
                (json!({"ok": [1, "a"]}), json!({"ok": object})),
                (json!({"err": [1, "a"]}), json!({"err": [1, "a"]})),
            ],
        );
        // Alike at a glance: only the inmost part tells them apart.
        let deep = |of: Value| arm("a", arm("b", arm("c", json!({"prefixItems": [of]}))));
        check(
            json!({"anyOf": [deep(json!({"type": "string"})), deep(pair())]}),
            &[(
                json!({"a": {"b": {"c": [[1, "a"]]}}}),
                json!({"a": {"b": {"c": {"val0": object}}}}),
            )],
        );
    }

    #[test]
    fn a_record_with_a_field_result_is_told_from_the_envelope() {
        let record = json!({"type": "object", "properties": {"result": pair()}, "required": ["result"], "title": "R"});
        let schema = crate::wrap_schema_in_result(record.clone());
        let expected = json!({"result": {"val0": 1, "val1": "a"}});
        check(schema, &[(json!({"result": [1, "a"]}), expected.clone())]);
        // Any depth of the same record.
        let schema = crate::wrap_schema_in_result(crate::wrap_schema_in_result(record));
        check(
            schema,
            &[(json!({"result": {"result": [1, "a"]}}), json!({"result": expected}))],
        );
        // Where both readings fit, it is the envelope.
        let optional = option(json!({"type": "object", "properties": {"result": {"type": ["null", "string"]}}}));
        assert_eq!(aligned(&optional, &json!({"result": null})), json!({"result": null}));
        assert_eq!(
            aligned(&optional, &json!({"result": "a"})),
            json!({"result": {"result": "a"}})
        );
        assert_eq!(
            aligned(&optional, &json!({"result": {"result": null}})),
            json!({"result": {"result": null}})
        );
    }

    #[test]
    fn what_fits_nowhere_passes_through() {
        check(json!({"type": "string"}), &[(json!({"a": [1]}), json!({"a": [1]}))]);
        check(json!({"oneOf": []}), &[(json!([1]), json!([1]))]);
        check(json!({"$ref": "#/$defs/absent"}), &[(json!([1]), json!([1]))]);
        check(json!({"$ref": "https://example.com/s"}), &[(json!([1]), json!([1]))]);
        check(json!(false), &[(json!([1]), json!([1]))]);
    }

    #[test]
    fn recursive_definitions_end_with_the_value() {
        let list = json!({
            "$ref": "#/$defs/list",
            "$defs": {"list": option(json!({"type": "array", "items": [{"type": "integer"}, {"$ref": "#/$defs/list"}]}))},
        });
        check(
            list,
            &[(json!([1, [2, null]]), json!({"val0": 1, "val1": {"val0": 2, "val1": null}}))],
        );
        // Through the root itself.
        let node = json!({"type": "object", "properties": {"next": option(json!({"$ref": "#"}))}, "required": ["id"]});
        check(node, &[(json!({"id": 1}), json!({"id": 1, "next": null}))]);
        // These say nothing but themselves.
        let a = json!({"$ref": "#/$defs/a"});
        for turn in [a.clone(), json!({"allOf": [a]}), json!({"anyOf": [a, a]})] {
            check(
                json!({"$ref": "#/$defs/a", "$defs": {"a": turn}}),
                &[(json!([1]), json!([1]))],
            );
        }
    }

    /// Each definition names the next one twice: walked without memory, that is 2^64 steps.
    #[test]
    fn definitions_that_double_cost_no_more_than_the_value() {
        const LEVELS: usize = 64;
        let doubled = |twice: fn(Value) -> Value, last: Value| {
            let mut defs = Map::from_iter([("t0".to_owned(), last)]);
            for level in 1..=LEVELS {
                defs.insert(format!("t{level}"), twice(json!({"$ref": format!("#/$defs/t{}", level - 1)})));
            }
            json!({"$ref": format!("#/$defs/t{LEVELS}"), "$defs": defs})
        };
        let nested = |value: Value| (0..LEVELS).fold(value, |value, _| json!({"a": value}));
        let object = json!({"val0": 1, "val1": "a"});

        for twice in [|next| json!({"anyOf": [next, next]}), |next| json!({"allOf": [next, next]})] as [fn(Value) -> Value; 2] {
            check(doubled(twice, pair()), &[(json!([1, "a"]), object.clone())]);
        }
        // The same at every glance, for which nothing but the end of the value decides.
        let untagged = |next: Value| {
            let object = json!({"type": "object", "properties": {"a": next}, "additionalProperties": false});
            let mut strict = object.clone();
            strict["required"] = json!(["a"]);
            json!({"anyOf": [strict, object]})
        };
        check(
            doubled(untagged, pair()),
            &[
                (nested(json!([1, "a"])), nested(object.clone())),
                (nested(json!("fits nowhere")), nested(json!("fits nowhere"))),
            ],
        );
        let optional = |next: Value| json!({"type": "object", "properties": {"a": option(next.clone()), "b": option(next)}});
        check(doubled(optional, pair()), &[(json!({}), json!({"a": null, "b": null}))]);
    }
}
