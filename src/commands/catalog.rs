//! `host catalog`: what a server offers.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use catalog::{Catalog, Document, Item, plain_json, plain_line};
use clap::Args;
use policy::{Grants, Limits, Timeout};

use crate::options::LoadOptions;
use crate::output;
use crate::remote::{Named, RemoteOptions, block_on, warn_of_problems};

/// Show what a server offers: tools, resources, resource templates and prompts
#[derive(Args)]
pub(crate) struct CatalogCommand {
    /// A component (a file, or the id of one that was added), `stdio:COMMAND ARGUMENTS…` or a URL
    #[arg(value_name = "TARGET")]
    target: String,
    #[command(flatten)]
    format: Format,
    /// Write to a file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Time for each of connecting and listing, as in `500ms`, `30s`, `2m`
    #[arg(long, value_name = "TIME", default_value = "60s")]
    timeout: Timeout,
    #[command(flatten)]
    remote: RemoteOptions,
    #[command(flatten)]
    load: LoadOptions,
}

#[derive(Args)]
#[group(multiple = false)]
struct Format {
    /// The whole catalog as JSON; `schemas/catalog.schema.json` describes it
    #[arg(long)]
    json: bool,
    /// A page that a person reads
    #[arg(long)]
    markdown: bool,
    /// An OpenAPI 3.1 description of the tools
    #[arg(long)]
    openapi: bool,
}

impl CatalogCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let catalog = read(&self.target, &self.remote, &self.load, self.timeout.duration())?;
        warn_of_problems(&catalog);
        let text = self.format.text(&catalog)?;
        match &self.output {
            Some(file) => lifecycle::write_atomically(file, format!("{}\n", text.trim_end()).as_bytes())
                .with_context(|| format!("`{}` could not be written", file.display()))?,
            None => output::line(text.trim_end())?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The catalog of whatever a person named.
pub(crate) fn read(target: &str, remote: &RemoteOptions, load: &LoadOptions, timeout: Duration) -> anyhow::Result<Catalog> {
    match remote.find(target)? {
        Named::Component(component) => {
            let components = [component];
            let manager = Arc::new(load.load(&components, Limits::default(), Grants::default())?);
            block_on(async {
                let mut connection = remote.connect_within(manager, timeout).await?;
                Ok(connection.catalog().await?)
            })
        }
        Named::Server(target) => block_on(async {
            let mut connection = remote.connect(&target, timeout).await?;
            let catalog = connection.catalog().await;
            connection.close().await;
            Ok(catalog?)
        }),
    }
}

impl Format {
    fn text(&self, catalog: &Catalog) -> anyhow::Result<String> {
        match () {
            () if self.json => Ok(plain_json(&catalog.to_json()?)),
            () if self.markdown => Ok(catalog::markdown(catalog.document())),
            () if self.openapi => Ok(plain_json(&serde_json::to_string_pretty(&catalog::openapi(
                catalog.document(),
            ))?)),
            () => Ok(overview(catalog.document())),
        }
    }
}

/// One line for every item.
fn overview(document: &Document) -> String {
    let server = &document.server;
    let said = |key: &str| server.info.get(key).and_then(|value| value.as_str()).map(plain_line);
    let name = said("name").unwrap_or_else(|| "a server without a name".to_owned());
    let version = said("version").map(|version| format!(" {version}")).unwrap_or_default();
    let protocol = server.protocol.version.as_deref().map(plain_line).unwrap_or_default();
    let heading = format!("{name}{version}, MCP {protocol}");
    if document.items.is_empty() {
        return format!("{heading}\nIt offers nothing.");
    }
    let rows: Vec<[String; 3]> = document.items.iter().map(row).collect();
    format!("{heading}\n\n{}", output::table(["TYPE", "NAME", "WHAT IT IS"], &rows))
}

fn row(item: &Item) -> [String; 3] {
    let about = match &item.error {
        Some(error) => format!("(cannot be used: {})", plain_line(error)),
        None => first_sentence(item.description.as_deref().or(item.title.as_deref()).unwrap_or_default()),
    };
    [item.detail.type_name().to_owned(), plain_line(&item.name), about]
}

/// As much of a text as a line of a list has room for.
pub(crate) fn first_sentence(text: &str) -> String {
    const ROOM: usize = 90;
    let text = plain_line(text);
    let sentence = text.split_once(". ").map_or(text.as_str(), |(first, _)| first);
    match sentence.char_indices().nth(ROOM) {
        Some((end, _)) => format!("{}…", sentence.get(..end).unwrap_or(sentence).trim_end()),
        None => sentence.trim_end_matches('.').to_owned(),
    }
}
