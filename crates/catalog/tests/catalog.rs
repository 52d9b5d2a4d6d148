//! Catalogs of recorded payloads, and the schema that all of them fit.

#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};

use catalog::{Catalog, Detail, Document, Payloads, Problem, Protocol, ServerInfo, ValidationError};
use serde_json::{Value, json};

/// `NAME.json` is what a server said, `NAME.catalog.json` what is made of it. `BLESS=1` rewrites the latter.
#[test]
fn payloads_become_the_catalogs_beside_them() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let mut seen = 0;
    let mut files: Vec<PathBuf> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|file| !file.to_string_lossy().ends_with(".catalog.json")) {
        let payloads = || payloads(&serde_json::from_slice(&fs::read(file).unwrap()).unwrap());
        let catalog = Catalog::compose(payloads());
        let json = format!("{}\n", catalog.to_json().unwrap());
        assert_eq!(
            json,
            format!("{}\n", Catalog::compose(payloads()).to_json().unwrap()),
            "{}",
            file.display()
        );

        let value: Value = serde_json::from_str(&json).unwrap();
        let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", file.display());

        let again = Catalog::from_json(json.as_bytes()).unwrap();
        assert_eq!(again.document(), catalog.document(), "{}: read again", file.display());

        compare(&file.with_extension("catalog.json"), &json);
        seen += 1;
    }
    assert!(seen >= 5, "this test looks in the wrong place");
}

#[test]
fn the_schema_is_the_one_that_is_shipped() {
    compare(&root().join("schemas/catalog.schema.json"), &format!("{:#}\n", schema()));
}

#[test]
fn a_catalog_of_another_version_is_refused() {
    let mut document = json!(Catalog::compose(Payloads::default()).document());
    document["schemaVersion"] = json!(2);
    let error = Catalog::from_json(document.to_string().as_bytes()).unwrap_err().to_string();
    assert_eq!(error, "it is a catalog of version 2; this program reads version 1");
}

fn tool(input: Value, output: Value) -> Catalog {
    Catalog::compose(Payloads {
        tools: vec![json!({ "name": "t", "inputSchema": input, "outputSchema": output })],
        ..Payloads::default()
    })
}

#[test]
fn values_are_checked_against_the_schemas_of_a_tool() {
    let object = |key: &str| json!({ "type": "object", "properties": { key: { "type": "integer" } }, "required": [key] });
    let catalog = tool(object("a"), object("b"));
    assert_eq!(catalog.validate_input("t", &json!({ "a": 1 })), Ok(()));
    assert_eq!(catalog.validate_output("t", &json!({ "b": 1 })), Ok(()));
    let invalid = catalog.validate_input("t", &json!({ "a": "x" })).unwrap_err();
    assert_eq!(invalid.to_string(), "`/a`: \"x\" is not of type \"integer\"");
    assert!(catalog.validate_output("t", &json!({})).is_err());
    let unknown = catalog.validate_input("u", &json!({}));
    assert_eq!(unknown, Err(ValidationError::UnknownTool("u".to_owned())));
}

#[test]
fn nothing_is_ever_fetched() {
    for reference in [
        "http://127.0.0.1:9/schema.json",
        "file:///etc/hostname",
        "other.json",
        "#/$defs/absent",
    ] {
        let catalog = tool(
            json!({ "type": "object", "properties": { "a": { "$ref": reference } } }),
            Value::Null,
        );
        let item = &catalog.document().items[0];
        assert!(
            item.error
                .as_ref()
                .unwrap()
                .starts_with("the input schema does not compile: "),
            "{item:?}"
        );
        let unusable = catalog.validate_input("t", &json!({}));
        assert_eq!(unusable, Err(ValidationError::Unusable("t".to_owned())));
    }
}

/// Each definition refers to the next one twice.
fn doubling(length: usize) -> Value {
    let mut definitions = serde_json::Map::new();
    for i in 0..length {
        let next = json!({ "$ref": format!("#/$defs/d{}", i + 1) });
        definitions.insert(format!("d{i}"), json!({ "allOf": [next, next] }));
    }
    definitions.insert(format!("d{length}"), json!({ "type": "object" }));
    json!({ "$defs": definitions, "$ref": "#/$defs/d0" })
}

