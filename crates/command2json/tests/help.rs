//! `help/FAMILY/NAME.txt`, the help of a real program, beside `help/FAMILY/NAME.json`, the command that is read from it. In a name,
//! `_` separates the program and its subcommands. `BLESS=1` writes the second from the first.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use command2json::parse_help;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

#[test]
fn commands_are_what_the_snapshots_say() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut failures = Vec::new();
    let texts = texts();
    assert!(texts.len() >= 40, "the snapshots are gone");
    for file in texts {
        let read = read(&file);
        let family = file.parent().unwrap().file_name().unwrap().to_string_lossy();
        if read["family"] != *family {
            failures.push(format!("{}: is taken for {}", file.display(), read["family"]));
        }
        let snapshot = file.with_extension("json");
        let text = serde_json::to_string_pretty(&read).unwrap() + "\n";
        if bless {
            #[expect(clippy::disallowed_methods, reason = "a snapshot that is half written is blessed again")]
            fs::write(&snapshot, text).unwrap();
        } else if fs::read_to_string(&snapshot).unwrap_or_default() != text {
            failures.push(format!(
                "{}: differs from its snapshot; look at `git diff` after BLESS=1",
                file.display()
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn read(file: &Path) -> Value {
    let name = file.file_stem().unwrap().to_string_lossy().into_owned();
    let path: Vec<&str> = name.split('_').collect();
    match parse_help(&fs::read_to_string(file).unwrap(), &path) {
        Some(help) => json!({"path": path, "family": help.family, "program": help.program, "command": help.command}),
        None => Value::Null,
    }
}

/// The texts of all families, in the order of their names.
fn texts() -> Vec<PathBuf> {
    let files_of = |directory: &Path| {
        fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect::<Vec<_>>()
    };
    let families = files_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help"));
    let mut texts: Vec<PathBuf> = families.iter().flat_map(|family| files_of(family)).collect();
    texts.retain(|file| file.extension().is_some_and(|extension| extension == "txt"));
    texts.sort();
    texts
}

#[test]
fn other_texts_are_no_help() {
    for text in [
        "",
        "\n\n",
        "error: it does not work",
        "Hello, world!\n\nThis is a text.\n",
        "{\"json\": true}",
        "usage",
    ] {
        assert_eq!(parse_help(text, &["prog"]), None, "{text:?}");
    }
}

#[test]
fn hostile_texts_take_no_time() {
    let mib = 1 << 20;
    let options = (0..100_000).fold(String::new(), |text, n| {
        text + &format!("  --flag-{n} <X>  text [default: {n}]\n")
    });
    let forms = format!(
        "Usage:\n{}\n",
        format!("  x {}\n", "[-a|-b X] (-c | --long-name-of-it=VALUE)... ".repeat(300)).repeat(60)
    );
    let arguments = (0..20_000).fold(String::new(), |text, n| text + &format!("  {{a{n},b}}  text {n}\n"));
    let texts = [
        forms.clone() + &options,
        forms + "Arguments:\n" + &arguments,
        "-".repeat(mib),
        "[".repeat(mib),
        format!("Usage: x {}", "[".repeat(mib)),
        format!("Usage: x {}", "[a ".repeat(mib / 3)),
        format!("Usage: x {}", "<".repeat(mib)),
        format!("Usage: x\n{}", "          [-a]\n".repeat(mib / 15)),
        "-a\n".repeat(mib / 3),
        "  -a  (default\n".repeat(mib / 15),
        format!("  -a X  {}", "default (".repeat(mib / 9)),
        format!("  -a X  {}", "a|b| ".repeat(mib / 5)),
        format!("  -a X\n{}", "     (default x|y one of:\n".repeat(mib / 26)),
        "\n".repeat(mib),
        " \t".repeat(mib / 2),
        "x\u{8}".repeat(mib / 2),
        "\u{1b}[".repeat(mib / 2),
        "Commands:\n  a  b\n".repeat(mib / 18),
        "Options:\n\n".repeat(mib / 10),
        "Examples:\n  a\n".repeat(mib / 14),
        "-a, ".repeat(mib / 4),
        options,
    ];
    for text in texts {
        let shown: String = text.chars().take(20).collect();
        let Some(help) = parse_help(&text, &["x"]) else { continue };
        assert!(
            help.command.flags.len() <= 500 && help.command.commands.len() <= 500,
            "{shown:?}"
        );
        assert!(serde_json::to_string(&help.command).unwrap().len() < 4 * mib, "{shown:?}");
    }
}

/// A line of a real text.
fn line() -> impl Strategy<Value = String> {
    let lines: Vec<String> = texts()
        .iter()
        .flat_map(|file| {
            fs::read_to_string(file)
                .unwrap()
                .lines()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect();
    select(lines)
}

proptest! {
    #[test]
    fn any_text_is_read(text in "(\\PC|[\\-\\[\\]<>{}().,:=|'\" \t\n]){0,200}") {
        parse_help(&text, &["prog", "sub"]);
    }

    #[test]
    fn lines_in_any_order_are_read(lines in prop::collection::vec(line(), 0..40), cut in 0_usize..2000) {
        let text: String = lines.join("\n").chars().take(cut).collect();
        parse_help(&text, &["prog"]);
    }
}
