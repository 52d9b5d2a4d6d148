//! `host install` and `host uninstall`: a place in the clients that people use.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, CommandFactory, ValueEnum};
use clients::{Change, Client, Edit, EditError, Entry, Environment, Scope, ServerName, SnippetFormat, Transport};
use lifecycle::Place;
use similar::TextDiff;

use crate::clients::{environment, read};
use crate::options::{ComponentName, GrantOptions, store_manager};
use crate::{Cli, output};

/// How often a file is edited anew because its client has written to it meanwhile.
const ATTEMPTS: usize = 5;

/// Put components into the list of servers of an MCP client
///
/// Clients: claude-code, claude-desktop, vscode, cursor, windsurf, zed, gemini-cli, codex, goose; for any other, `--print` shows what to paste.
#[derive(Args)]
#[command(
    override_usage = "host install [OPTIONS] <CLIENT> [SOURCE]... [-- SERVE OPTIONS]\n       host install [OPTIONS] --print <FORMAT> [SOURCE]... [-- SERVE OPTIONS]"
)]
pub(crate) struct Install {
    /// The client, and then the components to serve: ids of what was added, files, or directories; all that was added, if none is named
    #[arg(value_name = "CLIENT [SOURCE]...")]
    words: Vec<String>,
    /// The name of the server in the client, instead of that of its only component or `host`
    #[arg(long)]
    name: Option<ServerName>,
    /// A server that runs already, at this address, instead of one that the client starts
    #[arg(long, value_name = "URL", conflicts_with_all = ["serve_options", "allow-read", "allow-write"])]
    http: Option<String>,
    /// A header that the client sends to the address, as in `X-Team: blue`; can be repeated
    #[arg(long, value_name = "NAME: VALUE", requires = "http")]
    header: Vec<String>,
    /// Take the name even if the client has a server of another program under it
    #[arg(long)]
    replace: bool,
    /// Show what to paste into the file of any other client, and change nothing
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["user", "project", "dry_run", "replace"])]
    print: Option<PrintFormat>,
    #[command(flatten)]
    place: ScopeOptions,
    #[command(flatten)]
    grants: GrantOptions,
    /// Options for `host serve`, as in `-- --watch --timeout 5s`
    #[arg(last = true, value_name = "SERVE OPTIONS")]
    serve_options: Vec<String>,
}

