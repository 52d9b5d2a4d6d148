//! What holds of every type and every value: what goes out is what the schema says and comes back as it was, what the schema
//! admits is accepted, and nothing that anybody sends makes this crate panic.

mod support;

use std::collections::HashSet;
use std::sync::LazyLock;

use component2json::{
    Case, Direction, ExportName, Exports, Field, Function, Kind, Label, MIN_MAX_TOOL_NAME, NameParts, Type, TypeRef,
    component_exports_to_tools, json_to_vals, read_exports, tool_names, type_to_json_schema, vals_to_json,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};
use serde_json::{Value, json};
use wasmtime::component::Val;

/// Names as WIT has them, some of which are alike in one spelling or another.
const NAMES: [&str; 9] = [
    "a",
    "x1",
    "x-1",
    "file-name",
    "HTTP-get",
    "tag",
    "val",
    "some-very-long-name-that-is-cut-because-nobody-takes-keys-of-such-a-length",
    "ok",
];

fn config(cases: u32) -> ProptestConfig {
    // Nothing is written beside the tests: a failure prints what it takes to repeat it.
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn ty(kind: Kind<TypeRef>) -> TypeRef {
    TypeRef::new(Type {
        name: None,
        docs: None,
        kind,
    })
}

fn any_key_type() -> impl Strategy<Value = TypeRef> {
    select(vec![
        Kind::Bool,
        Kind::U8,
        Kind::U16,
        Kind::U32,
        Kind::U64,
        Kind::S8,
        Kind::S16,
        Kind::S32,
        Kind::S64,
        Kind::Char,
    ])
    .prop_map(ty)
}

fn labels(names: &[&str]) -> Vec<Label> {
    names
        .iter()
        .map(|name| Label {
            name: (*name).to_owned(),
            docs: None,
        })
        .collect()
}

fn any_type() -> BoxedStrategy<TypeRef> {
    let names = || subsequence(NAMES.to_vec(), 1..=5);
    let leaf = prop_oneof![
        4 => any_key_type(),
        4 => select(vec![Kind::F32, Kind::F64, Kind::String, Kind::Bytes]).prop_map(ty),
        1 => names().prop_map(|names| ty(Kind::Enum(labels(&names)))),
        1 => names().prop_map(|names| ty(Kind::Flags(labels(&names)))),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let options = proptest::option::of(inner.clone());
        prop_oneof![
            inner.clone().prop_map(|item| match item.kind {
                Kind::U8 => ty(Kind::Bytes),
                _ => ty(Kind::List(item)),
            }),
            (inner.clone(), 1..4u32).prop_map(|(item, len)| ty(Kind::FixedList(item, len))),
            inner.clone().prop_map(|value| ty(Kind::StringMap(value))),
            (any_key_type(), inner.clone()).prop_map(|(key, value)| ty(Kind::Map(key, value))),
            (names(), vec(inner.clone(), 5)).prop_map(|(names, types)| {
                ty(Kind::Record(
                    names.iter().zip(types).map(|(name, ty)| Field::new(name, None, ty)).collect(),
                ))
            }),
            vec(inner.clone(), 1..4).prop_map(|items| ty(Kind::Tuple(items))),
            (names(), vec(options.clone(), 5)).prop_map(|(names, types)| {
                let case = |(name, ty): (&&str, Option<TypeRef>)| Case {
                    name: (*name).to_owned(),
                    docs: None,
                    ty,
                };
                ty(Kind::Variant(names.iter().zip(types).map(case).collect()))
            }),
            inner.prop_map(|inner| ty(Kind::Option(inner))),
            (options.clone(), options).prop_map(|(ok, err)| ty(Kind::Result { ok, err })),
        ]
    })
    .boxed()
}

fn any_char() -> impl Strategy<Value = char> {
    prop_oneof![any::<char>(), select(vec!['\0', '"', '\\', '\u{7f}', '\u{fffd}', '𝄞', ' '])]
}

fn any_text() -> impl Strategy<Value = String> {
    vec(any_char(), 0..6).prop_map(|chars| chars.into_iter().collect())
}

