//! `host add`: take a component in, once, for all later starts.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use clap::Args;
use lifecycle::{Added, Candidate, ComponentId, LifecycleManager, Wanted};
use policy::Grants;
use sources::{Digest, Source};

use crate::options::{GrantOptions, NetworkOptions};
use crate::output;

/// Add a component or program, so that `host serve` has it from now on
///
/// It is fetched, checked, compiled and kept. Its digest and its tools are remembered, and only `host update` changes them.
#[derive(Args)]
pub(crate) struct Add {
    /// A file, a directory of files, `https://…`, or `oci://REGISTRY/REPOSITORY:TAG` or `@sha256:…`
    source: String,
    /// The id to keep it under, instead of one made from the name of its source
    #[arg(long, value_name = "ID", value_parser = ComponentId::parse)]
    name: Option<ComponentId>,
    /// Refuse it unless its bytes have this SHA-256
    #[arg(long, value_name = "DIGEST", value_parser = Digest::from_person)]
    sha256: Option<Digest>,
    /// A WIT file or folder with docs for the component, instead of the one beside it
    #[arg(long, value_name = "PATH")]
    wit: Option<PathBuf>,
    #[command(flatten)]
    grants: GrantOptions,
    #[command(flatten)]
    network: NetworkOptions,
}

impl Add {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let grants = self.grants.granted_for_good()?;
        let manager = self.network.manager()?;
        manager.store()?;
        let sources = manager.sources(&self.source)?;
        if sources.len() > 1 && (self.name.is_some() || self.sha256.is_some()) {
            bail!(
                "`{}` has {} components in it, and only one can have that name or digest\nhint: add them one by one",
                self.source,
                sources.len()
            );
        }
        let wanted = Wanted {
            name: self.name,
            sha256: self.sha256,
            wit: self.wit.map(std::path::absolute).transpose()?,
            ..Wanted::default()
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut failed = 0;
        let count = sources.len();
        for source in sources {
            let added = match source {
                Ok(source) => runtime.block_on(add(&manager, &source, wanted.clone(), &grants)),
                Err(error) => Err(error.into()),
            };
            match added {
                Ok(()) => {}
                Err(error) if count == 1 => return Err(error),
                Err(error) => {
                    failed += 1;
                    output::error(&format!("{error:#}"));
                }
            }
        }
        if failed > 0 {
            output::note(&format!("{failed} of {count} were not added"));
            return Ok(ExitCode::from(1));
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn add(manager: &Arc<LifecycleManager>, source: &Source, wanted: Wanted, grants: &Grants) -> anyhow::Result<()> {
    let candidate = manager.fetch(source, wanted).await?;
    let added = manager.add(&candidate, grants)?;
    let Candidate { id, digest, .. } = &candidate;
    let done = match added {
        Added::New => format!("added `{id}` from {}", source.shown()),
        Added::Unchanged => format!("`{id}` was added before, and is the same"),
        Added::Changed => format!("`{id}` was added before, and has what you gave with it now"),
    };
    let tools: Vec<String> = candidate.tools().iter().map(|tool| tool.name.to_string()).collect();
    output::line(&format!("{done}\n  digest  {digest}\n  tools   {}", tools.join(", ")))?;
    for note in &candidate.notes {
        output::note(&format!("note: {note}"));
    }
    Ok(())
}
