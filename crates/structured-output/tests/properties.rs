//! What holds of every schema and every value: canonical forms are fixed points, and an aligned value of a type is
//! valid against the canonical schema of that type, as an independent validator sees it.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use structured_output::{canonicalize_output_schema, ensure_structured_result, wrap_schema_in_result};

/// A type as WIT has them; each has a schema with tuple-like arrays in it, and values of several spellings.
#[derive(Clone, Debug)]
enum Type {
    Bool,
    Integer,
    Text,
    List(Box<Type>),
    Map(Box<Type>),
    Option(Box<Type>),
    /// With `prefixItems`, or with `items` as a list.
    Tuple(Vec<Type>, bool),
    Record(Vec<(&'static str, Type)>),
    Variant(Vec<Type>),
    /// With nothing to tell the branches apart but themselves.
    Union(Vec<Type>),
    /// Shared under `$defs`.
    Named(Box<Type>),
}

fn any_type() -> impl Strategy<Value = Type> {
    let leaf = prop_oneof![Just(Type::Bool), Just(Type::Integer), Just(Type::Text)];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        let several = prop::collection::vec(inner.clone(), 1..4);
        let names = prop::sample::subsequence(vec!["result", "val0", "val1", "a", "tag", "items"], 0..4);
        prop_oneof![
            boxed.clone().prop_map(Type::List),
            boxed.clone().prop_map(Type::Map),
            boxed.clone().prop_map(Type::Option),
            boxed.prop_map(Type::Named),
            (several.clone(), any::<bool>()).prop_map(|(types, prefix)| Type::Tuple(types, prefix)),
            (names, prop::collection::vec(inner, 4))
                .prop_map(|(names, types)| Type::Record(names.into_iter().zip(types).collect())),
            several.clone().prop_map(Type::Variant),
            several.prop_map(Type::Union),
        ]
    })
}

impl Type {
    fn document(&self) -> Value {
        let mut defs = Map::new();
        let mut schema = self.schema(&mut defs);
        if let Value::Object(schema) = &mut schema {
            schema.insert("$defs".to_owned(), defs.into());
        }
        // This one passes for the envelope; who has it bare says so.
        if matches!(self, Self::Record(fields) if matches!(fields.as_slice(), [("result", _)])) {
            schema = wrap_schema_in_result(schema);
        }
        schema
    }

    fn schema(&self, defs: &mut Map<String, Value>) -> Value {
        let mut list = |types: &[Type]| types.iter().map(|each| each.schema(defs)).collect::<Vec<_>>();
        match self {
            Self::Bool => json!({"type": "boolean"}),
            Self::Integer => json!({"type": "integer"}),
            Self::Text => json!({"type": "string"}),
            Self::List(of) => json!({"type": "array", "items": of.schema(defs)}),
            Self::Map(of) => json!({"type": "object", "additionalProperties": of.schema(defs)}),
            Self::Option(of) => json!({"anyOf": [of.schema(defs), {"type": "null"}]}),
            Self::Tuple(of, true) => {
                json!({"type": "array", "prefixItems": list(of), "items": false})
            }
            Self::Tuple(of, false) => {
                json!({"type": "array", "items": list(of), "additionalItems": false})
            }
            Self::Record(fields) => {
                let required = fields.iter().filter(|(_, of)| !matches!(of, Self::Option(_)));
                let required: Vec<_> = required.map(|(name, _)| *name).collect();
                let properties: Map<_, _> = fields
                    .iter()
                    .map(|(name, of)| ((*name).to_owned(), of.schema(defs)))
                    .collect();
                json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
            }
            Self::Variant(cases) => {
                let case = |(index, val)| {
                    json!({
                        "type": "object",
                        "properties": {"tag": {"const": format!("case-{index}")}, "val": val},
                        "required": ["tag", "val"],
                        "additionalProperties": false,
                    })
                };
                json!({"oneOf": list(cases).into_iter().enumerate().map(case).collect::<Vec<_>>()})
            }
            Self::Union(of) => json!({"anyOf": list(of)}),
            Self::Named(of) => {
                let schema = of.schema(defs);
                let name = format!("t{}", defs.len());
                let reference = json!({"$ref": format!("#/$defs/{name}")});
                defs.insert(name, schema);
                reference
            }
        }
    }

