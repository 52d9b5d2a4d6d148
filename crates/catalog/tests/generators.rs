//! `generators/NAME.json`, a catalog, beside `NAME.md` and `NAME.openapi.json`, what is made of it; `generators/diff/NAME.json`, two
//! catalogs, beside `NAME.txt`, what changed; and `generators/schemas.diff.json`, a table of pairs of schemas with the changes of each.
//! `BLESS=1` writes the second from the first.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use catalog::{Catalog, Detail, Document, Item, SCHEMA_VERSION, ServerInfo, Tool, diff, markdown, openapi};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

#[test]
fn pages_and_descriptions_are_what_the_snapshots_say() {
    let mut failures = Vec::new();
    for file in files("", ".json") {
        let catalog = Catalog::from_json(&fs::read(&file).unwrap()).unwrap();
        let page = markdown(catalog.document());
        compare(&file.with_extension("md"), &page, &mut failures);
        let api = openapi(catalog.document());
        assert_references_lead_somewhere(&api, &api);
        let api = serde_json::to_string_pretty(&api).unwrap() + "\n";
        compare(&file.with_extension("openapi.json"), &api, &mut failures);
        assert!(diff(catalog.document(), catalog.document()).changes.is_empty());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn examples_are_valid() {
    let mut count = 0;
    for file in files("", ".json") {
        let catalog = Catalog::from_json(&fs::read(&file).unwrap()).unwrap();
        let mut tool = String::new();
        let mut lines = markdown(catalog.document());
        lines.push('\n');
        let mut example: Option<String> = None;
        for line in lines.lines() {
            if let Some(heading) = line.strip_prefix("### ") {
                tool = heading.rsplit("</a>`").next().unwrap().trim_end_matches('`').to_owned();
            }
            match (&mut example, line) {
                (None, "```json") => example = Some(String::new()),
                (Some(text), "```") => {
                    // A block of a description is no example, and a name that had to be escaped is not read back.
                    if let (Ok(value), Some(_)) = (serde_json::from_str(text), catalog.tool(&tool)) {
                        catalog
                            .validate_input(&tool, &value)
                            .unwrap_or_else(|error| panic!("{tool}: {text}: {error}"));
                        count += 1;
                    }
                    example = None;
                }
                (Some(text), line) => text.push_str(line),
                (None, _) => {}
            }
        }
    }
    assert!(count > 10, "{count}");
}

#[test]
fn changes_are_what_the_snapshots_say() {
    let mut failures = Vec::new();
    for file in files("diff", ".json") {
        let pair: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let document = |key: &str| serde_json::from_value::<Document>(pair[key].clone()).unwrap();
        let (old, new) = (document("old"), document("new"));
        let back = diff(&new, &old).to_text();
        let text = format!("{}\n--- and back ---\n\n{back}", diff(&old, &new).to_text());
        compare(&file.with_extension("txt"), &text, &mut failures);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Rows are `{name, side, old, new}`; the changes are written into them as `changes`, and those of the way back as `back`.
#[test]
fn schemas_change_as_the_table_says() {
    let file = directory().join("schemas.diff.json");
    let mut rows: Vec<Value> = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let mut failures = Vec::new();
    for row in &mut rows {
        let (old, new) = (row["old"].clone(), row["new"].clone());
        let sides: &[&str] = match row["side"].as_str().unwrap() {
            "both" => &["input", "output"],
            "input" => &["input"],
            _ => &["output"],
        };
        let mut found = Map::new();
        for side in sides {
            for (way, old, new) in [("", &old, &new), (", back", &new, &old)] {
                found.insert(format!("{side}{way}"), changes(side, old, new).into());
            }
        }
        let found = Value::from(found);
        if row["changes"] != found {
            failures.push(format!("{}: {found:#}", row["name"]));
            row["changes"] = found;
        }
    }
    if std::env::var_os("BLESS").is_some() {
        // One row is one thought, so it is kept together.
        let lines: Vec<String> = rows.iter().map(|row| serde_json::to_string_pretty(row).unwrap()).collect();
        write(&file, &format!("[\n{}\n]\n", lines.join(",\n")));
    } else {
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }
}

fn changes(side: &str, old: &Value, new: &Value) -> Vec<String> {
    let document = |schema: &Value| match side {
        "input" => document(schema.clone(), None),
        _ => document(json!({}), Some(schema.clone())),
    };
    let told = diff(&document(old), &document(new)).changes.into_iter().map(|change| {
        let mark = if change.breaking { "BREAKING " } else { "" };
        format!("{mark}{}: {}", change.path, change.what)
    });
    told.collect()
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/generators")
}

/// Those whose name is one word and this ending.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory().join(folder)).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        name.strip_suffix(ending).is_some_and(|stem| !stem.contains('.'))
    });
    files.sort();
    assert!(!files.is_empty(), "the snapshots are gone");
    files
}

fn compare(snapshot: &Path, text: &str, failures: &mut Vec<String>) {
    if std::env::var_os("BLESS").is_some() {
        write(snapshot, text);
    } else if fs::read_to_string(snapshot).unwrap_or_default() != text {
        failures.push(format!(
            "{}: differs from its snapshot; look at `git diff` after BLESS=1",
            snapshot.display()
        ));
    }
}

#[expect(clippy::disallowed_methods, reason = "a snapshot that is half written is blessed again")]
fn write(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
}

fn document(input: Value, output: Option<Value>) -> Document {
    let tool = Detail::Tool(Tool {
        input,
        output,
        ui: None,
        execution: None,
    });
    Document {
        schema_version: SCHEMA_VERSION,
        server: ServerInfo::default(),
        items: vec![item(tool, "tool", None)],
        problems: Vec::new(),
    }
}

fn item(detail: Detail, name: &str, description: Option<String>) -> Item {
    Item {
        detail,
        name: name.to_owned(),
        title: None,
        description,
        meta: Default::default(),
        error: None,
    }
}

/// In the places where a reference is one; not in values, nor where `$ref` is the name of a property.
fn assert_references_lead_somewhere(api: &Value, value: &Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                let pointer = reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference} leads out"));
                let pointer = percent_encoding::percent_decode_str(pointer).decode_utf8().unwrap();
                assert!(api.pointer(&pointer).is_some(), "{reference} leads nowhere");
            }
            for (key, value) in fields {
                if !matches!(key.as_str(), "enum" | "const" | "default" | "examples" | "required") {
                    assert_references_lead_somewhere(api, value);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| assert_references_lead_somewhere(api, value)),
        _ => {}
    }
}

