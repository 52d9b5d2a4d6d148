//! Entries in YAML, in block style: one key a line, indented under the others.
//!
//! The parser says where things are, and lines are put there or taken out. What makes a place mean more than it says (flow
//! style, anchors, aliases, tags, several documents) is not edited.

use granit_parser::{Event, Parser, ScalarStyle, ScanError, StructureStyle};

use crate::EditError;
use crate::format::{Format, Patch};
use crate::text::{Splices, indent, is_blank, line_end, line_start, newline, next_line, previous_line_end, slice};
use crate::value::{Map, Value};

/// What a file of ours is indented by, and one whose habit cannot be seen.
const INDENT: &str = "  ";

pub(crate) fn read(text: &str) -> Result<Map, EditError> {
    match parse(text)?.map(|root| root.value()) {
        None => Ok(Map::new()),
        Some(value) if value.is_null() => Ok(Map::new()),
        Some(Value::Map(map)) => Ok(map),
        Some(other) => Err(EditError::Root { found: other.kind() }),
    }
}

pub(crate) fn fresh(container: &str, name: &str, entry: &Map, newline: &str) -> String {
    let mut lines = Vec::new();
    let servers = Value::Map(vec![(name.to_owned(), Value::Map(entry.clone()))]);
    pair_lines(container, &servers, "", INDENT, &mut lines);
    lines.push(String::new());
    lines.join(newline)
}

pub(crate) fn add(text: &str, container: &str, name: &str, entry: &Map) -> Result<String, EditError> {
    let newline = newline(text);
    let root = parse(text)?;
    let Some(root) = root.filter(|root| !root.value().is_null()) else {
        let before = text.trim_end();
        let gap = if before.is_empty() { "" } else { newline };
        return Ok(format!("{before}{gap}{}", fresh(container, name, entry, newline)));
    };
    let settings = root.settings()?;
    let outer = settings.first().map_or(Ok(""), |first| first.indent(text))?;
    let entry = Value::Map(entry.clone());
    let mut lines = Vec::new();
    let mut splices = Splices::default();
    let Some(pair) = find(settings, container) else {
        let servers = Value::Map(vec![(name.to_owned(), entry)]);
        pair_lines(container, &servers, outer, INDENT, &mut lines);
        splices.insert(text.trim_end().len(), format!("{newline}{}", lines.join(newline)));
        return Ok(splices.apply(text));
    };
    if pair.value.is_empty() {
        // `extensions:`, `extensions: null` or `extensions: {}`, perhaps with a comment.
        pair.value.refuse_oddities(container)?;
        pair_lines(name, &entry, &format!("{outer}{INDENT}"), INDENT, &mut lines);
        let colon = pair.colon(text);
        splices.cut(colon..pair.value.end.max(colon));
        splices.insert(line_end(text, pair.end(text)), format!("{newline}{}", lines.join(newline)));
        return Ok(splices.apply(text));
    }
    let servers = pair.value.block(container)?;
    let (Some(first), Some(last)) = (servers.first(), servers.last()) else {
        return Err(style(container, "in an unusual way"));
    };
    let inner = first.indent(text)?;
    let unit = inner.strip_prefix(outer).filter(|unit| unit.len() > 1).unwrap_or(INDENT);
    pair_lines(name, &entry, inner, unit, &mut lines);
    splices.insert(line_end(text, last.end(text)), format!("{newline}{}", lines.join(newline)));
    Ok(splices.apply(text))
}

pub(crate) fn patch(text: &str, container: &str, name: &str, patch: &Patch<'_>) -> Result<String, EditError> {
    let newline = newline(text);
    let Some(root) = parse(text)? else {
        return Ok(text.to_owned());
    };
    let servers = find(root.settings()?, container)
        .map(|pair| pair.value.block(container))
        .transpose()?;
    let Some(entry) = servers.and_then(|servers| find(servers, name)) else {
        return Ok(text.to_owned());
    };
    let members = entry.value.block(name)?;
    let (Some(first), Some(last)) = (members.first(), members.last()) else {
        return Err(style(name, "in an unusual way"));
    };
    let outer = first.indent(text)?;
    let mut splices = Splices::default();
    match patch {
        Patch::Unset(key) => {
            if let Some(pair) = find(members, key) {
                pair.indent(text)?;
                splices.cut(pair.lines(text));
            }
        }
        Patch::Set(key, value) => {
            let mut lines = Vec::new();
            pair_lines(key, value, outer, INDENT, &mut lines);
            let lines = lines.join(newline);
            match (find(members, key), scalar(value)) {
                (Some(pair), Some(scalar)) if pair.value.is_short_scalar(text) => {
                    splices.replace(pair.value.start..pair.value.end, scalar);
                }
                (Some(pair), _) => {
                    pair.indent(text)?;
                    splices.replace(line_start(text, pair.start)..line_end(text, pair.end(text)), lines);
                }
                (None, _) => splices.insert(line_end(text, last.end(text)), format!("{newline}{lines}")),
            }
        }
    }
    Ok(splices.apply(text))
}

