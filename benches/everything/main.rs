//! `cargo bench --workspace --bench everything` measures everything in one go and writes down what came of it: `RESULTS.md`, `results.svg`, a line of
//! `history.jsonl`, and the numbers of the README. With names of groups after `--` only those are measured, and with `--quick` everything a
//! tenth as often; then nothing is written but what is printed.

#![allow(clippy::disallowed_methods, reason = "what a benchmark writes is not lost if it is")]

mod bare;
mod calls;
mod conversion;
mod executed;
mod growth;
mod guests;
mod home;
mod http;
mod machine;
mod memory;
mod plot;
mod question;
mod report;
mod road;
mod start;
mod stats;
mod stdio;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::guests::Guests;
use crate::home::{Home, Store};
use crate::machine::Machine;
use crate::report::{Report, Section};

/// What is measured in this process has its memory from where `host` has it.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures one thing.
type Group = fn(&Setting) -> Result<Section>;

const GROUPS: [(&str, Group); 5] = [
    ("conversion", conversion::run),
    ("calls", calls::run),
    ("start", start::run),
    ("memory", memory::run),
    ("growth", growth::run),
];

/// What all groups use.
pub(crate) struct Setting {
    host: PathBuf,
    is_quick: bool,
    pub(crate) guests: Guests,
    /// By their number of components and of tools in each: some groups use the same.
    stores: RefCell<BTreeMap<(usize, usize), Rc<Store>>>,
    scratch: TempDir,
}

impl Setting {
    fn new(is_quick: bool) -> Result<Self> {
        let target = target_directory()?;
        Ok(Self {
            host: host(&target)?,
            is_quick,
            guests: Guests::in_folder(target.join("bench-guests"))?,
            stores: RefCell::default(),
            // Not in a directory that may be memory: files are written and read as users write and read them.
            scratch: tempfile::tempdir_in(&target)?,
        })
    }

    /// How often to do something that is done so often in a full run.
    pub(crate) fn rounds(&self, full: usize) -> usize {
        if self.is_quick { full.div_ceil(10) } else { full }
    }

    pub(crate) fn budget(&self, full: Duration) -> Duration {
        if self.is_quick { full / 10 } else { full }
    }

    /// A home in which nothing is stored yet.
    pub(crate) fn home(&self, name: &str) -> Result<Home> {
        Home::new(&self.host, self.scratch.path().join(name))
    }

    /// A store with so many components, each with so many tools.
    pub(crate) fn store(&self, components: usize, tools: usize) -> Result<Rc<Store>> {
        if let Some(store) = self.stores.borrow().get(&(components, tools)) {
            return Ok(Rc::clone(store));
        }
        let store = Rc::new(self.new_store("store", components, tools)?);
        self.stores.borrow_mut().insert((components, tools), Rc::clone(&store));
        Ok(store)
    }

    /// One that nobody else uses.
    pub(crate) fn new_store(&self, name: &str, components: usize, tools: usize) -> Result<Store> {
        let folder = self.scratch.path().join(format!("{name}-{components}-{tools}"));
        Store::new(&self.host, &folder, components, tools)
    }
}

fn main() -> Result<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut take = |flag: &str| {
        let before = arguments.len();
        arguments.retain(|argument| argument != flag);
        arguments.len() < before
    };
    // Tests run this too where they run all targets.
    if !take("--bench") {
        eprintln!("nothing is measured outside of `cargo bench`");
        return Ok(());
    }
    let is_quick = take("--quick");
    let known = GROUPS.map(|(name, _)| name);
    for name in &arguments {
        if !known.contains(&name.as_str()) {
            bail!("`{name}` is no group; there are: {}", known.join(", "));
        }
    }
    let is_wanted = |name: &str| arguments.is_empty() || arguments.iter().any(|argument| argument == name);

    let setting = Setting::new(is_quick)?;
    let mut report = Report {
        machine: Machine::look(),
        sections: Vec::new(),
    };
    for (name, group) in GROUPS.into_iter().filter(|(name, _)| is_wanted(name)) {
        let begin = Instant::now();
        let section = group(&setting).with_context(|| format!("group `{name}`"))?;
        println!("{}", section.markdown());
        eprintln!("{name}: measured in {:.0} s\n", begin.elapsed().as_secs_f64());
        report.sections.push(section);
    }
    println!("## Targets\n\n{}", report.targets_markdown());
    if arguments.is_empty() && !is_quick {
        report.keep(root())?;
    }
    Ok(())
}

/// The folder of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Cargo puts this program into `TARGET/release/deps`.
fn target_directory() -> Result<PathBuf> {
    let executable = std::env::current_exe()?;
    let target = executable
        .ancestors()
        .nth(3)
        .context("an executable of cargo is in its target directory")?;
    Ok(target.to_owned())
}

/// The `host` that is measured: `HOST_BIN`, or else the one that these sources give.
fn host(target: &Path) -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("HOST_BIN") {
        return Ok(path.into());
    }
    // What cargo has built for this program fits only if it is asked for both: all features of all dependencies are decided together.
    let mut build = Command::new(env!("CARGO"));
    build
        .args(["build", "--release", "--workspace", "--locked"])
        .args(["--bin", "host", "--bench", "everything", "--target-dir"])
        .arg(target)
        .current_dir(root());
    // What cargo has told this program of its package: build scripts that look at it would think that they are those of another one.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            build.env_remove(&name);
        }
    }
    let status = build.status()?;
    ensure!(status.success(), "`host` could not be built");
    Ok(target.join(format!("release/host{}", std::env::consts::EXE_SUFFIX)))
}
