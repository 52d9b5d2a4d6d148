//! Options that several commands share.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use component2json::{DEFAULT_MAX_TOOL_NAME, MIN_MAX_TOOL_NAME};
use lifecycle::{Config, LifecycleManager, expand};
use policy::{ByteSize, Limits, Timeout};

/// How components are found and described.
#[derive(Args)]
pub(crate) struct LoadOptions {
    /// A WIT file or folder with docs for the component, instead of the one beside it
    #[arg(long, value_name = "PATH")]
    wit: Option<PathBuf>,
    /// The longest tool name; longer ones are shortened
    #[arg(long, value_name = "CHARS", default_value_t = DEFAULT_MAX_TOOL_NAME, value_parser = max_name)]
    max_name: usize,
}

/// What a call may use up.
#[derive(Args)]
pub(crate) struct LimitOptions {
    /// Time for one call, as in `500ms`, `30s`, `2m`
    #[arg(long, value_name = "TIME", default_value_t = Limits::default().timeout)]
    timeout: Timeout,
    /// Memory for one call, as in `64MiB`
    #[arg(long, value_name = "SIZE", default_value_t = Limits::default().max_memory)]
    max_memory: ByteSize,
    /// Size of one result, as in `8MiB`
    #[arg(long, value_name = "SIZE", default_value_t = Limits::default().max_output)]
    max_output: ByteSize,
}

fn max_name(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(max) if (MIN_MAX_TOOL_NAME..=128).contains(&max) => Ok(max),
        _ => Err(format!("expected a number from {MIN_MAX_TOOL_NAME} to 128")),
    }
}

impl LimitOptions {
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            timeout: self.timeout,
            max_memory: self.max_memory,
            max_output: self.max_output,
            ..Limits::default()
        }
    }
}

impl LoadOptions {
    /// A manager with these files loaded. A file that was named must load; one that merely lies in a directory may not.
    pub(crate) fn load(&self, files: &[PathBuf], limits: Limits) -> anyhow::Result<LifecycleManager> {
        let config = Config {
            limits,
            max_name: self.max_name,
            wit: self.wit.clone(),
            ..Config::default()
        };
        let manager = LifecycleManager::new(config).context("the host could not start")?;
        for path in files {
            let found = expand(path)?;
            let mut problems = Vec::new();
            for file in &found {
                match manager.ensure_component_loaded(file) {
                    Ok(_) => {}
                    Err(error) if file == path => return Err(error.into()),
                    Err(error) => problems.push(error.to_string()),
                }
            }
            for problem in &problems {
                crate::output::note(&format!("warning: left out: {problem}"));
            }
            if problems.len() == found.len() {
                anyhow::bail!("no component in `{}` can be served", path.display());
            }
        }
        Ok(manager)
    }
}