pub(crate) fn remove(text: &str, container: &str, name: &str) -> Result<String, EditError> {
    let Some(root) = parse(text)? else {
        return Ok(text.to_owned());
    };
    let Some(list) = find(root.settings()?, container) else {
        return Ok(text.to_owned());
    };
    let servers = list.value.block(container)?;
    let Some(entry) = find(servers, name) else {
        return Ok(text.to_owned());
    };
    entry.indent(text)?;
    let mut splices = Splices::default();
    if servers.len() > 1 {
        splices.cut(entry.lines(text));
        return Ok(splices.apply(text));
    }
    let colon = list.colon(text);
    if is_blank(slice(text, colon..line_start(text, entry.start))) {
        list.indent(text)?;
        splices.cut(list.lines(text));
    } else {
        // Somebody wrote a comment there.
        splices.insert(colon, " {}");
        splices.cut(entry.lines(text));
    }
    Ok(splices.apply(text))
}

fn find<'a>(pairs: &'a [Pair], key: &str) -> Option<&'a Pair> {
    pairs.iter().find(|pair| pair.key == key)
}

fn style(key: &str, how: &'static str) -> EditError {
    EditError::Style {
        what: format!("`{key}`"),
        how,
    }
}

fn style_of_file(how: &'static str) -> EditError {
    EditError::Style {
        what: "the file".to_owned(),
        how,
    }
}

/// A value and where it stands.
struct Node {
    start: usize,
    /// Where the last of it ends, white space left out.
    end: usize,
    /// What makes it mean more than it says.
    oddity: Option<&'static str>,
    /// The same of something in it.
    oddity_within: Option<&'static str>,
    kind: Kind,
}

enum Kind {
    Scalar { text: String, is_plain: bool, is_block: bool },
    Alias(usize),
    List(Vec<Node>),
    Map { pairs: Vec<Pair>, is_flow: bool },
}

struct Pair {
    start: usize,
    key_end: usize,
    key: String,
    value: Node,
}

impl Pair {
    /// After the colon.
    fn colon(&self, text: &str) -> usize {
        let rest = slice(text, self.key_end..text.len());
        rest.find(':').map_or(self.key_end, |at| self.key_end + at + 1)
    }

    fn end(&self, text: &str) -> usize {
        self.value.end.max(self.colon(text))
    }

    /// The white space before the key, which has to begin its line.
    fn indent<'a>(&self, text: &'a str) -> Result<&'a str, EditError> {
        let indent = indent(text, self.start);
        if line_start(text, self.start) + indent.len() == self.start {
            Ok(indent)
        } else {
            Err(style(&self.key, "in an unusual way"))
        }
    }

    /// Its lines, with one of their line endings.
    fn lines(&self, text: &str) -> std::ops::Range<usize> {
        let start = line_start(text, self.start);
        let end = line_end(text, self.end(text));
        if start == 0 {
            0..next_line(text, end)
        } else {
            previous_line_end(text, start)..end
        }
    }
}

impl Node {
    fn value(&self) -> Value {
        match &self.kind {
            Kind::Scalar { text, is_plain, .. } => {
                if *is_plain {
                    plain(text)
                } else {
                    Value::text(text)
                }
            }
            Kind::Alias(id) => Value::Other(format!("*{id}")),
            Kind::List(items) => Value::List(items.iter().map(Self::value).collect()),
            Kind::Map { pairs, .. } => Value::Map(pairs.iter().map(|pair| (pair.key.clone(), pair.value.value())).collect()),
        }
    }

    fn is_empty(&self) -> bool {
        match &self.kind {
            Kind::Map { pairs, .. } => pairs.is_empty(),
            _ => self.value().is_null(),
        }
    }

    fn is_short_scalar(&self, text: &str) -> bool {
        let is_scalar = matches!(self.kind, Kind::Scalar { is_block: false, .. });
        is_scalar && self.start < self.end && !slice(text, self.start..self.end).contains('\n')
    }

