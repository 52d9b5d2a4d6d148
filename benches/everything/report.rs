//! What was measured, in words and tables: sections with their targets, `RESULTS.md`, the line for `history.jsonl`, and the part of the
//! README.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::machine::Machine;
use crate::plot::plot;

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Times,
    Micros,
    Millis,
    Megabytes,
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Self::Times => times(value),
            Self::Micros => duration(Duration::from_secs_f64(value / 1e6)),
            Self::Millis => duration(Duration::from_secs_f64(value / 1e3)),
            Self::Megabytes => format!("{value:.1} MB"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Times => "times",
            Self::Micros => "µs",
            Self::Millis => "ms",
            Self::Megabytes => "MB",
        }
    }
}

/// A number that has a limit.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) what: String,
    measured: f64,
    limit: f64,
    unit: Unit,
    is_least: bool,
    /// What the limit is taken from.
    because: String,
    /// It would be good, and is not asked for.
    is_stretch: bool,
    /// Not for the front page.
    is_minor: bool,
}

impl Target {
    pub(crate) fn at_most(what: &str, measured: f64, limit: f64, unit: Unit) -> Self {
        Self {
            what: what.to_owned(),
            measured,
            limit,
            unit,
            is_least: false,
            because: String::new(),
            is_stretch: false,
            is_minor: false,
        }
    }

    pub(crate) fn at_least(what: &str, measured: f64, limit: f64, unit: Unit) -> Self {
        Self {
            is_least: true,
            ..Self::at_most(what, measured, limit, unit)
        }
    }

    pub(crate) fn because(mut self, because: &str) -> Self {
        self.because = because.to_owned();
        self
    }

    pub(crate) fn stretch(mut self) -> Self {
        self.is_stretch = true;
        self.minor()
    }

    pub(crate) fn minor(mut self) -> Self {
        self.is_minor = true;
        self
    }

    pub(crate) fn is_met(&self) -> bool {
        self.share() <= 1.0
    }

    /// How much of the limit is used up.
    pub(crate) fn share(&self) -> f64 {
        match self.is_least {
            true => self.limit / self.measured,
            false => self.measured / self.limit,
        }
    }

    pub(crate) fn measured(&self) -> String {
        self.unit.show(self.measured)
    }

    pub(crate) fn limit(&self) -> String {
        let word = if self.is_least { "at least" } else { "at most" };
        let limit = self.unit.show(self.limit);
        match self.because.as_str() {
            "" => format!("{word} {limit}"),
            because => format!("{word} {limit} ({because})"),
        }
    }

    fn verdict(&self) -> &'static str {
        match (self.is_met(), self.is_stretch) {
            (true, _) => "yes",
            (false, true) => "no, and it need not be",
            (false, false) => "**no**",
        }
    }

    fn row(&self) -> String {
        format!(
            "| {} | {} | {} | {} |\n",
            self.what,
            self.measured(),
            self.limit(),
            self.verdict()
        )
    }

    fn to_json(&self) -> Value {
        json!({
            "what": self.what, "measured": self.measured, "limit": self.limit, "unit": self.unit.name(),
            "bound": if self.is_least { "least" } else { "most" }, "met": self.is_met(),
        })
    }
}

pub(crate) struct Table {
    title: String,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(title: &str, header: &[&str]) -> Self {
        Self {
            title: title.to_owned(),
            header: header.iter().map(ToString::to_string).collect(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule = format!("|---|{}\n", "---:|".repeat(self.header.len() - 1));
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("**{}**\n\n{}{rule}{rows}", self.title, line(&self.header))
    }
}

/// What one group found out.
pub(crate) struct Section {
    title: &'static str,
    /// Texts and tables, in order.
    parts: Vec<String>,
    targets: Vec<Target>,
}

impl Section {
    pub(crate) fn new(title: &'static str) -> Self {
        Self {
            title,
            parts: Vec::new(),
            targets: Vec::new(),
        }
    }

    pub(crate) fn text(mut self, text: impl Into<String>) -> Self {
        self.parts.push(text.into() + "\n");
        self
    }

    #[expect(clippy::needless_pass_by_value, reason = "a table belongs to one section")]
    pub(crate) fn table(mut self, table: Table) -> Self {
        self.parts.push(table.markdown());
        self
    }

    pub(crate) fn target(mut self, target: Target) -> Self {
        self.targets.push(target);
        self
    }

    pub(crate) fn markdown(&self) -> String {
        format!("## {}\n\n{}", self.title, self.parts.join("\n"))
    }
}

/// Everything of one run.
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) sections: Vec<Section>,
}

