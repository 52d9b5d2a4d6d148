//! `host`: serve any WebAssembly component's exports, and the commands of any compiled program, as MCP tools.
//!
//! Parses the command line, calls a crate, prints. Exit code 0 is success, 1 a tool that failed, a change that was not accepted or one
//! that breaks callers, 2 a wrong command line or a file or server that cannot be used.

mod clients;
mod commands;
mod http;
mod logging;
mod options;
mod output;
mod progress;
mod remote;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

/// The system's own makes threads wait for each other where many calls are under way.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Serve the functions of any WebAssembly component, or the commands of any program, as MCP tools, in a sandbox that grants nothing by default.
#[derive(Parser)]
#[command(version, disable_version_flag = true, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    /// Print the version
    #[arg(short = 'V', long)]
    version: bool,
    /// With `--version`: as JSON, with the versions of the protocol that are spoken
    #[arg(long, requires = "version")]
    json: bool,
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    logging: logging::LogOptions,
}

#[derive(Subcommand)]
enum Command {
    Serve(commands::serve::Serve),
    Tools(commands::tools::Tools),
    Inspect(commands::inspect::Inspect),
    Describe(commands::describe::Describe),
    EmbedDocs(commands::embed_docs::EmbedDocs),
    Call(commands::call::Call),
    Catalog(commands::catalog::CatalogCommand),
    Add(commands::add::Add),
    List(commands::list::List),
    Info(commands::info::Info),
    Update(commands::update::Update),
    Remove(commands::remove::Remove),
    Grant(commands::grant::Grant),
    Revoke(commands::grant::Revoke),
    Policy(commands::grant::Policy),
    Secret(commands::secret::Secret),
    Gc(commands::gc::Gc),
    Verify(commands::verify::Verify),
    Push(commands::push::Push),
    Diff(commands::diff::Diff),
    Clients(commands::clients::Clients),
    Install(commands::install::Install),
    Uninstall(commands::install::Uninstall),
    Completions(commands::completions::Completions),
    Man(commands::completions::Man),
    CompileWorker(commands::compile_worker::CompileWorker),
}

fn main() -> ExitCode {
    let words = commands::call::regroup(std::env::args_os().collect(), &Cli::command());
    let cli = Cli::parse_from(words);
    cli.logging.start();
    let result = match cli.command {
        Some(command) => command.run(),
        None if cli.version => print_version(cli.json),
        None => Cli::command()
            .error(
                ErrorKind::MissingSubcommand,
                "there is no command\nhint: `host --help` lists them",
            )
            .exit(),
    };
    result.unwrap_or_else(|error| {
        output::error(&format!("{error:#}"));
        ExitCode::from(2)
    })
}

impl Command {
    fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Serve(serve) => serve.run(),
            Self::Tools(tools) => tools.run(),
            Self::Inspect(inspect) => inspect.run(),
            Self::Describe(describe) => describe.run(),
            Self::EmbedDocs(embed_docs) => embed_docs.run(),
            Self::Call(call) => call.run(),
            Self::Catalog(catalog) => catalog.run(),
            Self::Add(add) => add.run(),
            Self::List(list) => list.run(),
            Self::Info(info) => info.run(),
            Self::Update(update) => update.run(),
            Self::Remove(remove) => remove.run(),
            Self::Grant(grant) => grant.run(),
            Self::Revoke(revoke) => revoke.run(),
            Self::Policy(policy) => policy.run(),
            Self::Secret(secret) => secret.run(),
            Self::Gc(gc) => gc.run(),
            Self::Verify(verify) => verify.run(),
            Self::Push(push) => push.run(),
            Self::Diff(diff) => diff.run(),
            Self::Clients(clients) => clients.run(),
            Self::Install(install) => install.run(),
            Self::Uninstall(uninstall) => uninstall.run(),
            Self::Completions(completions) => completions.run(),
            Self::Man(man) => man.run(),
            Self::CompileWorker(worker) => worker.run(),
        }
    }
}

fn print_version(json: bool) -> anyhow::Result<ExitCode> {
    let version = env!("CARGO_PKG_VERSION");
    if json {
        let version = serde_json::json!({
            "name": "host",
            "version": version,
            "protocolVersions": mcp_server::protocol_versions(),
            "platform": format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        });
        output::line(&version.to_string())?;
    } else {
        output::line(&format!("host {version}"))?;
    }
    Ok(ExitCode::SUCCESS)
}
