//! What grows with the number of components and tools, and what must not: a list and a start may take as much longer as there is more to
//! tell, a call may not.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::Setting;
use crate::question::Asked;
use crate::report::{Section, Table, Target, Unit, duration};
use crate::road::Road;
use crate::start::{COMPONENTS, listed, tiny_call};
use crate::stats::{Times, measure, ratio};
use crate::stdio::{Piped, Process};

/// How often it is each store's turn, with a server that is started anew.
const TURNS: usize = 20;

/// In each turn.
const LISTS: usize = 30;
const CALLS: usize = 500;

/// The tools of each of ten components.
const TOOLS: [usize; 4] = [1, 10, 100, 1_000];

/// Ten times as much may take ten times as long, and a little more because no two measurements are alike.
const LINEAR: f64 = 12.0;
const CONSTANT: f64 = 1.25;

/// What a store takes.
struct Grown {
    start: Duration,
    list: Duration,
    /// A constant line that is as long as the list.
    line: Duration,
    call: Duration,
}

/// The medians of its turns.
#[derive(Default)]
struct Turns {
    start: Vec<Duration>,
    list: Vec<Duration>,
    line: Vec<Duration>,
    call: Vec<Duration>,
}

pub(crate) fn run(setting: &Setting) -> Result<Section> {
    let turns = setting.rounds(TURNS);
    let mut section = Section::new("Growth").text(format!(
        "Over stdio. The first list is part of the start; until something else is offered, its bytes are told again to who asks again. Where the system puts a \
         server and its client makes more of a difference than anything here: so each is started {turns} times, the start is the median, and lists and calls \
         are the median of the start that had the most luck. Limits are for ten times as many: ten times as long for lists and starts, and as long as before \
         for a call (from the least to the most), with some room for chance."
    ));
    let by_components = grown(setting, COMPONENTS.map(|components| (components, 1)))?;
    let by_tools = grown(setting, TOOLS.map(|tools| (10, tools)))?;
    let tools = TOOLS.map(|tools| tools * 10);
    for (what, counts, grown) in [("components", COMPONENTS, by_components), ("tools", tools, by_tools)] {
        let mut table = Table::new(
            &format!("By the number of {what}"),
            &[
                what,
                "start to `tools/list`",
                "`tools/list` again",
                "a constant line as long",
                "a call",
            ],
        );
        for (count, grown) in counts.iter().zip(&grown) {
            table.row(vec![
                count.to_string(),
                duration(grown.start),
                duration(grown.list),
                duration(grown.line),
                duration(grown.call),
            ]);
        }
        section = section.table(table);
        if let [least, .., before, most] = grown.as_slice() {
            let linear = |name: &str, of: fn(&Grown) -> Duration| {
                let over = ratio(of(most), of(before));
                Target::at_most(&format!("{name}, ten times as many {what}"), over, LINEAR, Unit::Times)
                    .because("as long")
                    .minor()
            };
            let call = ratio(most.call, least.call);
            section = section
                .target(linear("start", |grown| grown.start))
                .target(linear("`tools/list` again", |grown| grown.list))
                .target(
                    Target::at_most(
                        &format!("a call, from the fewest to the most {what}"),
                        call,
                        CONSTANT,
                        Unit::Times,
                    )
                    .because("as long")
                    .minor(),
                );
        }
    }
    Ok(section)
}

/// What stores with so many components, and so many tools in each, take.
fn grown(setting: &Setting, stores: [(usize, usize); 4]) -> Result<Vec<Grown>> {
    let mut all: [Turns; 4] = Default::default();
    for _ in 0..setting.rounds(TURNS) {
        for ((components, tools), turns) in stores.into_iter().zip(&mut all) {
            turn(setting, components, tools, turns)?;
        }
    }
    let least = |medians: Vec<Duration>| medians.into_iter().min().unwrap_or_default();
    let grown = all.map(|turns| Grown {
        start: Times::new(turns.start).median(),
        list: least(turns.list),
        line: least(turns.line),
        call: least(turns.call),
    });
    Ok(grown.into())
}

fn turn(setting: &Setting, components: usize, tools: usize, turns: &mut Turns) -> Result<()> {
    let (mut process, start) = listed(&setting.store(components, tools)?.home)?;
    turns.start.push(start);
    let median = |rounds, road: &mut Piped| anyhow::Ok(measure(setting.rounds(rounds), || road.call())?.median());

    let list = Asked::new("tools/list", json!({}));
    let file = setting.scratch.path().join("list.json");
    fs::write(&file, process.ask(&list)?)?;
    let mut told = Piped::new("tools/list", process, &list, r#""tools":"#)?;
    turns.list.push(median(LISTS, &mut told)?);

    let (tool, arguments, expected) = tiny_call(0);
    let mut called = Piped::new("a call", told.process, &Asked::call(&tool, &arguments), &expected)?;
    turns.call.push(median(CALLS, &mut called)?);

    let constant = Process::start(Command::new(env!("CARGO_BIN_EXE_constant-answer")).arg(&file))?;
    let mut line = Piped::new("a constant line", constant, &list, r#""tools":"#)?;
    turns.line.push(median(LISTS, &mut line)?);
    Ok(())
}
