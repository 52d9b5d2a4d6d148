//! `host`: serve any WebAssembly component's exports, and the commands of any compiled program, as MCP tools.
//!
//! Parses the command line, calls a crate, prints. Exit code 0 is success, 1 a tool that failed or a change that was not accepted, 2 a
//! wrong command line or a file that cannot be used.

mod commands;
mod logging;
mod options;
mod output;
mod progress;
mod remote;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Serve the functions of any WebAssembly component, or the commands of any program, as MCP tools, in a sandbox that grants nothing by default.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
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
    Gc(commands::gc::Gc),
    Verify(commands::verify::Verify),
    Push(commands::push::Push),
}

fn main() -> ExitCode {
    let words = commands::call::regroup(std::env::args_os().collect(), &Cli::command());
    let cli = Cli::parse_from(words);
    cli.logging.start();
    let result = match cli.command {
        Command::Serve(serve) => serve.run(),
        Command::Tools(tools) => tools.run(),
        Command::Inspect(inspect) => inspect.run(),
        Command::Describe(describe) => describe.run(),
        Command::EmbedDocs(embed_docs) => embed_docs.run(),
        Command::Call(call) => call.run(),
        Command::Catalog(catalog) => catalog.run(),
        Command::Add(add) => add.run(),
        Command::List(list) => list.run(),
        Command::Info(info) => info.run(),
        Command::Update(update) => update.run(),
        Command::Remove(remove) => remove.run(),
        Command::Gc(gc) => gc.run(),
        Command::Verify(verify) => verify.run(),
        Command::Push(push) => push.run(),
    };
    result.unwrap_or_else(|error| {
        output::error(&format!("{error:#}"));
        ExitCode::from(2)
    })
}
