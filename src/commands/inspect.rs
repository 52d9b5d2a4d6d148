//! `host inspect`: what a component is. Of a program only the help is run, in the empty sandbox.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use component2json::Exports;
use lifecycle::{CommandSource, Inspection, Interface, Plan, Tool};
use serde::Serialize;

use crate::options::{ComponentName, LoadOptions, Running};
use crate::output;

/// Show what a component or program offers, imports and would need
#[derive(Args)]
pub(crate) struct Inspect {
    /// The component or program: a file (`.wasm` or `.wat`), or the id of one that was added
    component: ComponentName,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    load: LoadOptions,
}

/// What `--json` prints. Wire contract: keys are only ever added.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    path: PathBuf,
    sha256: String,
    size: u64,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    docs: Option<String>,
    /// Where the commands of a program are known from.
    #[serde(skip_serializing_if = "Option::is_none")]
    commands_from: Option<CommandSource>,
    /// The functions, or the commands, that are tools.
    exports: Vec<Export>,
    left_out: Vec<LeftOut>,
    /// Interfaces of `host:mcp` that it exports.
    offers: Vec<String>,
    imports: Vec<String>,
    unknown_imports: Vec<String>,
    may_need: Vec<Need>,
    /// What was noticed when a program was asked for its help.
    notes: Vec<String>,
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
        let manager = self.load.manager(Running::default())?;
        let report = Report::new(manager.inspect(&self.component.find(&manager)?)?);
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
        let interface = &inspection.interface;
        let exports = interface.exports();
        let program = match interface {
            Interface::Program(program) => Some(program),
            Interface::Functions { .. } => None,
        };
        let world = exports.scopes.iter().find(|scope| scope.interface.is_none());
        Self {
            sha256: inspection.digest.hex(),
            size: inspection.size,
            kind: match program {
                None => "component",
                Some(program) if program.is_module => "program (core module)",
                Some(_) => "program (component)",
            },
            docs: match program {
                None => world.map(|scope| scope.docs.clone()),
                Some(program) => program.command.summary.clone(),
            },
            commands_from: program.map(|program| program.source),
            exports: inspection.tools.iter().filter_map(Export::new).collect(),
            left_out: exports
                .left_out
                .iter()
                .map(|out| LeftOut {
                    export: out.export.clone(),
                    reason: out.reason.clone(),
                })
                .collect(),
            offers: offers(exports),
            unknown_imports: interface.unknown_imports().into_iter().map(str::to_owned).collect(),
            may_need: needs(&exports.imports),
            imports: exports.imports.clone(),
            notes: program
                .map(|program| {
                    let broken = program.broken.iter().map(|reason| format!("it cannot be run: {reason}"));
                    program.notes.iter().cloned().chain(broken).collect()
                })
                .unwrap_or_default(),
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
        writeln!(text, "  kind    {}", self.kind)?;
        if let Some(source) = self.commands_from {
            writeln!(text, "  tools   {}", in_words(source))?;
        }
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
        if !self.offers.is_empty() {
            writeln!(text, "\nOffers besides tools")?;
            for offer in &self.offers {
                writeln!(text, "  {offer}")?;
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
        for note in &self.notes {
            writeln!(text, "\nnote: {note}")?;
        }
        for warning in &self.warnings {
            writeln!(text, "\nwarning: {warning}")?;
        }
        Ok(())
    }
}

impl Export {
    fn new(tool: &Tool) -> Option<Self> {
        let name = tool.definition.name.to_string();
        Some(match tool.plan()? {
            Plan::Function(function) => Self {
                tool: name,
                export: function.export.to_string(),
                signature: function.signature(),
                docs: function.docs.clone(),
            },
            Plan::Command(target) => Self {
                tool: name,
                export: target.plans().iter().map(|plan| plan.name()).collect::<Vec<_>>().join(", "),
                signature: target.plans().iter().map(|plan| plan.usage()).collect::<Vec<_>>().join("; "),
                docs: tool.definition.description.lines().next().map(str::to_owned),
            },
        })
    }
}

/// The interfaces that the host calls for itself.
fn offers(exports: &Exports) -> Vec<String> {
    let mut names: Vec<String> = exports
        .offers
        .iter()
        .filter_map(|function| function.export.interface.clone())
        .collect();
    names.dedup();
    names
}

fn in_words(source: CommandSource) -> &'static str {
    match source {
        CommandSource::Help => "from its help",
        CommandSource::Description => "from its description",
        CommandSource::Both => "from its help and its description",
        CommandSource::Nothing => "nothing is known of its commands",
    }
}

/// What the imports would let a component ask for. That it imports something does not mean that it uses it.
fn needs(imports: &[String]) -> Vec<Need> {
    const CAPABILITIES: [(&str, &str); 10] = [
        ("wasi_snapshot_preview1.path_open", "files"),
        ("wasi_snapshot_preview1.environ_get", "environment variables"),
        ("wasi:filesystem/preopens", "files"),
        ("wasi:http/outgoing-handler", "network"),
        ("wasi:http/client", "network"),
        ("wasi:sockets/network", "network"),
        ("wasi:cli/environment", "environment variables"),
        ("host:mcp/elicit", "answers of the user"),
        ("host:mcp/sample", "answers of the client's model"),
        ("host:mcp/roots", "the folders of the client"),
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
        .map(|line| format!("{}{line}", " ".repeat(by)).trim_end().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}
