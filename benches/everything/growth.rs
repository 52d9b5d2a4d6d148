//! What grows with the number of components and tools, and what must not: a list and a start may take as much longer as there is more to
//! tell, a call may not.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::Setting;
use crate::question::{Asked, Era};
use crate::report::{Section, Table, Target, Unit, duration};
use crate::road::Road;
use crate::start::{COMPONENTS, listed_after, tiny_call};
use crate::stats::{in_turns, measure, ratio};
use crate::stdio::Piped;

const STARTS: usize = 10;

/// In each turn.
const LISTS: usize = 20;
const CALLS: usize = 500;

/// The tools of each of ten components.
const TOOLS: [usize; 4] = [1, 10, 100, 1_000];

/// Ten times as much may take ten times as long, and a little more because no two measurements are alike.
const LINEAR: f64 = 12.0;
const CONSTANT: f64 = 1.25;

struct Grown {
    start: Duration,
    list: Duration,
    call: Duration,
}

pub(crate) fn run(setting: &Setting) -> Result<Section> {
    let mut section = Section::new("Growth").text(
        "Medians over stdio. Limits are for ten times as many: ten times as long for lists and starts, and as long as before for a call (from the \
         least to the most), with some room for chance.",
    );
    let by_components = grown(setting, COMPONENTS.map(|components| (components, 1)))?;
    let by_tools = grown(setting, TOOLS.map(|tools| (10, tools)))?;
    let tools = TOOLS.map(|tools| tools * 10);
    for (what, counts, grown) in [("components", COMPONENTS, by_components), ("tools", tools, by_tools)] {
        let mut table = Table::new(
            &format!("By the number of {what}"),
            &[what, "start to `tools/list`", "`tools/list`", "a call"],
        );
        for (count, grown) in counts.iter().zip(&grown) {
            table.row(vec![
                count.to_string(),
                duration(grown.start),
                duration(grown.list),
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
                .target(linear("`tools/list`", |grown| grown.list))
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
    let mut starts = Vec::new();
    let mut lists = Vec::new();
    for (components, tools) in stores {
        let home = &setting.store(components, tools)?.home;
        starts.push(listed_after(home, setting.rounds(STARTS))?);
        let mut process = home.serve(&[], &[])?;
        process.open(Era::Session)?;
        lists.push(Piped::new(
            "tools/list",
            process,
            &Asked::new("tools/list", json!({})),
            r#""tools":"#,
        )?);
    }
    let listed = in_turns(&mut lists, |list| measure(setting.rounds(LISTS), || list.call()))?;
    let (tool, arguments, expected) = tiny_call(0);
    let asked = Asked::call(&tool, &arguments);
    let calls = lists
        .into_iter()
        .map(|list| Piped::new("a call", list.process, &asked, &expected));
    let mut calls: Vec<Piped> = calls.collect::<Result<_>>()?;
    let called = in_turns(&mut calls, |call| measure(setting.rounds(CALLS), || call.call()))?;
    let grown = starts.into_iter().zip(listed).zip(called);
    Ok(grown
        .map(|((start, listed), called)| Grown {
            start,
            list: listed.median(),
            call: called.median(),
        })
        .collect())
}
