//! One call, by every road: wasmtime alone, `execute_component_call`, pipes, HTTP. How long it takes one at a time, and how many there
//! are in a second when more are under way; beside rmcp's own server, which has no guest at all.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use wasmtime::component::Val;

use crate::Setting;
use crate::bare::Bare;
use crate::executed::Executed;
use crate::home::Home;
use crate::http::{HttpServer, Posted};
use crate::question::{Asked, Era};
use crate::report::{Section, Table, Target, Unit, duration, per_second, times};
use crate::road::Road;
use crate::stats::{Times, in_turns, measure, micros, ratio, rounds_within};
use crate::stdio::{Piped, Process};

/// How long one road is measured one call at a time, and the most calls that this makes.
const BUDGET: Duration = Duration::from_millis(1_500);
const MOST_CALLS: usize = 20_000;

/// The same for each number of calls under way.
const THROUGHPUT_BUDGET: Duration = Duration::from_millis(1_000);
const IN_FLIGHT: [usize; 3] = [1, 8, 64];

/// The names of roads that targets are about.
const STDIO: &str = "stdio";
const HTTP: &str = "HTTP, stateless";
const HTTP_SESSION: &str = "HTTP, session";
const CONSTANT: &str = "a constant line over stdio";
const RMCP_STDIO: &str = "rmcp echo, `stdio()`";
const RMCP_PIPES: &str = "rmcp echo, `stdio_pipes()`";
const RMCP_HTTP: &str = "rmcp echo, HTTP, stateless";
const RMCP_HTTP_OLD: &str = "rmcp echo, HTTP, stateless, 2025-11-25";
const RMCP_SESSION: &str = "rmcp echo, HTTP, session";

/// A call that every road can make.
struct Case {
    title: String,
    file: PathBuf,
    interface: Option<&'static str>,
    function: &'static str,
    tool: &'static str,
    arguments: Value,
    values: Vec<Val>,
    expected: Value,
    expected_value: Val,
}

impl Case {
    fn add(guest: &str, file: PathBuf) -> Self {
        Self {
            title: format!("{guest}: `add(2, 40)`"),
            file,
            interface: None,
            function: "add",
            tool: "add",
            arguments: json!({"a": 2, "b": 40}),
            values: vec![Val::S32(2), Val::S32(40)],
            expected: json!(42),
            expected_value: Val::S32(42),
        }
    }

    fn kitchen(guest: &str, file: PathBuf) -> Self {
        Self {
            interface: Some("test:kitchen/kitchen@0.1.0"),
            tool: "test_kitchen_kitchen_add",
            ..Self::add(guest, file)
        }
    }

    fn echo(guest: &str, file: PathBuf) -> Self {
        let text = hundred_bytes();
        Self {
            title: format!("{guest}: echo of 100 bytes"),
            file,
            interface: None,
            function: "echo",
            tool: "echo",
            arguments: json!({"text": text}),
            values: vec![Val::String(text.clone())],
            expected: json!(text),
            expected_value: Val::String(text),
        }
    }

    fn rust_echo(file: PathBuf) -> Self {
        let text = hundred_bytes();
        Self {
            interface: Some("test:every-type/echo@0.1.0"),
            function: "echo-string",
            tool: "test_every_type_echo_echo_string",
            arguments: json!({"value": text}),
            ..Self::echo("Rust, 60 kB", file)
        }
    }
}

fn hundred_bytes() -> String {
    "0123456789".repeat(10)
}

/// What came of one road.
struct Measured {
    name: &'static str,
    times: Times,
    rates: Vec<f64>,
}