#[derive(Args)]
struct ScopeOptions {
    /// In the settings of this user (the default)
    #[arg(long, conflicts_with = "project")]
    user: bool,
    /// In the settings of this project: the current directory
    #[arg(long)]
    project: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum PrintFormat {
    Json,
    Toml,
}

/// Take components out of the list of servers of an MCP client
#[derive(Args)]
pub(crate) struct Uninstall {
    client: Client,
    /// The server to take out; without it, all that start `host`
    #[arg(long)]
    name: Option<ServerName>,
    #[command(flatten)]
    place: ScopeOptions,
}

impl Install {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if let Some(format) = self.print {
            let entry = self.entry(&self.words)?;
            let format = match format {
                PrintFormat::Json => SnippetFormat::Json,
                PrintFormat::Toml => SnippetFormat::Toml,
            };
            output::line(format.snippet(&entry).trim_end())?;
            return Ok(ExitCode::SUCCESS);
        }
        let Some((client, sources)) = self.words.split_first() else {
            bail!("which client?\nhint: `host clients` lists those that are known; `--print json` is for any other");
        };
        let client: Client = client.parse()?;
        let entry = self.entry(sources)?;
        let environment = environment()?;
        let file = self.place.file(client, &environment)?;
        let is_here = client.traces(&environment).iter().any(|trace| trace.exists());
        let edit = |text: Option<&str>| client.install(text, &entry, self.replace);
        let written = self.place.edit(&file, edit).map_err(|error| match error.downcast_ref() {
            Some(EditError::Broken { .. } | EditError::Style { .. } | EditError::Root { .. } | EditError::Container { .. }) => {
                match client.snippet(&entry) {
                    Ok(snippet) => error.context(format!("this would be the entry:\n{}", snippet.trim_end())),
                    Err(_) => error,
                }
            }
            Some(EditError::Taken { .. }) => error.context("hint: `--replace` takes the name"),
            _ => error,
        })?;
        let what = format!("`{}` in {}, {}", entry.name, client.title(), file.display());
        match written.change {
            Change::None => output::line(&format!("nothing to do: {what} is up to date"))?,
            _ if self.place.dry_run => {}
            Change::Replaced => output::line(&format!("updated {what}"))?,
            _ => output::line(&format!("installed {what}"))?,
        }
        written.tell_of_backup();
        if !self.place.project && !is_here {
            output::note(&format!("note: {} does not seem to be installed here", client.title()));
        }
        if matches!(written.change, Change::Added | Change::Replaced) && !self.place.dry_run {
            output::note(&format!("{} reads it when it starts the next time", client.title()));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn entry(&self, sources: &[String]) -> anyhow::Result<Entry> {
        if let Some(url) = &self.http {
            if !sources.is_empty() {
                bail!("the server at `{url}` has components of its own\nhint: leave the sources out, or `--http`");
            }
            // Checked now, not when the client connects.
            let mut endpoint = catalog::Endpoint::parse(url)?;
            let mut headers = Vec::new();
            for line in &self.header {
                endpoint.add_header(line)?;
                headers.extend(
                    line.split_once(':')
                        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())),
                );
            }
            return Ok(Entry {
                name: self.name.clone().map_or_else(|| "host".parse(), Ok)?,
                transport: Transport::Http {
                    url: url.clone(),
                    headers,
                },
            });
        }
        let manager = store_manager()?;
        let mut served = Vec::new();
        let mut names = Vec::new();
        for source in sources {
            match ComponentName::from(OsString::from(source)).find(&manager)? {
                Place::Added(id) => {
                    names.push(id.to_string());
                    served.push(id.to_string());
                }
                Place::File(path) => {
                    // The client starts it in a directory of its own choice.
                    let path = path
                        .canonicalize()
                        .with_context(|| format!("`{source}` cannot be installed"))?;
                    names.push(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
                    served.push(text(&path)?);
                }
            }
        }
        let name = match (&self.name, names.as_slice()) {
            (Some(name), _) => name.clone(),
            (None, [only]) => only
                .replace(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'), "-")
                .parse()?,
            (None, _) => "host".parse()?,
        };
        let mut args = vec!["serve".to_owned()];
        args.extend(served);
        args.extend(self.grants.grants()?.directories.iter().map(ToString::to_string));
        args.extend(self.serve_options.iter().cloned());
        check(&args)?;
        // A client hands on little of its environment, and this decides what is served.
        let home = std::env::var_os("HOST_HOME").filter(|home| !home.is_empty());
        let home = home.map(std::path::absolute).transpose()?;
        let env = home
            .map(|home| Ok::<_, anyhow::Error>(("HOST_HOME".to_owned(), text(&home)?)))
            .transpose()?;
        let program = std::env::current_exe().context("the path of this program is not known")?;
        Ok(Entry {
            name,
            transport: Transport::Stdio {
                command: text(&program)?,
                args,
                env: env.into_iter().collect(),
            },
        })
    }
}

/// A command line that does not parse would fail where nobody sees it: in the log of the client.
fn check(args: &[String]) -> anyhow::Result<()> {
    let words = std::iter::once("host".to_owned()).chain(args.iter().cloned());
    Cli::command().try_get_matches_from(words).map(drop).map_err(|error| {
        let text = error.to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text).to_owned();
        anyhow::anyhow!("these are no options of `host serve`: {}", text.trim_end())
    })
}

fn text(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str();
    Ok(text
        .with_context(|| format!("`{}` is no text, and the files of clients are", path.display()))?
        .to_owned())
}

impl Uninstall {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.client;
        let file = self.place.file(client, &environment()?)?;
        let Some(text) = read(&file)? else {
            output::line(&format!("nothing to do: there is no {}", file.display()))?;
            return Ok(ExitCode::SUCCESS);
        };
        let within = || format!("`{}`", file.display());
        let names: Vec<ServerName> = match &self.name {
            Some(name) => vec![name.clone()],
            None => {
                let servers = client.servers(&text).with_context(within)?;
                let ours = servers.iter().filter(|server| server.runs_host());
                ours.filter_map(|server| server.name.parse().ok()).collect()
            }
        };
        let mut removed = 0;
        let mut backup = None;
        for name in &names {
            let edit = |text: Option<&str>| match text {
                Some(text) => client.uninstall(text, name),
                None => Ok(Edit {
                    text: String::new(),
                    change: Change::None,
                }),
            };
            let written = self.place.edit(&file, edit)?;
            if written.change == Change::Removed {
                removed += 1;
                // The first one is what was there before.
                backup = backup.or(Some(written));
                if !self.place.dry_run {
                    output::line(&format!("removed `{name}` from {}, {}", client.title(), file.display()))?;
                }
            }
        }
        if removed == 0 {
            output::line(&format!(
                "nothing to do: {} has no such server in {}",
                client.title(),
                file.display()
            ))?;
        }
        if let Some(written) = backup {
            written.tell_of_backup();
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What became of a file.
struct Written {
    change: Change,
    backup: Option<PathBuf>,
}

impl Written {
    fn tell_of_backup(&self) {
        if let Some(backup) = &self.backup {
            output::note(&format!("what was there before is in {}", backup.display()));
        }
    }
}

impl ScopeOptions {
    fn file(&self, client: Client, environment: &Environment) -> anyhow::Result<PathBuf> {
        let scope = if self.project { Scope::Project } else { Scope::User };
        if !client.scopes().contains(&scope) {
            bail!(
                "{} has no settings for a project\nhint: leave `--project` out",
                client.title()
            );
        }
        client
            .config_file(scope, environment)
            .context("the home directory is not known\nhint: set HOME")
    }

    /// Edits a file, or shows how. A client that is running writes to its file as well; then the edit is made anew.
    fn edit(&self, file: &Path, edit: impl Fn(Option<&str>) -> Result<Edit, EditError>) -> anyhow::Result<Written> {
        let within = || format!("`{}`", file.display());
        for _ in 0..ATTEMPTS {
            let before = read(file)?;
            let after = edit(before.as_deref()).with_context(within)?;
            let mut written = Written {
                change: after.change,
                backup: None,
            };
            if after.change == Change::None {
                return Ok(written);
            }
            if self.dry_run {
                let before = before.as_deref().unwrap_or_default();
                let name = file.display().to_string();
                let diff = TextDiff::from_lines(before, &after.text);
                output::line(diff.unified_diff().header(&name, &name).to_string().trim_end())?;
                return Ok(written);
            }
            if read(file)? == before {
                written.backup = lifecycle::write_with_backup(file, after.text.as_bytes())
                    .with_context(|| format!("`{}` could not be written", file.display()))?;
                return Ok(written);
            }
        }
        bail!(
            "`{}` is being written to by its client\nhint: close it, and try again",
            file.display()
        )
    }
}
