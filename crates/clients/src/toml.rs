//! Entries in TOML: tables of their own, `[mcp_servers.NAME]`.
//!
//! `toml_edit` says where things are. It does not write the file, because it ends every line as Unix does, whatever the file
//! does.

use std::ops::Range;

use toml_edit::{Document, Item, Key, Table, TableLike, TomlError};

use crate::EditError;
use crate::format::{Format, Patch};
use crate::text::{Splices, is_blank, line_end, line_start, newline, next_line, previous_line_end, slice};
use crate::value::{Map, Value};

pub(crate) fn read(text: &str) -> Result<Map, EditError> {
    let document = parse(text)?;
    Ok(table(document.as_table(), text))
}

pub(crate) fn fresh(container: &str, name: &str, entry: &Map, newline: &str) -> String {
    format!("{}{newline}", section(container, name, entry, newline))
}

pub(crate) fn add(text: &str, container: &str, name: &str, entry: &Map) -> Result<String, EditError> {
    let document = parse(text)?;
    let newline = newline(text);
    match document.as_table().get(container) {
        None | Some(Item::Table(_)) => {}
        Some(_) => return Err(inline(container)),
    }
    if is_blank(text) {
        return Ok(fresh(container, name, entry, newline));
    }
    let lines = lines(&document, text);
    let is_server = |line: &Line| line.is_header && line.path.first().is_some_and(|first| first == container);
    let at = match lines.iter().rposition(is_server) {
        Some(index) if lines.iter().skip(index + 1).any(|line| line.is_header) => {
            let last = lines.iter().skip(index + 1).take_while(|line| !line.is_header).last();
            let end = last.or(lines.get(index)).map_or(0, |line| line.end);
            with_comments(text, end)
        }
        // After everything else, with whatever comments the file ends with.
        _ => text.trim_end().len(),
    };
    let mut splices = Splices::default();
    splices.insert(at, format!("{newline}{newline}{}", section(container, name, entry, newline)));
    Ok(splices.apply(text))
}

pub(crate) fn patch(text: &str, container: &str, name: &str, patch: &Patch<'_>) -> Result<String, EditError> {
    let (key, new) = match patch {
        Patch::Unset(key) => return remove_path(text, &[container, name, key]),
        Patch::Set(key, value) => (*key, *value),
    };
    let document = parse(text)?;
    let found = document
        .as_table()
        .get(container)
        .and_then(|servers| servers.get(name)?.get(key));
    let mut splices = Splices::default();
    if let Some(range) = found.and_then(Item::as_value).and_then(toml_edit::Value::span) {
        splices.replace(range, render(new));
        return Ok(splices.apply(text));
    }
    if found.is_some() {
        // A table of its own, as `[mcp_servers.NAME.env]` is.
        let without = remove_path(text, &[container, name, key])?;
        return self::patch(&without, container, name, patch);
    }
    let lines = lines(&document, text);
    let is_ours = |line: &Line| line.is_header && line.path == [container, name];
    let Some(index) = lines.iter().position(is_ours) else {
        return Err(inline(name));
    };
    let last = lines.iter().skip(index + 1).take_while(|line| !line.is_header).last();
    let end = last.or(lines.get(index)).map_or(0, |line| line.end);
    splices.insert(end, format!("{}{}", newline(text), pair(key, new)));
    Ok(splices.apply(text))
}

pub(crate) fn remove(text: &str, container: &str, name: &str) -> Result<String, EditError> {
    remove_path(text, &[container, name])
}

/// Takes out everything that is said of this path: its tables, the tables in them, and single lines.
fn remove_path(text: &str, path: &[&str]) -> Result<String, EditError> {
    let document = parse(text)?;
    let lines = lines(&document, text);
    let is_of_path = |line: &Line| line.path.len() >= path.len() && line.path.iter().zip(path).all(|(a, b)| a == b);
    let mut splices = Splices::default();
    let mut found = false;
    let mut rest = lines.iter().peekable();
    while let Some(line) = rest.next() {
        if !is_of_path(line) {
            continue;
        }
        found = true;
        let mut end = line.end;
        while line.is_header
            && let Some(within) = rest.next_if(|line| !line.is_header)
        {
            end = within.end;
        }
        splices.cut(whole_lines(text, line.start..end, line.is_header));
    }
    if found {
        Ok(splices.apply(text))
    } else {
        Err(inline(path.last().copied().unwrap_or_default()))
    }
}

/// Lines with one of their line endings, and of a table with the blank line before it.
fn whole_lines(text: &str, range: Range<usize>, is_table: bool) -> Range<usize> {
    if range.start == 0 {
        let end = next_line(text, range.end);
        let following = line_end(text, end);
        let is_gap = is_table && is_blank(slice(text, end..following));
        return 0..if is_gap { next_line(text, following) } else { end };
    }
    let mut start = previous_line_end(text, range.start);
    let previous = line_start(text, start);
    if is_table && previous > 0 && is_blank(slice(text, previous..start)) {
        start = previous_line_end(text, previous);
    }
    start..range.end
}

