//! What the process takes: idle, for each component that was called, for each call under way, and after very many of both.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use crate::Setting;
use crate::question::{Asked, Era, Question};
use crate::report::{Section, Table, Target, Unit};
use crate::road::{Road, check};
use crate::start::tiny_call;
use crate::stdio::{Piped, Process};

/// As many as may run at a time by default.
const UNDER_WAY: usize = 64;

/// How long calls are under way before memory is looked at, and turns of a call that takes longer.
const WHILE: Duration = Duration::from_secs(1);
const MANY_TURNS: u32 = 4_000_000_000;

const MANY_CALLS: usize = 100_000;
const LOAD_ROUNDS: usize = 1_000;

/// What a process has of the machine's memory, in megabytes.
#[derive(Clone, Copy)]
struct Resident {
    all: f64,
    /// Without what is mapped from files, which the system can take back and shares with others.
    own: f64,
}

impl Resident {
    fn of(process: &Process) -> Result<Self> {
        let status = fs::read_to_string(format!("/proc/{}/status", process.pid()))?;
        let megabytes = |field: &str| -> Result<f64> {
            let value = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
            let kibibytes = value.context(field.to_owned())?.trim().trim_end_matches(" kB");
            Ok(kibibytes.parse::<f64>()? * 1024.0 / 1e6)
        };
        Ok(Self {
            all: megabytes("VmRSS")?,
            own: megabytes("RssAnon")?,
        })
    }

    fn since(self, before: Self) -> Self {
        Self {
            all: self.all - before.all,
            own: self.own - before.own,
        }
    }

    fn per(self, count: usize) -> Self {
        Self {
            all: self.all / count as f64,
            own: self.own / count as f64,
        }
    }
}

pub(crate) fn run(setting: &Setting) -> Result<Section> {
    let section = Section::new("Memory").text(
        "Resident memory of the process. *Own* leaves out what is mapped from files: the program itself and compiled code, which the system can \
         take back and shares between processes.",
    );
    if !cfg!(target_os = "linux") {
        return Ok(section.text("Not measured: it is read from `/proc`."));
    }
    let mut table = Table::new("Resident memory", &["", "all", "own"]);
    let mut row = |name: String, resident: Resident| {
        let shown = |megabytes: f64| match megabytes.abs() < 10.0 {
            true => format!("{megabytes:.2} MB"),
            false => format!("{megabytes:.1} MB"),
        };
        table.row(vec![name, shown(resident.all), shown(resident.own)]);
    };

    let mut idle = f64::NAN;
    for count in [1, 100, 1_000] {
        let store = setting.store(count, 1)?;
        let mut process = opened(store.home.serve(&[], &[])?)?;
        let before = Resident::of(&process)?;
        row(format!("after start and `tools/list`, {count} stored, none called"), before);
        if count != 1_000 {
            call_tiny(&mut process, 0)?;
            let first = Resident::of(&process)?;
            row("… and one of them called: the engine and its pool".to_owned(), first);
            if count == 100 {
                idle = before.all;
                for number in 1..count {
                    call_tiny(&mut process, number)?;
                }
                let each = Resident::of(&process)?.since(first).per(count - 1);
                row("… for each further one that was called".to_owned(), each);
            }
        }
    }

    let home = setting.home("memory")?;
    for (name, file) in [("small", setting.guests.small()?), ("large", setting.guests.large()?)] {
        let process = opened(home.serve(&[], &[&file])?)?;
        let each = while_calls_run(process)?;
        row(format!("for each of {UNDER_WAY} calls under way, {name} guest"), each);
    }

    let file = setting.guests.small()?;
    let process = opened(home.serve(&[], &[&file])?)?;
    let asked = Asked::call("add", &json!({"a": 2, "b": 40}));
    let mut calls = Piped::new("calls", process, &asked, r#"{"result":42}"#)?;
    let many = setting.rounds(MANY_CALLS);
    calls.calls(many / 10, UNDER_WAY)?;
    let before = Resident::of(&calls.process)?;
    calls.calls(many, UNDER_WAY)?;
    let after = Resident::of(&calls.process)?;
    row(
        format!("after {many} calls, more than after {}", many / 10),
        after.since(before),
    );

    let rounds = setting.rounds(LOAD_ROUNDS);
    let (first, all) = load_and_unload(setting, rounds)?;
    row(
        format!(
            "after {rounds} times loaded, called and unloaded, more than after {}",
            rounds / 10
        ),
        all.since(first),
    );

    let target = Target::at_most(
        "memory, idle, 100 stored components, none called",
        idle,
        40.0,
        Unit::Megabytes,
    );
    Ok(section.table(table).target(target))
}

/// A server whose client has done what clients do first.
fn opened(mut process: Process) -> Result<Process> {
    process.open(Era::Session)?;
    process.ask(&Asked::new("tools/list", json!({})))?;
    Ok(process)
}

fn call_tiny(process: &mut Process, number: usize) -> Result<()> {
    let (tool, arguments, expected) = tiny_call(number);
    check(&tool, process.ask(&Asked::call(&tool, &arguments))?, &expected)
}

/// What each of many calls takes while all of them run. Nobody waits for their end.
fn while_calls_run(mut process: Process) -> Result<Resident> {
    let spin = |turns: u32| Asked::call("spin", &json!({"turns": turns}));
    check("spin", process.ask(&spin(1))?, r#"{"result":1}"#)?;
    let before = Resident::of(&process)?;
    let mut question = Question::line(&spin(MANY_TURNS));
    for _ in 0..UNDER_WAY {
        process.send(question.next())?;
    }
    std::thread::sleep(WHILE);
    Ok(Resident::of(&process)?.since(before).per(UNDER_WAY))
}

/// An agent loads a component, calls it and unloads it. Gives what the process had after a tenth of the rounds, and after all.
fn load_and_unload(setting: &Setting, rounds: usize) -> Result<(Resident, Resident)> {
    let home = setting.home("load-and-unload")?;
    let file = setting.guests.small()?.canonicalize()?;
    fs::write(home.directory.join("host.toml"), format!("[agent]\nsources = [{:?}]\n", file))?;
    let mut process = opened(home.serve(&["--allow-agent-admin"], &[])?)?;
    let load = Asked::call("load_component", &json!({"source": file}));
    let call = Asked::call("add", &json!({"a": 2, "b": 40}));
    let unload = Asked::call("unload_component", &json!({"id": "small"}));
    let mut after_some = None;
    for round in 1..=rounds {
        check("load_component", process.ask(&load)?, r#""result":"#)?;
        check("add", process.ask(&call)?, r#"{"result":42}"#)?;
        check("unload_component", process.ask(&unload)?, r#""result":"#)?;
        if round == rounds.div_ceil(10) {
            after_some = Some(Resident::of(&process)?);
        }
    }
    Ok((after_some.context("there is at least one round")?, Resident::of(&process)?))
}
