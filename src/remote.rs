//! Servers as a person names them, and connections to them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ::clients::{Client, Scope};
use anyhow::{Context, bail};
use catalog::{ConnectOptions, Connection, Era, Target};
use clap::{Args, ValueEnum};
use lifecycle::LifecycleManager;
use mcp_server::Server;

use crate::options::{ComponentName, NetworkOptions};
use crate::{clients, output};

/// How a server that is not ours is reached.
#[derive(Clone, Args)]
#[command(next_help_heading = "Servers")]
pub(crate) struct RemoteOptions {
    /// Send a header with every request to a URL, as in `X-Team: blue`; can be repeated
    #[arg(long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// Send the bearer token in this file to a URL
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Send the bearer token in this variable of the environment to a URL
    #[arg(long, value_name = "NAME", conflicts_with = "token_file")]
    token_env: Option<String>,
    /// Which handshake to make
    #[arg(long, value_name = "ERA", default_value = "auto")]
    era: EraOption,
    /// Take the target for the name of a server in this client: claude-code, vscode, cursor and so on
    #[arg(long, value_name = "CLIENT", value_parser = clients::parser())]
    from: Option<Client>,
    /// Look for servers of clients in the files of the current directory, which may be somebody else's, instead of in your own
    #[arg(long)]
    project: bool,
    #[command(flatten)]
    pub(crate) network: NetworkOptions,
}

#[derive(Clone, Copy, ValueEnum)]
enum EraOption {
    /// The one that the server knows
    Auto,
    /// `server/discover`, since 2026-07-28
    Modern,
    /// `initialize`
    Legacy,
}

/// What a person named.
pub(crate) enum Named {
    Component(ComponentName),
    Server(Target),
}

impl RemoteOptions {
    /// `stdio:…` and addresses are servers; anything else is a component, unless it is to be looked up in a client.
    pub(crate) fn find(&self, text: &str) -> anyhow::Result<Named> {
        if let Some(client) = self.from {
            let target = clients::server(client, self.scope(), text)?.target()?;
            return Ok(Named::Server(self.with_headers(target)?));
        }
        let is_wasm = text.split(['?', '#']).next().is_some_and(|path| path.ends_with(".wasm"));
        match Target::parse(text).filter(|_| !is_wasm || text.starts_with("stdio:")) {
            None => Ok(Named::Component(ComponentName::from(std::ffi::OsString::from(text)))),
            Some(target) => Ok(Named::Server(self.with_headers(target?)?)),
        }
    }

    /// The client that is asked for.
    pub(crate) fn client(&self) -> Option<Client> {
        self.from
    }

    /// Is there something that is sent along?
    pub(crate) fn sends_along(&self) -> bool {
        !self.header.is_empty() || self.token_file.is_some() || self.token_env.is_some()
    }

    /// Whose files of clients are looked into. What is in a project may have come with it, and would run without anybody having said so.
    pub(crate) fn scope(&self) -> Scope {
        if self.project { Scope::Project } else { Scope::User }
    }

    fn with_headers(&self, mut target: Target) -> anyhow::Result<Target> {
        let Target::Http(endpoint) = &mut target else {
            if self.sends_along() {
                bail!("headers and tokens are for servers behind a URL\nhint: a command gets its secrets from the environment");
            }
            return Ok(target);
        };
        if let Some(token) = self.token()? {
            endpoint.set_token(&token)?;
        }
        for header in &self.header {
            endpoint.add_header(header)?;
        }
        Ok(target)
    }

    /// The token that was named. There is no variable that is looked into unasked: a token is for one server, and not for any.
    fn token(&self) -> anyhow::Result<Option<String>> {
        let (token, place) = match (&self.token_file, &self.token_env) {
            (Some(file), _) => {
                let place = format!("`{}`", file.display());
                (
                    std::fs::read_to_string(file).with_context(|| format!("{place} could not be read"))?,
                    place,
                )
            }
            (None, Some(name)) => {
                let place = format!("the variable `{name}`");
                (std::env::var(name).unwrap_or_default(), place)
            }
            (None, None) => return Ok(None),
        };
        match token.trim() {
            "" => bail!("there is no token in {place}\nhint: put one there, and nothing else"),
            token => Ok(Some(token.to_owned())),
        }
    }

    /// Connects to a server.
    pub(crate) async fn connect(&self, target: &Target, timeout: Duration) -> anyhow::Result<Connection> {
        // Reading the certificates of the system takes its time, and a command needs none.
        let tls = match target {
            Target::Http(_) => Some(sources::tls(&self.network.client_options())?),
            Target::Command(_) => None,
        };
        let options = ConnectOptions {
            era: self.era(),
            timeout,
            tls,
        };
        Ok(Connection::open(target, &options).await?)
    }

    fn era(&self) -> Era {
        match self.era {
            EraOption::Auto => Era::Auto,
            EraOption::Modern => Era::Modern,
            EraOption::Legacy => Era::Legacy,
        }
    }

    /// Connects to components of ours, within this process: what is seen of them is what any client would see.
    pub(crate) async fn connect_within(&self, manager: Arc<LifecycleManager>, timeout: Duration) -> anyhow::Result<Connection> {
        const BUFFER: usize = 64 << 10;
        let (ours, theirs) = tokio::io::duplex(BUFFER);
        let (read, write) = tokio::io::split(theirs);
        tokio::spawn(mcp_server::serve(Server::new(manager), read, write));
        let (read, write) = tokio::io::split(ours);
        let options = ConnectOptions {
            era: self.era(),
            timeout,
            tls: None,
        };
        Ok(Connection::over(read, write, &options).await?)
    }
}

/// Runs to the end, or until the person has had enough: then what was started is ended, too.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let result = runtime.block_on(async {
        tokio::select! {
            result = work => result,
            () = interrupted() => bail!("interrupted"),
        }
    });
    // Nobody waits for a schema that takes forever.
    runtime.shutdown_background();
    result
}

/// Waits for a signal that ends programs.
async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
        let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = signals else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
    #[cfg(not(unix))]
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Says what is missing in a catalog.
pub(crate) fn warn_of_problems(server: Option<&str>, catalog: &catalog::Catalog) {
    let of = server
        .map(|name| format!(" of {}", catalog::plain_line(name)))
        .unwrap_or_default();
    for problem in &catalog.document().problems {
        let message = catalog::plain_line(&problem.message);
        output::note(&format!("warning: {}{of} is not complete: {message}", problem.list));
    }
}
