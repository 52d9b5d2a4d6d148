//! `host completions` and `host man`: what a shell and `man` know of this program.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::{Cli, output};

/// Print a script that completes the command line of `host` in a shell
#[derive(Args)]
pub(crate) struct Completions {
    shell: Shell,
}

/// Print the manual page, or write one for every command into a directory
#[derive(Args)]
pub(crate) struct Man {
    /// Where to write `host.1`, `host-serve.1` and so on
    directory: Option<PathBuf>,
}

impl Completions {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "host", &mut script);
        output::bytes(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Man {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        let Some(directory) = self.directory else {
            output::bytes(&page(&command)?)?;
            return Ok(ExitCode::SUCCESS);
        };
        std::fs::create_dir_all(&directory).with_context(|| format!("`{}` could not be made", directory.display()))?;
        let write = |command: &clap::Command, name: &str| {
            let file = directory.join(format!("{name}.1"));
            lifecycle::write_atomically(&file, &page(command)?)
                .with_context(|| format!("`{}` could not be written", file.display()))
        };
        write(&command, "host")?;
        for sub in command.get_subcommands() {
            let name = format!("host-{}", sub.get_name());
            write(&sub.clone().name(name.clone()), &name)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn page(command: &clap::Command) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}
