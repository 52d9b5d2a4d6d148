//! `host call`: one call, for people and scripts.

mod remote;
mod words;

use std::io::{IsTerminal, Read};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use catalog::{Catalog, Item, Parameters, Payloads, plain, plain_json, plain_line, steers};
use clap::{Args, CommandFactory};
use command2json::add_argument;
use component2json::{Function, Kind, argument_from_text, check_json};
use lifecycle::{Block, CallOutcome, Caller, ExecuteError, LifecycleManager, Plan, ResourceBody, Tool};
use mcp_server::content_json;
use serde_json::{Map, Value, json};

pub(crate) use self::words::regroup;
use crate::options::{AuditOptions, ComponentName, GrantOptions, LimitOptions, LoadOptions, Running};
use crate::remote::{Named, RemoteOptions};
use crate::{Cli, output};

/// Call one tool of a component, of a program, or of any MCP server
///
/// Without a tool, lists the tools. `host call TARGET TOOL --help` shows what one takes.
#[derive(Args)]
#[command(override_usage = "host call [OPTIONS] <TARGET> [TOOL] [NAME=VALUE | --NAME VALUE]...")]
pub(crate) struct Call {
    /// A component or program (a file, or the id of one that was added), `stdio:COMMAND ARGUMENTS…` or a URL
    target: String,
    /// The tool: its name, or the name of its function or command where that is enough
    tool: Option<String>,
    /// Arguments, read by their type: text as it is, anything else as JSON
    #[arg(value_name = "NAME=VALUE")]
    arguments: Vec<String>,
    /// All arguments as a JSON object; `@FILE` reads them from a file, `-` from stdin
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    /// Print the structured result as JSON, exactly as a client gets it; of a server that gives none, the whole result
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: RemoteOptions,
    #[command(flatten)]
    load: LoadOptions,
    #[command(flatten)]
    grants: GrantOptions,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    audit: AuditOptions,
}

