//! `host diff`: what changed between two catalogs.

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use catalog::Catalog;
use clap::Args;
use policy::Timeout;

use super::catalog::read;
use crate::options::LoadOptions;
use crate::output;
use crate::remote::{RemoteOptions, warn_of_problems};

/// Show what changed between two catalogs, with the changes that break callers marked; these end it with exit code 1
#[derive(Args)]
pub(crate) struct Diff {
    /// The earlier one: a file that `host catalog --json` wrote (`-` is stdin), or anything that `host catalog` takes
    old: String,
    /// The later one
    new: String,
    /// Print the changes as JSON
    #[arg(long)]
    json: bool,
    /// Time for each of connecting and listing, as in `500ms`, `30s`, `2m`
    #[arg(long, value_name = "TIME", default_value = "60s")]
    timeout: Timeout,
    #[command(flatten)]
    remote: RemoteOptions,
    #[command(flatten)]
    load: LoadOptions,
}

impl Diff {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let is_url = |text: &str| text.starts_with("http");
        if self.remote.sends_along() && is_url(&self.old) && is_url(&self.new) {
            bail!(
                "headers and tokens would go to both servers\nhint: write one catalog to a file with `host catalog --json` first"
            );
        }
        let (old, new) = (self.catalog(&self.old)?, self.catalog(&self.new)?);
        let diff = catalog::diff(old.document(), new.document());
        if self.json {
            output::line(&catalog::plain_json(&serde_json::to_string_pretty(&diff)?))?;
        } else {
            output::line(diff.to_text().trim_end())?;
        }
        Ok(ExitCode::from(u8::from(diff.is_breaking())))
    }

    fn catalog(&self, text: &str) -> anyhow::Result<Catalog> {
        let catalog = match written(text)? {
            Some(json) => Catalog::from_json(&json).with_context(|| format!("`{text}` cannot be compared"))?,
            None => read(text, &self.remote, &self.load, self.timeout.duration())?,
        };
        warn_of_problems(None, &catalog);
        Ok(catalog)
    }
}

/// The bytes of a file that looks like JSON.
fn written(text: &str) -> anyhow::Result<Option<Vec<u8>>> {
    if text == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).context("stdin could not be read")?;
        return Ok(Some(bytes));
    }
    let path = Path::new(text);
    let is_named_so = path.extension().is_some_and(|extension| extension == "json");
    if !is_named_so && (path.is_dir() || !path.exists()) {
        return Ok(None);
    }
    let bytes = std::fs::read(path).with_context(|| format!("`{text}` could not be read"))?;
    let is_json = bytes.trim_ascii_start().starts_with(b"{");
    Ok(Some(bytes).filter(|_| is_named_so || is_json))
}