/// A chain of definitions, each of which needs the next one several times: small to write down, endless to write out.
fn doubling(leaf: &str) -> Value {
    let mut definitions = Map::new();
    for place in 0..60 {
        let next = json!({ "$ref": format!("#/$defs/d{}", place + 1) });
        let schema =
            json!({ "type": "object", "properties": { "a": next, "b": next }, "anyOf": [next, next], "allOf": [next, next] });
        definitions.insert(format!("d{place}"), schema);
    }
    definitions.insert("d60".to_owned(), json!({ "type": leaf }));
    json!({ "$ref": "#/$defs/d0", "$defs": definitions })
}

#[test]
fn hostile_schemas_come_to_an_end() {
    let round =
        |kind: &str| json!({ "$ref": "#/$defs/a", "$defs": { "a": { "anyOf": [{ "$ref": "#/$defs/a" }, { "type": kind }] } } });
    let own = |kind: &str| json!({ "type": "object", "properties": { "x": { "$ref": "#" }, "y": { "type": kind } } });
    let deep = |kind: &str| (0..120).fold(json!({ "type": kind }), |inner, _| json!({ "type": "array", "items": inner }));
    let wide = |kind: &str| {
        let properties: Map<String, Value> = (0..20_000).map(|n| (format!("p{n}"), json!({ "type": kind }))).collect();
        json!({ "type": "object", "properties": properties })
    };
    let make: [&dyn Fn(&str) -> Value; 5] = [&doubling, &round, &own, &deep, &wide];
    for make in make {
        let (old, new) = (
            document(make("string"), Some(make("string"))),
            document(make("integer"), Some(make("integer"))),
        );
        let changes = diff(&old, &new);
        assert!(changes.is_breaking() && changes.changes.len() < 500, "{}", changes.to_text());
        assert!(diff(&old, &old).changes.is_empty());
        assert!(markdown(&old).len() < 1 << 20);
        let api = openapi(&old);
        assert_references_lead_somewhere(&api, &api);
    }
}

#[test]
fn hostile_texts_stay_small() {
    let texts = ["> ", "- ", "1. ", "* a\n", "|", "`", "[", "![", "<", "**", "~~~\n", "> - 1. "];
    for text in texts {
        let document = Document {
            items: vec![item(
                Detail::Tool(Tool {
                    input: json!({}),
                    output: None,
                    ui: None,
                    execution: None,
                }),
                "x",
                Some(text.repeat(20_000)),
            )],
            ..document(json!({}), None)
        };
        assert!(markdown(&document).len() < 1 << 20, "{text:?}");
    }
}

