//! `pure-work CASE ROUNDS` prepares one of the things that the pure crates do for every call or every load, and does it ROUNDS
//! times. `pure-work --list` lists the cases.
//!
//! It measures nothing itself: `tests/instructions.rs` counts its instructions. So every round does the same.

use std::hint::black_box;
use std::io::Write;

use anyhow::{Context, Result, bail};
use command2json::{Captured, Command, CommandTool, Format, Offer, Output, output_to_json, parse_help, tools};
use component2json::{
    Argument, Case, ExportName, Field, Function, Kind, Label, Returned, Type, TypeRef, UniqueObject, component_exports_to_tools,
    json_to_arguments, output_schema, read_exports, returned_to_json,
};
use serde_json::{Value, json};
use structured_output::{canonicalize_output_schema, ensure_structured_result};

/// One round of a case that was prepared.
type Round = Box<dyn FnMut() -> Result<()>>;

/// Prepares a case.
type Preparation = fn() -> Result<Round>;

const CASES: &[(&str, Preparation)] = &[
    ("arguments/record", || arguments(&record())),
    ("arguments/short-text", || arguments(&short_text())),
    ("arguments/long-text", || arguments(&long_text())),
    ("arguments/bytes", || arguments(&bytes())),
    ("arguments/numbers", || arguments(&numbers())),
    ("arguments/records", || arguments(&records(10_000))),
    ("arguments/choices", || arguments(&choices())),
    ("results/record", || results(&record())),
    ("results/short-text", || results(&short_text())),
    ("results/long-text", || results(&long_text())),
    ("results/bytes", || results(&bytes())),
    ("results/numbers", || results(&numbers())),
    ("results/records", || results(&records(10_000))),
    ("results/choices", || results(&choices())),
    ("unique-keys/records", || unique_keys(&records(1_000))),
    ("exports/every-type", exports),
    ("schemas/every-type", schemas),
    ("envelope/schema", envelope_of_schema),
    ("envelope/records", || envelope_of_values(&records(50))),
    ("help/docker-run", help),
    ("tools/docker-run", tools_of_command),
    ("argv/docker-run", argv),
    ("output/table", table),
];

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--list"] => {
            let names: Vec<&str> = CASES.iter().map(|(name, _)| *name).collect();
            writeln!(std::io::stdout(), "{}", names.join("\n"))?;
        }
        [case, rounds] => {
            let (_, prepare) = CASES
                .iter()
                .find(|(name, _)| name == case)
                .with_context(|| format!("there is no case `{case}`; `--list` tells which there are"))?;
            let rounds: u64 = rounds.parse().context("ROUNDS is a number")?;
            let mut round = prepare()?;
            for _ in 0..rounds {
                round()?;
            }
        }
        _ => bail!("usage: pure-work CASE ROUNDS, or pure-work --list"),
    }
    Ok(())
}

/// What is converted: a type, and a value of it as JSON.
struct Sample {
    ty: TypeRef,
    json: Value,
}

fn short_text() -> Sample {
    Sample {
        ty: of(Kind::String),
        json: "0123456789".repeat(10).into(),
    }
}

fn long_text() -> Sample {
    Sample {
        ty: of(Kind::String),
        json: "all of it ends up in the guest; ".repeat(1 << 15).into(),
    }
}

fn bytes() -> Sample {
    Sample {
        ty: of(Kind::Bytes),
        json: "aG9z".repeat(1 << 18).into(),
    }
}

fn numbers() -> Sample {
    Sample {
        ty: of(Kind::List(of(Kind::F64))),
        json: (0..10_000).map(|index| f64::from(index) / 8.0).collect(),
    }
}

fn record() -> Sample {
    Sample {
        ty: document_type(),
        json: document(7),
    }
}

fn records(count: u32) -> Sample {
    Sample {
        ty: of(Kind::List(document_type())),
        json: (0..count).map(document).collect(),
    }
}

