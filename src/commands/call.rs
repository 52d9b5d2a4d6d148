//! `host call`: one call, for people and scripts.

use std::io::{IsTerminal, Read};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clap::Args;
use command2json::add_argument;
use component2json::{Function, Kind, argument_from_text};
use lifecycle::{CallOutcome, ExecuteError, LifecycleManager, Plan, Tool};
use serde_json::{Map, Value};

use crate::options::{ComponentName, GrantOptions, LimitOptions, LoadOptions};
use crate::output;

/// Call one tool of a component or program
#[derive(Args)]
pub(crate) struct Call {
    /// The component or program: a file (`.wasm` or `.wat`), or the id of one that was added
    component: ComponentName,
    /// The tool: its name, or the name of its function or command where that is enough
    tool: String,
    /// Arguments, read by their type: text as it is, anything else as JSON
    #[arg(value_name = "NAME=VALUE")]
    arguments: Vec<String>,
    /// All arguments as a JSON object; `@FILE` reads them from a file, `-` from stdin
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    /// Print the structured result as JSON, exactly as a client gets it
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    load: LoadOptions,
    #[command(flatten)]
    grants: GrantOptions,
    #[command(flatten)]
    limits: LimitOptions,
}

impl Call {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let manager = self.load.load(
            std::slice::from_ref(&self.component),
            self.limits.limits(),
            self.grants.grants()?,
        )?;
        let tool = find(&manager, &self.tool)?;
        let arguments = self.arguments(tool.plan())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        match runtime.block_on(manager.execute_component_call(&tool, &arguments)) {
            Ok(outcome) => {
                match tool.plan() {
                    _ if self.json => print_json(&outcome)?,
                    Some(Plan::Function(function)) => print_result(&outcome, function)?,
                    Some(Plan::Command(_)) => print_streams(&outcome)?,
                    None => {}
                }
                Ok(ExitCode::from(u8::from(outcome.is_error)))
            }
            Err(error) => {
                output::error(&error.to_string());
                Ok(ExitCode::from(1))
            }
        }
    }

    fn arguments(&self, plan: Option<Plan<'_>>) -> anyhow::Result<Value> {
        let mut arguments = match self.args.as_deref() {
            None => Map::new(),
            Some("-") => {
                let mut text = String::new();
                std::io::stdin()
                    .read_to_string(&mut text)
                    .context("stdin could not be read")?;
                object(&text)?
            }
            Some(text) => match text.strip_prefix('@') {
                Some(file) => object(&std::fs::read_to_string(file).with_context(|| format!("`{file}` could not be read"))?)?,
                None => object(text)?,
            },
        };
        for argument in &self.arguments {
            let Some((name, text)) = argument.split_once('=') else {
                bail!("`{argument}` is no argument\nhint: write it as `name=value`, or give all of them with `--args`");
            };
            match plan {
                Some(Plan::Function(function)) => {
                    let (key, value) = argument_from_text(function, name, text)?;
                    arguments.insert(key, value);
                }
                Some(Plan::Command(target)) => add_argument(target, &mut arguments, name, text)?,
                None => {}
            }
        }
        Ok(Value::Object(arguments))
    }
}

fn print_json(outcome: &CallOutcome) -> anyhow::Result<()> {
    match &outcome.structured {
        Some(structured) => output::line(&structured.to_string()),
        None => Ok(()),
    }
}

/// What a function returned; of a `result` its payload.
fn print_result(outcome: &CallOutcome, function: &Function) -> anyhow::Result<()> {
    let Some(structured) = &outcome.structured else {
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
        Value::String(text) if std::io::stdout().is_terminal() => Ok(text.chars().map(visible).collect()),
        Value::String(text) => Ok(text.clone()),
        other => Ok(serde_json::to_string_pretty(other)?),
    }
}

fn visible(c: char) -> char {
    if c.is_control() && c != '\n' && c != '\t' {
        '\u{FFFD}'
    } else {
        c
    }
}

fn object(text: &str) -> anyhow::Result<Map<String, Value>> {
    match serde_json::from_str(text).context("the arguments are not JSON")? {
        Value::Object(object) => Ok(object),
        _ => bail!("the arguments must be a JSON object, as in `{{\"a\": 2}}`"),
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
