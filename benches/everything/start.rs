//! From the start of the process to its answers, with more and more components in the store.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use crate::Setting;
use crate::guests::{megabytes, tiny_function};
use crate::home::Home;
use crate::question::{Asked, Era, Question, opening};
use crate::report::{Section, Table, Target, Unit, duration};
use crate::stats::{Times, millis};
use crate::stdio::Process;

/// Stores of these sizes are started from.
pub(crate) const COMPONENTS: [usize; 4] = [1, 10, 100, 1_000];

/// How often each start is repeated.
const WARM: usize = 20;
const COLD: usize = 3;

/// When each answer was there, since the process was started.
#[derive(Default)]
struct Starts {
    opened: Vec<Duration>,
    listed: Vec<Duration>,
    /// Since the list was there: what the first call takes.
    called: Vec<Duration>,
}

/// The same, to be read.
struct Summary {
    opened: Times,
    listed: Times,
    called: Times,
}

impl From<Starts> for Summary {
    fn from(starts: Starts) -> Self {
        Self {
            opened: Times::new(starts.opened),
            listed: Times::new(starts.listed),
            called: Times::new(starts.called),
        }
    }
}

/// A tool, what it is given, and what has to be in its answer.
type FirstCall = (String, serde_json::Value, String);

pub(crate) fn run(setting: &Setting) -> Result<Section> {
    let columns = ["stored", "", "opened", "listed", "slowest", "first call after that"];
    let mut warm = Table::new("Warm: what was added is compiled", &columns);
    let mut cold = Table::new("Cold: the components are there, and nothing was ever compiled", &columns);
    let mut adding = Table::new("`host add`, which compiles", &["components", "all", "each"]);
    let mut listed = Vec::new();
    for count in COMPONENTS {
        let store = setting.store(count, 1)?;
        adding.row(vec![
            count.to_string(),
            duration(store.added),
            duration(store.added / u32::try_from(count)?),
        ]);
        let first_call = tiny_call(count - 1);
        let mut session = Duration::default();
        for era in [Era::Session, Era::Stateless] {
            let started = starts(setting.rounds(WARM), &store.home, era, &first_call, false)?;
            row(&mut warm, &count.to_string(), era, &started);
            if era == Era::Session {
                session = started.listed.median();
            }
        }
        listed.push(session);
        let code = store.home.set_code_aside()?;
        let started = starts(setting.rounds(COLD), &store.home, Era::Session, &first_call, true)?;
        row(&mut cold, &count.to_string(), Era::Session, &started);
        store.home.bring_back(&code)?;
    }

    let mut section = Section::new("Start").text(
        "From the start of the process until `initialize` (or `server/discover`) is answered, and until `tools/list` is; medians. The first call is \
         timed from there: it maps the code of its component, or waits for the compiler.",
    );
    let mut heavy = Table::new(
        "A heavy component among 100 small ones, warm",
        &["", "opened", "listed", "its first call"],
    );
    let large = setting.guests.large()?;
    let first = among_others(setting, &mut heavy, "large", &large, "add")?;
    if let Some(library) = setting.guests.library() {
        among_others(setting, &mut heavy, "Rust", &library, "add")?;
    }
    if let Some(python) = setting.guests.script("kitchen-python") {
        among_others(setting, &mut heavy, "Python", &python, "test_kitchen_kitchen_add")?;
    }
    let peer = starts_of_peer(setting)?;
    section = section
        .table(warm)
        .text(format!(
            "rmcp's echo, which has one tool and nothing to read, is opened after {} and listed after {}.",
            duration(peer.opened.median()),
            duration(peer.listed.median())
        ))
        .table(cold)
        .table(adding)
        .table(heavy);

    if let [one, _, hundred, _] = listed.as_slice() {
        section = section
            .target(Target::at_most(
                "start to `tools/list`, 100 stored components",
                millis(*hundred),
                25.0,
                Unit::Millis,
            ))
            .target(
                Target::at_most(
                    "the same, beyond a start with 1 component",
                    millis(hundred.saturating_sub(*one)),
                    20.0,
                    Unit::Millis,
                )
                .because("more than with 1"),
            );
    }
    Ok(section.target(Target::at_most(
        "first call of a stored component of 3 MB",
        millis(first),
        5.0,
        Unit::Millis,
    )))
}