/// A value as a guest may return it.
fn any_val(ty: &TypeRef) -> BoxedStrategy<Val> {
    match &ty.kind {
        Kind::Bool => any::<bool>().prop_map(Val::Bool).boxed(),
        Kind::U8 => any::<u8>().prop_map(Val::U8).boxed(),
        Kind::U16 => any::<u16>().prop_map(Val::U16).boxed(),
        Kind::U32 => any::<u32>().prop_map(Val::U32).boxed(),
        Kind::S8 => any::<i8>().prop_map(Val::S8).boxed(),
        Kind::S16 => any::<i16>().prop_map(Val::S16).boxed(),
        Kind::S32 => any::<i32>().prop_map(Val::S32).boxed(),
        Kind::U64 => prop_oneof![any::<u64>(), 0..200u64, (1u64 << 53) - 2..=(1 << 53) + 1]
            .prop_map(Val::U64)
            .boxed(),
        Kind::S64 => prop_oneof![any::<i64>(), -200..200i64, -(1i64 << 53) - 1..=-(1 << 53) + 2]
            .prop_map(Val::S64)
            .boxed(),
        Kind::F32 => proptest::num::f32::ANY.prop_map(Val::Float32).boxed(),
        Kind::F64 => proptest::num::f64::ANY.prop_map(Val::Float64).boxed(),
        Kind::Char => any_char().prop_map(Val::Char).boxed(),
        Kind::String => any_text().prop_map(Val::String).boxed(),
        Kind::Bytes => vec(any::<u8>().prop_map(Val::U8), 0..6).prop_map(Val::List).boxed(),
        Kind::List(item) => vec(any_val(item), 0..4).prop_map(Val::List).boxed(),
        Kind::FixedList(item, len) => vec(any_val(item), *len as usize).prop_map(Val::FixedLengthList).boxed(),
        Kind::StringMap(of) => vec((any_text().prop_map(Val::String), any_val(of)), 0..4)
            .prop_map(unique)
            .boxed(),
        Kind::Map(key, of) => vec((any_val(key), any_val(of)), 0..4).prop_map(unique).boxed(),
        Kind::Record(fields) => {
            let names: Vec<_> = fields.iter().map(|field| field.name.clone()).collect();
            let values: Vec<_> = fields.iter().map(|field| any_val(&field.ty)).collect();
            values
                .prop_map(move |values| Val::Record(names.iter().cloned().zip(values).collect()))
                .boxed()
        }
        Kind::Tuple(items) => items.iter().map(any_val).collect::<Vec<_>>().prop_map(Val::Tuple).boxed(),
        Kind::Variant(cases) => {
            let cases = cases.clone();
            select(cases)
                .prop_flat_map(|case| any_payload(case.ty.as_ref()).prop_map(move |val| Val::Variant(case.name.clone(), val)))
                .boxed()
        }
        Kind::Enum(labels) => select(labels.clone()).prop_map(|label| Val::Enum(label.name)).boxed(),
        Kind::Flags(labels) => {
            let names: Vec<_> = labels.iter().map(|label| label.name.clone()).collect();
            let most = names.len();
            subsequence(names, 0..=most).prop_map(Val::Flags).boxed()
        }
        Kind::Option(inner) => proptest::option::of(any_val(inner))
            .prop_map(|val| Val::Option(val.map(Box::new)))
            .boxed(),
        Kind::Result { ok, err } => prop_oneof![
            any_payload(ok.as_ref()).prop_map(|val| Val::Result(Ok(val))),
            any_payload(err.as_ref()).prop_map(|val| Val::Result(Err(val))),
        ]
        .boxed(),
    }
}

fn any_payload(ty: Option<&TypeRef>) -> BoxedStrategy<Option<Box<Val>>> {
    ty.map_or_else(
        || Just(None).boxed(),
        |ty| any_val(ty).prop_map(|val| Some(Box::new(val))).boxed(),
    )
}

/// A map has no key twice.
fn unique(entries: Vec<(Val, Val)>) -> Val {
    let mut kept: Vec<(Val, Val)> = Vec::new();
    for (key, val) in entries {
        if kept.iter().all(|(known, _)| *known != key) {
            kept.push((key, val));
        }
    }
    Val::Map(kept)
}

