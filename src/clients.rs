//! The files of MCP clients on this machine.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use catalog::{ServerCommand, Target};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clients::{Client, Configured, Endpoint, Environment, Platform, Scope, Transport};

/// Where things are on this machine.
pub(crate) fn environment() -> anyhow::Result<Environment> {
    let project = std::env::current_dir().context("there is no current directory")?;
    Ok(Environment::from_variables(Platform::current(), project, |name| {
        std::env::var_os(name)
    }))
}

/// The names of clients, for the command line and for shells that complete it.
pub(crate) fn names() -> Vec<PossibleValue> {
    let name = |client: Client| PossibleValue::new(client.id()).help(client.title()).aliases(client.aliases());
    Client::ALL.into_iter().map(name).collect()
}

/// A client on the command line.
pub(crate) fn parser() -> impl TypedValueParser<Value = Client> {
    PossibleValuesParser::new(names()).try_map(|name| name.parse::<Client>())
}

/// This program, as the entry of a client names it: by the path it was called with, which outlives an update, where that is known.
pub(crate) fn program() -> anyhow::Result<String> {
    let real = std::env::current_exe().context("the path of this program is not known")?;
    let called = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let called = if called.components().count() > 1 {
        std::path::absolute(called).ok()
    } else {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&folders).filter(|folder| folder.is_absolute());
        places.find_map(|folder| Some(folder.join(&called)).filter(|file| file.is_file()))
    };
    let same = |called: &PathBuf| called.canonicalize().ok() == real.canonicalize().ok();
    text(&called.filter(same).unwrap_or(real))
}

/// A path as the files of clients can hold it.
pub(crate) fn text(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str();
    Ok(text
        .with_context(|| format!("`{}` is no text, and the files of clients are", path.display()))?
        .to_owned())
}

/// The text of a client's file, if there is one.
pub(crate) fn read(file: &Path) -> anyhow::Result<Option<String>> {
    let bytes = lifecycle::read_others(file).with_context(|| format!("`{}` could not be read", file.display()))?;
    match bytes.map(String::from_utf8).transpose() {
        Ok(text) => Ok(text),
        Err(_) => bail!("`{}` is no text; it was left as it is", file.display()),
    }
}

/// Is there a trace of the client, besides what we put there ourselves?
pub(crate) fn is_installed(client: Client, environment: &Environment) -> bool {
    let Ok(program) = program() else { return false };
    let config = client.config_file(Scope::User, environment);
    let is_ours = |path: &Path| {
        let is_config = config.as_deref() == Some(path);
        let is_backup = path.extension().is_some_and(|extension| extension == "before-host");
        is_backup || (is_config && has_nothing_else(client, path, &program))
    };
    client.traces(environment).iter().any(|trace| {
        let entries = || trace.read_dir().into_iter().flatten().flatten();
        match trace.is_dir() {
            true => entries().next().is_none() || entries().any(|entry| !is_ours(&entry.path())),
            false => trace.exists() && !is_ours(trace),
        }
    })
}

/// Is a file empty without our entries?
fn has_nothing_else(client: Client, file: &Path, program: &str) -> bool {
    let Ok(Some(mut text)) = read(file) else { return false };
    for server in client.servers(&text).unwrap_or_default() {
        if server.is_ours(program)
            && let Ok(edit) = client.uninstall(&text, &server.name, program)
        {
            text = edit.text;
        }
    }
    matches!(text.trim(), "" | "{}")
}

/// A server of a client, with the file that it is in.
pub(crate) struct Found {
    pub(crate) client: Client,
    pub(crate) file: PathBuf,
    pub(crate) server: Configured,
}

/// The servers in one of the files of a client.
pub(crate) fn servers(client: Client, scope: Scope, environment: &Environment) -> anyhow::Result<Vec<Found>> {
    let Some(file) = client.config_file(scope, environment) else {
        return Ok(Vec::new());
    };
    let Some(text) = read(&file)? else {
        return Ok(Vec::new());
    };
    let servers = client.servers(&text).with_context(|| format!("`{}`", file.display()))?;
    let found = |server| Found {
        client,
        file: file.clone(),
        server,
    };
    Ok(servers.into_iter().map(found).collect())
}

/// The server of that name.
pub(crate) fn server(client: Client, scope: Scope, name: &str) -> anyhow::Result<Found> {
    let servers = servers(client, scope, &environment()?)?;
    let names: Vec<String> = servers.iter().map(|found| catalog::plain_line(&found.server.name)).collect();
    let hint = match (names.is_empty(), scope) {
        (false, _) => format!("it has {}", names.join(", ")),
        (true, Scope::Project) => "there is none in the files of this project".to_owned(),
        (true, Scope::User) => "it has none; `--project` looks into the files of this project".to_owned(),
    };
    servers
        .into_iter()
        .find(|found| found.server.name == name)
        .with_context(|| format!("{} has no server `{name}`\nhint: {hint}", client.title()))
}

