//! `schema/NAME.wit` beside `schema/NAME.schema.json`: the tools that clients see of a component with that WIT, and what is left
//! out of it. `BLESS=1` writes the second from the first.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use component2json::{component_exports_to_tools, read_exports};
use serde_json::{Value, json};

#[test]
fn tools_are_what_the_snapshots_say() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut failures = Vec::new();
    let files = files_of("schema", "wit");
    assert!(files.len() >= 15, "the snapshots are gone");
    for wit in files {
        let name = wit.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let snapshot = wit.with_extension("schema.json");
        let tools = match tools_of(&fs::read_to_string(&wit).unwrap()) {
            Ok(tools) => tools,
            Err(error) => {
                failures.push(format!("{name}: {error}"));
                continue;
            }
        };
        for tool in tools["tools"].as_array().unwrap() {
            failures.extend(
                faults(tool)
                    .into_iter()
                    .map(|fault| format!("{name}: {}: {fault}", tool["name"])),
            );
        }
        let text = serde_json::to_string_pretty(&tools).unwrap() + "\n";
        if bless {
            #[expect(clippy::disallowed_methods, reason = "a snapshot that is half written is blessed again")]
            fs::write(&snapshot, text).unwrap();
        } else if fs::read_to_string(&snapshot).unwrap_or_default() != text {
            failures.push(format!("{name}: differs from its snapshot; look at `git diff` after BLESS=1"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn tools_of(wit: &str) -> Result<Value, String> {
    let (component, docs) = support::component_of(wit)?;
    let (exports, warnings) = read_exports(&component, Some(&docs)).map_err(|error| error.to_string())?;
    match warnings.0.as_slice() {
        [] => Ok(json!({"tools": component_exports_to_tools(&exports), "leftOut": exports.left_out})),
        warnings => Err(warnings.join("\n")),
    }
}

/// What is wrong with a tool that no client would take.
fn faults(tool: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    if tool["description"].as_str().is_none_or(str::is_empty) {
        faults.push("it has no description".to_owned());
    }
    for key in ["inputSchema", "outputSchema"] {
        let Some(schema) = tool.get(key) else { continue };
        if schema["type"] != "object" {
            faults.push(format!("the root of {key} is no object"));
        }
        if let Err(error) = jsonschema::meta::validate(schema) {
            faults.push(format!("{key} is no schema: {error}"));
        }
        schema_faults(key, schema, &mut faults);
    }
    faults
}

/// Walks the places where a schema stands, and only those: a property may well be called `format`.
fn schema_faults(at: &str, schema: &Value, faults: &mut Vec<String>) {
    let Value::Object(object) = schema else {
        faults.push(format!("{at} is {schema}"));
        return;
    };
    for (keyword, value) in object {
        let at = format!("{at}/{keyword}");
        match (keyword.as_str(), value) {
            ("$id" | "format", _) => faults.push(format!("{at} is used")),
            ("type", Value::Array(_)) => faults.push(format!("{at} is an array")),
            ("additionalProperties", Value::Bool(false)) => {}
            ("additionalProperties" | "items", schema) => schema_faults(&at, schema, faults),
            ("properties" | "$defs", Value::Object(schemas)) => {
                for (name, schema) in schemas {
                    if name.len() > 64 || !name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') {
                        faults.push(format!("{at}/{name} is no name that all clients take"));
                    }
                    schema_faults(&format!("{at}/{name}"), schema, faults);
                }
            }
            ("oneOf" | "anyOf", Value::Array(schemas)) => schemas.iter().for_each(|schema| schema_faults(&at, schema, faults)),
            _ => {}
        }
    }
}

fn files_of(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = Path::new("tests").join(folder);
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}
