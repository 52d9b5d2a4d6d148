//! `host grant`, `host revoke`, `host policy`: what a component that was added may use.

use std::fmt::Write as _;
use std::num::NonZeroU64;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use lifecycle::{ComponentId, Entry, InstanceMode, PolicyReport, Selection};
use policy::{ByteSize, Grants, LimitSettings, Timeout};

use crate::options::{self, GrantOptions, LoadOptions, Running};
use crate::output;

/// Let a component that was added use something, from now on
///
/// That holds for the bytes that it has now: after an update with other bytes it has to be granted again.
#[derive(Args)]
pub(crate) struct Grant {
    /// Its id: `host list` shows all
    #[arg(value_parser = ComponentId::parse)]
    id: ComponentId,
    #[command(flatten)]
    grants: GrantOptions,
}

/// Take back what a component was granted
#[derive(Args)]
pub(crate) struct Revoke {
    /// Its id: `host list` shows all
    #[arg(value_parser = ComponentId::parse)]
    id: ComponentId,
    /// Take back all that was granted; denials stay
    #[arg(long)]
    everything: bool,
    #[command(flatten)]
    grants: GrantOptions,
}

/// Show what a component may use, who said so, and what it asks for and was not granted
#[derive(Args)]
pub(crate) struct Policy {
    /// Its id: `host list` shows all
    #[arg(value_parser = ComponentId::parse)]
    id: ComponentId,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    load: LoadOptions,
}

impl Grant {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if self.grants.is_empty() {
            bail!(
                "nothing is named that `{0}` should have\nhint: `host grant {0} --allow-read=DIR`; `host grant --help` lists what there is",
                self.id
            );
        }
        let grants = self.grants.granted_for_good()?;
        let entry = options::store_manager()?.grant(&self.id, &grants)?;
        print(&entry)
    }
}

impl Revoke {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let rules = self.grants.revoked()?;
        if !rules.is_empty() && self.everything {
            bail!("`--everything` is more than the rules beside it\nhint: leave out the one or the others");
        }
        if rules.is_empty() && !self.everything {
            bail!(
                "name what to take back from `{0}`, or `--everything`\nhint: `host policy {0}` shows what it has",
                self.id
            );
        }
        let entry = options::store_manager()?.revoke(&self.id, &rules)?;
        print(&entry)
    }
}

fn print(entry: &Entry) -> anyhow::Result<ExitCode> {
    let Entry { id, grants, digest, .. } = entry;
    if grants.is_empty() {
        output::line(&format!("`{id}` is granted nothing"))?;
    } else {
        let rules: String = grants.rules().iter().map(|rule| format!("\n  {rule}")).collect();
        output::line(&format!("`{id}` is granted{rules}\n  for {digest}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Policy {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let manager = self.load.manager(Running::default())?;
        manager.store()?.entry(&self.id)?;
        manager.serve_added(Selection::All)?;
        let report = manager.policy_report(&self.id)?;
        if self.json {
            output::line(&serde_json::to_string_pretty(&report)?)?;
        } else {
            output::line(text(&report)?.trim_end())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn text(report: &PolicyReport) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    writeln!(text, "{}", report.id)?;
    writeln!(text, "  digest  {}", report.digest.as_deref().unwrap_or("unknown"))?;
    match report.rules.as_slice() {
        [] => writeln!(text, "  rules   none: it may use nothing of this machine")?,
        rules => {
            writeln!(text, "  rules")?;
            let width = rules.iter().map(|rule| rule.rule.chars().count()).max().unwrap_or(0);
            for rule in rules {
                writeln!(text, "    {:width$}  ({})", rule.rule, rule.from)?;
            }
        }
    }
    if !report.not_granted.is_empty() {
        writeln!(text, "  imported, and not granted")?;
        for missing in &report.not_granted {
            writeln!(text, "    {}: `host grant {} {}`", missing.what, report.id, missing.option)?;
        }
    }
    if report.instance == InstanceMode::Shared {
        writeln!(text, "  instance shared: its calls see what others left there")?;
    }
    let limits = &report.limits;
    // As they are written in options and files.
    let time =
        |milliseconds: u64| NonZeroU64::new(milliseconds).map_or_else(String::new, |ms| Timeout::from_millis(ms).to_string());
    let size = |bytes: u64| ByteSize::from_bytes(bytes).to_string();
    writeln!(text, "  limits of one call")?;
    let rows = [
        ("time", time(limits.timeout_ms)),
        ("computing", time(limits.max_cpu_ms)),
        ("memory", size(limits.max_memory_bytes)),
        ("result", size(limits.max_output_bytes)),
        ("each stream", size(limits.max_stdio_bytes)),
        ("received", size(limits.max_received_bytes)),
        ("connecting", time(limits.connect_timeout_ms)),
        ("handles", limits.max_handles.to_string()),
        (
            "at a time",
            format!("{}, {} more wait", limits.max_concurrent_calls, limits.max_waiting_calls),
        ),
    ];
    for (what, limit) in rows {
        writeln!(text, "    {what:12} {limit}")?;
    }
    Ok(text)
}

impl GrantOptions {
    /// What can be granted for good: only what the store keeps, and nothing without a bound.
    pub(crate) fn granted_for_good(&self) -> anyhow::Result<Grants> {
        let granted = self.granted()?;
        if granted.grants.all {
            bail!("`--allow-all` is for trying things out, and cannot be granted for good\nhint: grant what is needed, one by one");
        }
        if granted.limits != LimitSettings::default() {
            bail!(
                "the policy file sets limits, which are not kept with grants\nhint: set them in `host.toml`, under `[components.ID.limits]`, and leave them out here"
            );
        }
        Ok(granted.grants)
    }
}