/// Comments right under a table belong to it, if they are followed by a blank line and not by the next table.
fn with_comments(text: &str, end: usize) -> usize {
    let mut at = end;
    loop {
        let start = next_line(text, at);
        let line = slice(text, start..line_end(text, start));
        if line.trim_start().starts_with('#') {
            at = line_end(text, start);
        } else {
            return if is_blank(line) { at } else { end };
        }
    }
}

/// A header or a pair of a key and a value.
struct Line {
    path: Vec<String>,
    is_header: bool,
    /// The beginning of its first line.
    start: usize,
    /// The end of its last line, before the line ending.
    end: usize,
}

/// All of them, in the order of the text.
fn lines(document: &Document<&str>, text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    collect(document.as_table(), &[], text, &mut lines);
    lines.sort_by_key(|line| line.start);
    lines
}

fn collect(table: &Table, path: &[&str], text: &str, lines: &mut Vec<Line>) {
    let line = |path: &[&str], range: Range<usize>, is_header| Line {
        path: path.iter().map(|&part| part.to_owned()).collect(),
        is_header,
        start: line_start(text, range.start),
        end: line_end(text, range.end),
    };
    if let (false, false, Some(span)) = (path.is_empty(), table.is_implicit() || table.is_dotted(), table.span()) {
        lines.push(line(path, span, true));
    }
    for (key, item) in table {
        let path: Vec<&str> = path.iter().copied().chain([key]).collect();
        match item {
            Item::None => {}
            Item::Value(value) => {
                if let (Some(key), Some(value)) = (table.key(key).and_then(Key::span), value.span()) {
                    lines.push(line(&path, key.start..value.end, false));
                }
            }
            Item::Table(inner) => collect(inner, &path, text, lines),
            Item::ArrayOfTables(tables) => {
                for inner in tables {
                    collect(inner, &path, text, lines);
                }
            }
        }
    }
}

fn table(table: &dyn TableLike, text: &str) -> Map {
    table
        .iter()
        .map(|(key, item)| (key.to_owned(), item_value(item, text)))
        .collect()
}

fn item_value(item: &Item, text: &str) -> Value {
    match item {
        Item::None => Value::Other(Value::NULL.to_owned()),
        Item::Value(inner) => value(inner, text),
        Item::Table(inner) => Value::Map(table(inner, text)),
        Item::ArrayOfTables(tables) => Value::List(tables.iter().map(|inner| Value::Map(table(inner, text))).collect()),
    }
}

fn value(value: &toml_edit::Value, text: &str) -> Value {
    match value {
        toml_edit::Value::String(string) => Value::text(string.value()),
        toml_edit::Value::Boolean(truth) => Value::Bool(*truth.value()),
        toml_edit::Value::Array(array) => Value::List(array.iter().map(|item| self::value(item, text)).collect()),
        toml_edit::Value::InlineTable(inner) => Value::Map(table(inner, text)),
        other => Value::Other(other.span().map(|span| slice(text, span)).unwrap_or_default().to_owned()),
    }
}

fn section(container: &str, name: &str, entry: &Map, newline: &str) -> String {
    let mut text = format!("[{}.{}]", key_text(container), key_text(name));
    for (key, value) in entry {
        text.push_str(newline);
        text.push_str(&pair(key, value));
    }
    text
}

fn pair(key: &str, value: &Value) -> String {
    format!("{} = {}", key_text(key), render(value))
}

fn key_text(key: &str) -> String {
    Key::new(key).display_repr().into_owned()
}

/// A value on one line.
fn render(value: &Value) -> String {
    let joined = |items: Vec<String>| items.join(", ");
    match value {
        Value::Text(text) => toml_edit::Value::from(text).to_string(),
        Value::Bool(truth) => truth.to_string(),
        Value::Other(text) => text.clone(),
        Value::List(items) => format!("[{}]", joined(items.iter().map(render).collect())),
        Value::Map(map) if map.is_empty() => "{}".to_owned(),
        Value::Map(map) => format!("{{ {} }}", joined(map.iter().map(|(key, value)| pair(key, value)).collect())),
    }
}

fn parse(text: &str) -> Result<Document<&str>, EditError> {
    Document::parse(text).map_err(|error| broken(text, &error))
}

fn broken(text: &str, error: &TomlError) -> EditError {
    let at = error.span().map_or(0, |span| span.start);
    let before = slice(text, 0..at);
    let line = slice(text, line_start(text, at)..at);
    EditError::Broken {
        format: Format::Toml,
        line: before.matches('\n').count() + 1,
        column: line.chars().count() + 1,
        reason: error.message().to_owned(),
    }
}

fn inline(key: &str) -> EditError {
    EditError::Style {
        what: format!("`{key}`"),
        how: "as an inline table",
    }
}