/// Whether a value has the same form in both directions: numbers that JSON readers would round, and those that JSON does not
/// have, go out as text.
fn is_plain(val: &Val) -> bool {
    let safe = 0..1u64 << 53;
    match val {
        Val::U64(value) => safe.contains(value),
        Val::S64(value) => safe.contains(&value.unsigned_abs()),
        Val::Float32(value) => value.is_finite(),
        Val::Float64(value) => value.is_finite(),
        Val::List(items) | Val::FixedLengthList(items) | Val::Tuple(items) => items.iter().all(is_plain),
        Val::Map(entries) => entries.iter().all(|(key, val)| is_plain(key) && is_plain(val)),
        Val::Record(fields) => fields.iter().all(|(_, val)| is_plain(val)),
        Val::Variant(_, val) | Val::Option(val) | Val::Result(Ok(val) | Err(val)) => val.as_deref().is_none_or(is_plain),
        _ => true,
    }
}

/// JSON that the input schema of a type admits, made from the type alone. Texts are base64 where the schema says so.
fn any_input(ty: &TypeRef) -> BoxedStrategy<Value> {
    fn integers<T: Into<Value> + Copy + std::fmt::Debug>(any: impl Strategy<Value = T> + 'static) -> BoxedStrategy<Value> {
        (any, 0..4u8).prop_map(|(value, form)| with_form(value.into(), form)).boxed()
    }
    match &ty.kind {
        Kind::Bool => any::<bool>().prop_map(Value::from).boxed(),
        Kind::U8 => integers(any::<u8>()),
        Kind::U16 => integers(any::<u16>()),
        Kind::U32 => integers(any::<u32>()),
        Kind::S8 => integers(any::<i8>()),
        Kind::S16 => integers(any::<i16>()),
        Kind::S32 => integers(any::<i32>()),
        Kind::U64 => integers(any::<u64>()),
        Kind::S64 => integers(any::<i64>()),
        Kind::F32 | Kind::F64 => prop_oneof![
            (proptest::num::f64::NORMAL | proptest::num::f64::ZERO | proptest::num::f64::SUBNORMAL).prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
        ]
        .boxed(),
        Kind::Char => any_char().prop_map(|c| c.to_string().into()).boxed(),
        Kind::String => any_text().prop_map(Value::from).boxed(),
        Kind::Bytes => select(vec!["", "aGk=", "aGk", "AAAA"]).prop_map(Value::from).boxed(),
        Kind::List(item) => vec(any_input(item), 0..4).prop_map(Value::from).boxed(),
        Kind::FixedList(item, len) => vec(any_input(item), *len as usize).prop_map(Value::from).boxed(),
        Kind::StringMap(of) => vec((any_text(), any_input(of)), 0..4)
            .prop_map(|entries| Value::Object(entries.into_iter().collect()))
            .boxed(),
        Kind::Map(key, of) => vec((any_input(key), any_input(of)), 0..4)
            .prop_map(|entries| {
                entries
                    .into_iter()
                    .map(|(key, value)| json!({"key": key, "value": value}))
                    .collect()
            })
            .boxed(),
        Kind::Record(fields) => {
            let keys: Vec<_> = fields.iter().map(|field| field.key.clone()).collect();
            let values: Vec<_> = fields.iter().map(|field| any_field(&field.ty)).collect();
            // In any order.
            (values, any::<bool>())
                .prop_map(move |(values, reversed)| {
                    let mut entries: Vec<_> = keys.iter().cloned().zip(values).collect();
                    if reversed {
                        entries.reverse();
                    }
                    Value::Object(entries.into_iter().filter_map(|(key, value)| Some((key, value?))).collect())
                })
                .boxed()
        }
        Kind::Tuple(items) => {
            let values: Vec<_> = items.iter().map(any_input).collect();
            values
                .prop_map(|values| {
                    Value::Object(
                        values
                            .into_iter()
                            .enumerate()
                            .map(|(i, value)| (format!("val{i}"), value))
                            .collect(),
                    )
                })
                .boxed()
        }
        Kind::Variant(cases) => select(cases.clone())
            .prop_flat_map(|case| {
                let val = case.ty.as_ref().map_or_else(|| Just(None).boxed(), any_field);
                val.prop_map(move |val| {
                    let tag = ("tag".to_owned(), Value::from(case.name.as_str()));
                    Value::Object([tag].into_iter().chain(val.map(|val| ("val".to_owned(), val))).collect())
                })
            })
            .boxed(),
        Kind::Enum(labels) => select(labels.clone()).prop_map(|label| label.name.into()).boxed(),
        Kind::Flags(labels) => {
            let names: Vec<_> = labels.iter().map(|label| label.name.clone()).collect();
            let most = names.len();
            subsequence(names, 0..=most).prop_shuffle().prop_map(Value::from).boxed()
        }
        Kind::Option(inner) => {
            let nested = matches!(inner.kind, Kind::Option(_));
            let some = any_input(inner).prop_map(move |some| if nested { json!({ "some": some }) } else { some });
            prop_oneof![1 => Just(Value::Null), 3 => some].boxed()
        }
        Kind::Result { ok, err } => {
            let arm = |key: &'static str, ty: &Option<TypeRef>| {
                let payload = ty.as_ref().map_or_else(|| Just(Value::Null).boxed(), any_input);
                payload.prop_map(move |payload| json!({ key: payload }))
            };
            prop_oneof![arm("ok", ok), arm("err", err)].boxed()
        }
    }
}