pub(crate) fn run(setting: &Setting) -> Result<Section> {
    let runtime = Arc::new(tokio::runtime::Builder::new_multi_thread().enable_all().build()?);
    let home = setting.home("calls")?;
    let guests = &setting.guests;
    let large = guests.large()?;
    let mut section = Section::new("Calls").text(
        "Each call has a fresh instance. *p50* and *p99* are of calls one at a time, the columns after it calls in a second with so many \
         under way, by one client on the same machine. All roads of a table are measured in turns.",
    );

    let mut small = roads(&home, &runtime, &Case::add("small", guests.small()?))?;
    let add = measure_all(setting, &mut small)?;
    drop(small);

    let echo = Case::echo("small", guests.small()?);
    let mut with_peers = roads(&home, &runtime, &echo)?;
    with_peers.extend(peers(&echo)?);
    let echoed = measure_all(setting, &mut with_peers)?;
    drop(with_peers);

    section = section
        .table(table("small: `add(2, 40)`", &add))
        .table(table(&echo.title, &echoed))
        .text(
            "rmcp's echo is its own server with a tool that returns its text: no guest, no schema, no limits. It answers JSON over HTTP only \
             without sessions; with them its answers are events.",
        );
    for target in targets(&add, &echoed)? {
        section = section.target(target);
    }

    let mut others = vec![
        Case::rust_echo(guests.rust()?),
        Case::add("large, 3 MB", large.clone()),
        Case::echo("large, 3 MB", large),
    ];
    match guests.library() {
        Some(file) => others.push(Case::echo("Rust, 3 MB", file)),
        None => section = section.text("Rust, 3 MB: not measured, its toolchain could not be had."),
    }
    for (language, name) in [("JavaScript, 12 MB", "kitchen-js"), ("Python, 18 MB", "kitchen-python")] {
        match guests.script(name) {
            Some(file) => others.push(Case::kitchen(language, file)),
            None => section = section.text(format!("{language}: not measured, its toolchain could not be had.")),
        }
    }
    for case in others {
        let mut roads = roads(&home, &runtime, &case)?;
        section = section.table(table(&case.title, &measure_all(setting, &mut roads)?));
    }
    Ok(section.table(large_strings(setting, &home, &runtime)?))
}

fn measure_all(setting: &Setting, roads: &mut [Box<dyn Road>]) -> Result<Vec<Measured>> {
    let mut with_rounds = Vec::new();
    for road in roads {
        let rounds = rounds_within(setting.budget(BUDGET), MOST_CALLS, || road.call())?;
        with_rounds.push((road, rounds));
    }
    let all_times = in_turns(&mut with_rounds, |(road, rounds)| measure(*rounds, || road.call()))?;
    let mut measured: Vec<Measured> = with_rounds
        .iter()
        .zip(all_times)
        .map(|((road, _), times)| Measured {
            name: road.name(),
            times,
            rates: Vec::new(),
        })
        .collect();
    for in_flight in IN_FLIGHT {
        // So many calls that a turn takes its part of the time, if more of them at a time do not make it faster.
        let per_turn = |times: &Times| {
            let calls = setting.budget(THROUGHPUT_BUDGET).as_secs_f64() / times.median().as_secs_f64() / 10.0;
            (calls as usize).clamp(4, MOST_CALLS / 10) * in_flight.min(4)
        };
        let mut with_counts: Vec<_> = with_rounds
            .iter_mut()
            .zip(&measured)
            .map(|((road, _), measured)| (road, per_turn(&measured.times).next_multiple_of(in_flight)))
            .collect();
        let whole_turns = in_turns(&mut with_counts, |(road, count)| measure(1, || road.calls(*count, in_flight)))?;
        let counts: Vec<usize> = with_counts.iter().map(|(_, count)| *count).collect();
        for ((measured, turns), count) in measured.iter_mut().zip(whole_turns).zip(counts) {
            measured.rates.push(count as f64 / turns.median().as_secs_f64());
        }
    }
    Ok(measured)
}

