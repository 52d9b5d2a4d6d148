//! Conversion alone: JSON text → value of the function's type → JSON text, for every kind of type and for large ones. Beside it the
//! same text, only parsed and written again.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use component2json::{Argument, Exports, Function, Returned, json_to_arguments, returned_to_json};
use serde_json::{Value, json};

use crate::Setting;
use crate::report::{Section, Table, Target, Unit, duration, times};
use crate::stats::{Times, in_turns, measure, ratio, rounds_within};

const BUDGET: Duration = Duration::from_millis(400);
const MOST_ROUNDS: usize = 10_000;

/// The text of what takes a few microseconds, in bytes.
const SHORT: usize = 1_000;

/// More than anything here.
const OUTPUT_LIMIT: usize = 1 << 30;

/// What the target is about.
const TEN_MEGABYTES: &str = "`string` of 10 MB";

/// Something that is converted there and back.
struct Case<'a> {
    name: &'static str,
    function: &'a Function,
    text: String,
}

impl Case<'_> {
    fn convert(&self) -> Result<Vec<u8>> {
        let arguments: Value = serde_json::from_str(&self.text)?;
        let argument = json_to_arguments(self.function, &arguments)?.pop().context("one argument")?;
        // Each function returns what it gets.
        let returned = match argument {
            Argument::Bytes(bytes) => Returned::Bytes(bytes),
            Argument::Val(value) => Returned::Val(value),
        };
        let result = returned_to_json(self.function, &returned, OUTPUT_LIMIT)?.context("one result")?;
        Ok(serde_json::to_vec(&result)?)
    }

    fn parse_and_write(&self) -> Result<Vec<u8>> {
        let value: Value = serde_json::from_str(&self.text)?;
        Ok(serde_json::to_vec(&value)?)
    }
}

pub(crate) fn run(setting: &Setting) -> Result<Section> {
    let bytes = test_guests::bytes("every-type")?;
    let (exports, _) = component2json::read_exports(&bytes, None)?;
    let mut table = Table::new(
        "JSON text → value → JSON text",
        &["type", "JSON", "p50", "p99", "parse and write", "×"],
    );
    let mut ten_megabytes = f64::NAN;
    for case in cases(&exports)? {
        let as_value: Value = serde_json::from_str(&case.text)?;
        let converted: Value = serde_json::from_slice(&case.convert()?)?;
        ensure!(
            as_value["value"] == converted,
            "{}: there and back is not the same",
            case.name
        );
        drop((as_value, converted));

        let [converted, parsed] = both(setting, &case)?;
        let over = ratio(converted.median(), parsed.median());
        table.row(vec![
            case.name.to_owned(),
            size(case.text.len()),
            duration(converted.median()),
            duration(converted.percentile(99)),
            duration(parsed.median()),
            times(over),
        ]);
        if case.name == TEN_MEGABYTES {
            ten_megabytes = over;
        }
    }
    let target = Target::at_most(
        "10 MB of text, from JSON to a value and back",
        ten_megabytes,
        4.0,
        Unit::Times,
    );
    Ok(Section::new("Conversion")
        .text("*Parse and write* is serde_json alone with the same text: the least that anybody does who looks at JSON.")
        .table(table)
        .target(target.because("parsing and writing the same JSON")))
}

/// The conversion and its baseline, in turns.
fn both(setting: &Setting, case: &Case<'_>) -> Result<[Times; 2]> {
    type Work<'a> = &'a dyn Fn() -> Result<Vec<u8>>;
    let convert: Work<'_> = &|| case.convert();
    let parse: Work<'_> = &|| case.parse_and_write();
    // What is so short is timed in batches, because looking at the clock takes time too.
    let batch = if case.text.len() < SHORT { 50 } else { 1 };
    let once = |work: Work<'_>| {
        for _ in 0..batch {
            std::hint::black_box(work()?);
        }
        Ok(())
    };
    let budget = setting.budget(BUDGET);
    let mut both = [
        (convert, rounds_within(budget, MOST_ROUNDS, || once(convert))?),
        (parse, rounds_within(budget, MOST_ROUNDS, || once(parse))?),
    ];
    let measured = in_turns(&mut both, |(work, rounds)| {
        measure(*rounds, || once(*work)).map(|times| times.per(batch))
    })?;
    measured.try_into().ok().context("one for each")
}

fn cases(exports: &Exports) -> Result<Vec<Case<'_>>> {
    let text = |length: usize| "0123456789".repeat(length / 10);
    let bytes = |length: usize| "aGVs".repeat(length / 4);
    let points = |count: i32| (0..count).map(|n| json!({"x": n, "y": -n})).collect::<Value>();
    let numbers = |count: i32| (0..count).collect::<Vec<i32>>();
    let document = json!({
        "file_name": "report.txt", "size": 123_456, "note": null, "origin": {"x": 1, "y": -1},
        "tags": ["a", "b", "c"], "checksum": "aGVsbG8="
    });
    let all: Vec<(&str, &str, Value)> = vec![
        ("`bool`", "echo-bool", json!(true)),
        ("`s32`", "echo-s32", json!(-123_456)),
        ("`u64`", "echo-u64", json!(123_456_789_012u64)),
        ("`f64`", "echo-f64", json!(0.1)),
        ("`char`", "echo-char", json!("é")),
        ("`enum`", "echo-enum", json!("very-high")),
        ("`flags`", "echo-flags", json!(["read", "run-as-owner"])),
        ("`option<string>`", "echo-option", json!("here")),
        ("`result<u32, string>`", "echo-result", json!({"ok": 7})),
        ("`tuple<u32, string>`", "echo-tuple", json!({"val0": 1, "val1": "one"})),
        (
            "`variant`",
            "echo-variant",
            json!({"tag": "corner-at", "val": {"x": 1, "y": 2}}),
        ),
        ("`record` of six fields", "echo-record", document),
        ("`string` of 100 bytes", "echo-string", json!(text(100))),
        ("`string` of 10 kB", "echo-string", json!(text(10_000))),
        ("`string` of 1 MB", "echo-string", json!(text(1_000_000))),
        (TEN_MEGABYTES, "echo-string", json!(text(10_000_000))),
        ("`list<u8>`, 100 bytes of base64", "echo-bytes", json!(bytes(100))),
        ("`list<u8>`, 1 MB of base64", "echo-bytes", json!(bytes(1_000_000))),
        ("`list<u8>`, 10 MB of base64", "echo-bytes", json!(bytes(10_000_000))),
        ("`list<s32>` of 1,000", "echo-list", json!(numbers(1_000))),
        ("`list<s32>` of 100,000", "echo-list", json!(numbers(100_000))),
        (
            "`list<list<string>>`, 100 of 100",
            "echo-nested-list",
            json!(vec![vec!["word"; 100]; 100]),
        ),
        ("`list` of 100 records", "echo-records", points(100)),
        ("`list` of 100,000 records", "echo-records", points(100_000)),
    ];
    all.into_iter()
        .map(|(name, function, value)| {
            let found = exports.functions.iter().find(|found| found.export.function == function);
            Ok(Case {
                name,
                function: found.context(function)?,
                text: json!({ "value": value }).to_string(),
            })
        })
        .collect()
}

fn size(bytes: usize) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..1_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
