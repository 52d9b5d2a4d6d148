//! Options that several commands share.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, value_parser};
use command2json::{Offer, Patterns};
use component2json::{DEFAULT_MAX_TOOL_NAME, MIN_MAX_TOOL_NAME};
use lifecycle::{AuditConfig, CompileWorker, ComponentId, Config, LifecycleManager, Place, Selection, real_path};
use policy::{ByteSize, Denial, Directory, Grants, LimitSettings, Limits, Permission, Rule, Timeout, read_wassette};
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
#[derive(Clone)]
pub(crate) struct GrantOptions {
    rules: Vec<Rule>,
    /// Policy files of another host.
    policies: Vec<PathBuf>,
}

/// What is granted on a command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Granted {
    pub(crate) grants: Grants,
    /// A policy file may set some, too.
    pub(crate) limits: LimitSettings,
}

/// Each with the form of its value and its help.
const RULE_OPTIONS: [(&str, &str, &str); 7] = [
    (
        "allow-read",
        "DIR[:GUEST]",
        "Let guests read a directory, under its own path or as GUEST; the first one is the working directory",
    ),
    (
        "allow-write",
        "DIR[:GUEST]",
        "Let guests read and write a directory, likewise",
    ),
    (
        "allow-net",
        "[SCHEME://]HOST[:PORT]",
        "Let guests reach a host: `api.example.com`, `https://*.example.com`, `10.0.0.0/8:8000-8999`; can be repeated, as all of these",
    ),
    (
        "allow-env",
        "NAME[=VALUE]",
        "Let guests see a variable of this process, or one with this value",
    ),
    (
        "allow-secret",
        "NAME",
        "Let each guest have its own secret of this name, which `host secret set` keeps",
    ),
    (
        "deny-read",
        "PATH",
        "Keep guests from a file or directory, also inside of what is allowed",
    ),
    (
        "deny-net",
        "[SCHEME://]HOST[:PORT]",
        "Keep guests from a host, also where it is allowed",
    ),
];

const ALLOW_ALL: &str = "allow-all";
const POLICY: &str = "policy";
const HEADING: &str = "Grants";

