//! `host catalog`: what a server offers.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use catalog::{Catalog, Document, Item, plain, plain_json, plain_line};
use clap::Args;
use clients::Client;
use futures_util::future::join_all;
use lifecycle::Wanted;
use policy::Timeout;
use serde_json::{Value, json};
use sources::Source;
use tempfile::TempDir;

use crate::clients::{Found, environment, servers};
use crate::options::{ComponentName, LoadOptions, Running};
use crate::output;
use crate::remote::{Named, RemoteOptions, block_on, warn_of_problems};

/// Show what a server offers: tools, resources, resource templates and prompts
#[derive(Args)]
pub(crate) struct CatalogCommand {
    /// A component (a file, the id of one that was added, `oci://…` or `https://….wasm`), `stdio:COMMAND ARGUMENTS…`, the URL of a server, or with `--from` a name
    #[arg(value_name = "TARGET", required_unless_present = "all")]
    target: Option<String>,
    /// Every server that is configured in any client, or in the one that `--from` names
    #[arg(long, conflicts_with_all = ["target", "header", "token_file", "token_env"])]
    all: bool,
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
        let (text, code) = match &self.target {
            Some(target) => {
                let catalog = read(target, &self.remote, &self.load, self.timeout.duration())?;
                warn_of_problems(None, &catalog);
                (self.format.text(&catalog)?, ExitCode::SUCCESS)
            }
            None => self.all()?,
        };
        match &self.output {
            Some(file) => lifecycle::write_atomically(file, format!("{}\n", text.trim_end()).as_bytes())
                .with_context(|| format!("`{}` could not be written", file.display()))?,
            None => output::line(text.trim_end())?,
        }
        Ok(code)
    }

    /// Every configured server. One that cannot be read does not hide the others, and ends in exit code 1.
    fn all(&self) -> anyhow::Result<(String, ExitCode)> {
        if self.format.openapi {
            bail!("an OpenAPI description is of one server\nhint: name it, as in `host catalog NAME --from CLIENT --openapi`");
        }
        let mut configured = Vec::new();
        let environment = environment()?;
        for client in Client::ALL {
            if self.remote.client().is_none_or(|only| only == client) {
                match servers(client, self.remote.scope(), &environment) {
                    Ok(servers) => configured.extend(servers.into_iter().filter(|found| found.server.enabled)),
                    Err(error) => output::note(&format!("warning: {error:#}")),
                }
            }
        }
        if configured.is_empty() {
            bail!("no client has a server configured\nhint: `host clients --json` shows where they were looked for");
        }
        let catalogs = block_on(async { Ok(self.read_all(&configured).await) })?;
        for (found, catalog) in configured.iter().zip(&catalogs) {
            if let Ok(catalog) = catalog {
                warn_of_problems(Some(&found.server.name), catalog);
            }
        }
        let failed = catalogs.iter().filter(|catalog| catalog.is_err()).count();
        let text = match () {
            () if self.format.json => {
                let servers = configured
                    .iter()
                    .zip(&catalogs)
                    .map(|(found, catalog)| found_json(found, catalog));
                plain_json(&serde_json::to_string_pretty(
                    &json!({ "servers": servers.collect::<Vec<_>>() }),
                )?)
            }
            () => {
                let parts = configured
                    .iter()
                    .zip(&catalogs)
                    .map(|(found, catalog)| self.part(found, catalog));
                parts.collect::<anyhow::Result<Vec<_>>>()?.join("\n\n")
            }
        };
        Ok((text, ExitCode::from(u8::from(failed > 0))))
    }

    /// All at the same time: each of them takes a while to start.
    async fn read_all(&self, configured: &[Found]) -> Vec<Result<Catalog, String>> {
        let read = async |found: &Found| {
            let mut connection = self.remote.connect(&found.target()?, self.timeout.duration()).await?;
            let catalog = connection.catalog().await;
            connection.close().await;
            anyhow::Ok(catalog?)
        };
        // In this task and no other: whoever drops it ends every server with it.
        let all = configured
            .iter()
            .map(async |found| read(found).await.map_err(|error| plain(&format!("{error:#}"))));
        join_all(all).await
    }

    fn part(&self, found: &Found, catalog: &Result<Catalog, String>) -> anyhow::Result<String> {
        let heading = format!("{} in {}", plain_line(&found.server.name), found.client.title());
        Ok(match catalog {
            Ok(catalog) if self.format.markdown => format!("*{heading}*\n\n{}", self.format.text(catalog)?.trim_end()),
            Ok(catalog) => format!("== {heading}\n{}", self.format.text(catalog)?.trim_end()),
            Err(error) if self.format.markdown => format!("# {heading}\n\nIt could not be read: {}", plain_line(error)),
            Err(error) => format!("== {heading}\nerror: {error}"),
        })
    }
}

