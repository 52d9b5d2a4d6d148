//! `host install` and `host uninstall`: a place in the clients that people use.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Args, Parser, ValueEnum};
use clients::{Change, Client, Edit, EditError, Entry, Environment, Scope, ServerName, SnippetFormat, Transport};
use lifecycle::{Place, Replaced};
use similar::TextDiff;

use crate::clients::{environment, is_installed, names, parser, program, read, text};
use crate::options::{ComponentName, GrantOptions, store_manager};
use crate::{Cli, Command, output};

/// How often a file is edited anew because its client has written to it meanwhile.
const ATTEMPTS: usize = 10;

/// Put components into the list of servers of an MCP client
///
/// For a client that is not in the list, `--print` shows what to paste; then all words are sources.
#[derive(Args)]
#[command(
    override_usage = "host install [OPTIONS] <CLIENT> [SOURCE]... [-- SERVE OPTIONS]\n       host install [OPTIONS] --print <FORMAT> [SOURCE]... [-- SERVE OPTIONS]"
)]
pub(crate) struct Install {
    /// The client
    #[arg(value_parser = Word)]
    client: Option<String>,
    /// The components to serve: ids of what was added, files, or directories; all that was added, if none is named
    #[arg(value_name = "SOURCE")]
    sources: Vec<String>,
    /// The name of the server in the client, instead of that of its only component or `host`
    #[arg(long)]
    name: Option<ServerName>,
    /// A server that runs already, at this address, instead of one that the client starts
    #[arg(long, value_name = "URL", conflicts_with_all = ["serve_options", "allow-read", "allow-write"])]
    http: Option<String>,
    /// A header that the client sends to the address, as in `X-Team: blue`; can be repeated
    #[arg(long, value_name = "NAME: VALUE", requires = "http")]
    header: Vec<String>,
    /// Take the name even if the client has another server under it
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

/// The first word is a client, and shells are to complete it so; with `--print` it is a source.
#[derive(Clone)]
struct Word;

impl TypedValueParser for Word {
    type Value = String;

    fn parse_ref(&self, _: &clap::Command, _: Option<&clap::Arg>, value: &OsStr) -> Result<String, clap::Error> {
        let text = value.to_str();
        text.map(str::to_owned)
            .ok_or_else(|| clap::Error::new(clap::error::ErrorKind::InvalidUtf8))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(names().into_iter()))
    }
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
    /// The client
    #[arg(value_parser = parser())]
    client: Client,
    /// The server to take out; without it, all that start `host serve`
    #[arg(long, allow_hyphen_values = true)]
    name: Option<String>,
    #[command(flatten)]
    place: ScopeOptions,
}

