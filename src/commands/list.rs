//! `host list`: what was added.

use std::process::ExitCode;

use clap::Args;
use lifecycle::{ComponentReport, Selection, Status};

use crate::{options, output};

/// List what was added
#[derive(Args)]
pub(crate) struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl List {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let manager = options::store_manager()?;
        manager.serve_added(Selection::All)?;
        let list = manager.list_components();
        if self.json {
            output::line(&serde_json::to_string_pretty(&list)?)?;
            return Ok(ExitCode::SUCCESS);
        }
        if list.components.is_empty() {
            output::note("nothing was added yet\nhint: `host add SOURCE`");
            return Ok(ExitCode::SUCCESS);
        }
        let rows: Vec<[String; 5]> = list.components.iter().map(row).collect();
        output::line(&output::table(["ID", "STATUS", "TOOLS", "SIZE", "SOURCE"], &rows))?;
        for component in &list.components {
            if let Some(reason) = &component.reason {
                output::note(&format!("`{}` cannot be served: {reason}", component.id));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn row(component: &ComponentReport) -> [String; 5] {
    [
        component.id.to_string(),
        status(component.status).to_owned(),
        component.tools.len().to_string(),
        output::size(component.size),
        component.source.clone(),
    ]
}

pub(super) fn status(status: Status) -> &'static str {
    match status {
        Status::Ready => "ready",
        Status::Broken => "broken",
    }
}