    fn value(&self) -> BoxedStrategy<Value> {
        let all = |types: &[Type]| types.iter().map(Type::value).collect::<Vec<_>>();
        match self {
            Self::Bool => any::<bool>().prop_map(Value::from).boxed(),
            Self::Integer => any::<i32>().prop_map(Value::from).boxed(),
            Self::Text => "[a-c]{0,2}".prop_map(Value::from).boxed(),
            Self::List(of) => prop::collection::vec(of.value(), 0..3).prop_map(Value::from).boxed(),
            Self::Map(of) => {
                let key = prop::sample::select(vec!["result", "val0", "a"]);
                let members = prop::collection::btree_map(key, of.value(), 0..3);
                members.prop_map(|members| json!(members)).boxed()
            }
            Self::Option(of) => prop_oneof![Just(Value::Null), of.value()].boxed(),
            Self::Tuple(of, _) => (all(of), any::<bool>())
                .prop_map(|(items, as_object)| {
                    if as_object {
                        items
                            .into_iter()
                            .enumerate()
                            .map(|(index, item)| (format!("val{index}"), item))
                            .collect()
                    } else {
                        Value::from(items)
                    }
                })
                .boxed(),
            Self::Record(fields) => {
                let fields = fields.iter().map(|(name, of)| {
                    let (name, value) = (*name, of.value().prop_map(Some));
                    let value = match of {
                        Self::Option(_) => prop_oneof![Just(None), value].boxed(),
                        _ => value.boxed(),
                    };
                    value.prop_map(move |value| Some((name.to_owned(), value?)))
                });
                fields
                    .collect::<Vec<_>>()
                    .prop_map(|fields| fields.into_iter().flatten().collect())
                    .boxed()
            }
            Self::Variant(cases) => {
                let cases = cases.iter().enumerate().map(|(index, of)| {
                    let case = move |val| json!({"tag": format!("case-{index}"), "val": val});
                    of.value().prop_map(case).boxed()
                });
                prop::strategy::Union::new(cases.collect::<Vec<_>>()).boxed()
            }
            Self::Union(of) => prop::strategy::Union::new(all(of)).boxed(),
            Self::Named(of) => of.value(),
        }
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        "[a-c]".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let key = prop::sample::select(vec!["result", "val0", "val1", "a"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::hash_map(key, inner, 0..3).prop_map(|members| json!(members)),
        ]
    })
}

/// Schemas as nobody writes them: any keywords together, true of little or nothing.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        Just(json!({})),
        prop::sample::select(vec!["null", "integer", "array", "object"]).prop_map(|name| json!({"type": name})),
        prop::sample::select(vec!["#", "#/$defs/a", "#/$defs/b", "#/properties/result", "#/nowhere"])
            .prop_map(|target| json!({"$ref": target})),
        any_json().prop_map(|value| json!({"const": value})),
        any_json(),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let key = || prop::sample::select(vec!["result", "val0", "val1", "a", "b"]);
        let list = || prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from).boxed();
        let named = || {
            prop::collection::hash_map(key(), inner.clone(), 0..3)
                .prop_map(|named| json!(named))
                .boxed()
        };
        let one = || inner.clone().boxed();
        let keywords: Vec<BoxedStrategy<(String, Value)>> = [
            (
                "type",
                prop::sample::select(vec![json!("array"), json!("object"), json!(["object", "null"])]).boxed(),
            ),
            ("required", prop::collection::vec(key(), 0..2).prop_map(Value::from).boxed()),
            ("properties", named()),
            ("$defs", named()),
            ("oneOf", list()),
            ("anyOf", list()),
            ("allOf", list()),
            ("prefixItems", list()),
            ("items", list()),
            ("items", one()),
            ("additionalProperties", one()),
            ("not", one()),
        ]
        .into_iter()
        .map(|(keyword, value)| value.prop_map(move |value| (keyword.to_owned(), value)).boxed())
        .collect();
        let keywords = prop::collection::vec(prop::strategy::Union::new(keywords), 0..5);
        keywords.prop_map(|keywords| Value::Object(keywords.into_iter().collect()))
    })
}

fn typed_value() -> impl Strategy<Value = (Value, Value)> {
    any_type().prop_flat_map(|of| (Just(of.document()), of.value()))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn canonical_schemas_stay_as_they_are(schema in prop_oneof![any_schema(), any_type().prop_map(|of| of.document())]) {
        let once = canonicalize_output_schema(Some(schema));
        let twice = canonicalize_output_schema(once.clone());
        prop_assert_eq!(json!(once).to_string(), json!(twice).to_string());
    }

    #[test]
    fn aligned_values_stay_as_they_are(schema in any_schema(), value in any_json()) {
        let once = ensure_structured_result(Some(&schema), value);
        if let Some(once) = once {
            let twice = ensure_structured_result(Some(&schema), once.clone());
            prop_assert_eq!(json!(once).to_string(), json!(twice).to_string());
        }
    }

    #[test]
    fn aligned_values_of_a_type_are_valid((schema, value) in typed_value(), enveloped in any::<bool>()) {
        let canonical = canonicalize_output_schema(Some(schema.clone())).unwrap();
        let validator = jsonschema::validator_for(&canonical).unwrap();
        let given = if enveloped { json!({"result": value}) } else { value };

        let aligned = ensure_structured_result(Some(&schema), given.clone()).unwrap();
        prop_assert!(validator.is_valid(&aligned), "{given} became {aligned}, by {canonical}");

        let by_canonical = ensure_structured_result(Some(&canonical), given).unwrap();
        prop_assert_eq!(aligned.to_string(), by_canonical.to_string());
        let again = ensure_structured_result(Some(&canonical), by_canonical).unwrap();
        prop_assert_eq!(aligned.to_string(), again.to_string());
    }
}
