//! `host gc`: free what nothing uses.

use std::process::ExitCode;

use clap::Args;

use crate::{options, output};

/// Free what neither an added component nor a running server uses
#[derive(Args)]
pub(crate) struct Gc {}

impl Gc {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let collected = options::store_manager()?.store()?.collect_garbage()?;
        let size = output::size(collected.bytes);
        output::line(&match collected.files {
            0 => "nothing to free".to_owned(),
            1 => format!("freed {size} in one file"),
            files => format!("freed {size} in {files} files"),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