/// A field may be missing where it is optional.
fn any_field(ty: &TypeRef) -> BoxedStrategy<Option<Value>> {
    let given = any_input(ty).prop_map(Some);
    if matches!(ty.kind, Kind::Option(_)) {
        prop_oneof![1 => Just(None), 3 => given].boxed()
    } else {
        given.boxed()
    }
}

/// An integer as it is, or as a float where that is exact: 5 or 5.0.
fn with_form(value: Value, form: u8) -> Value {
    match value.as_i64().filter(|value| form == 0 && value.unsigned_abs() < 1 << 53) {
        Some(value) => (value as f64).into(),
        None => value,
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-3..300i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any_text().prop_map(Value::from),
        // Words of all the forms; each is base64 too, so that no schema promises more than the types do.
        select(vec!["", "aGk=", "NaNN", "Infinity", "some", "tags", "1234"]).prop_map(Value::from),
    ];
    let key = prop_oneof![
        select(NAMES.to_vec()).prop_map(str::to_owned),
        select(vec!["value", "val0", "err", "some", "key"]).prop_map(str::to_owned),
        any_text()
    ];
    leaf.prop_recursive(4, 32, 5, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            vec((key.clone(), inner), 0..5).prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// Replaces one of the values inside a value.
fn mutate(json: &mut Value, at: &Index, with: Value) {
    fn count(json: &Value) -> usize {
        1 + match json {
            Value::Array(items) => items.iter().map(count).sum::<usize>(),
            Value::Object(object) => object.values().map(count).sum(),
            _ => 0,
        }
    }
    fn replace(json: &mut Value, left: &mut usize, with: &mut Option<Value>) {
        if *left == 0 {
            if let Some(with) = with.take() {
                *json = with;
            }
            return;
        }
        *left -= 1;
        match json {
            Value::Array(items) => items.iter_mut().for_each(|item| {
                if with.is_some() {
                    replace(item, left, with)
                }
            }),
            Value::Object(object) => object.values_mut().for_each(|value| {
                if with.is_some() {
                    replace(value, left, with)
                }
            }),
            _ => {}
        }
    }
    replace(json, &mut at.index(count(json)), &mut Some(with));
}

/// A function that takes a value and returns it.
fn echo(ty: &TypeRef) -> Function {
    Function {
        export: ExportName {
            interface: None,
            function: "echo".into(),
        },
        docs: None,
        params: vec![Field::new("value", None, ty.clone())],
        result: Some(ty.clone()),
        is_async: false,
        answers_content: false,
    }
}

fn faults(schema: &Value, json: &Value) -> Vec<String> {
    match jsonschema::validator_for(schema) {
        Ok(validator) => validator
            .iter_errors(json)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect(),
        Err(error) => vec![format!("no schema: {error}")],
    }
}

fn any_export() -> impl Strategy<Value = ExportName> {
    let word = || {
        prop_oneof![
            select(vec!["a", "b", "a-b", "calculator", "add-one", "7z", "Ä", ""]).prop_map(str::to_owned),
            "[a-z-]{1,60}"
        ]
    };
    let interface =
        (word(), word(), word(), select(vec!["", "@0.1.0", "@0.2.0-rc.1"])).prop_map(|(a, b, c, v)| format!("{a}:{b}/{c}{v}"));
    let interface = prop_oneof![1 => Just(None), 1 => word().prop_map(Some), 4 => interface.prop_map(Some)];
    let function = (select(vec!["", "[static]r."]), word()).prop_map(|(mark, name)| format!("{mark}{name}"));
    (interface, function).prop_map(|(interface, function)| ExportName { interface, function })
}

/// Components of all sorts, to be damaged.
static COMPONENTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let wits = [
        include_str!("schema/record-nested.wit"),
        include_str!("schema/variants.wit"),
        include_str!("schema/maps.wit"),
        include_str!("schema/left-out.wit"),
        include_str!("schema/two-versions.wit"),
        include_str!("schema/world-functions.wit"),
        include_str!("schema/aliases.wit"),
    ];
    let component = |wit: &str| {
        let (component, docs) = support::component_of(wit).ok()?;
        component2json::embed_docs(&component, &docs).ok()
    };
    wits.into_iter().filter_map(component).collect()
});

