//! Options that several commands share.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, value_parser};
use command2json::{Offer, Patterns};
use component2json::{DEFAULT_MAX_TOOL_NAME, MIN_MAX_TOOL_NAME};
use lifecycle::{ComponentId, Config, LifecycleManager, Place, Selection};
use policy::{Access, ByteSize, Directory, DirectoryGrant, Grants, Limits, Timeout};
use sources::ClientOptions;

use crate::{output, progress};

/// How components are found and described.
#[derive(Args)]
pub(crate) struct LoadOptions {
    /// A WIT file or folder with docs for the component, instead of the one beside it
    #[arg(long, value_name = "PATH")]
    wit: Option<PathBuf>,
    /// The longest tool name; longer ones are shortened
    #[arg(long, value_name = "CHARS", default_value_t = DEFAULT_MAX_TOOL_NAME, value_parser = max_name)]
    max_name: usize,
    /// The config file, instead of the one in `$HOST_HOME`
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    offer: OfferOptions,
}

/// Which commands of a program are offered, and in which form.
#[derive(Args)]
#[command(next_help_heading = "Options for programs")]
struct OfferOptions {
    /// Offer only the commands that match, as in `get *`; or all but those, as in `!delete *`; can be repeated
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    commands: Vec<String>,
    /// Offer only the flags that match, or all but those, as in `!token`; can be repeated
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    flags: Vec<String>,
    /// Offer one tool for each program, with the command as an argument
    #[arg(long)]
    bundle: bool,
    /// Put flags and positionals side by side in the input of a tool
    #[arg(long, conflicts_with = "bundle")]
    flat: bool,
}

impl OfferOptions {
    fn offer(&self) -> Offer {
        Offer {
            commands: Patterns::from(self.commands.clone()),
            flags: Patterns::from(self.flags.clone()),
            bundle: self.bundle,
            flat: self.flat,
            ..Offer::default()
        }
    }
}

/// What guests may use, in the order in which it was granted: the first directory is the working directory.
///
/// Written out by hand, because a derived parser forgets the order between two options.
pub(crate) struct GrantOptions(Vec<DirectoryGrant>);

const DIRECTORY_OPTIONS: [(&str, Access, &str); 2] = [
    (
        "allow-read",
        Access::Read,
        "Let guests read a directory, under its own path or as GUEST; the first one is the working directory",
    ),
    (
        "allow-write",
        Access::Write,
        "Let guests read and write a directory, likewise",
    ),
];

