//! `output/*.json`: what a program printed, what is known of its output, and what that is in JSON. `BLESS=1` writes the latter.
#![allow(clippy::unwrap_used, reason = "what fails in a test fails the test")]

use std::fs;
use std::path::Path;

use command2json::{Captured, Checker, Format, Output, output_schema, output_text, output_to_json};
use proptest::prelude::*;
use serde_json::{Value, json};
use structured_output::{canonicalize_output_schema, ensure_structured_result, wrap_schema_in_result};

#[test]
fn output_is_what_the_cases_say() {
    let file = Path::new("tests/output/cases.json");
    let mut cases: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    for case in cases.as_array_mut().unwrap() {
        let output: Option<Output> = serde_json::from_value(case["output"].clone()).unwrap();
        let bytes = |name: &str| match &case[name] {
            Value::Array(bytes) => bytes.iter().map(|byte| byte.as_u64().unwrap() as u8).collect(),
            text => text.as_str().unwrap_or_default().as_bytes().to_vec(),
        };
        let (stdout, stderr) = (bytes("stdout"), bytes("stderr"));
        let captured = Captured {
            stdout: &stdout,
            stderr: &stderr,
            stdout_dropped: case["stdoutDropped"].as_u64().unwrap_or(0),
            stderr_dropped: case["stderrDropped"].as_u64().unwrap_or(0),
            exit_code: case["exitCode"].as_i64().unwrap_or(0) as i32,
            hint: case["hint"].as_str().map(str::to_owned),
        };
        case["json"] = checked(&captured, output.as_ref());
        case["read"] = output_text(&captured).into();
    }
    compare(file, &cases);
}

#[test]
fn schemas_are_what_the_snapshot_says() {
    let file = Path::new("tests/output/schemas.json");
    let mut cases: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    for case in cases.as_array_mut().unwrap() {
        let output: Option<Output> = serde_json::from_value(case["output"].clone()).unwrap();
        let schema = output_schema(output.as_ref());
        let canonical = canonicalize_output_schema(Some(wrap_schema_in_result(schema.clone()))).unwrap();
        jsonschema::validator_for(&canonical).unwrap();
        case["json"] = schema["properties"]["json"].clone();
        case["definitions"] = json!([schema.get("$defs"), schema.get("definitions")]);
        case["canonical"] = canonical["properties"]["result"]["properties"]["json"].clone();
    }
    compare(file, &cases);
}

/// Compares a file with what it should be, or with `BLESS=1` writes that.
fn compare(file: &Path, cases: &Value) {
    let text = serde_json::to_string_pretty(cases).unwrap() + "\n";
    if std::env::var_os("BLESS").is_some() {
        #[expect(clippy::disallowed_methods, reason = "a snapshot that is half written is blessed again")]
        fs::write(file, text).unwrap();
    } else {
        assert!(fs::read_to_string(file).unwrap() == text, "look at `git diff` after BLESS=1");
    }
}

/// YAML that is small as text and huge as data.
#[test]
fn hostile_output_costs_no_more_than_its_size() {
    let mut bomb = String::from("a: &a [x, x, x, x, x, x, x, x, x]\n");
    for (name, of) in ('b'..='z').zip('a'..) {
        bomb.push_str(&format!(
            "{name}: &{name} [*{of}, *{of}, *{of}, *{of}, *{of}, *{of}, *{of}, *{of}, *{of}]\n"
        ));
    }
    let wide = "a ".repeat(1 << 18) + "\n" + &"b\n".repeat(1 << 18);
    for (text, format) in [
        (bomb, Format::Yaml),
        ("[".repeat(1 << 20), Format::Yaml),
        ("- ".repeat(1 << 18), Format::Yaml),
        ("[".repeat(1 << 20), Format::Json),
        (format!("{}{}", "[".repeat(1 << 18), "]".repeat(1 << 18)), Format::Jsonl),
        (wide, Format::Table),
    ] {
        let captured = Captured {
            stdout: text.as_bytes(),
            ..Captured::default()
        };
        let value = checked(&captured, Some(&declared(Some(format), None)));
        assert!(value.get("json").is_none());
        assert!(value["jsonError"].as_str().unwrap().chars().count() <= 300);
    }
}

/// The value, which fits its schema as it is and in the form that clients get.
fn checked(captured: &Captured, output: Option<&Output>) -> Value {
    let checker = output.and_then(|output| output.schema.as_ref()).map(Checker::new);
    let value = output_to_json(captured, output, checker.as_ref());
    let schema = output_schema(output);
    assert_valid(&schema, &value);
    let schema = wrap_schema_in_result(schema);
    let canonical = canonicalize_output_schema(Some(schema.clone())).unwrap();
    for schema in [&schema, &canonical] {
        let sent = ensure_structured_result(Some(schema), json!({"result": value})).unwrap();
        assert_valid(&canonical, &sent);
        let absent = |value: &Value| value.get("json").is_none();
        assert_eq!(sent.get("result").map(absent), Some(absent(&value)), "{sent}");
    }
    value
}