impl Report {
    fn targets(&self) -> impl Iterator<Item = &Target> {
        self.sections.iter().flat_map(|section| &section.targets)
    }

    pub(crate) fn targets_markdown(&self) -> String {
        let rows: String = self.targets().map(Target::row).collect();
        format!("| | measured | limit | met |\n|---|---:|---|---|\n{rows}")
    }

    /// Keeps the whole run: the results for people, the line for whoever compares runs, the picture, and the README's part.
    pub(crate) fn keep(&self, root: &Path) -> Result<()> {
        let benches = root.join("benches");
        fs::write(benches.join("RESULTS.md"), self.results())?;
        let mut history = OpenOptions::new()
            .create(true)
            .append(true)
            .open(benches.join("history.jsonl"))?;
        writeln!(history, "{}", self.to_json())?;
        let shown: Vec<&Target> = self.targets().filter(|target| !target.is_minor).collect();
        fs::write(benches.join("results.svg"), plot(&shown))?;
        self.keep_in_readme(&root.join("README.md"))
    }

    fn results(&self) -> String {
        let mut text = String::from(
            "# Results\n\n\
             Written by `cargo bench --workspace --bench everything`, and by nobody's hand; every earlier run is a line of `history.jsonl`. \
             [README.md](README.md) says what is measured and how.\n\n",
        );
        for (what, value) in self.machine.facts() {
            // Writing to a `String` does not fail.
            let _ = writeln!(text, "- {what}: {value}");
        }
        let _ = write!(
            text,
            "\n## Targets\n\n{}\n![How much of each limit is used](results.svg)\n",
            self.targets_markdown()
        );
        for section in &self.sections {
            let _ = write!(text, "\n{}", section.markdown());
        }
        text
    }

    fn to_json(&self) -> Value {
        let targets: Vec<Value> = self.targets().map(Target::to_json).collect();
        let mut line = self.machine.to_json();
        line["targets"] = targets.into();
        line
    }

    /// Where the README has a place for it.
    fn keep_in_readme(&self, readme: &Path) -> Result<()> {
        const BEGIN: &str = "<!-- bench -->\n";
        const END: &str = "<!-- /bench -->";
        let text = fs::read_to_string(readme)?;
        let Some((before, rest)) = text.split_once(BEGIN) else {
            return Ok(());
        };
        let Some((_, after)) = rest.split_once(END) else {
            return Ok(());
        };
        let rows: String = self.targets().filter(|target| !target.is_minor).map(Target::row).collect();
        let part = format!(
            "| | measured | limit | met |\n|---|---:|---|---|\n{rows}\n![How much of each limit is used](benches/results.svg)\n\n\
             {}. [All results](benches/RESULTS.md).\n",
            self.machine.in_short()
        );
        Ok(fs::write(readme, format!("{before}{BEGIN}{part}{END}{after}"))?)
    }
}

pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        0.0..1e-6 => format!("{:.0} ns", seconds * 1e9),
        1e-6..1e-5 => format!("{:.2} µs", seconds * 1e6),
        1e-5..1e-3 => format!("{:.1} µs", seconds * 1e6),
        1e-3..1e-1 => format!("{:.2} ms", seconds * 1e3),
        1e-1..1.0 => format!("{:.0} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}

pub(crate) fn times(ratio: f64) -> String {
    match ratio {
        0.0..100.0 => format!("{ratio:.2} ×"),
        _ => format!("{ratio:.0} ×"),
    }
}

pub(crate) fn per_second(rate: f64) -> String {
    match rate {
        0.0..1_000.0 => format!("{rate:.0}/s"),
        _ => format!("{:.1} k/s", rate / 1e3),
    }
}