impl Found {
    /// How the client would reach it, with its variables filled in from this environment.
    pub(crate) fn target(&self) -> anyhow::Result<Target> {
        let name = catalog::plain_line(&self.server.name);
        let within = || format!("the server `{name}` of {}", self.client.title());
        let expand = |text: &str| expand(self.client, text).with_context(within);
        let transport = match &self.server.endpoint {
            Endpoint::Known(transport) => transport,
            Endpoint::Unknown { reason } => bail!("{} cannot be used: {reason}", within()),
        };
        match transport {
            Transport::Stdio { command, args, env } => {
                let environment = env.iter().map(|(name, value)| Ok((name.clone(), expand(value)?)));
                Ok(Target::Command(ServerCommand {
                    program: expand(command)?,
                    arguments: args.iter().map(|arg| expand(arg)).collect::<anyhow::Result<_>>()?,
                    environment: environment.collect::<anyhow::Result<_>>()?,
                    directory: self.server.cwd.as_deref().map(expand).transpose()?.map(PathBuf::from),
                }))
            }
            Transport::Http { url, headers } => {
                let mut endpoint = catalog::Endpoint::parse(&expand(url)?)?;
                for (name, value) in headers {
                    endpoint.add_header(&format!("{name}: {}", expand(value)?))?;
                }
                Ok(Target::Http(endpoint))
            }
        }
    }
}

/// Fills in `${NAME}`, `${env:NAME}`, `${NAME:-default}` and the folders that clients name; for Gemini also `$NAME`. All else stays as it
/// is: it may be meant for a shell.
fn expand(client: Client, text: &str) -> anyhow::Result<String> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        let braced = after.strip_prefix('{').and_then(|after| after.split_once('}'));
        let bare = || {
            let end = after.find(|c: char| !is_of_name(c)).unwrap_or(after.len());
            Some(after.split_at(end)).filter(|(name, _)| client == Client::GeminiCli && is_name(name))
        };
        let named = braced.or_else(bare);
        match named
            .map(|(name, after)| Ok::<_, anyhow::Error>((variable(name)?, after)))
            .transpose()?
        {
            Some((Some(value), after)) => {
                expanded.push_str(&value);
                rest = after;
            }
            _ => {
                expanded.push('$');
                rest = after;
            }
        }
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_of_name) && !text.starts_with(|c: char| c.is_ascii_digit())
}

/// The value of a variable; `None` if it is written in a way that is not ours to read.
fn variable(name: &str) -> anyhow::Result<Option<String>> {
    let folder = |path: Option<PathBuf>| path.map(|path| path.to_string_lossy().into_owned());
    match name {
        "userHome" => return Ok(folder(std::env::home_dir())),
        "workspaceFolder" | "cwd" => return Ok(folder(std::env::current_dir().ok())),
        "pathSeparator" | "/" => return Ok(Some(std::path::MAIN_SEPARATOR.to_string())),
        _ if name.starts_with("input:") => {
            bail!("`${{{name}}}` is something that the client asks you for\nhint: name the server with `stdio:` or its URL")
        }
        _ => {}
    }
    let name = name.strip_prefix("env:").unwrap_or(name);
    let (name, default) = match name.split_once(":-") {
        Some((name, default)) => (name, Some(default.to_owned())),
        None => (name, None),
    };
    if !is_name(name) {
        return Ok(None);
    }
    let value = std::env::var(name).ok().or(default);
    let value = value.with_context(|| format!("the environment has no `{name}`\nhint: set it, as it is set for the client"))?;
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in() {
        let expand_for = |client, text: &str| expand(client, text).unwrap();
        let path = std::env::var("PATH").unwrap();
        let filled = expand_for(Client::Cursor, "a ${PATH} b ${env:PATH}");
        assert_eq!(filled, format!("a {path} b {path}"));
        assert_eq!(expand_for(Client::Cursor, "${HOST_NO_SUCH:-x}/$PATH/${"), "x/$PATH/${");
        assert_eq!(expand_for(Client::GeminiCli, "$PATH!"), format!("{path}!"));
        assert_eq!(expand_for(Client::Cursor, "${A:?} ${A%%x} $1"), "${A:?} ${A%%x} $1");
        assert!(expand(Client::Cursor, "${HOST_NO_SUCH}").is_err());
        assert!(expand(Client::Cursor, "${input:key}").is_err());
    }
}