fn assert_valid(schema: &Value, value: &Value) {
    let validator = jsonschema::validator_for(schema).unwrap();
    let error = validator.validate(value).map_err(|error| error.to_string()).err();
    assert_eq!(error, None, "{value}\n{schema}");
}

fn declared(format: Option<Format>, schema: Option<Value>) -> Output {
    Output {
        format,
        schema,
        force: Vec::new(),
    }
}

fn formats() -> impl Strategy<Value = Option<Format>> {
    use Format::*;
    prop::sample::select(vec![None, Some(Text), Some(Json), Some(Jsonl), Some(Yaml), Some(Table)])
}

/// Schemas that go wrong when they are moved, aligned or filled with nulls.
fn schemas() -> impl Strategy<Value = Option<Value>> {
    let pair = json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]});
    let nullable = json!({"type": ["string", "null"]});
    prop::sample::select(vec![
        None,
        Some(json!({})),
        Some(json!({"type": "object"})),
        Some(json!({"type": ["object", "null"], "properties": {"a": nullable}})),
        Some(json!({"not": {"type": "null"}})),
        Some(json!({"type": "object", "properties": {"a": nullable, "b": nullable}, "maxProperties": 1})),
        Some(json!({"type": "object", "properties": {"a": {"not": {"type": "null"}}, "b": {}}, "dependentRequired": {"b": ["c"]}})),
        Some(json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": nullable, "b": nullable}})),
        Some(json!({"anyOf": [
            {"properties": {"a": {"type": "integer", "minimum": 5}, "b": nullable}, "additionalProperties": false},
            {"properties": {"a": {}}, "additionalProperties": false},
            {"type": ["array", "string", "number", "boolean", "null"]},
        ]})),
        Some(pair.clone()),
        Some(json!({"type": "array", "items": pair})),
        Some(json!({"type": "array", "items": [{"type": "integer"}], "$schema": "http://json-schema.org/draft-07/schema#"})),
        Some(json!({"patternProperties": {"^a": pair}, "additionalProperties": false})),
        Some(json!({"$ref": "#/$defs/tree", "$defs": {"tree": {"anyOf": [
            {"type": ["string", "number", "boolean", "null"]},
            {"type": "array", "items": {"$ref": "#/$defs/tree"}},
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/tree"}, "properties": {"a": {"$ref": "#"}}},
        ]}}})),
        Some(json!({"$id": "https://example.com/s", "$ref": "#/definitions/a%20b", "definitions": {"a b": {"type": "object"}}})),
        Some(json!({"type": "object", "properties": {"a": false, "b": {"$anchor": "n", "type": "integer"}, "c": {"$ref": "#n"}}})),
    ])
}

fn data() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-9i64..9).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..3).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

/// What programs print, and worse.
fn printed() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..64),
        "\\PC{0,64}".prop_map(String::into_bytes),
        "[a-c \t|+\n:=-]{0,80}".prop_map(String::into_bytes),
        data().prop_map(|value| value.to_string().into_bytes()),
        prop::collection::vec(data(), 0..4).prop_map(|rows| rows
            .iter()
            .map(|row| format!("{row}\n"))
            .collect::<String>()
            .into_bytes()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_output_fits_its_schema(
        (stdout, stderr) in (printed(), printed()),
        (stdout_dropped, stderr_dropped) in (prop_oneof![4 => Just(0), 1 => any::<u64>()], 0..3u64),
        exit_code in any::<i32>(),
        hinted in any::<bool>(),
        (format, schema) in (formats(), schemas()),
    ) {
        let captured = Captured { stdout: &stdout, stderr: &stderr, stdout_dropped, stderr_dropped, exit_code, hint: hinted.then(|| "do this".to_owned()) };
        let output = declared(format, schema);
        checked(&captured, Some(&output));
        checked(&captured, None);
        prop_assert!(!output_text(&captured).is_empty());
    }
}

#[test]
fn the_text_of_a_long_output_is_cut() {
    let stdout = "é".repeat(1 << 20);
    let captured = Captured {
        stdout: stdout.as_bytes(),
        ..Captured::default()
    };
    let text = output_text(&captured);
    assert!(text.len() < 300 << 10, "{}", text.len());
    assert!(text.ends_with("more bytes, in structuredContent.result.stdout]"));
    assert_eq!(output_to_json(&captured, None, None)["stdout"], stdout);
}