    /// The pairs of the root. What is odd in some other setting does not matter.
    fn settings(&self) -> Result<&[Pair], EditError> {
        match self.oddity {
            Some(how) => Err(style_of_file(how)),
            None => self.pairs().map_err(style_of_file),
        }
    }

    /// The pairs of a mapping in which everything means what it says.
    fn block(&self, key: &str) -> Result<&[Pair], EditError> {
        self.refuse_oddities(key)?;
        self.pairs().map_err(|how| style(key, how))
    }

    fn pairs(&self) -> Result<&[Pair], &'static str> {
        match &self.kind {
            Kind::Map { is_flow: true, .. } => Err("in flow style, with braces"),
            Kind::Map { pairs, .. } if pairs.iter().any(|pair| pair.key == "<<") => Err("with a merge key"),
            Kind::Map { pairs, .. } => Ok(pairs),
            _ => Err("in an unusual way"),
        }
    }

    fn refuse_oddities(&self, key: &str) -> Result<(), EditError> {
        match self.oddity.or(self.oddity_within) {
            Some(how) => Err(style(key, how)),
            None => Ok(()),
        }
    }
}

/// The one document of a text, if it has any.
fn parse(text: &str) -> Result<Option<Node>, EditError> {
    let mut open: Vec<Open> = Vec::new();
    let mut root = None;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| broken(&error))?;
        let range = span.byte_range().unwrap_or_default();
        let node = match event {
            Event::Scalar(value, scalar_style, anchor, tag) => Node {
                start: range.start,
                // Of a block scalar, the range goes up to what comes next.
                end: range.start + slice(text, range.clone()).trim_end().len(),
                oddity: oddity(anchor, tag.is_some()),
                oddity_within: None,
                kind: Kind::Scalar {
                    text: value.into_owned(),
                    is_plain: scalar_style == ScalarStyle::Plain,
                    is_block: matches!(scalar_style, ScalarStyle::Literal | ScalarStyle::Folded),
                },
            },
            Event::Alias(id) => Node {
                start: range.start,
                end: range.end,
                oddity: Some("with an alias"),
                oddity_within: None,
                kind: Kind::Alias(id),
            },
            Event::SequenceStart(style, anchor, tag) => {
                open.push(Open::new(
                    range.start,
                    style,
                    oddity(anchor, tag.is_some()),
                    Children::List(Vec::new()),
                ));
                continue;
            }
            Event::MappingStart(style, anchor, tag) => {
                let children = Children::Map(Vec::new(), None);
                open.push(Open::new(range.start, style, oddity(anchor, tag.is_some()), children));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(closed) => closed.close(range.end),
                None => continue,
            },
            Event::DocumentStart(..) if root.is_some() => return Err(style_of_file("as several documents")),
            _ => continue,
        };
        match open.last_mut() {
            Some(parent) => parent.push(node, text),
            None => root = Some(node),
        }
    }
    Ok(root)
}

fn oddity(anchor: usize, has_tag: bool) -> Option<&'static str> {
    if anchor != 0 {
        Some("with an anchor")
    } else if has_tag {
        Some("with a tag")
    } else {
        None
    }
}

/// A list or a mapping whose end is still to come.
struct Open {
    start: usize,
    end: usize,
    is_flow: bool,
    oddity: Option<&'static str>,
    oddity_within: Option<&'static str>,
    children: Children,
}

enum Children {
    List(Vec<Node>),
    /// With a key that waits for its value.
    Map(Vec<Pair>, Option<Node>),
}

impl Open {
    fn new(start: usize, style: StructureStyle, oddity: Option<&'static str>, children: Children) -> Self {
        Self {
            start,
            end: start,
            is_flow: style == StructureStyle::Flow,
            oddity,
            oddity_within: None,
            children,
        }
    }

    fn push(&mut self, node: Node, text: &str) {
        self.end = self.end.max(node.end);
        self.oddity_within = self.oddity_within.or(node.oddity).or(node.oddity_within);
        match &mut self.children {
            Children::List(items) => items.push(node),
            Children::Map(pairs, waiting) => match waiting.take() {
                None => *waiting = Some(node),
                Some(key) => {
                    let key_text = match &key.kind {
                        Kind::Scalar { text, .. } => text.clone(),
                        // A key that is no text: the text that stands for it.
                        _ => slice(text, key.start..key.end).to_owned(),
                    };
                    let pair = Pair {
                        start: key.start,
                        key_end: key.end,
                        key: key_text,
                        value: node,
                    };
                    self.end = self.end.max(pair.end(text));
                    pairs.push(pair);
                }
            },
        }
    }