impl Args for GrantOptions {
    fn augment_args(command: clap::Command) -> clap::Command {
        let command = RULE_OPTIONS.iter().fold(command, |command, (name, form, help)| {
            let rule = move |text: &str| format!("--{name}={text}").parse::<Rule>();
            let arg = Arg::new(*name).long(*name).value_name(*form).help(*help);
            command.arg(arg.help_heading(HEADING).action(ArgAction::Append).value_parser(rule))
        });
        command
            .arg(
                Arg::new(ALLOW_ALL)
                    .long(ALLOW_ALL)
                    .help("Let guests do whatever you can, but for what is denied: for trying things out")
                    .help_heading(HEADING)
                    .action(ArgAction::SetTrue),
            )
            .arg(
                Arg::new(POLICY)
                    .long(POLICY)
                    .value_name("FILE")
                    .help("Let guests have what a policy file of Wassette (`policy.yaml`) allows")
                    .help_heading(HEADING)
                    .action(ArgAction::Append)
                    .value_parser(value_parser!(PathBuf)),
            )
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for GrantOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut found = Vec::new();
        for (name, ..) in RULE_OPTIONS {
            let rules = matches.get_many::<Rule>(name).into_iter().flatten().cloned();
            let places = matches.indices_of(name).into_iter().flatten();
            found.extend(places.zip(rules));
        }
        found.sort_by_key(|(place, _)| *place);
        let mut rules: Vec<Rule> = found.into_iter().map(|(_, rule)| rule).collect();
        if matches.get_flag(ALLOW_ALL) {
            rules.push(Rule::Allow(Permission::All));
        }
        let policies = matches.get_many::<PathBuf>(POLICY).into_iter().flatten().cloned();
        Ok(Self {
            rules,
            policies: policies.collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl GrantOptions {
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.policies.is_empty()
    }

    /// The rules as they were written, but with every path absolute.
    pub(crate) fn rules(&self) -> anyhow::Result<Vec<Rule>> {
        self.rules.iter().map(absolute_rule).collect()
    }

    /// The options again, as words that mean the same anywhere.
    pub(crate) fn words(&self) -> anyhow::Result<Vec<String>> {
        let mut words: Vec<String> = self.rules()?.iter().map(ToString::to_string).collect();
        for path in &self.policies {
            words.push(format!("--{POLICY}={}", std::path::absolute(path)?.display()));
        }
        Ok(words)
    }

    /// The rules, for taking them back: a directory may be gone by now.
    pub(crate) fn revoked(&self) -> anyhow::Result<Vec<Rule>> {
        if let Some(policy) = self.policies.first() {
            bail!(
                "`--policy={}` cannot be taken back as a whole\nhint: name the rules one by one",
                policy.display()
            );
        }
        let rule = |rule: &Rule| absolute_rule(rule).or_else(|_| Ok(there_no_more(rule)));
        self.rules.iter().map(rule).collect()
    }

    /// What is granted. A directory that is none is refused now, not at the first call.
    pub(crate) fn granted(&self) -> anyhow::Result<Granted> {
        let mut granted = Granted::default();
        for rule in self.rules()? {
            allow_or_deny(&mut granted.grants, rule)?;
        }
        for path in &self.policies {
            let shown = path.display();
            let text = std::fs::read_to_string(path).with_context(|| format!("the policy file `{shown}` could not be read"))?;
            let policy = read_wassette(&text).with_context(|| format!("the policy file `{shown}` cannot be used"))?;
            for rule in policy.grants.rules() {
                allow_or_deny(&mut granted.grants, absolute_rule(&rule)?)?;
            }
            granted.limits = granted.limits.and(&policy.limits);
        }
        Ok(granted)
    }

    /// What is granted to guests that run now. One who grants everything is told so.
    pub(crate) fn granted_to_run(&self) -> anyhow::Result<Granted> {
        let granted = self.granted()?;
        if granted.grants.all {
            output::note(
                "warning: with `--allow-all` guests can do whatever you can: read and change your files, use your network and your variables",
            );
        }
        Ok(granted)
    }
}

fn allow_or_deny(grants: &mut Grants, rule: Rule) -> anyhow::Result<()> {
    match rule {
        Rule::Allow(permission) => grants.allow(permission)?,
        Rule::Deny(denial) => grants.deny(denial),
    }
    Ok(())
}

/// The rule with the real path of its directory.
fn absolute_rule(rule: &Rule) -> anyhow::Result<Rule> {
    Ok(match rule {
        Rule::Allow(Permission::Read(directory)) => Rule::Allow(Permission::Read(real_directory(directory)?)),
        Rule::Allow(Permission::Write(directory)) => Rule::Allow(Permission::Write(real_directory(directory)?)),
        // What is not there yet can be denied, too.
        Rule::Deny(Denial::Read(path)) => Rule::Deny(Denial::Read(real_path(path))),
        other => other.clone(),
    })
}

/// The rule with an absolute path that leads nowhere.
fn there_no_more(rule: &Rule) -> Rule {
    let absolute = |directory: &Directory| {
        let host = std::path::absolute(&directory.host).unwrap_or_else(|_| directory.host.clone());
        directory.clone().with_host(host)
    };
    match rule {
        Rule::Allow(Permission::Read(directory)) => Rule::Allow(Permission::Read(absolute(directory))),
        Rule::Allow(Permission::Write(directory)) => Rule::Allow(Permission::Write(absolute(directory))),
        other => other.clone(),
    }
}

fn real_directory(directory: &Directory) -> anyhow::Result<Directory> {
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
        bail!("`{whole}` could be a directory or `DIR:GUEST`\nhint: write `{whole}:GUEST`, with the path that it has inside");
    }
    if !host.is_dir() {
        bail!(
            "`{}` cannot be granted: it is no directory\nhint: grant the directory that it is in",
            directory.host.display()
        );
    }
    Ok(directory.clone().with_host(host))
}

/// What a call may use up. What is not set here may be set in `host.toml`.
#[derive(Clone, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitOptions {
    /// Time for one call, as in `500ms`, `30s`, `2m` [default: 30s]
    #[arg(long, value_name = "TIME")]
    timeout: Option<Timeout>,
    /// Time that one call may compute, without waiting [default: 30s]
    #[arg(long, value_name = "TIME")]
    max_cpu: Option<Timeout>,
    /// Memory for one call, as in `64MiB` [default: 512MiB]
    #[arg(long, value_name = "SIZE")]
    max_memory: Option<ByteSize>,
    /// Size of one result, as in `8MiB` [default: 8MiB]
    #[arg(long, value_name = "SIZE")]
    max_output: Option<ByteSize>,
    /// What is kept of what one call prints to each stream [default: 1MiB]
    #[arg(long, value_name = "SIZE")]
    max_stdio: Option<ByteSize>,
    /// Files, connections and the like that one call has open at a time [default: 1000]
    #[arg(long, value_name = "NUMBER")]
    max_handles: Option<NonZeroU32>,
    /// What one call may receive over HTTP [default: 64MiB]
    #[arg(long, value_name = "SIZE")]
    max_received: Option<ByteSize>,
    /// Time to reach a server [default: 10s]
    #[arg(long, value_name = "TIME")]
    connect_timeout: Option<Timeout>,
    /// Calls of one component, and of all, that run at the same time [default: 64]
    #[arg(long, value_name = "NUMBER")]
    max_concurrent_calls: Option<NonZeroU32>,
    /// Calls that wait for their turn before others are told to come back [default: 512]
    #[arg(long, value_name = "NUMBER")]
    max_waiting_calls: Option<u32>,
    /// Time to compile a component [default: 2m]
    #[arg(long, value_name = "TIME")]
    compile_timeout: Option<Timeout>,
}

fn max_name(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(max) if (MIN_MAX_TOOL_NAME..=128).contains(&max) => Ok(max),
        _ => Err(format!("expected a number from {MIN_MAX_TOOL_NAME} to 128")),
    }
}