impl Install {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if let Some(format) = self.print {
            let sources: Vec<String> = self.client.iter().chain(&self.sources).cloned().collect();
            let entry = self.entry(&sources)?;
            let format = match format {
                PrintFormat::Json => SnippetFormat::Json,
                PrintFormat::Toml => SnippetFormat::Toml,
            };
            output::line(format.snippet(&entry)?.trim_end())?;
            return Ok(ExitCode::SUCCESS);
        }
        let Some(client) = &self.client else {
            bail!("which client?\nhint: `host clients` lists those that are known; `--print json` is for any other");
        };
        let client: Client = client.parse()?;
        let entry = self.entry(&self.sources)?;
        let environment = environment()?;
        let file = self.place.file(client, &environment)?;
        if !self.place.project && !is_installed(client, &environment) {
            output::note(&format!("note: {} does not seem to be installed here", client.title()));
        }
        let edit = |text: Option<&str>| client.install(text, &entry, self.replace);
        let written = self
            .place
            .edit(&file, edit)
            .map_err(|error| with_way_out(error, client, &entry))?;
        let what = format!("`{}` in {}, {}", entry.name, client.title(), file.display());
        match written.change {
            Change::None => output::line(&format!("nothing to do: {what} is up to date"))?,
            _ if self.place.dry_run => return Ok(ExitCode::SUCCESS),
            Change::Replaced => output::line(&format!("updated {what}"))?,
            _ => output::line(&format!("installed {what}"))?,
        }
        written.tell_of_backup();
        let servers = client.servers(&written.text).unwrap_or_default();
        let is_off = servers
            .iter()
            .any(|server| server.name == entry.name.as_str() && !server.enabled);
        if is_off {
            output::note(&format!("note: it is switched off in {}", client.title()));
        } else if written.change != Change::None {
            output::note(&format!("{} reads it when it starts the next time", client.title()));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn entry(&self, sources: &[String]) -> anyhow::Result<Entry> {
        match &self.http {
            Some(url) => self.remote_entry(url, sources),
            None => self.local_entry(sources),
        }
    }

    fn remote_entry(&self, url: &str, sources: &[String]) -> anyhow::Result<Entry> {
        if !sources.is_empty() {
            bail!("the server at `{url}` has components of its own\nhint: leave the sources out, or `--http`");
        }
        // Checked now, not when the client connects.
        let mut endpoint = catalog::Endpoint::parse(url)?;
        let mut headers = Vec::new();
        for line in &self.header {
            endpoint.add_header(line)?;
            let pair = line.split_once(':');
            headers.extend(pair.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())));
        }
        Ok(Entry {
            name: self.name.clone().map_or_else(|| "host".parse(), Ok)?,
            transport: Transport::Http {
                url: url.to_owned(),
                headers,
            },
        })
    }

    fn local_entry(&self, sources: &[String]) -> anyhow::Result<Entry> {
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
                    // What cannot be served is told here, and not in the log of the client.
                    for problem in manager.serve_path(&path)? {
                        output::note(&format!("warning: left out: {problem}"));
                    }
                    let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
                    names.push(name.unwrap_or_default().to_string_lossy().into_owned());
                    served.push(text(&path)?);
                }
            }
        }
        let has_none = |manager: &lifecycle::LifecycleManager| Some(manager.store().ok()?.index().ok()?.entries.is_empty());
        if sources.is_empty() && has_none(&manager) == Some(true) {
            output::note("note: nothing was added yet, so there is nothing to serve\nhint: `host add SOURCE`, or name a file");
        }
        let name = match (&self.name, names.as_slice()) {
            (Some(name), _) => name.clone(),
            (None, [only]) => name_of(only)?,
            (None, _) => "host".parse()?,
        };
        check(&self.serve_options)?;
        let mut args = vec!["serve".to_owned()];
        args.extend(served);
        self.grants.granted()?;
        args.extend(self.grants.words()?);
        args.extend(self.serve_options.iter().cloned());
        Ok(Entry {
            name,
            transport: Transport::Stdio {
                command: program()?,
                args,
                env: home()?.into_iter().collect(),
            },
        })
    }
}

/// The name of a component as the name of a server.
fn name_of(component: &str) -> anyhow::Result<ServerName> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name = component.replace(|c: char| !is_fine(c), "-");
    let name = name.trim_matches(['-', '_']);
    if name.is_empty() {
        bail!("`{component}` makes no name that every client takes\nhint: give one with `--name`");
    }
    Ok(name.parse()?)
}

/// A client hands on little of its environment, and this decides what is served.
fn home() -> anyhow::Result<Option<(String, String)>> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if !is_set("HOST_HOME") && !is_set("XDG_DATA_HOME") {
        return Ok(None);
    }
    let home = lifecycle::default_home().map(std::path::absolute).transpose()?;
    home.map(|home| Ok(("HOST_HOME".to_owned(), text(&home)?))).transpose()
}