/// Starts with a store that has a hundred small components and this one, and what its first call takes.
fn among_others(setting: &Setting, table: &mut Table, name: &str, file: &Path, tool: &str) -> Result<Duration> {
    let store = setting.new_store(&format!("with-{name}"), 100, 1)?;
    let added = store.home.add(file)?;
    let call = (tool.to_owned(), json!({"a": 2, "b": 40}), r#"{"result":42}"#.to_owned());
    let started = starts(setting.rounds(WARM), &store.home, Era::Session, &call, false)?;
    table.row(vec![
        format!("{name}, {:.1} MB, added in {}", megabytes(file)?, duration(added)),
        duration(started.opened.median()),
        duration(started.listed.median()),
        duration(started.called.median()),
    ]);
    Ok(started.called.median())
}

fn starts(rounds: usize, home: &Home, era: Era, call: &FirstCall, is_cold: bool) -> Result<Summary> {
    let (tool, arguments, expected) = call;
    let call = Asked::call(tool, arguments).of_era(era);
    let mut starts = Starts::default();
    for _ in 0..rounds {
        if is_cold {
            home.forget_code()?;
        }
        let begin = Instant::now();
        let mut process = home.serve(&[], &[])?;
        let listed = open_and_list(&mut process, era, begin, &mut starts)?;
        crate::road::check(tool, process.ask(&call)?, expected)?;
        starts.called.push(begin.elapsed() - listed);
    }
    Ok(starts.into())
}

fn starts_of_peer(setting: &Setting) -> Result<Summary> {
    let mut starts = Starts::default();
    for _ in 0..setting.rounds(WARM) {
        let begin = Instant::now();
        let mut process = Process::start(&mut std::process::Command::new(env!("CARGO_BIN_EXE_rmcp-echo")))?;
        open_and_list(&mut process, Era::Session, begin, &mut starts)?;
    }
    Ok(starts.into())
}

/// What a client does first, and when it was done.
fn open_and_list(process: &mut Process, era: Era, begin: Instant, starts: &mut Starts) -> Result<Duration> {
    process.send(Question::line(&opening(era)).next())?;
    process.receive()?;
    starts.opened.push(begin.elapsed());
    if era == Era::Session {
        process.send(format!("{}\n", crate::question::initialized()).as_bytes())?;
    }
    process.send(Question::line(&Asked::new("tools/list", json!({})).of_era(era)).next())?;
    let answer = process.receive()?;
    ensure!(answer.windows(8).any(|window| window == br#""tools":"#), "no list of tools");
    let listed = begin.elapsed();
    starts.listed.push(listed);
    Ok(listed)
}

/// A call of the tool of a small stored component.
pub(crate) fn tiny_call(number: usize) -> FirstCall {
    let tool = tiny_function(number, 0).replace('-', "_");
    (tool, json!({"count": 1}), json!({"result": number + 1}).to_string())
}

fn row(table: &mut Table, count: &str, era: Era, started: &Summary) {
    let era = match era {
        Era::Session => "`initialize`",
        Era::Stateless => "`server/discover`",
    };
    table.row(vec![
        count.to_owned(),
        era.to_owned(),
        duration(started.opened.median()),
        duration(started.listed.median()),
        duration(started.listed.slowest()),
        duration(started.called.median()),
    ]);
}

/// A server that has told what tools there are, and how long that took from its start.
pub(crate) fn listed(home: &Home) -> Result<(Process, Duration)> {
    let begin = Instant::now();
    let mut process = home.serve(&[], &[])?;
    let listed = open_and_list(&mut process, Era::Session, begin, &mut Starts::default())?;
    Ok((process, listed))
}
