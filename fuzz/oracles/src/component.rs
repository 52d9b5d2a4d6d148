//! Bytes of a component → exports → tools.

use std::collections::HashSet;

use component2json::{
    DEFAULT_MAX_TOOL_NAME, Error, Exports, FileKind, Function, ToolMetadata, ToolName, component_exports_to_tools, core_exports,
    core_imports, create_placeholder_results, custom_section, file_kind, interface_names, json_to_arguments, read_exports,
    validate, with_custom_section, without_hidden,
};
use serde_json::Value;

use crate::json::check_errors;
use crate::{Broken, ensure, schema, wit};

/// All tools of a component together, as JSON. Nobody who lists tools should have to take more.
const MAX_TOOLS: usize = 64 << 20;

const MAX_TITLE: usize = 100;

/// The docs of the function and those of what it is part of, 1024 characters each, with the words between them.
const MAX_DESCRIPTION: usize = 2_400;

/// To compile a schema takes longer than all the rest, so only these many tools have theirs compiled.
const MAX_COMPILED: usize = 6;

/// A section that no component has.
const SECTION: &str = "fuzzed";

/// Bytes that start like WebAssembly are taken as they are; others stand for a WIT, and for the component made from it.
pub fn component_to_tools(bytes: &[u8]) -> Result<(), Broken> {
    if bytes.starts_with(b"\0asm") {
        return check_file(bytes);
    }
    match wit::component(bytes) {
        Some(component) => {
            let is_valid = validate(&component);
            ensure!(is_valid.is_ok(), "the generator made a component that is none: {is_valid:?}");
            check_file(&component)
        }
        None => Ok(()),
    }
}

fn check_file(bytes: &[u8]) -> Result<(), Broken> {
    core_exports(bytes);
    core_imports(bytes);
    // Either may be asked for before the file has been checked as a whole.
    let exports = exports(bytes)?;
    let names = interface_names(bytes);
    if validate(bytes).is_err() {
        return Ok(());
    }
    check_sections(bytes)?;
    if file_kind(bytes) != FileKind::Component {
        ensure!(
            exports.is_none() && names.is_err(),
            "a file that is no component exports functions"
        );
    }
    Ok(())
}

/// What a component exports, with all that can be said of it checked.
fn exports(bytes: &[u8]) -> Result<Option<Exports>, Broken> {
    let (exports, warnings) = match read_exports(bytes, None) {
        Ok(read) => read,
        Err(error) => {
            ensure!(!error.to_string().is_empty(), "an error without words");
            return Ok(None);
        }
    };
    ensure!(
        warnings.0.iter().all(|warning| !warning.is_empty()),
        "a warning without words"
    );
    let tools = component_exports_to_tools(&exports);
    check_tools(&exports, &tools)?;
    exports.functions.iter().try_for_each(check_function)?;
    for left_out in &exports.left_out {
        let (export, reason) = (left_out.export.chars().count(), left_out.reason.chars().count());
        ensure!(
            (1..=200).contains(&export) && (1..=400).contains(&reason),
            "left out without a reason, or with too long a one: {left_out:?}"
        );
    }
    check_kept(&exports, &tools)?;
    let again = read_exports(bytes, None).map(|(exports, _)| component_exports_to_tools(&exports));
    ensure!(
        again.is_ok_and(|again| again == tools),
        "the same bytes give other tools the second time"
    );
    Ok(Some(exports))
}

fn check_tools(exports: &Exports, tools: &[ToolMetadata]) -> Result<(), Broken> {
    ensure!(tools.len() == exports.functions.len(), "a function has no tool, or two");
    let mut names = HashSet::new();
    let mut size = 0;
    for (index, tool) in tools.iter().enumerate() {
        let name = tool.name.as_str();
        ensure!(ToolName::parse(name).is_some(), "`{name}` is no name for a tool");
        ensure!(name.len() <= DEFAULT_MAX_TOOL_NAME, "the name `{name}` is too long");
        ensure!(names.insert(name), "two tools are called `{name}`");
        check_text(&tool.title, MAX_TITLE)?;
        check_text(&tool.description, MAX_DESCRIPTION)?;
        for schema in [Some(&tool.input_schema), tool.output_schema.as_ref()].into_iter().flatten() {
            schema::check(schema)?;
            if index < MAX_COMPILED {
                schema::compiled(schema)?;
            }
        }
        if let Some(output) = &tool.output_schema {
            let is_wrapped = output.pointer("/properties/result").is_some() && output["required"] == Value::from(vec!["result"]);
            ensure!(is_wrapped, "an output without its envelope: {output}");
        }
        size += serde_json::to_string(tool).map_or(0, |text| text.len());
    }
    ensure!(size <= MAX_TOOLS, "the tools take {size} bytes as JSON");
    Ok(())
}

fn check_text(text: &str, max: usize) -> Result<(), Broken> {
    ensure!(!text.is_empty(), "a tool without words");
    ensure!(text.chars().count() <= max, "a text of {} characters", text.chars().count());
    ensure!(without_hidden(text) == text, "hidden characters in {text:?}");
    Ok(())
}

fn check_function(function: &Function) -> Result<(), Broken> {
    ensure!(
        create_placeholder_results(function).len() == function.result.iter().count(),
        "no room for the result of {}",
        function.signature()
    );
    let keys: HashSet<&str> = function.params.iter().map(|param| param.key.as_str()).collect();
    ensure!(
        keys.len() == function.params.len(),
        "two parameters have one key: {}",
        function.signature()
    );
    match json_to_arguments(function, &Value::Null) {
        Ok(arguments) => ensure!(arguments.len() == function.params.len(), "arguments are missing"),
        Err(errors) => check_errors(&errors)?,
    }
    Ok(())
}

/// What is kept on disk is the same when it comes back.
fn check_kept(exports: &Exports, tools: &[ToolMetadata]) -> Result<(), Broken> {
    let text = serde_json::to_string(exports).map_err(|error| Broken(format!("exports that cannot be kept: {error}")))?;
    let read: Exports =
        serde_json::from_str(&text).map_err(|error| Broken(format!("kept exports that cannot be read: {error}")))?;
    ensure!(read.functions == exports.functions, "kept functions are others: {text}");
    ensure!(
        component_exports_to_tools(&read) == tools,
        "kept exports give other tools: {text}"
    );
    Ok(())
}

/// A section that is put into a valid file is found there, and changes nothing else.
fn check_sections(bytes: &[u8]) -> Result<(), Broken> {
    if custom_section(bytes, SECTION).is_some() {
        return Ok(());
    }
    let refused = |error: Error| Broken(format!("no section can be added to a valid file: {error}"));
    let with = with_custom_section(bytes, SECTION, b"one").map_err(refused)?;
    ensure!(
        custom_section(&with, SECTION) == Some(b"one"),
        "a section that was added is not found"
    );
    let is_valid = validate(&with);
    ensure!(is_valid.is_ok(), "a section made a valid file invalid: {is_valid:?}");
    let without = with_custom_section(&with, SECTION, b"").map_err(refused)?;
    ensure!(without.starts_with(bytes), "to replace a section changed something else");
    Ok(())
}