#[test]
fn schemas_that_take_forever_are_given_up() {
    let catalog = tool(doubling(60), Value::Null);
    assert_eq!(catalog.document().items[0].error, None);
    assert_eq!(catalog.validate_input("t", &json!({})), Err(ValidationError::TooSlow));
}

#[test]
fn schemas_that_need_any_depth_of_stack_are_refused() {
    let long = doubling(5_000);
    let mut deep = json!({ "type": "object" });
    for _ in 0..200 {
        deep = json!({ "type": "object", "properties": { "a": deep } });
    }
    for schema in [long, deep] {
        let catalog = tool(schema, Value::Null);
        let error = catalog.document().items[0].error.clone().unwrap();
        assert!(error.contains("references") || error.contains("nested"), "{error}");
    }
}

#[test]
fn one_bad_schema_is_an_error_of_one_item() {
    let good = json!({ "name": "good", "inputSchema": { "type": "object" } });
    let bad = json!({ "name": "bad", "inputSchema": { "type": "nonsense" } });
    let catalog = Catalog::compose(Payloads {
        tools: vec![good, bad],
        ..Payloads::default()
    });
    let errors: Vec<_> = catalog
        .document()
        .items
        .iter()
        .map(|item| (item.name.as_str(), item.error.is_some()))
        .collect();
    assert_eq!(errors, [("bad", true), ("good", false)]);
    assert_eq!(catalog.validate_input("good", &json!({})), Ok(()));
}

#[test]
fn items_stand_by_type_then_name() {
    let named = |name: &str| json!({ "name": name, "uri": format!("x:{name}"), "uriTemplate": "x:{a}", "inputSchema": {} });
    let list = || ["b", "a", "C"].map(named).to_vec();
    let catalog = Catalog::compose(Payloads {
        tools: list(),
        resources: list(),
        resource_templates: list(),
        prompts: list(),
        ..Payloads::default()
    });
    let order: Vec<(&str, &str)> = items(catalog.document()).collect();
    let names = ["C", "a", "b"];
    let expected: Vec<(&str, &str)> = Detail::TYPES.iter().flat_map(|ty| names.map(|name| (*ty, name))).collect();
    assert_eq!(order, expected);
}

fn items(document: &Document) -> impl Iterator<Item = (&str, &str)> {
    document
        .items
        .iter()
        .map(|item| (item.detail.type_name(), item.name.as_str()))
}

/// A recorded conversation: the result of the handshake, and the entries of each list.
fn payloads(recorded: &Value) -> Payloads {
    let list = |key: &str| recorded[key].as_array().cloned().unwrap_or_default();
    let server = &recorded["server"];
    let object = |key: &str| server[key].as_object().cloned().unwrap_or_default();
    let text = |key: &str| server[key].as_str().map(str::to_owned);
    Payloads {
        server: ServerInfo {
            info: object("serverInfo"),
            capabilities: object("capabilities"),
            instructions: text("instructions"),
            protocol: Protocol {
                version: text("protocolVersion"),
                supported: Vec::new(),
            },
        },
        tools: list("tools"),
        resources: list("resources"),
        resource_templates: list("resourceTemplates"),
        prompts: list("prompts"),
        problems: list("problems")
            .iter()
            .map(|problem| Problem {
                list: problem["list"].as_str().unwrap().to_owned(),
                message: problem["message"].as_str().unwrap().to_owned(),
            })
            .collect(),
    }
}

fn schema() -> Value {
    json!(schemars::schema_for!(Document))
}

#[allow(clippy::disallowed_methods, reason = "a snapshot is a test's own file")]
fn compare(file: &Path, text: &str) {
    if std::env::var_os("BLESS").is_some() {
        fs::write(file, text).unwrap();
    }
    let expected = fs::read_to_string(file).unwrap_or_default();
    assert!(
        expected == text,
        "{} is not up to date; `BLESS=1 cargo test -p catalog` rewrites it\n{}",
        file.display(),
        similar::TextDiff::from_lines(&expected, text).unified_diff()
    );
}

fn folder() -> PathBuf {
    Path::new("tests/payloads").to_owned()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