impl LimitOptions {
    pub(crate) fn timeout(&self) -> Timeout {
        self.timeout.unwrap_or(Limits::default().timeout)
    }

    pub(crate) fn settings(&self) -> LimitSettings {
        LimitSettings {
            timeout: self.timeout,
            max_cpu: self.max_cpu,
            max_memory: self.max_memory,
            max_output: self.max_output,
            max_stdio: self.max_stdio,
            max_handles: self.max_handles,
            max_received: self.max_received,
            connect_timeout: self.connect_timeout,
            max_concurrent_calls: self.max_concurrent_calls,
            max_waiting_calls: self.max_waiting_calls,
            compile_timeout: self.compile_timeout,
            ..LimitSettings::default()
        }
    }
}

/// Where calls are recorded.
#[derive(Clone, Args)]
#[command(next_help_heading = "Audit")]
pub(crate) struct AuditOptions {
    /// Append one line of JSON for each call to this file: who called what, with arguments of which shape, and how it ended
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    /// When the audit file has this size, put it aside as FILE.1 and begin a new one
    #[arg(long, value_name = "SIZE", default_value = "10MiB", requires = "audit")]
    audit_max_size: ByteSize,
}

impl AuditOptions {
    pub(crate) fn is_set(&self) -> bool {
        self.audit.is_some()
    }

    /// The file, where it means another one elsewhere.
    pub(crate) fn relative_path(&self) -> Option<&Path> {
        self.audit.as_deref().filter(|path| path.is_relative())
    }