/// All roads of `host` to a call.
fn roads(home: &Home, runtime: &Arc<Runtime>, case: &Case) -> Result<Vec<Box<dyn Road>>> {
    let files: &[&Path] = &[&case.file];
    let function = (case.interface, case.function);
    let bare = Bare::new(runtime, &case.file, function, case.values.clone(), &case.expected_value)?;
    let executed = Executed::new(
        runtime,
        &home.directory,
        &case.file,
        case.tool,
        &case.arguments,
        &case.expected,
    )?;
    let asked = |era| Asked::call(case.tool, &case.arguments).of_era(era);
    let expected = json!({"result": case.expected}).to_string();
    let posted = |name, era| {
        let opens = era == Era::Session;
        Posted::new(name, home.serve_http(files)?, era, opens, &asked(era), &expected)
    };
    let mut process = home.serve(&[], files)?;
    process.open(Era::Session)?;
    Ok(vec![
        Box::new(bare),
        Box::new(executed),
        Box::new(Piped::new(STDIO, process, &asked(Era::Session), &expected)?),
        Box::new(posted(HTTP, Era::Stateless)?),
        Box::new(posted(HTTP_SESSION, Era::Session)?),
    ])
}

/// What has no guest and answers the same text.
fn peers(case: &Case) -> Result<Vec<Box<dyn Road>>> {
    let asked = |era| Asked::call("echo", &case.arguments).of_era(era);
    let expected = case.expected.to_string();
    let echo = |argument: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rmcp-echo"));
        command.args(argument);
        command
    };
    let piped = |name, argument| {
        let mut process = Process::start(&mut echo(argument))?;
        process.open(Era::Session)?;
        Piped::new(name, process, &asked(Era::Session), &expected)
    };
    let posted = |name, argument, era, opens| {
        let server = HttpServer::start(&mut echo(Some(argument)))?;
        Posted::new(name, server, era, opens, &asked(era), &expected)
    };
    let constant = Process::start(&mut Command::new(env!("CARGO_BIN_EXE_constant-answer")))?;
    Ok(vec![
        Box::new(Piped::new(CONSTANT, constant, &asked(Era::Session), &expected)?),
        Box::new(piped(RMCP_STDIO, None)?),
        Box::new(piped(RMCP_PIPES, Some("pipes"))?),
        Box::new(posted(RMCP_HTTP, "http", Era::Stateless, false)?),
        Box::new(posted(RMCP_HTTP_OLD, "http", Era::Session, false)?),
        Box::new(posted(RMCP_SESSION, "http-sessions", Era::Session, true)?),
    ])
}

fn table(title: &str, all: &[Measured]) -> Table {
    let mut header = vec!["", "p50", "p99", "× wasmtime alone"];
    let columns = IN_FLIGHT.map(|in_flight| format!("{in_flight} under way"));
    header.extend(columns.iter().map(String::as_str));
    let mut table = Table::new(title, &header);
    let bare = all.first().map(|bare| bare.times.median()).unwrap_or_default();
    for measured in all {
        let p50 = measured.times.median();
        let mut row = vec![
            measured.name.to_owned(),
            duration(p50),
            duration(measured.times.percentile(99)),
            times(ratio(p50, bare)),
        ];
        row.extend(measured.rates.iter().map(|rate| per_second(*rate)));
        table.row(row);
    }
    table
}

