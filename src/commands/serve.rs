//! `host serve`: MCP over stdio or HTTP.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use lifecycle::Follow;
use mcp_server::{Server, serve, serve_stdio};

use crate::http::HttpArguments;
use crate::options::{AuditOptions, ComponentName, GrantOptions, LimitOptions, LoadOptions, Running, serve_components};
use crate::output;

/// Serve components and programs as MCP tools, to one client over stdin and stdout or to many over HTTP
#[derive(Args)]
pub(crate) struct Serve {
    /// Ids of components that were added, files (`.wasm` or `.wat`), or directories of them; all that was added, if none is named
    #[arg(value_name = "COMPONENT")]
    components: Vec<ComponentName>,
    /// Follow changes of the files, of what is added and of `host.toml`: swap what changed, and tell clients
    #[arg(long)]
    watch: bool,
    /// Let the agent load, remove and grant by itself, within what `host.toml` says under `[agent]`
    #[arg(long)]
    allow_agent_admin: bool,
    #[command(flatten)]
    load: LoadOptions,
    #[command(flatten)]
    grants: GrantOptions,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    audit: AuditOptions,
    #[command(flatten)]
    http: HttpArguments,
}

/// Lets this process have as many open files as it may. Sockets and files of many guests together are more than the usual 1024, and
/// none should fail because of others.
#[cfg(unix)]
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}

#[cfg(not(unix))]
fn raise_file_limit() {}

/// How long a thread waits for the next thing that cannot be done at once: agents think for minutes between two calls.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

/// Serves the one client over stdin and stdout on this thread: from one to another and back takes longer than most calls do.
fn converse(server: Server) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_keep_alive(PATIENCE)
        .build()?;
    // The first call of a component has its code mapped by a thread that should be there by then.
    runtime.spawn_blocking(|| ());
    let served = runtime.block_on(async {
        match sockets() {
            Some((read, write)) => serve(server, read, write).await,
            None => serve_stdio(server).await,
        }
    });
    runtime.shutdown_background();
    Ok(served?)
}

/// stdin and stdout, if they are sockets: what clients in Node give to what they start. Like pipes, they need no threads that wait.
#[cfg(unix)]
fn sockets() -> Option<(tokio::net::UnixStream, tokio::net::UnixStream)> {
    use std::os::fd::AsFd;
    // Whoever may yet have to read one of them with threads must find it as it was, so nothing is changed before both are known.
    let (read, write) = (socket(std::io::stdin().as_fd())?, socket(output::stdout().as_fd())?);
    let ready = |socket: std::os::unix::net::UnixStream| {
        socket.set_nonblocking(true)?;
        tokio::net::UnixStream::from_std(socket)
    };
    Some((ready(read).ok()?, ready(write).ok()?))
}

#[cfg(unix)]
fn socket(stream: std::os::fd::BorrowedFd<'_>) -> Option<std::os::unix::net::UnixStream> {
    use std::os::unix::fs::FileTypeExt;
    let file = std::fs::File::from(stream.try_clone_to_owned().ok()?);
    if !file.metadata().ok()?.file_type().is_socket() {
        return None;
    }
    let socket = std::os::unix::net::UnixStream::from(std::os::fd::OwnedFd::from(file));
    // Sockets of other families have other addresses.
    socket.local_addr().is_ok().then_some(socket)
}

#[cfg(not(unix))]
fn sockets() -> Option<(tokio::io::Stdin, tokio::io::Stdout)> {
    None
}

impl Serve {
    /// As part of an entry in a client, which starts it in a directory of its own choice.
    pub(crate) fn check_that_it_runs_anywhere(&self) -> anyhow::Result<()> {
        if let Some(component) = self.components.first() {
            let shown = component.path().display();
            bail!("`{shown}` is no option of `host serve`\nhint: name components before the `--`");
        }
        if !self.grants.is_empty() {
            bail!("grants stand before the `--`, where they are checked");
        }
        if self.http.is_set() {
            bail!("clients talk to what they start over stdin and stdout, and not over HTTP");
        }
        match self.load.relative_path().or(self.audit.relative_path()) {
            Some(path) => bail!(
                "`{}` has to be an absolute path, as the client starts `host` elsewhere",
                path.display()
            ),
            None => Ok(()),
        }
    }

    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        raise_file_limit();
        let running = Running::new(&self.grants, &self.limits, &self.audit)?;
        let manager = Arc::new(self.load.manager(running)?);
        manager.warm_up();
        serve_components(&manager, &self.components)?;
        if manager.tools().is_empty() && !self.watch && !self.allow_agent_admin {
            output::note("warning: there is no tool to serve\nhint: `host add SOURCE`, or name a file");
        }
        let server = if self.allow_agent_admin {
            Server::with_admin(Arc::clone(&manager))
        } else {
            Server::new(Arc::clone(&manager))
        };
        let http = self.http.prepare(manager.tools().len())?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let watch = match manager.watch(if self.watch { Follow::Everything } else { Follow::Grants }) {
            Ok(watch) => Some(watch),
            Err(error) if self.watch => return Err(error.into()),
            // Where nothing can be watched, what was granted at the start holds until the end.
            Err(error) => {
                tracing::debug!("{error}");
                None
            }
        };
        let holding = Arc::clone(&manager);
        // Another process may have the store to itself for a while, and nobody should wait for that.
        runtime.spawn_blocking(move || holding.hold_files());
        runtime.spawn(async move { manager.compile_ahead().await });
        if let Some(watch) = watch {
            runtime.spawn(watch.run());
        }
        let served = match http {
            Some(http) => runtime.block_on(http.serve(server)),
            None => converse(server),
        };
        // The clients are gone: nobody waits for what may still be compiling.
        runtime.shutdown_background();
        served?;
        Ok(ExitCode::SUCCESS)
    }
}