/// Headings and HTML of a page are those that the generator writes.
fn assert_structure(document: &Document) {
    use pulldown_cmark::{Event, Options, Parser, Tag};
    let page = markdown(document);
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM;
    let mut headings = 0;
    for event in Parser::new_ext(&page, options) {
        match event {
            Event::Start(Tag::Heading { .. }) => headings += 1,
            Event::Start(Tag::Image { .. } | Tag::FootnoteDefinition(_)) | Event::TaskListMarker(_) => {
                panic!("{event:?} in\n{page}")
            }
            Event::Start(Tag::Link { dest_url, .. }) => {
                let is_known = ["#", "http:", "https:", "mailto:"]
                    .iter()
                    .any(|start| dest_url.to_lowercase().starts_with(start));
                assert!(is_known, "{dest_url} in\n{page}");
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                let is_ours = matches!(&*html, "<br>" | "</a>" | "<code>" | "</code>") || html.starts_with("<a id=\"");
                assert!(is_ours, "{html} in\n{page}");
            }
            _ => {}
        }
    }
    // The title, the sections, and one for each tool and prompt.
    let sections = Detail::TYPES
        .iter()
        .filter(|kind| document.items.iter().any(|item| item.detail.type_name() == **kind))
        .count();
    let items = document
        .items
        .iter()
        .filter(|item| matches!(item.detail, Detail::Tool(_) | Detail::Prompt(_)))
        .count();
    let more = usize::from(page.contains("\n## Contents\n")) + usize::from(page.contains("\n## Instructions\n"));
    assert_eq!(headings, 1 + sections + items + more, "{page}");
}

#[test]
fn texts_make_no_structure() {
    for file in files("", ".json") {
        assert_structure(Catalog::from_json(&fs::read(&file).unwrap()).unwrap().document());
    }
}

/// JSON that looks like a schema more often than not.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!(false)),
        Just(json!({})),
        Just(json!(null)),
        Just(json!(1.5)),
        Just(json!("text")),
        prop::sample::select(vec!["string", "integer", "number", "null", "object", "array", "x"])
            .prop_map(|kind| json!({ "type": kind })),
        prop::sample::select(vec![
            "#",
            "#/$defs/a",
            "#/$defs/b",
            "#/properties/a",
            "#/definitions/a",
            "#/missing",
            "#a",
            "other",
            "https://example.com/x",
            "::",
        ])
        .prop_map(|to| json!({ "$ref": to })),
        Just(json!({ "enum": ["a", 1, null] })),
        Just(json!({ "const": { "$ref": "#/x" } })),
        Just(json!({ "minimum": 1, "maxLength": 3, "pattern": "a|b", "default": "x|y", "format": "uri" })),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        let names = prop::sample::select(vec!["a", "b", "$ref", "a/b~c d", "properties", ""]);
        let named = prop::collection::vec((names, inner.clone()), 0..4).prop_map(|pairs| {
            pairs
                .into_iter()
                .map(|(name, schema)| (name.to_owned(), schema))
                .collect::<Map<_, _>>()
        });
        let keyword = prop::sample::select(vec![
            "properties",
            "$defs",
            "definitions",
            "items",
            "anyOf",
            "allOf",
            "oneOf",
            "additionalProperties",
            "not",
            "required",
            "type",
            "enum",
            "prefixItems",
            "$ref",
            "$id",
            "$anchor",
            "minimum",
            "description",
            "default",
        ]);
        let value = prop_oneof![
            inner.clone(),
            named.prop_map(Value::from),
            prop::collection::vec(inner, 0..3).prop_map(Value::from),
            Just(json!(["a", "b"])),
            Just(json!("other")),
        ];
        prop::collection::vec((keyword, value), 0..5).prop_map(|pairs| {
            pairs
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect::<Map<_, _>>()
                .into()
        })
    })
}

proptest! {
    #[test]
    fn any_schema_is_described(old in schema(), new in schema(), output in prop::option::of(schema())) {
        let (old, new) = (document(old, output.clone()), document(new, output));
        assert_structure(&old);
        let api = openapi(&old);
        // A property may be named like a keyword, and only the generator tells the two apart.
        if !serde_json::to_string(&old).unwrap().contains("\"$ref\":{") {
            assert_references_lead_somewhere(&api, &api);
        }
        prop_assert!(diff(&old, &old).changes.is_empty());
        let there = diff(&old, &new);
        prop_assert_eq!(there.changes.is_empty(), old == new);
        there.to_text();
    }

    #[test]
    fn any_text_stays_in_its_place(text in "(\\PC|[#>*_`~|<>\\[\\]()!&;:=+\\-\\\\ \t\n0-9.]|<b>|\\]\\(|```|\n\n|\n    |- |\\| - \\|){0,60}") {
        let mut document = document(json!({ "type": "object", "properties": { "a": { "description": text, "default": text, "const": text }, &text: {} } }), None);
        document.items[0].description = Some(text.clone());
        document.items[0].title = Some(text.clone());
        document.items[0].name = text.clone();
        document.server.info.insert("title".to_owned(), text.clone().into());
        document.server.instructions = Some(text);
        assert_structure(&document);
    }
}