    fn config(&self) -> Option<AuditConfig> {
        let file = self.audit.clone()?;
        Some(AuditConfig {
            file,
            max_size: self.audit_max_size,
        })
    }
}

/// What guests have, for commands that run some.
#[derive(Clone, Default)]
pub(crate) struct Running {
    pub(crate) granted: Granted,
    pub(crate) limits: LimitSettings,
    pub(crate) audit: Option<AuditConfig>,
}

impl Running {
    pub(crate) fn new(grants: &GrantOptions, limits: &LimitOptions, audit: &AuditOptions) -> anyhow::Result<Self> {
        Ok(Self {
            granted: grants.granted_to_run()?,
            limits: limits.settings(),
            audit: audit.config(),
        })
    }
}

impl LoadOptions {
    /// A path in these options that means another file elsewhere.
    pub(crate) fn relative_path(&self) -> Option<&Path> {
        let paths = self.wit.iter().chain(&self.config);
        paths.map(PathBuf::as_path).find(|path| path.is_relative())
    }

    /// A manager with nothing loaded yet.
    pub(crate) fn manager(&self, running: Running) -> anyhow::Result<LifecycleManager> {
        let Granted { grants, limits } = running.granted;
        let config = Config {
            // What is said option by option comes before a whole policy file.
            limits: running.limits.and(&limits),
            audit: running.audit,
            compile_worker: compile_worker(),
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
    pub(crate) fn load(&self, components: &[ComponentName], running: Running) -> anyhow::Result<Arc<LifecycleManager>> {
        let manager = Arc::new(self.manager(running)?);
        serve_components(&manager, components)?;
        Ok(manager)
    }
}

/// Serves these components, or all that were added.
pub(crate) fn serve_components(manager: &Arc<LifecycleManager>, components: &[ComponentName]) -> anyhow::Result<()> {
    let mut added = Vec::new();
    for component in components {
        match component.find(manager)? {
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
        (_, added) if added.is_empty() => {
            warn_of_misspelt_components(manager);
            return Ok(());
        }
        (_, added) => Selection::Only(added),
    };
    let named = selection != Selection::All;
    add_configured(manager, &selection)?;
    manager.serve_added(selection)?;
    warn_of_misspelt_components(manager);
    for (id, reason) in manager.unservable() {
        let message = format!("`{id}` cannot be served: {reason}");
        if named {
            bail!(message);
        }
        output::note(&format!("warning: {message}"));
    }
    Ok(())
}

/// Adds what the config file names a source for, and was not added yet.
fn add_configured(manager: &Arc<LifecycleManager>, selection: &Selection) -> anyhow::Result<()> {
    let missing = manager.configured_sources(selection)?;
    if missing.is_empty() {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for missing in missing {
        let id = missing.id.clone();
        match runtime.block_on(manager.add_configured(missing)) {
            Ok(()) => output::note(&format!("added `{id}`, as `host.toml` says")),
            Err(error) if *selection == Selection::All => output::note(&format!("warning: `{id}` could not be added: {error}")),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A rule for a component that does not exist holds for nobody, and whoever wrote it should know.
fn warn_of_misspelt_components(manager: &LifecycleManager) {
    for (id, nearest) in manager.misspelt_components() {
        output::note(&format!(
            "warning: `host.toml` speaks of `{id}`, which nobody knows\nhint: did you mean `{nearest}`?"
        ));
    }
}

/// This program, as the one who compiles.
pub(crate) fn compile_worker() -> Option<CompileWorker> {
    // The file that runs, whatever has its name by now.
    let itself = PathBuf::from("/proc/self/exe");
    let program = if itself.exists() {
        itself
    } else {
        std::env::current_exe().ok()?
    };
    Some(CompileWorker { program })
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
            Err(_) if manager.has_configured_source(&id) => Ok(Place::Added(id)),
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
            compile_worker: compile_worker(),
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