impl Args for GrantOptions {
    fn augment_args(command: clap::Command) -> clap::Command {
        DIRECTORY_OPTIONS.iter().fold(command, |command, (name, _, help)| {
            let arg = Arg::new(*name)
                .long(*name)
                .value_name("DIR[:GUEST]")
                .help(*help)
                .help_heading("Grants");
            command.arg(arg.action(ArgAction::Append).value_parser(value_parser!(Directory)))
        })
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for GrantOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut found = Vec::new();
        for (name, access, _) in DIRECTORY_OPTIONS {
            let directories = matches.get_many::<Directory>(name).into_iter().flatten().cloned();
            let places = matches.indices_of(name).into_iter().flatten();
            let grant = |directory| DirectoryGrant { directory, access };
            found.extend(places.zip(directories.map(grant)));
        }
        found.sort_by_key(|(place, _)| *place);
        Ok(Self(found.into_iter().map(|(_, grant)| grant).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl GrantOptions {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The grants, with every directory under its absolute path. One that is no directory is refused now, not at the first call.
    pub(crate) fn grants(&self) -> anyhow::Result<Grants> {
        let mut grants = Grants::default();
        for DirectoryGrant { directory, access } in &self.0 {
            let whole = directory.to_string();
            let host = directory.host.canonicalize().with_context(|| {
                let colon = if whole.contains(':') {
                    " (what follows the last `:` is its path inside)"
                } else {
                    ""
                };
                format!("the directory `{}` cannot be granted{colon}", directory.host.display())
            })?;
            let has_guest = whole != directory.host.to_string_lossy();
            if has_guest && Path::new(&whole).is_dir() {
                bail!(
                    "`{whole}` could be a directory or `DIR:GUEST`\nhint: write `{whole}:GUEST`, with the path that it has inside"
                );
            }
            if !host.is_dir() {
                bail!(
                    "`{}` cannot be granted: it is no directory\nhint: grant the directory that it is in",
                    directory.host.display()
                );
            }
            let directory = directory.clone().with_host(host);
            let guest = directory.guest_path();
            match grants
                .directories
                .iter_mut()
                .find(|known| known.directory.guest_path() == guest)
            {
                Some(known) if known.directory.host == directory.host => known.access = known.access.max(*access),
                Some(_) => bail!(
                    "two different directories are granted as `{guest}`\nhint: give one of them another path with `DIR:GUEST`"
                ),
                None => grants.directories.push(DirectoryGrant {
                    directory,
                    access: *access,
                }),
            }
        }
        Ok(grants)
    }
}

/// What a call may use up.
#[derive(Args)]
#[command(next_help_heading = "Limits")]
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
    pub(crate) fn timeout(&self) -> Timeout {
        self.timeout
    }

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
    /// A path in these options that means another file elsewhere.
    pub(crate) fn relative_path(&self) -> Option<&Path> {
        let paths = self.wit.iter().chain(&self.config);
        paths.map(PathBuf::as_path).find(|path| path.is_relative())
    }

    /// A manager with nothing loaded yet.
    pub(crate) fn manager(&self, limits: Limits, grants: Grants) -> anyhow::Result<LifecycleManager> {
        let config = Config {
            limits,
            config_file: self.config.clone(),
            max_name: self.max_name,
            wit: self.wit.clone(),
            grants: Arc::new(grants),
            offer: self.offer.offer(),
            // For agents that load; on the command line of `serve` there is no option for it.
            network: client_options(&[]),
            progress: progress::on_terminal(),
            ..Config::default()
        };
        Ok(LifecycleManager::new(config)?)
    }

    /// A manager with these components loaded; without any, with all that were added. One that was named must load; one that merely
    /// lies in a directory, or is one of all, may not.
    pub(crate) fn load(&self, components: &[ComponentName], limits: Limits, grants: Grants) -> anyhow::Result<LifecycleManager> {
        let manager = self.manager(limits, grants)?;
        let mut added = Vec::new();
        for component in components {
            match component.find(&manager)? {
                Place::File(path) => {
                    for problem in manager.serve_path(&path)? {
                        output::note(&format!("warning: left out: {problem}"));
                    }
                }
                Place::Added(id) => added.push(id),
            }
        }
        let selection = match (components, added) {
            ([], _) => Selection::All,
            (_, added) if added.is_empty() => return Ok(manager),
            (_, added) => Selection::Only(added),
        };
        let named = selection != Selection::All;
        manager.serve_added(selection)?;
        for component in manager.list_components().components {
            let Some(reason) = component.reason.filter(|_| component.added_at.is_some()) else {
                continue;
            };
            let message = format!("`{}` cannot be served: {reason}", component.id);
            if named {
                bail!(message);
            }
            output::note(&format!("warning: {message}"));
        }
        Ok(manager)
    }
}

/// A component as a person names it: a path, or the id of one that was added.
#[derive(Clone, Debug)]
pub(crate) struct ComponentName(PathBuf);

impl From<OsString> for ComponentName {
    fn from(text: OsString) -> Self {
        Self(text.into())
    }
}

impl ComponentName {
    /// As a path, whatever it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// What is spelled like a path is one, and so is what is no id but exists.
    pub(crate) fn find(&self, manager: &LifecycleManager) -> anyhow::Result<Place> {
        let Self(path) = self;
        let file = Place::File(path.clone());
        let text = path.to_string_lossy();
        if text.contains("://") {
            // What is no source at all says so itself.
            text.parse::<sources::Source>()?;
            bail!("`{text}` has to be added before it is used\nhint: `host add {text}`");
        }
        let is_wasm = path
            .extension()
            .is_some_and(|extension| extension == "wasm" || extension == "wat");
        if is_wasm || path.components().count() != 1 || text.contains(['/', '\\']) {
            return Ok(file);
        }
        // `.` and the like are no ids.
        let Ok(id) = ComponentId::parse(&text) else {
            return Ok(file);
        };
        match manager.store().and_then(|store| store.entry(&id)) {
            Ok(entry) => Ok(Place::Added(entry.id)),
            Err(_) if path.exists() => Ok(file),
            Err(error) => Err(error.into()),
        }
    }
}

/// How sources are reached.
#[derive(Clone, Args)]
#[command(next_help_heading = "Network")]
pub(crate) struct NetworkOptions {
    /// Trust the certificate authorities in this PEM file, besides those of the system; can be repeated
    ///
    /// HOST_CA_FILE names one as well.
    #[arg(long, value_name = "FILE")]
    ca_file: Vec<PathBuf>,
}

impl NetworkOptions {
    /// The same for other clients.
    pub(crate) fn client_options(&self) -> ClientOptions {
        client_options(&self.ca_file)
    }

    /// A manager that can fetch, and serves nothing.
    pub(crate) fn manager(&self) -> anyhow::Result<Arc<LifecycleManager>> {
        let config = Config {
            network: self.client_options(),
            progress: progress::on_terminal(),
            ..Config::default()
        };
        Ok(Arc::new(LifecycleManager::new(config)?))
    }
}

/// How sources are reached: trusting these authorities, and the one that HOST_CA_FILE names.
fn client_options(ca_files: &[PathBuf]) -> ClientOptions {
    let from_environment = std::env::var_os("HOST_CA_FILE").filter(|file| !file.is_empty());
    ClientOptions {
        ca_files: ca_files.iter().cloned().chain(from_environment.map(PathBuf::from)).collect(),
        ..ClientOptions::default()
    }
}

/// A manager that only looks at the store.
pub(crate) fn store_manager() -> anyhow::Result<LifecycleManager> {
    Ok(LifecycleManager::new(Config::default())?)
}