fn targets(add: &[Measured], echo: &[Measured]) -> Result<Vec<Target>> {
    let find = |all: &[Measured], name: &str| -> Result<(Duration, f64)> {
        let found = all.iter().find(|measured| measured.name == name).context(name.to_owned())?;
        Ok((found.times.median(), found.rates.last().copied().unwrap_or_default()))
    };
    let over_bare = |all: &[Measured]| match all {
        [bare, executed, ..] => ratio(executed.times.median(), bare.times.median()),
        _ => f64::NAN,
    };
    let (stdio, stdio_rate) = find(echo, STDIO)?;
    let (constant, _) = find(echo, CONSTANT)?;
    let (rmcp, rmcp_rate) = find(echo, RMCP_STDIO)?;
    let (pipes, pipes_rate) = find(echo, RMCP_PIPES)?;
    let (http, _) = find(echo, HTTP)?;
    let (rmcp_http, _) = find(echo, RMCP_HTTP)?;
    let (session, _) = find(echo, HTTP_SESSION)?;
    let (rmcp_http_old, _) = find(echo, RMCP_HTTP_OLD)?;
    let micros_at_most = |what: &str, measured: Duration, limit: Duration, why: &str| {
        Target::at_most(what, micros(measured), micros(limit), Unit::Micros).because(why)
    };
    Ok(vec![
        Target::at_most(
            "`execute_component_call`, small guest, `add`",
            over_bare(add),
            2.5,
            Unit::Times,
        )
        .because("wasmtime alone"),
        Target::at_most(
            "`execute_component_call`, small guest, echo of 100 bytes",
            over_bare(echo),
            2.5,
            Unit::Times,
        )
        .because("wasmtime alone"),
        micros_at_most("a call over stdio, p50", stdio, rmcp, "rmcp's echo"),
        micros_at_most(
            "a call over stdio, p50, beside rmcp's faster pipes",
            stdio,
            pipes,
            "rmcp's echo with `stdio_pipes()`",
        )
        .stretch(),
        micros_at_most(
            "a call over stdio, p50, over a constant line",
            stdio.saturating_sub(constant),
            Duration::from_micros(25),
            "more than a program that answers each line with a constant",
        )
        .stretch(),
        Target::at_least("calls over stdio, 64 under way", stdio_rate / rmcp_rate, 3.0, Unit::Times).because("rmcp's echo"),
        Target::at_least(
            "calls over stdio, 64 under way, beside rmcp's faster pipes",
            stdio_rate / pipes_rate,
            3.0,
            Unit::Times,
        )
        .because("rmcp's echo with `stdio_pipes()`")
        .stretch(),
        micros_at_most(
            "a call over HTTP, stateless, p50",
            http,
            rmcp_http.mul_f64(1.2),
            "rmcp's echo in JSON, and 20 %",
        ),
        micros_at_most(
            "a call over HTTP in a session, p50",
            session,
            rmcp_http_old.mul_f64(1.2),
            "rmcp's echo in JSON, and 20 %",
        ),
    ])
}

/// Ten megabytes of text in and out, with the guest between.
fn large_strings(setting: &Setting, home: &Home, runtime: &Arc<Runtime>) -> Result<Table> {
    let text = "0123456789".repeat(1_000_000);
    let file = setting.guests.small()?;
    let arguments = json!({"text": text});
    let mut executed = Executed::new(runtime, &home.directory, &file, "echo", &arguments, &json!(text))?;
    let mut bare = Bare::new(
        runtime,
        &file,
        (None, "echo"),
        vec![Val::String(text.clone())],
        &Val::String(text.clone()),
    )?;
    let mut process = home.serve(&["--max-output", "32MiB"], &[&file])?;
    process.open(Era::Session)?;
    let asked = Asked::call("echo", &arguments);
    let mut piped = Piped::new(STDIO, process, &asked, &json!({"result": text}).to_string())?;

    let line = arguments.to_string();
    let rounds = setting.rounds(20);
    let parse_and_write = measure(rounds, || {
        let value: Value = serde_json::from_str(&line)?;
        std::hint::black_box(serde_json::to_vec(&value)?);
        Ok(())
    })?;
    let mut table = Table::new("10 MB of text in and out", &["", "p50", "slowest", "× parse and write"]);
    let mut row = |name: &str, all: &Times| {
        table.row(vec![
            name.to_owned(),
            duration(all.median()),
            duration(all.slowest()),
            times(ratio(all.median(), parse_and_write.median())),
        ]);
    };
    row("JSON parsed and written, with serde_json", &parse_and_write);
    row(bare.name(), &measure(rounds, || bare.call())?);
    row(executed.name(), &measure(rounds, || executed.call())?);
    row("stdio; the answer has the text twice", &measure(rounds, || piped.call())?);
    Ok(table)
}
