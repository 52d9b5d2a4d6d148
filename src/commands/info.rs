//! `host info`: all that is known of one component that was added.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use lifecycle::{ComponentId, ComponentReport, Entry, Selection};
use policy::Rule;
use serde::Serialize;

use crate::commands::list::status;
use crate::{options, output};

/// Show what is known of a component that was added
#[derive(Args)]
pub(crate) struct Info {
    /// Its id: `host list` shows all
    #[arg(value_parser = ComponentId::parse)]
    id: ComponentId,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What `--json` prints. Wire contract: keys are only ever added.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    #[serde(flatten)]
    component: ComponentReport,
    updated_at: Option<String>,
    /// The manifest that the registry gave.
    manifest: Option<String>,
    /// Whether its digest was given, so that it is never updated.
    pinned: bool,
    /// All that it was granted for good, and what was denied, as options.
    rules: Vec<Rule>,
}

impl Info {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let manager = options::store_manager()?;
        let entry = manager.store()?.entry(&self.id)?;
        // All of them: another component may have taken the name of one of its tools.
        manager.serve_added(Selection::All)?;
        let list = manager.list_components();
        let Some(component) = list.components.into_iter().find(|component| component.id == entry.id) else {
            anyhow::bail!("`{}` was removed meanwhile", entry.id);
        };
        let Entry {
            updated_at,
            manifest,
            pinned,
            grants,
            ..
        } = entry;
        let report = Report {
            component,
            updated_at,
            manifest: manifest.map(|digest| digest.to_string()),
            pinned,
            rules: grants.rules(),
        };
        if self.json {
            output::line(&serde_json::to_string_pretty(&report)?)?;
        } else {
            let describe = |name: &str| Some(manager.tool(name).ok()?.definition.title.clone());
            output::line(report.text(describe)?.trim_end())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Report {
    fn text(&self, title: impl Fn(&str) -> Option<String>) -> Result<String, std::fmt::Error> {
        let ComponentReport {
            id,
            status: state,
            reason,
            source,
            digest,
            size,
            tools,
            added_at,
            ..
        } = &self.component;
        let mut text = String::new();
        writeln!(text, "{id}: {}", status(*state))?;
        if let Some(reason) = reason {
            writeln!(text, "  {}", reason.replace('\n', "\n  "))?;
        }
        writeln!(text, "  source   {source}")?;
        if let Some(manifest) = &self.manifest {
            writeln!(text, "  manifest {manifest}")?;
        }
        let pinned = if self.pinned { " (pinned)" } else { "" };
        writeln!(text, "  digest   {}{pinned}", digest.as_deref().unwrap_or("unknown"))?;
        writeln!(text, "  size     {}", output::size(*size))?;
        writeln!(text, "  added    {}", added_at.as_deref().unwrap_or("unknown"))?;
        if let Some(updated) = &self.updated_at {
            writeln!(text, "  updated  {updated}")?;
        }
        match self.rules.as_slice() {
            [] => writeln!(text, "  grants   none")?,
            rules => {
                writeln!(text, "  grants")?;
                for rule in rules {
                    writeln!(text, "    {rule}")?;
                }
            }
        }
        writeln!(text, "  tools")?;
        for tool in tools {
            writeln!(text, "    {tool}  {}", title(tool).unwrap_or_default())?;
        }
        Ok(text)
    }
}