proptest! {
    #![proptest_config(config(4_000))]

    #[test]
    fn values_are_what_the_schema_says_and_come_back(
        (ty, val) in any_type().prop_flat_map(|ty| { let val = any_val(&ty); (Just(ty), val) })
    ) {
        let function = echo(&ty);
        let json = vals_to_json(&function, std::slice::from_ref(&val), usize::MAX).unwrap().unwrap();
        let text = serde_json::to_string(&json).unwrap();
        let json: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(faults(&type_to_json_schema(&ty, Direction::Output), &json), Vec::<String>::new(), "{}", text);
        if is_plain(&val) {
            prop_assert_eq!(faults(&type_to_json_schema(&ty, Direction::Input), &json), Vec::<String>::new(), "{}", text);
        }
        let back = json_to_vals(&function, &json!({"value": json}));
        prop_assert_eq!(back, Ok(vec![val]), "{}", text);
    }

    #[test]
    fn what_the_input_schema_admits_is_accepted(
        (ty, json) in any_type().prop_flat_map(|ty| { let json = any_input(&ty); (Just(ty), json) })
    ) {
        let function = echo(&ty);
        let arguments = json!({"value": json});
        prop_assert_eq!(faults(&component2json::input_schema(&function), &arguments), Vec::<String>::new(), "{}", json);
        let vals = json_to_vals(&function, &arguments);
        prop_assert!(vals.is_ok(), "{}: {:?}", json, vals);
        // And what comes out of it is a value of the type like any other.
        let out = vals_to_json(&function, &vals.unwrap(), usize::MAX).unwrap().unwrap();
        prop_assert_eq!(faults(&type_to_json_schema(&ty, Direction::Output), &out), Vec::<String>::new(), "{}", out);
    }

    #[test]
    fn a_mutated_value_is_accepted_where_the_schema_still_admits_it(
        (ty, json, changes) in any_type().prop_flat_map(|ty| {
            let json = any_input(&ty);
            (Just(ty), json, vec((any::<Index>(), any_json()), 1..3))
        })
    ) {
        let function = echo(&ty);
        let mut json = json;
        for (at, with) in changes {
            mutate(&mut json, &at, with);
        }
        let arguments = json!({"value": json});
        let accepted = json_to_vals(&function, &arguments);
        if faults(&component2json::input_schema(&function), &arguments).is_empty() && !has_bytes(&ty) {
            prop_assert!(accepted.is_ok(), "{}: {:?}", json, accepted);
        }
    }

    #[test]
    fn any_json_is_accepted_or_refused_with_paths(ty in any_type(), json in any_json(), bare in any::<bool>()) {
        let arguments = if bare { json } else { json!({"value": json}) };
        if let Err(errors) = json_to_vals(&echo(&ty), &arguments) {
            prop_assert!(!errors.listed().is_empty() && errors.listed().len() <= 20);
            for error in errors.listed() {
                prop_assert!(error.path.starts_with('$') && !error.problem.is_empty(), "{:?}", error);
                prop_assert!(!error.path.contains('\n'), "{:?}", error);
            }
        }
    }

    #[test]
    fn exports_come_back_from_disk(types in vec(any_type(), 1..4)) {
        let exports = Exports {
            functions: types.iter().chain(&types).map(echo).collect(),
            offers: vec![],
        left_out: vec![],
            imports: vec![],
            run: None,
            scopes: vec![],
            needs_concurrency: false,
            starts_silently: false,
        };
        let text = serde_json::to_string(&exports).unwrap();
        let read: Exports = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&read.functions, &exports.functions);
        prop_assert_eq!(serde_json::to_string(&read).unwrap(), text, "what was shared is shared");
        prop_assert_eq!(component_exports_to_tools(&read), component_exports_to_tools(&exports));
    }

    #[test]
    fn tool_names_are_unique_and_fit(
        exports in vec(any_export(), 0..12),
        others in vec(any_export(), 0..4),
        prefix in proptest::option::of(prop_oneof![Just(String::new()), "[a-z0-9-]{1,70}"]),
        max in MIN_MAX_TOOL_NAME..70,
    ) {
        let exports: Vec<_> = exports.into_iter().collect::<HashSet<_>>().into_iter().collect();
        let exports = NameParts::of_exports(&exports);
        let taken: HashSet<_> = tool_names(&NameParts::of_exports(&others), None, max, &HashSet::new()).into_iter().collect();
        let names = tool_names(&exports, prefix.as_deref(), max, &taken);
        prop_assert_eq!(names.len(), exports.len());
        prop_assert_eq!(&names, &tool_names(&exports, prefix.as_deref(), max, &taken), "stable");
        let mut seen = taken;
        for name in names {
            let text = name.as_str();
            prop_assert!(text.len() <= max, "{}", text);
            prop_assert!(text.starts_with(|c: char| c.is_ascii_lowercase()), "{}", text);
            prop_assert!(text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'), "{}", text);
            prop_assert!(seen.insert(name.clone()), "{} is there twice", text);
        }
    }
}

