//! The subcommands that a text lists, without what only their own help knows.

use std::collections::HashSet;

use crate::plan::NEVER_OFFERED;
use crate::tree::Command;

use super::flags::says_deprecated;
use super::lines::{Line, paragraphs, split_at_gap};
use super::outline::{Entry, Outline};
use super::usage;
use super::{MAX_LIST, MAX_NAME_CHARS, capped_text};

/// The subcommands in their order.
pub(super) fn commands(outline: &Outline, path: &[&str]) -> Vec<Command> {
    let subparsers = outline.arguments.iter().filter(|entry| is_subparser(entry, outline));
    let mut seen = HashSet::new();
    listed(&outline.commands)
        .into_iter()
        .chain(subparsers.flat_map(nested))
        .chain(in_usage(outline, path).into_iter().map(|name| stub(name, "")))
        .filter(|command| is_name(&command.name) && !NEVER_OFFERED.contains(&command.name.as_str()))
        .filter(|command| seen.insert(command.name.clone()))
        .take(MAX_LIST)
        .collect()
}

/// Argparse lists subcommands among the arguments: `{a,b} ...`, or a word for it with the subcommands below.
pub(super) fn is_subparser(entry: &Entry, outline: &Outline) -> bool {
    let names = braced(&entry.head);
    let rows = rows(&entry.text);
    // A text may have many arguments and many forms; the first forms are enough.
    let in_usage = outline
        .forms
        .iter()
        .take(4)
        .any(|form| form.contains(&format!("{} ...", entry.head)));
    let lists_them = !rows.is_empty() && (names.is_empty() || rows.iter().all(|row| names.contains(&row.name.as_str())));
    let is_word = entry.head.to_ascii_lowercase().contains("command");
    (!names.is_empty() && (in_usage || lists_them)) || (is_word && lists_them && in_usage)
}

/// The subcommands of a usage with a form for each, as git's. A word or two may well be something else.
pub(super) fn in_usage<'a>(outline: &'a Outline, path: &[&str]) -> Vec<&'a str> {
    let words: Vec<&str> = outline
        .forms
        .iter()
        .filter_map(|form| usage::command_word(form, path))
        .collect();
    if words.iter().collect::<HashSet<_>>().len() < 3 {
        Vec::new()
    } else {
        words
    }
}

fn listed(entries: &[Entry]) -> Vec<Command> {
    let mut commands = Vec::new();
    let mut in_grid = false;
    for entry in entries {
        let text = paragraphs(&entry.text);
        let cells: Vec<&str> = text.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        let is_row_of_names = entry.text.len() == 1 && cells.iter().all(|cell| is_name(cell)) && is_name(&entry.head);
        in_grid = is_row_of_names && (cells.len() > 1 || in_grid);
        if in_grid {
            commands.extend([entry.head.as_str()].into_iter().chain(cells).map(|name| stub(name, "")));
        } else if entry.head.starts_with('{') {
            commands.extend(nested(entry));
        } else if text.is_empty() {
            commands.extend(entry.head.split(',').map(|name| stub(name, "")));
        } else {
            commands.push(stub(&entry.head, &text));
        }
    }
    commands
}

/// The subcommands of an Argparse entry; only their names if nothing is said of them.
fn nested(entry: &Entry) -> Vec<Command> {
    let rows = rows(&entry.text);
    if rows.is_empty() {
        braced(&entry.head).into_iter().map(|name| stub(name, "")).collect()
    } else {
        rows
    }
}

fn braced(head: &str) -> Vec<&str> {
    let inner = head.strip_prefix('{').and_then(|head| head.strip_suffix('}'));
    inner
        .map(|names| names.split(',').map(str::trim).collect())
        .unwrap_or_default()
}

/// The rows of a list below an entry: `name  text`, all at the same indent.
fn rows(text: &[Line]) -> Vec<Command> {
    let indent = text
        .iter()
        .filter(|line| !line.is_blank())
        .map(|line| line.indent)
        .min()
        .unwrap_or(0);
    let mut rows: Vec<(&str, Vec<Line>)> = Vec::new();
    for line in text {
        if line.indent == indent {
            let (head, summary) = split_at_gap(&line.text).unwrap_or((&line.text, ""));
            let summary = Line {
                indent: indent + 1,
                text: summary.to_owned(),
            };
            rows.push((head, vec![summary]));
        } else if let Some((_, summary)) = rows.last_mut() {
            summary.push(line.clone());
        }
    }
    let are_names = rows
        .iter()
        .all(|(head, _)| is_name(first_word(head)) && (!head.contains(' ') || head.contains('(')));
    let rows = rows.iter().map(|(head, summary)| stub(head, &paragraphs(summary)));
    if are_names { rows.collect() } else { Vec::new() }
}

fn first_word(head: &str) -> &str {
    head.split([' ', ',']).next().unwrap_or_default()
}

fn stub(head: &str, text: &str) -> Command {
    let summary = text.split("\n\n").next().unwrap_or_default();
    Command {
        name: first_word(head.trim()).trim_end_matches([':', '*']).to_owned(),
        summary: capped_text(summary),
        deprecated: says_deprecated(text),
        ..Command::default()
    }
}

fn is_name(name: &str) -> bool {
    let is_sign = |c: char| c.is_alphanumeric() || "-_.:+/".contains(c);
    name.starts_with(char::is_alphanumeric)
        && name.chars().all(is_sign)
        && name.chars().count() <= MAX_NAME_CHARS
        && !name.ends_with('.')
}