    fn close(self, end: usize) -> Node {
        Node {
            start: self.start,
            end: if self.is_flow { end } else { self.end },
            oddity: self.oddity,
            oddity_within: self.oddity_within,
            kind: match self.children {
                Children::List(items) => Kind::List(items),
                Children::Map(pairs, _) => Kind::Map {
                    pairs,
                    is_flow: self.is_flow,
                },
            },
        }
    }
}

/// What a plain scalar means by the core schema.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Other(Value::NULL.to_owned()),
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ if looks_like_a_number(text) => Value::Other(text.to_owned()),
        _ => Value::text(text),
    }
}

fn looks_like_a_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_based = |prefix: &str, base: u32| {
        let digits = text.strip_prefix(prefix).unwrap_or_default();
        !digits.is_empty() && digits.chars().all(|c| c.is_digit(base))
    };
    let is_special = matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN");
    let is_decimal = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') && unsigned.parse::<f64>().is_ok();
    is_special || is_decimal || is_based("0x", 16) || is_based("0o", 8)
}

fn pair_lines(key: &str, value: &Value, indent: &str, unit: &str, lines: &mut Vec<String>) {
    let key = text_scalar(key);
    match value {
        Value::List(items) if !items.is_empty() => {
            lines.push(format!("{indent}{key}:"));
            // Not indented further, as Goose itself writes lists.
            lines.extend(items.iter().filter_map(scalar).map(|item| format!("{indent}- {item}")));
        }
        Value::Map(map) if !map.is_empty() => {
            lines.push(format!("{indent}{key}:"));
            let indent = format!("{indent}{unit}");
            for (key, value) in map {
                pair_lines(key, value, &indent, unit, lines);
            }
        }
        other => lines.push(format!("{indent}{key}: {}", scalar(other).unwrap_or_default())),
    }
}

/// What fits on a line.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text_scalar(text)),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Other(text) => Some(text.clone()),
        Value::List(items) => items.is_empty().then(|| "[]".to_owned()),
        Value::Map(map) => map.is_empty().then(|| "{}".to_owned()),
    }
}

/// Plain where every version of YAML agrees on it, in single quotes otherwise, and in double quotes if it has to be escaped.
fn text_scalar(text: &str) -> String {
    let first = |c: char| c.is_ascii_alphabetic() || "/_".contains(c);
    let rest = |c: char| c.is_ascii_alphanumeric() || "/_.,:;=+-@%".contains(c);
    let option = text.trim_start_matches('-');
    let is_word = option.starts_with(first) && option.chars().all(rest) && !option.ends_with(':');
    let reserved = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    if is_word && !reserved.iter().any(|word| word.eq_ignore_ascii_case(text)) {
        return text.to_owned();
    }
    let is_special = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}');
    if !text.contains(is_special) {
        return format!("'{}'", text.replace('\'', "''"));
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if is_special(c) => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn broken(error: &ScanError) -> EditError {
    EditError::Broken {
        format: Format::Yaml,
        line: error.marker().line(),
        column: error.marker().col() + 1,
        reason: error.info().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_read_as_they_were_meant() {
        for text in [
            "",
            "a",
            "/opt/host",
            "--allow-read=/data",
            "-v",
            "-",
            "---",
            "yes",
            "No",
            "null",
            "~",
            "1",
            "1.5",
            "0x1f",
            "1e5",
            "12:30",
            ".inf",
            "a b",
            " a",
            "a ",
            "a: b",
            "a:",
            "a #b",
            "#a",
            "- a",
            "it's",
            "\"x\"",
            r"C:\opt\host.exe",
            "a\nb",
            "a\tb",
            "é",
            "\u{85}",
            "\u{feff}x",
            "{a}",
            "[a]",
            "*a",
            "&a",
            "!a",
            "%a",
            "@a",
            "`a`",
            "?",
            "? a",
            "|",
            ">",
            "http://127.0.0.1:80/mcp",
            "2001-12-14",
            "<<",
            "=",
        ] {
            let yaml = format!("key: {}\nlist:\n- {}\n", text_scalar(text), text_scalar(text));
            let read = read(&yaml).unwrap();
            let expected = vec![
                ("key".to_owned(), Value::text(text)),
                ("list".to_owned(), Value::List(vec![Value::text(text)])),
            ];
            assert_eq!(Value::Map(read), Value::Map(expected), "{yaml}");
        }
    }
}