fn document_type() -> TypeRef {
    of_record([
        ("file-name", of(Kind::String)),
        ("size", of(Kind::U64)),
        ("note", of(Kind::Option(of(Kind::String)))),
        ("origin", of_record([("x", of(Kind::S32)), ("y", of(Kind::S32))])),
        ("tags", of(Kind::List(of(Kind::String)))),
    ])
}

fn document(index: u32) -> Value {
    let note = (index % 2 == 1).then_some("it is an odd one");
    json!({
        "file_name": format!("report-{index}.txt"),
        "size": index,
        "note": note,
        "origin": {"x": index, "y": -1},
        "tags": ["draft", "2026"],
    })
}

/// One of each type whose values are told apart by names.
fn choices() -> Sample {
    let labels = |names: [&str; 3]| {
        let label = |name: &str| Label {
            name: name.to_owned(),
            docs: None,
        };
        names.map(label).to_vec()
    };
    let case = |name: &str, ty| Case {
        name: name.to_owned(),
        docs: None,
        ty,
    };
    let shape = Kind::Variant(vec![
        case("nothing", None),
        case("circle", Some(of(Kind::F64))),
        case("label", Some(of(Kind::String))),
    ]);
    let outcome = Kind::Result {
        ok: Some(of(Kind::U32)),
        err: Some(of(Kind::String)),
    };
    Sample {
        ty: of_record([
            ("shape", of(shape)),
            ("level", of(Kind::Enum(labels(["low", "medium", "very-high"])))),
            ("rights", of(Kind::Flags(labels(["read", "write", "run-as-owner"])))),
            ("limit", of(Kind::Option(of(Kind::Option(of(Kind::U8)))))),
            ("outcome", of(outcome)),
            ("pair", of(Kind::Tuple(vec![of(Kind::U32), of(Kind::Bool)]))),
        ]),
        json: json!({
            "shape": {"tag": "label", "val": "a corner"},
            "level": "very-high",
            "rights": ["read", "run-as-owner"],
            "limit": {"some": 5},
            "outcome": {"err": "it is gone"},
            "pair": {"val0": 1, "val1": true},
        }),
    }
}

fn of(kind: Kind<TypeRef>) -> TypeRef {
    TypeRef::new(Type {
        name: None,
        docs: None,
        kind,
    })
}

fn of_record<const N: usize>(fields: [(&str, TypeRef); N]) -> TypeRef {
    let fields = fields.into_iter().map(|(name, ty)| Field::new(name, None, ty));
    of(Kind::Record(fields.collect()))
}

/// A function that returns what it gets.
fn echo(ty: &TypeRef) -> Function {
    Function {
        export: ExportName {
            interface: None,
            function: "echo".to_owned(),
        },
        docs: None,
        params: vec![Field::new("value", None, ty.clone())],
        result: Some(ty.clone()),
        is_async: false,
        answers_content: false,
    }
}

fn returned(function: &Function, sample: &Sample) -> Result<Returned> {
    let mut arguments = json_to_arguments(function, &json!({ "value": sample.json }))?;
    match arguments.pop().context("the function has a parameter")? {
        Argument::Bytes(bytes) => Ok(Returned::Bytes(bytes)),
        Argument::Val(val) => Ok(Returned::Val(val)),
    }
}

// What is done with components.

fn arguments(sample: &Sample) -> Result<Round> {
    let function = echo(&sample.ty);
    let arguments = json!({ "value": sample.json });
    Ok(Box::new(move || {
        black_box(json_to_arguments(&function, black_box(&arguments))?);
        Ok(())
    }))
}

fn results(sample: &Sample) -> Result<Round> {
    let function = echo(&sample.ty);
    let returned = returned(&function, sample)?;
    Ok(Box::new(move || {
        black_box(returned_to_json(&function, black_box(&returned), usize::MAX)?);
        Ok(())
    }))
}

/// Arguments as they come in a message.
fn unique_keys(sample: &Sample) -> Result<Round> {
    let text = json!({ "value": sample.json }).to_string();
    Ok(Box::new(move || {
        black_box(serde_json::from_str::<UniqueObject>(black_box(&text))?);
        Ok(())
    }))
}

const EVERY_TYPE: &[u8] = include_bytes!("../../test-components/every-type/every-type.wasm");