proptest! {
    #![proptest_config(config(20_000))]

    #[test]
    fn damaged_components_are_refused_or_read(
        which in any::<Index>(),
        changes in vec((any::<Index>(), any::<u8>(), 0..5u8), 1..5),
    ) {
        let mut bytes = which.get(&COMPONENTS).clone();
        for (at, byte, change) in changes {
            let at = at.index(bytes.len());
            match change {
                0 => bytes[at] ^= 1 << (byte % 8),
                1 => bytes[at] = byte,
                2 => bytes.truncate(at.max(8)),
                3 => bytes.insert(at, byte),
                _ => { bytes.remove(at); }
            }
        }
        // To be read at all is not the point.
        if let Ok((exports, _)) = read_exports(&bytes, None) {
            component_exports_to_tools(&exports);
        }
    }

    #[test]
    fn any_bytes_are_refused_or_read(layer in select(vec![0u8, 1, 2]), bytes in vec(any::<u8>(), 0..64), whole in any::<bool>()) {
        let mut file = if whole { vec![] } else { vec![0, b'a', b's', b'm', 0x0d, 0, layer, 0] };
        file.extend(bytes);
        let _ = read_exports(&file, None);
    }
}

/// Whether a text may be admitted that is no base64: JSON Schema has no way to say so.
fn has_bytes(ty: &TypeRef) -> bool {
    matches!(ty.kind, Kind::Bytes) || ty.children().into_iter().any(has_bytes)
}

#[test]
fn a_type_that_doubles_stays_small() {
    let types: String = (1..=18)
        .map(|n| format!("(type $t{n} (tuple $t{} $t{}))", n - 1, n - 1))
        .collect();
    let component = wat::parse_str(format!(
        r#"(component
            (core module $m (memory (export "memory") 1) (func (export "f") (result i32) unreachable))
            (core instance $i (instantiate $m))
            (type $t0 u32) {types}
            (func $f (result $t18) (canon lift (core func $i "f") (memory (core memory $i "memory"))))
            (export "f" (func $f)))"#
    ))
    .unwrap();
    let (exports, _) = read_exports(&component, None).unwrap();
    let text = serde_json::to_string(&exports).unwrap();
    assert!(text.len() < 8_000, "{} bytes on disk", text.len());
    let read: Exports = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
    let tools = serde_json::to_string(&component_exports_to_tools(&read)).unwrap();
    assert!(tools.len() < 20_000, "{} bytes of tools", tools.len());
}

#[test]
fn a_damaged_table_is_refused() {
    let exports = Exports {
        functions: vec![echo(&ty(Kind::List(ty(Kind::U32))))],
        offers: vec![],
        left_out: vec![],
        imports: vec![],
        run: None,
        scopes: vec![],
        needs_concurrency: false,
        starts_silently: false,
    };
    let text = serde_json::to_string(&exports).unwrap();
    assert!(text.contains(r#"{"list":0}"#), "{text}");
    for damage in [r#"{"list":1}"#, r#"{"list":7}"#, r#"{"list":-1}"#, r#"{"lost":0}"#] {
        assert!(
            serde_json::from_str::<Exports>(&text.replace(r#"{"list":0}"#, damage)).is_err(),
            "{damage}"
        );
    }
}
