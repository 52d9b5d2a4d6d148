//! `host call`: one call, for people and scripts.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use component2json::{Function, Kind, argument_from_text};
use lifecycle::{CallOutcome, ExecuteError, LifecycleManager, Tool};
use serde_json::{Map, Value};

use crate::options::{LimitOptions, LoadOptions};
use crate::output;

/// Call one tool of a component
#[derive(Args)]
pub(crate) struct Call {
    /// The component (`.wasm` or `.wat`)
    component: PathBuf,
    /// The tool: its name, or the name of its function where that is enough
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
    limits: LimitOptions,
}

impl Call {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let manager = self.load.load(std::slice::from_ref(&self.component), self.limits.limits())?;
        let tool = find(&manager, &self.tool)?;
        let arguments = self.arguments(tool.plan())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        match runtime.block_on(manager.execute_component_call(&tool, &arguments)) {
            Ok(outcome) => self.print(&outcome, tool.plan()),
            Err(error) => {
                output::error(&error.to_string());
                Ok(ExitCode::from(1))
            }
        }
    }

    fn arguments(&self, plan: Option<&Function>) -> anyhow::Result<Value> {
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
            if let Some(plan) = plan {
                let (key, value) = argument_from_text(plan, name, text)?;
                arguments.insert(key, value);
            }
        }
        Ok(Value::Object(arguments))
    }

    fn print(&self, outcome: &CallOutcome, plan: Option<&Function>) -> anyhow::Result<ExitCode> {
        let Some(structured) = &outcome.structured else {
            return Ok(ExitCode::SUCCESS);
        };
        let result = structured.get("result").unwrap_or(structured);
        let returns_result = plan
            .and_then(|plan| plan.result.as_ref())
            .is_some_and(|ty| matches!(ty.kind, Kind::Result { .. }));
        let payload = |key| result.get(key).filter(|_| returns_result).unwrap_or(result);
        if self.json {
            output::line(&structured.to_string())?;
        } else if outcome.is_error {
            output::error(&readable(payload("err"))?);
        } else {
            output::line(&readable(payload("ok"))?)?;
        }
        Ok(if outcome.is_error {
            ExitCode::from(1)
        } else {
            ExitCode::SUCCESS
        })
    }
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

/// The tool of that name, else the only one whose function has it.
fn find(manager: &LifecycleManager, name: &str) -> Result<Arc<Tool>, ExecuteError> {
    manager.tool(name).or_else(|unknown| {
        let tools = manager.tools();
        let mut named = tools.iter().filter(|tool| {
            tool.plan()
                .is_some_and(|plan| plan.export.function == name || component2json::snake_case(&plan.export.function) == name)
        });
        match (named.next(), named.next()) {
            (Some(tool), None) => Ok(Arc::clone(tool)),
            _ => Err(unknown),
        }
    })
}
