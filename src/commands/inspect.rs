//! `host inspect`: what a component is, without running it.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use lifecycle::Inspection;
use serde::Serialize;

use crate::output;

/// Show what a component exports, imports and would need
#[derive(Args)]
pub(crate) struct Inspect {
    /// The component (`.wasm` or `.wat`)
    component: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// A WIT file or folder with docs for the component, instead of the one beside it
    #[arg(long, value_name = "PATH")]
    wit: Option<PathBuf>,
}

/// What `--json` prints. Wire contract: keys are only ever added.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    path: PathBuf,
    sha256: String,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    docs: Option<String>,
    exports: Vec<Export>,
    left_out: Vec<LeftOut>,
    imports: Vec<String>,
    unknown_imports: Vec<String>,
    may_need: Vec<Need>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Export {
    tool: String,
    export: String,
    signature: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    docs: Option<String>,
}

#[derive(Serialize)]
struct LeftOut {
    export: String,
    reason: String,
}

/// A capability that the component's imports let it ask for.
#[derive(Serialize, PartialEq)]
struct Need {
    capability: &'static str,
    because: String,
}

impl Inspect {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let report = Report::new(lifecycle::inspect(&self.component, self.wit.as_deref())?);
        if self.json {
            output::line(&serde_json::to_string_pretty(&report)?)?;
        } else {
            output::line(report.text().trim_end())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Report {
    fn new(inspection: Inspection) -> Self {
        let exports = &inspection.exports;
        Self {
            sha256: inspection.digest.to_string(),
            size: inspection.size,
            docs: exports
                .scopes
                .iter()
                .find(|scope| scope.interface.is_none())
                .map(|scope| scope.docs.clone()),
            exports: exports
                .functions
                .iter()
                .zip(&inspection.tools)
                .map(|(function, tool)| Export {
                    tool: tool.name.to_string(),
                    export: function.export.to_string(),
                    signature: function.signature(),
                    docs: function.docs.clone(),
                })
                .collect(),
            left_out: exports
                .left_out
                .iter()
                .map(|out| LeftOut {
                    export: out.export.clone(),
                    reason: out.reason.clone(),
                })
                .collect(),
            unknown_imports: sandbox::unknown_imports(&exports.imports)
                .into_iter()
                .map(str::to_owned)
                .collect(),
            may_need: needs(&exports.imports),
            imports: exports.imports.clone(),
            warnings: inspection.warnings,
            path: inspection.path,
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "{}", self.path.display())?;
        writeln!(text, "  size    {} bytes{}", self.size, approximate(self.size))?;
        writeln!(text, "  sha256  {}", self.sha256)?;
        if let Some(docs) = &self.docs {
            writeln!(text, "\n{}", indented(docs, 2))?;
        }
        writeln!(text, "\nTools ({})", self.exports.len())?;
        for export in &self.exports {
            writeln!(text, "  {}", export.tool)?;
            writeln!(text, "      {}", shortened(&export.signature))?;
            if let Some(docs) = &export.docs {
                writeln!(text, "{}", indented(docs, 6))?;
            }
        }
        if !self.left_out.is_empty() {
            writeln!(text, "\nExports that are no tools ({})", self.left_out.len())?;
            for out in &self.left_out {
                writeln!(text, "  {}: {}", shortened(&out.export), out.reason)?;
            }
        }
        writeln!(text, "\nImports ({})", self.imports.len())?;
        for import in &self.imports {
            let mark = if self.unknown_imports.contains(import) {
                "  (not offered by this host)"
            } else {
                ""
            };
            writeln!(text, "  {import}{mark}")?;
        }
        writeln!(text, "\nMay ask for")?;
        if self.may_need.is_empty() {
            writeln!(text, "  nothing")?;
        }
        for need in &self.may_need {
            writeln!(text, "  {} (imports {})", need.capability, need.because)?;
        }
        for warning in &self.warnings {
            writeln!(text, "\nwarning: {warning}")?;
        }
        Ok(())
    }
}

/// What the imports would let a component ask for. That it imports something does not mean that it uses it.
fn needs(imports: &[String]) -> Vec<Need> {
    const CAPABILITIES: [(&str, &str); 5] = [
        ("wasi:filesystem/preopens", "files"),
        ("wasi:http/outgoing-handler", "network"),
        ("wasi:http/client", "network"),
        ("wasi:sockets/network", "network"),
        ("wasi:cli/environment", "environment variables"),
    ];
    let mut needs: Vec<Need> = Vec::new();
    for (prefix, capability) in CAPABILITIES {
        let named = needs.iter().any(|need| need.capability == capability);
        if let (Some(import), false) = (imports.iter().find(|import| import.starts_with(prefix)), named) {
            needs.push(Need {
                capability,
                because: import.clone(),
            });
        }
    }
    needs
}

fn approximate(bytes: u64) -> String {
    match bytes {
        0..1024 => String::new(),
        1024..1_048_576 => format!(" ({:.1} KiB)", bytes as f64 / 1024.0),
        _ => format!(" ({:.1} MiB)", bytes as f64 / 1_048_576.0),
    }
}

fn indented(text: &str, by: usize) -> String {
    text.lines()
        .map(|line| format!("{}{line}", " ".repeat(by)))
        .collect::<Vec<_>>()
        .join("\n")
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}