fn found_json(found: &Found, catalog: &Result<Catalog, String>) -> Value {
    let named = json!({ "client": found.client.id(), "file": found.file, "name": found.server.name });
    let (key, value) = match catalog {
        Ok(catalog) => ("catalog", json!(catalog.document())),
        Err(error) => ("error", json!(error)),
    };
    match named {
        Value::Object(mut fields) => {
            fields.insert(key.to_owned(), value);
            Value::Object(fields)
        }
        other => other,
    }
}

/// The catalog of whatever a person named.
pub(crate) fn read(target: &str, remote: &RemoteOptions, load: &LoadOptions, timeout: Duration) -> anyhow::Result<Catalog> {
    match remote.find(target)? {
        Named::Component(component) => {
            let fetched = fetch(target, remote)?;
            let components = [match &fetched {
                Some(fetched) => ComponentName::from(fetched.file.clone().into_os_string()),
                None => component,
            }];
            let manager = load.load(&components, Running::default())?;
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

/// A component from the network, for as long as it is looked at.
struct Fetched {
    file: PathBuf,
    _folder: Option<TempDir>,
}

/// What is at a source on the network. It is not added, and nothing of it is run but the help of a program, in the empty sandbox.
fn fetch(target: &str, remote: &RemoteOptions) -> anyhow::Result<Option<Fetched>> {
    if !target.contains("://") {
        return Ok(None);
    }
    let source: Source = target.parse()?;
    if let Source::File(file) = source {
        return Ok(Some(Fetched { file, _folder: None }));
    }
    let manager = remote.network.manager()?;
    let candidate = block_on(async { Ok(manager.fetch(&source, Wanted::default()).await?) })?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join(format!("{}.wasm", candidate.id));
    lifecycle::write_atomically(&file, candidate.bytes())?;
    Ok(Some(Fetched {
        file,
        _folder: Some(folder),
    }))
}

impl Format {
    fn text(&self, catalog: &Catalog) -> anyhow::Result<String> {
        let document = catalog.document();
        match () {
            () if self.json => Ok(plain_json(&catalog.to_json()?)),
            () if self.markdown => Ok(catalog::markdown(document)),
            () if self.openapi => Ok(plain_json(&serde_json::to_string_pretty(&catalog::openapi(document))?)),
            () => Ok(overview(document)),
        }
    }
}

/// One line for every item.
fn overview(document: &Document) -> String {
    let server = &document.server;
    let said = |key: &str| server.info.get(key).and_then(Value::as_str).map(plain_line);
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
    let mut about = first_sentence(item.description.as_deref().or(item.title.as_deref()).unwrap_or_default());
    if let Some(error) = &item.error {
        about = format!("{about} (problem: {})", plain_line(error)).trim_start().to_owned();
    }
    [item.detail.type_name().to_owned(), plain_line(&item.name), about]
}

/// As much of a text as a line of a list has room for.
pub(crate) fn first_sentence(text: &str) -> String {
    const ROOM: usize = 90;
    let paragraph = text.trim_start().split("\n\n").next().unwrap_or_default();
    let text = plain_line(paragraph);
    let sentence = text.split_once(". ").map_or(text.as_str(), |(first, _)| first);
    match sentence.char_indices().nth(ROOM) {
        Some((end, _)) => format!("{}…", sentence.get(..end).unwrap_or(sentence).trim_end()),
        None => sentence.trim_end_matches('.').to_owned(),
    }
}
