//! A call of a server that is not ours, with a command line made of the tool's schema.

use std::process::ExitCode;

use anyhow::bail;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use catalog::{CallError, Catalog, Connection, Item, Parameters, Target, Tool, ValidationError, plain, plain_line};
use serde_json::{Map, Value};

use super::Call;
use crate::output;
use crate::remote::{block_on, warn_of_problems};

pub(super) fn run(call: &Call, target: &Target) -> anyhow::Result<ExitCode> {
    // Before anything is started: stdin may take its time, and what is wrong is wrong without a server, too.
    let given = call.given_json()?;
    block_on(async {
        let mut connection = call.remote.connect(target, call.limits.timeout().duration()).await?;
        let result = with(call, given, &mut connection).await;
        connection.close().await;
        result
    })
}

async fn with(call: &Call, given: Map<String, Value>, connection: &mut Connection) -> anyhow::Result<ExitCode> {
    let catalog = connection.tools().await?;
    warn_of_problems(None, &catalog);
    let Some(name) = &call.tool else {
        return super::print_tools(catalog.document().tools().map(|(item, _)| item));
    };
    let (item, tool) = find(&catalog, name)?;
    let parameters = Parameters::of(&tool.input, super::option_names());
    if parameters.asks_for_help(&call.arguments) {
        return super::print_help(&call.target, item, &parameters);
    }
    let arguments = arguments(call, given, &catalog, item, &parameters)?;
    let result = match connection.call(&item.name, arguments).await {
        Ok(result) => result.0,
        Err(CallError::Connection(error)) => return Err(error.into()),
        Err(error) => {
            output::error(&error.to_string());
            return Ok(ExitCode::from(1));
        }
    };
    print(call, &catalog, item, tool, &result)
}

/// What was typed, and checked before anybody is asked.
fn arguments(
    call: &Call,
    mut arguments: Map<String, Value>,
    catalog: &Catalog,
    item: &Item,
    parameters: &Parameters,
) -> anyhow::Result<Map<String, Value>> {
    let added = parameters.add(&mut arguments, &call.arguments);
    added.map_err(|error| call.with_help(error.into()))?;
    match catalog.validate_input(&item.name, &Value::Object(arguments.clone())) {
        Err(error @ (ValidationError::Invalid(_) | ValidationError::UnknownTool(_))) => {
            let name = plain_line(&item.name);
            let problem = plain(&error.to_string());
            Err(call.with_help(anyhow::anyhow!("these are no arguments for `{name}`: {problem}")))
        }
        // What the schema cannot say, the server will.
        Ok(()) | Err(ValidationError::Unusable(_) | ValidationError::TooSlow) => Ok(arguments),
    }
}

fn print(call: &Call, catalog: &Catalog, item: &Item, tool: &Tool, result: &Value) -> anyhow::Result<ExitCode> {
    let is_error = result.get("isError").and_then(Value::as_bool).unwrap_or(false);
    let structured = result.get("structuredContent").filter(|structured| !structured.is_null());
    if let (Some(structured), Some(_), false) = (structured, &tool.output, is_error)
        && let Err(error @ ValidationError::Invalid(_)) = catalog.validate_output(&item.name, structured)
    {
        output::note(&format!(
            "warning: the result is not what the tool's own schema says: {}",
            plain_line(&error.to_string())
        ));
    }
    let code = ExitCode::from(u8::from(is_error));
    if call.json {
        output::line(&catalog::plain_json(&structured.unwrap_or(result).to_string()))?;
        return Ok(code);
    }
    let blocks = result.get("content").and_then(Value::as_array);
    let mut lines: Vec<String> = blocks.into_iter().flatten().map(block).collect();
    if lines.is_empty()
        && let Some(structured) = structured
    {
        lines.push(super::readable(structured)?);
    }
    let text = lines.join("\n");
    if is_error {
        output::error(&plain(&text));
    } else if !text.is_empty() {
        output::line(&super::for_terminal(&text))?;
    }
    Ok(code)
}

/// A part of a result: text as it is, anything else in a few words.
fn block(block: &Value) -> String {
    let text = |key: &str| block.get(key).and_then(Value::as_str);
    let kind = text("type").unwrap_or("content without a type");
    let media = text("mimeType").map(|mime| format!(" {mime}")).unwrap_or_default();
    let bytes = |data: &str| {
        let size = BASE64_STANDARD.decode(data).map_or(data.len(), |bytes| bytes.len());
        output::size(u64::try_from(size).unwrap_or(u64::MAX))
    };
    match kind {
        "text" => text("text").unwrap_or_default().to_owned(),
        "image" | "audio" => plain_line(&format!("[{kind}{media}, {}]", bytes(text("data").unwrap_or_default()))),
        "resource_link" => plain_line(&format!("[resource {}{media}]", text("uri").unwrap_or_default())),
        "resource" => {
            let resource = block.get("resource").unwrap_or(block);
            let field = |key: &str| resource.get(key).and_then(Value::as_str);
            let uri = field("uri").unwrap_or_default();
            match (field("text"), field("blob")) {
                (Some(text), _) => text.to_owned(),
                (None, blob) => plain_line(&format!("[resource {uri}, {}]", bytes(blob.unwrap_or_default()))),
            }
        }
        other => plain_line(&format!("[{other}]")),
    }
}

/// The tool of that name, else the only one that is spelled almost so.
fn find<'a>(catalog: &'a Catalog, name: &str) -> anyhow::Result<(&'a Item, &'a Tool)> {
    if let Some(found) = catalog.tool(name) {
        return Ok(found);
    }
    let letters = |name: &str| name.to_lowercase().replace(['-', '.'], "_");
    let mut alike = catalog
        .document()
        .tools()
        .filter(|(item, _)| letters(&item.name) == letters(name));
    if let (Some(found), None) = (alike.next(), alike.next()) {
        return Ok(found);
    }
    let names = catalog.document().tools().map(|(item, _)| item.name.as_str());
    let nearest: Vec<String> = component2json::nearest_first(name, names)
        .into_iter()
        .take(8)
        .map(plain_line)
        .collect();
    let hint = match nearest.is_empty() {
        true => "the server has no tools".to_owned(),
        false => format!("it has {}", nearest.join(", ")),
    };
    bail!("the server has no tool `{name}`\nhint: {hint}")
}
