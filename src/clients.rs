//! The files of MCP clients on this machine.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use catalog::{ServerCommand, Target};
use clients::{Client, Configured, Endpoint, Environment, Platform, Scope, Transport};

/// Where things are on this machine.
pub(crate) fn environment() -> anyhow::Result<Environment> {
    let project = std::env::current_dir().context("there is no current directory")?;
    Ok(Environment::from_variables(Platform::current(), project, |name| {
        std::env::var_os(name)
    }))
}

/// The text of a client's file, if there is one.
pub(crate) fn read(file: &Path) -> anyhow::Result<Option<String>> {
    match std::fs::read(file) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => bail!("`{}` is no text; it was left as it is", file.display()),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("`{}` could not be read", file.display())),
    }
}

/// A server of a client, with the file that it is in.
pub(crate) struct Found {
    pub(crate) client: Client,
    pub(crate) file: PathBuf,
    pub(crate) server: Configured,
}

/// The servers of a client, those of this project first: there they count more.
pub(crate) fn servers(client: Client, environment: &Environment) -> anyhow::Result<Vec<Found>> {
    let mut found = Vec::new();
    for scope in [Scope::Project, Scope::User] {
        let Some(file) = client.config_file(scope, environment) else {
            continue;
        };
        let Some(text) = read(&file)? else { continue };
        let servers = client.servers(&text).with_context(|| format!("`{}`", file.display()))?;
        found.extend(servers.into_iter().map(|server| Found {
            client,
            file: file.clone(),
            server,
        }));
    }
    Ok(found)
}

/// The server of that name.
pub(crate) fn server(client: Client, name: &str) -> anyhow::Result<Found> {
    let servers = servers(client, &environment()?)?;
    let names: Vec<String> = servers.iter().map(|found| catalog::plain_line(&found.server.name)).collect();
    let hint = match names.is_empty() {
        true => "it has none".to_owned(),
        false => format!("it has {}", names.join(", ")),
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
        let transport = match &self.server.endpoint {
            Endpoint::Known(transport) => transport,
            Endpoint::Unknown { reason } => bail!("{} cannot be used: {reason}", within()),
        };
        match transport {
            Transport::Stdio { command, args, env } => {
                let environment = env.iter().map(|(name, value)| Ok((name.clone(), expand(value)?)));
                Ok(Target::Command(ServerCommand {
                    program: expand(command).with_context(within)?,
                    arguments: args
                        .iter()
                        .map(|arg| expand(arg))
                        .collect::<anyhow::Result<_>>()
                        .with_context(within)?,
                    environment: environment.collect::<anyhow::Result<_>>().with_context(within)?,
                    directory: self.server.cwd.as_deref().map(expand).transpose()?.map(PathBuf::from),
                }))
            }
            Transport::Http { url, headers } => {
                let mut endpoint = catalog::Endpoint::parse(&expand(url).with_context(within)?)?;
                for (name, value) in headers {
                    endpoint.add_header(&format!("{name}: {}", expand(value).with_context(within)?))?;
                }
                Ok(Target::Http(endpoint))
            }
        }
    }
}

/// Fills in `${NAME}`, `${env:NAME}`, `${NAME:-default}` and the folders that clients name, and nothing else.
fn expand(text: &str) -> anyhow::Result<String> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        expanded.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            expanded.push_str("${");
            rest = after;
            continue;
        };
        expanded.push_str(&variable(name)?);
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn variable(name: &str) -> anyhow::Result<String> {
    let folder = |path: Option<PathBuf>| path.map(|path| path.to_string_lossy().into_owned());
    let known = match name {
        "userHome" => folder(std::env::home_dir()),
        "workspaceFolder" | "cwd" => folder(std::env::current_dir().ok()),
        "pathSeparator" | "/" => Some(std::path::MAIN_SEPARATOR.to_string()),
        _ if name.starts_with("input:") => {
            bail!("`${{{name}}}` is something that the client asks you for\nhint: name the server with `stdio:` or its URL")
        }
        _ => None,
    };
    if let Some(value) = known {
        return Ok(value);
    }
    let name = name.strip_prefix("env:").unwrap_or(name);
    let (name, default) = match name.split_once(":-") {
        Some((name, default)) => (name, Some(default.to_owned())),
        None => (name, None),
    };
    std::env::var(name)
        .ok()
        .or(default)
        .with_context(|| format!("the environment has no `{name}`\nhint: set it, as it is set for the client"))
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn variables_are_filled_in() {
        let path = std::env::var("PATH").unwrap();
        assert_eq!(expand("a ${PATH} b ${env:PATH}").unwrap(), format!("a {path} b {path}"));
        assert_eq!(expand("${HOST_NO_SUCH_VARIABLE:-x}/$PATH/${").unwrap(), "x/$PATH/${");
        assert!(expand("${HOST_NO_SUCH_VARIABLE}").is_err());
        assert!(expand("${input:key}").is_err());
    }
}
