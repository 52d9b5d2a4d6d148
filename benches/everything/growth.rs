//! What grows with the number of components and tools, and what must not: a list and a start may take as much longer as there is more to
//! tell, a call may not.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::Setting;
use crate::home::Home;
use crate::question::{Asked, Era};
use crate::report::{Section, Table, Target, Unit, duration};
use crate::road::Road;
use crate::start::{COMPONENTS, listed_after, tiny_call};
use crate::stats::{measure, ratio};
use crate::stdio::Piped;

const STARTS: usize = 10;
const LISTS: usize = 50;
const CALLS: usize = 5_000;

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
    let mut by_components = Vec::new();
    for count in COMPONENTS {
        by_components.push(grown(setting, &setting.store(count, 1)?.home)?);
    }
    let mut by_tools = Vec::new();
    for tools in TOOLS {
        by_tools.push(grown(setting, &setting.store(10, tools)?.home)?);
    }
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

fn grown(setting: &Setting, home: &Home) -> Result<Grown> {
    let start = listed_after(home, setting.rounds(STARTS))?;
    let mut process = home.serve(&[], &[])?;
    process.open(Era::Session)?;
    let mut list = Piped::new("tools/list", process, &Asked::new("tools/list", json!({})), r#""tools":"#)?;
    let listed = measure(setting.rounds(LISTS), || list.call())?;
    let (tool, arguments, expected) = tiny_call(0);
    let mut call = Piped::new("a call", list.process, &Asked::call(&tool, &arguments), &expected)?;
    let called = measure(setting.rounds(CALLS), || call.call())?;
    Ok(Grown {
        start,
        list: listed.median(),
        call: called.median(),
    })
}