/// A command line that is wrong, or that depends on where it is run, would fail where nobody sees it: in the log of the client.
fn check(serve_options: &[String]) -> anyhow::Result<()> {
    let words = ["host", "serve"].into_iter().chain(serve_options.iter().map(String::as_str));
    let parsed = Cli::try_parse_from(words).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        anyhow!(
            "these are no options of `host serve`: {}",
            first.strip_prefix("error: ").unwrap_or(first)
        )
    })?;
    match parsed.command {
        Some(Command::Serve(serve)) => serve.check_that_it_runs_anywhere(),
        _ => Ok(()),
    }
}

/// An error about a file, and what a person can do instead.
fn with_way_out(error: anyhow::Error, client: Client, entry: &Entry) -> anyhow::Error {
    match error.downcast_ref() {
        Some(EditError::Taken { .. }) => anyhow!("{error:#}\nhint: `--replace` takes the name"),
        Some(EditError::NoHttp { .. } | EditError::NotOurs { .. }) | None => error,
        Some(_) => match client.snippet(entry) {
            Ok(snippet) => anyhow!(
                "{error:#}\nhint: this would be the whole file with the entry:\n{}",
                snippet.trim_end()
            ),
            Err(_) => error,
        },
    }
}

impl Uninstall {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.client;
        let program = program()?;
        let file = self.place.file(client, &environment()?)?;
        let nothing = Edit {
            text: String::new(),
            change: Change::None,
        };
        let ours = |text: &str| -> Result<Vec<String>, EditError> {
            let servers = client.servers(text)?;
            let ours = servers.into_iter().filter(|server| server.is_ours(&program));
            Ok(ours.map(|server| server.name).collect())
        };
        let mut removed = Vec::new();
        // All of them at once: one file that is written, and one that is kept.
        let edit = |text: Option<&str>| {
            let Some(text) = text else { return Ok(nothing.clone()) };
            let names = self.name.clone().map_or_else(|| ours(text), |name| Ok(vec![name]))?;
            let mut edited = Edit {
                text: text.to_owned(),
                change: Change::None,
            };
            removed.clear();
            for name in names {
                let without = client.uninstall(&edited.text, &name, &program)?;
                if without.change == Change::Removed {
                    removed.push(name);
                    edited = without;
                }
            }
            Ok(edited)
        };
        let written = self.place.edit(&file, edit)?;
        if written.change == Change::None {
            output::line(&format!(
                "nothing to do: {} has no such server in {}",
                client.title(),
                file.display()
            ))?;
        } else if !self.place.dry_run {
            for name in &removed {
                let name = catalog::plain_line(name);
                output::line(&format!("removed `{name}` from {}, {}", client.title(), file.display()))?;
            }
        }
        written.tell_of_backup();
        Ok(ExitCode::SUCCESS)
    }
}

/// What became of a file.
struct Written {
    change: Change,
    text: String,
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
    fn edit(&self, file: &Path, mut edit: impl FnMut(Option<&str>) -> Result<Edit, EditError>) -> anyhow::Result<Written> {
        let _lock = lifecycle::lock_others();
        for _ in 0..ATTEMPTS {
            let before = read(file)?;
            let Edit { text, change } = edit(before.as_deref()).with_context(|| format!("`{}`", file.display()))?;
            let mut written = Written {
                change,
                text,
                backup: None,
            };
            if change == Change::None {
                return Ok(written);
            }
            if self.dry_run {
                let before = before.as_deref().unwrap_or_default();
                let name = file.display().to_string();
                let diff = TextDiff::from_lines(before, &written.text);
                let diff = diff.unified_diff().header(&name, &name).to_string();
                output::line(catalog::plain(&diff).trim_end())?;
                return Ok(written);
            }
            let replaced = lifecycle::replace_others(
                file,
                before.as_deref().map(str::as_bytes),
                written.text.as_bytes(),
                !self.project,
            )
            .with_context(|| format!("`{}` could not be written", file.display()))?;
            if let Replaced::Done { backup } = replaced {
                written.backup = backup;
                return Ok(written);
            }
        }
        bail!(
            "`{}` is being written to by its client\nhint: close it, and try again",
            file.display()
        )
    }
}