fn exports() -> Result<Round> {
    Ok(Box::new(|| {
        black_box(read_exports(black_box(EVERY_TYPE), None)?);
        Ok(())
    }))
}

fn schemas() -> Result<Round> {
    let (exports, _) = read_exports(EVERY_TYPE, None)?;
    Ok(Box::new(move || {
        black_box(component_exports_to_tools(black_box(&exports)));
        Ok(())
    }))
}

// What is done with the envelope.

fn envelope_of_schema() -> Result<Round> {
    let pair = json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false});
    let entry = json!({
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "at": pair,
            "next": {"anyOf": [{"$ref": "#/$defs/entry"}, {"type": "null"}]},
            "parts": {"type": "array", "items": {"oneOf": [pair, {"type": "string"}]}},
        },
        "required": ["id", "at"],
        "additionalProperties": false,
    });
    let schema = json!({
        "type": "object",
        "properties": {"entries": {"type": "array", "items": {"$ref": "#/$defs/entry"}}, "range": pair},
        "$defs": {"entry": entry},
    });
    // The copy is part of the round, as the schema is used up by it.
    Ok(Box::new(move || {
        black_box(canonicalize_output_schema(black_box(Some(schema.clone()))));
        Ok(())
    }))
}

/// What comes out goes in again: as after every call, there is nothing to align. Twenty values have a schema of their own each, because
/// in a single one, looked into as often, the random seeds of its maps would show.
fn envelope_of_values(sample: &Sample) -> Result<Round> {
    let function = echo(&sample.ty);
    let result = returned_to_json(&function, &returned(&function, sample)?, usize::MAX)?;
    let answer = || (output_schema(&function), json!({ "result": result }));
    let mut answers: Vec<(Option<Value>, Value)> = std::iter::repeat_with(answer).take(20).collect();
    Ok(Box::new(move || {
        for (schema, value) in &mut answers {
            let aligned = ensure_structured_result(schema.as_ref(), black_box(value.take()));
            *value = aligned.context("the function returns a value")?;
        }
        Ok(())
    }))
}

// What is done with programs.

const HELP: &str = include_str!("../../crates/command2json/tests/help/cobra/docker_run.txt");

fn command() -> Result<Command> {
    let help = parse_help(HELP, &["docker", "run"]).context("the help is read")?;
    Ok(help.command)
}

fn help() -> Result<Round> {
    Ok(Box::new(|| {
        black_box(parse_help(black_box(HELP), &["docker", "run"]));
        Ok(())
    }))
}

fn tools_of_command() -> Result<Round> {
    let command = command()?;
    let offer = Offer::default();
    Ok(Box::new(move || {
        black_box(tools(black_box(&command), &offer));
        Ok(())
    }))
}

fn argv() -> Result<Round> {
    let (mut tools, _) = tools(&command()?, &Offer::default());
    let CommandTool { target, .. } = tools.pop().context("the command is offered")?;
    let arguments = json!({
        "flags": {
            "name": "web",
            "detach": true,
            "cpus": 1.5,
            "env": ["MODE=test", "LANG=C"],
            "publish": ["8080:80"],
            "sysctl": {"net.core.somaxconn": "1024"},
        },
        "args": {"image": "nginx:1.29", "command": "nginx", "arg": ["-g", "daemon off;"]},
    });
    Ok(Box::new(move || {
        black_box(target.command_line(black_box(&arguments))?);
        Ok(())
    }))
}

fn table() -> Result<Round> {
    let rows = (0..1_000).map(|index| format!("pod-{index:<6}  Running  {:>4}  {:>3}d\n", index % 7, index % 90));
    let stdout = "NAME        STATUS   RUNS   AGE\n".to_owned() + &rows.collect::<String>();
    let output = Output {
        format: Some(Format::Table),
        ..Output::default()
    };
    Ok(Box::new(move || {
        let captured = Captured {
            stdout: stdout.as_bytes(),
            ..Captured::default()
        };
        black_box(output_to_json(black_box(&captured), Some(&output), None));
        Ok(())
    }))
}
