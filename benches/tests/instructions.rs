//! What the pure crates cost in instructions, as callgrind counts them, against what is recorded in `instructions.json`.
//!
//! Unlike times, the figures repeat on a busy machine. They are those of one round of a case of `pure-work`: what it counts with
//! many rounds less what it counts with one, so that neither starting nor preparing is part of them. `BLESS=1` records them.

#![cfg(test)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

const RECORD: &str = "instructions.json";

const HOW_TO_RECORD: &str = "BLESS=1 cargo test --release --workspace --test instructions";

/// How far a figure may be from the recorded one, in percent. Either way: who makes something cheaper records it, so that it stays so.
const TOLERANCE: u64 = 10;

/// How far two counts of one program are apart at most, in percent: hash maps have random seeds.
const NOISE: u64 = 1;

/// Up to this many instructions are counted of a case, if it is not a single round that takes more: about a second's worth.
const COUNTED: u64 = 50_000_000;

/// So many cases are counted at a time, which changes nothing in the figures.
const THREADS: usize = 2;

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Record {
    /// Others give other figures.
    tools: Vec<String>,
    instructions: BTreeMap<String, u64>,
}

#[test]
#[cfg_attr(
    any(debug_assertions, not(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))),
    ignore = "the figures are those of `cargo test --release` on x86-64 Linux"
)]
fn figures_are_within_ten_percent_of_the_recorded_ones() {
    let tools = tools();
    let counted = count_all(&cases());
    let recorded = read_record();
    if std::env::var_os("BLESS").is_some() {
        return write_record(&Record {
            tools,
            instructions: without_noise(counted, &recorded.instructions),
        });
    }
    let faults = faults(&counted, &recorded.instructions);
    assert!(
        faults.is_empty(),
        "{}\n\nIf that is what you wanted, record it: {HOW_TO_RECORD}\nRecorded with {}; counted with {}",
        faults.join("\n"),
        recorded.tools.join(", "),
        tools.join(", "),
    );
}

#[test]
fn what_is_out_of_bounds_or_unknown_is_told() {
    let figures = |figures: &[(&str, u64)]| figures.iter().map(|(case, figure)| ((*case).to_owned(), *figure)).collect();
    let recorded = figures(&[("a", 1000), ("b", 1000), ("c", 1000), ("d", 1000), ("gone", 1)]);
    let counted = figures(&[("a", 1100), ("b", 1101), ("c", 900), ("d", 899), ("new", 5)]);
    assert_eq!(
        faults(&counted, &recorded),
        [
            "b: 1101 instructions, 10.1 % more than the recorded 1000",
            "d: 899 instructions, 10.1 % less than the recorded 1000",
            "new: 5 instructions, and nothing is recorded",
            "gone: is recorded, and there is no such case",
        ]
    );
    let counted = figures(&[("a", 1010), ("b", 1011), ("new", 5)]);
    assert_eq!(
        without_noise(counted, &recorded),
        figures(&[("a", 1000), ("b", 1011), ("new", 5)])
    );
}

fn faults(counted: &BTreeMap<String, u64>, recorded: &BTreeMap<String, u64>) -> Vec<String> {
    let off = counted.iter().filter_map(|(case, figure)| {
        let Some(known) = recorded.get(case) else {
            return Some(format!("{case}: {figure} instructions, and nothing is recorded"));
        };
        let percent = figure.abs_diff(*known) as f64 / *known as f64 * 100.0;
        let direction = if figure > known { "more" } else { "less" };
        (!is_within(TOLERANCE, *known, *figure))
            .then(|| format!("{case}: {figure} instructions, {percent:.1} % {direction} than the recorded {known}"))
    });
    let gone = recorded.keys().filter(|case| !counted.contains_key(*case));
    off.chain(gone.map(|case| format!("{case}: is recorded, and there is no such case")))
        .collect()
}

/// The figures, but those that differ by noise only as they are recorded already: a record changes where something changed.
fn without_noise(mut counted: BTreeMap<String, u64>, recorded: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    for (case, figure) in &mut counted {
        if let Some(known) = recorded.get(case).filter(|known| is_within(NOISE, **known, *figure)) {
            *figure = *known;
        }
    }
    counted
}

fn is_within(percent: u64, known: u64, figure: u64) -> bool {
    figure.abs_diff(known) * 100 <= known * percent
}

fn count_all(cases: &[String]) -> BTreeMap<String, u64> {
    let open = Mutex::new(cases.iter());
    let counted = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let Some(case) = open.lock().unwrap().next() else { break };
                    let figure = instructions_of_a_round(case);
                    counted.lock().unwrap().insert(case.clone(), figure);
                }
            });
        }
    });
    counted.into_inner().unwrap()
}

fn instructions_of_a_round(case: &str) -> u64 {
    let with_one = instructions(case, 1);
    // Preparing is part of that, so these rounds take no more than what is to be counted; but it has to be one at least.
    let more = (COUNTED / with_one).max(1);
    (instructions(case, 1 + more) - with_one) / more
}

fn instructions(case: &str, rounds: u64) -> u64 {
    let program = env!("CARGO_BIN_EXE_pure-work");
    let options = ["--tool=callgrind", "--callgrind-out-file=/dev/null"];
    let output = run(Command::new("valgrind")
        .args(options)
        .arg(program)
        .args([case, &rounds.to_string()]));
    let report = String::from_utf8_lossy(&output.stderr);
    let collected = report.lines().find_map(|line| line.split_once("Collected : "));
    collected
        .and_then(|(_, figure)| figure.trim().parse().ok())
        .unwrap_or_else(|| panic!("callgrind tells no number of instructions:\n{report}"))
}

fn cases() -> Vec<String> {
    let output = run(Command::new(env!("CARGO_BIN_EXE_pure-work")).arg("--list"));
    let list = String::from_utf8(output.stdout).unwrap();
    list.lines().map(str::to_owned).collect()
}

/// What the figures depend on besides the code.
fn tools() -> Vec<String> {
    [
        ("valgrind", "--version"),
        ("rustc", "--version"),
        ("getconf", "GNU_LIBC_VERSION"),
    ]
    .map(|(tool, question)| {
        let output = run(Command::new(tool).arg(question));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    })
    .to_vec()
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| {
        let program = command.get_program().to_string_lossy();
        panic!("this test needs `{program}`: {error}; install it, as in `apt-get install valgrind`")
    });
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed:\n{words}");
    output
}

fn read_record() -> Record {
    // Where nothing is recorded yet, every case is new.
    match Path::new(RECORD).exists() {
        true => serde_json::from_slice(&std::fs::read(RECORD).unwrap()).unwrap(),
        false => Record::default(),
    }
}

fn write_record(record: &Record) {
    let text = serde_json::to_string_pretty(record).unwrap() + "\n";
    #[expect(clippy::disallowed_methods, reason = "a record that is half written is recorded again")]
    std::fs::write(RECORD, text).unwrap();
}
