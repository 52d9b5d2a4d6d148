//! `host verify`: look whether everything in the store is as it was written.

use std::process::ExitCode;

use clap::Args;

use crate::{options, output};

/// Check every file of the store against its digest or seal
#[derive(Args)]
pub(crate) struct Verify {
    /// Delete what can be made again, and accept an index that was changed by hand
    #[arg(long)]
    repair: bool,
}

impl Verify {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let verified = options::store_manager()?.store()?.verify(self.repair)?;
        let mut wrong = 0;
        for finding in &verified.findings {
            let owner = finding
                .component
                .as_ref()
                .map(|id| format!(" (of `{id}`)"))
                .unwrap_or_default();
            let repaired = if finding.repaired { "; repaired" } else { "" };
            output::line(&format!("{}{owner} {}{repaired}", finding.path.display(), finding.problem))?;
            wrong += usize::from(!finding.repaired);
        }
        let (components, files, unused) = (verified.components, verified.files, verified.unused);
        let summary = match wrong {
            0 => "all is as it was written".to_owned(),
            1 => "one file is not as it was written".to_owned(),
            wrong => format!("{wrong} files are not as they were written"),
        };
        output::line(&format!("components: {components}, files checked: {files}; {summary}"))?;
        if unused.files > 0 {
            let size = output::size(unused.bytes);
            let files = match unused.files {
                1 => "one file".to_owned(),
                files => format!("{files} files"),
            };
            output::note(&format!("room for `host gc` to free: {size} in {files}"));
        }
        if wrong > 0 {
            output::note("hint: `host verify --repair` deletes what can be made again; `host update ID` fetches a component anew");
        }
        Ok(ExitCode::from(u8::from(wrong > 0)))
    }
}