impl Call {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.remote.find(&self.target)? {
            Named::Component(component) => self.call_component(&component),
            Named::Server(_) if !self.grants.is_empty() || self.audit.is_set() => {
                bail!(
                    "grants and the audit are for components, and `{}` is a server, which has its own",
                    self.target
                )
            }
            Named::Server(target) => remote::run(&self, &target),
        }
    }

    fn call_component(&self, component: &ComponentName) -> anyhow::Result<ExitCode> {
        let running = Running::new(&self.grants, &self.limits, &self.audit)?;
        let manager = self.load.load(std::slice::from_ref(component), running)?;
        let Some(name) = &self.tool else {
            let catalog = described(&manager.tools());
            return print_tools(catalog.document().tools().map(|(item, _)| item));
        };
        let tool = find(&manager, name)?;
        let parameters = Parameters::of(&json!(tool.definition.input_schema), option_names());
        if parameters.asks_for_help(&self.arguments) {
            let catalog = described(std::slice::from_ref(&tool));
            for item in &catalog.document().items {
                print_help(&self.target, item, &parameters)?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        let arguments = self.arguments(tool.plan(), &parameters)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let caller = Caller::silent("host call");
        match runtime.block_on(manager.execute_component_call(&tool, &arguments, &caller)) {
            Ok(outcome) => {
                match tool.plan() {
                    _ if self.json => print_json(&outcome)?,
                    _ if outcome.blocks.is_some() => print_blocks(&outcome)?,
                    Some(Plan::Function(function)) => print_result(&outcome, function)?,
                    Some(Plan::Command(_)) => print_streams(&outcome)?,
                    None => {}
                }
                for note in &outcome.notes {
                    output::note(note);
                }
                Ok(ExitCode::from(u8::from(outcome.is_error)))
            }
            Err(error) => {
                output::error(&error.to_string());
                Ok(ExitCode::from(1))
            }
        }
    }

    /// An error about an argument, with where to read what the tool takes.
    fn with_help(&self, error: anyhow::Error) -> anyhow::Error {
        let text = error.to_string();
        if text.contains("hint:") {
            return error;
        }
        let tool = self.tool.as_deref().unwrap_or_default();
        let (target, tool) = (quoted(&self.target), quoted(tool));
        anyhow::anyhow!("{text}\nhint: `host call {target} {tool} --help` shows what it takes")
    }

    /// The arguments that were given as JSON.
    fn given_json(&self) -> anyhow::Result<Map<String, Value>> {
        match self.args.as_deref() {
            None => Ok(Map::new()),
            Some("-") => {
                let mut text = String::new();
                std::io::stdin()
                    .read_to_string(&mut text)
                    .context("stdin could not be read")?;
                object(&text)
            }
            Some(text) => match text.strip_prefix('@') {
                Some(file) => object(&std::fs::read_to_string(file).with_context(|| format!("`{file}` could not be read"))?),
                None => object(text),
            },
        }
    }

    fn arguments(&self, plan: Option<Plan<'_>>, parameters: &Parameters) -> anyhow::Result<Value> {
        let mut arguments = self.given_json()?;
        let pairs = parameters.pairs(&self.arguments);
        for (name, text) in pairs.map_err(|error| self.with_help(error.into()))? {
            match plan {
                Some(Plan::Function(function)) => {
                    let (key, value) = argument_from_text(function, &name, &text)?;
                    arguments.insert(key, value);
                }
                Some(Plan::Command(target)) => add_argument(target, &mut arguments, &name, &text)?,
                None => {}
            }
        }
        Ok(Value::Object(arguments))
    }
}

/// Tools of ours in the shape that all have.
fn described(tools: &[Arc<Tool>]) -> Catalog {
    Catalog::compose(Payloads {
        tools: tools.iter().map(|tool| json!(tool.definition)).collect(),
        ..Payloads::default()
    })
}

/// What no argument of a tool can be named as a flag.
fn option_names() -> Vec<String> {
    words::option_names(&Cli::command())
}

fn print_tools<'a>(tools: impl Iterator<Item = &'a Item>) -> anyhow::Result<ExitCode> {
    let row = |item: &Item| {
        let about = item.description.as_deref().or(item.title.as_deref());
        [
            plain_line(&item.name),
            super::catalog::first_sentence(about.unwrap_or_default()),
        ]
    };
    let rows: Vec<[String; 2]> = tools.map(row).collect();
    if rows.is_empty() {
        output::note("there are no tools");
    } else {
        output::line(&output::table(["TOOL", "WHAT IT DOES"], &rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What a tool takes, as the arguments of a command.
fn print_help(target: &str, item: &Item, parameters: &Parameters) -> anyhow::Result<ExitCode> {
    let mut help = String::new();
    if let Some(about) = item.description.as_deref().or(item.title.as_deref()) {
        help.push_str(&format!("{}\n\n", plain(about).trim()));
    }
    let target = quoted(target);
    let more = if parameters.is_empty() { "" } else { " [ARGUMENTS]" };
    help.push_str(&format!("Usage: host call {target} {}{more}\n", plain_line(&item.name)));
    if !parameters.is_empty() {
        let rows = parameters.help();
        let width = rows
            .iter()
            .map(|(written, _)| written.chars().count())
            .max()
            .unwrap_or(0)
            .min(36);
        help.push_str("\nArguments (`--name value`, or `name=value`):\n");
        for (written, about) in rows {
            help.push_str(format!("  {written:width$}  {about}").trim_end());
            help.push('\n');
        }
    }
    if let Some(error) = &item.error {
        help.push_str(&format!("\nNote: {}\n", plain_line(error)));
    }
    output::line(help.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

fn print_json(outcome: &CallOutcome) -> anyhow::Result<()> {
    match (&outcome.structured, &outcome.blocks) {
        (Some(structured), _) => output::line(&plain_json(&structured.to_string())),
        (None, Some(blocks)) => output::line(&plain_json(&content_json(blocks).to_string())),
        (None, None) => Ok(()),
    }
}

/// What a tool answers for people: texts as they are, and what the rest is.
fn print_blocks(outcome: &CallOutcome) -> anyhow::Result<()> {
    for block in outcome.blocks.iter().flatten() {
        let text = match block {
            Block::Text(block) => block.text.clone(),
            Block::Image(media) | Block::Audio(media) => {
                format!("[{}, {} bytes; `--json` shows it]", media.mime_type, decoded(&media.data))
            }
            Block::Link(link) => format!("[{}: {}]", link.name, link.uri),
            Block::Embedded(block) => match &block.resource.body {
                ResourceBody::Text(text) => text.clone(),
                ResourceBody::Blob(data) => format!("[{}, {} bytes; `--json` shows it]", block.resource.uri, decoded(data)),
            },
        };
        output::line(&for_terminal(&text))?;
    }
    Ok(())
}

/// The length of what is written in base64.
fn decoded(base64: &str) -> usize {
    BASE64_STANDARD.decode(base64).map_or(0, |bytes| bytes.len())
}

/// What a function returned; of a `result` its payload.
fn print_result(outcome: &CallOutcome, function: &Function) -> anyhow::Result<()> {
    let Some(structured) = &outcome.structured else {
        if let (true, Some(text)) = (outcome.is_error, &outcome.text) {
            output::error(&for_terminal(text));
        }
        return Ok(());
    };
    let result = structured.get("result").unwrap_or(structured);
    let returns_result = function
        .result
        .as_ref()
        .is_some_and(|ty| matches!(ty.kind, Kind::Result { .. }));
    let payload = |key| result.get(key).filter(|_| returns_result).unwrap_or(result);
    if outcome.is_error {
        output::error(&readable(payload("err"))?);
        return Ok(());
    }
    output::line(&readable(payload("ok"))?)
}

/// What a program printed, each stream where it belongs.
fn print_streams(outcome: &CallOutcome) -> anyhow::Result<()> {
    let result = outcome.structured.as_ref().and_then(|structured| structured.get("result"));
    let text = |key: &str| result.and_then(|result| result.get(key)).and_then(Value::as_str);
    let stream = |key: &str| {
        let printed = text(key).unwrap_or_default();
        match text(&format!("{key}Encoding")) {
            Some(_) => BASE64_STANDARD.decode(printed).unwrap_or_default(),
            None if std::io::stdout().is_terminal() => printed.chars().map(visible).collect::<String>().into_bytes(),
            None => printed.as_bytes().to_vec(),
        }
    };
    output::bytes(&stream("stdout"))?;
    let stderr = String::from_utf8_lossy(&stream("stderr")).into_owned();
    if !stderr.is_empty() {
        output::note(stderr.trim_end_matches('\n'));
    }
    if outcome.is_error {
        let code = result
            .and_then(|result| result.get("exitCode"))
            .and_then(Value::as_i64)
            .unwrap_or(1);
        let hint = text("hint").map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
        output::error(&format!("the program exited with code {code}{hint}"));
    }
    Ok(())
}

/// A value for a person: text as it is, but for what would steer a terminal; anything else as JSON.
fn readable(value: &Value) -> anyhow::Result<String> {
    match value {
        Value::String(text) => Ok(for_terminal(text)),
        other => Ok(serde_json::to_string_pretty(other)?),
    }
}

/// Text as it is, but for what would steer a terminal.
fn for_terminal(text: &str) -> String {
    if std::io::stdout().is_terminal() {
        text.chars().map(visible).collect()
    } else {
        text.to_owned()
    }
}

fn visible(c: char) -> char {
    if steers(c) && c != '\n' && c != '\t' { '\u{FFFD}' } else { c }
}

/// As a word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", plain_line(word).replace('\'', "'\\''"))
    }
}

fn object(text: &str) -> anyhow::Result<Map<String, Value>> {
    let value = serde_json::from_str(text).context("`--args` is not JSON")?;
    check_json(text.as_bytes()).context("`--args` cannot be used")?;
    match value {
        Value::Object(object) => Ok(object),
        _ => bail!("`--args` must be a JSON object, as in `{{\"a\": 2}}`"),
    }
}

/// The tool of that name, else the only one whose function or command has it.
fn find(manager: &LifecycleManager, name: &str) -> Result<Arc<Tool>, ExecuteError> {
    let is_named = |tool: &&Arc<Tool>| match tool.plan() {
        Some(Plan::Function(function)) => {
            let function = &function.export.function;
            function == name || component2json::snake_case(function) == name
        }
        Some(Plan::Command(target)) => match target.plans() {
            [plan] => plan.name() == name || plan.path.get(1..).is_some_and(|below| below.join(" ") == name),
            _ => false,
        },
        None => false,
    };
    manager.tool(name).or_else(|unknown| {
        let tools = manager.tools();
        let mut named = tools.iter().filter(is_named);
        match (named.next(), named.next()) {
            (Some(tool), None) => Ok(Arc::clone(tool)),
            _ => Err(unknown),
        }
    })
}
