//! Entries in JSON that may have comments and trailing commas.
//!
//! Members are put in and taken out as people do it: on lines of their own where the others have such, within the line where
//! they stand in one, with a comma at the end where that is the habit. The concrete syntax tree of the parser's crate would do
//! something like it, but breaks objects of one line into several, which nobody could take back.

use std::ops::Range as Span;

use jsonc_parser::ast::{self, Object, ObjectProp};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::errors::ParseError;
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};

use crate::EditError;
use crate::format::{Format, Patch};
use crate::text::{Splices, indent, is_blank, line_end, line_start, newline, previous_line_end, slice};
use crate::value::{Map, Value};

/// What a file of ours is indented by, and one whose habit cannot be seen.
const INDENT: &str = "  ";

pub(crate) fn read(text: &str) -> Result<Map, EditError> {
    match Document::parse(text)?.root {
        None => Ok(Map::new()),
        Some(root) => match value(&root) {
            Value::Map(map) => Ok(map),
            other => Err(EditError::Root { found: other.kind() }),
        },
    }
}

pub(crate) fn fresh(container: &str, name: &str, entry: &Map, newline: &str) -> String {
    let style = Style {
        newline,
        unit: INDENT,
        layout: Layout::Lines,
    };
    let servers = Value::Map(vec![(name.to_owned(), Value::Map(entry.clone()))]);
    let root = Value::Map(vec![(container.to_owned(), servers)]);
    format!("{}{newline}", style.render(&root, ""))
}

pub(crate) fn add(text: &str, container: &str, name: &str, entry: &Map) -> Result<String, EditError> {
    let document = Document::parse(text)?;
    let Some(root) = document.object(&[]) else {
        // Nothing but white space and comments.
        let before = text.trim_end();
        let newline = newline(text);
        let gap = if before.is_empty() { "" } else { newline };
        return Ok(format!("{before}{gap}{}", fresh(container, name, entry, newline)));
    };
    let entry = Value::Map(entry.clone());
    Ok(match document.object(&[container]) {
        Some(servers) => document.insert(servers, name, &entry),
        None => document.insert(root, container, &Value::Map(vec![(name.to_owned(), entry)])),
    })
}

pub(crate) fn patch(text: &str, container: &str, name: &str, patch: &Patch<'_>) -> Result<String, EditError> {
    let document = Document::parse(text)?;
    let Some(entry) = document.object(&[container, name]) else {
        return Ok(text.to_owned());
    };
    Ok(match patch {
        Patch::Unset(key) => document.remove(entry, key),
        Patch::Set(key, value) => match entry.properties.iter().find(|member| member.name.as_str() == *key) {
            None => document.insert(entry, key, value),
            Some(member) => {
                let old = member.value.range();
                let style = Style {
                    layout: match document.layout(entry) {
                        Layout::Lines if slice(text, old.start..old.end).contains('\n') => Layout::TallLines,
                        layout => layout,
                    },
                    ..document.style(entry)
                };
                let mut splices = Splices::default();
                splices.replace(old.start..old.end, style.render(value, indent(text, member.range.start)));
                splices.apply(text)
            }
        },
    })
}

pub(crate) fn remove(text: &str, container: &str, name: &str) -> Result<String, EditError> {
    let document = Document::parse(text)?;
    let Some(servers) = document.object(&[container]) else {
        return Ok(text.to_owned());
    };
    let text = document.remove(servers, name);
    let document = Document::parse(&text)?;
    let is_empty = |servers: &&Object<'_>| document.inside(servers).is_empty();
    Ok(match (document.object(&[]), document.object(&[container]).filter(is_empty)) {
        (Some(root), Some(_)) => document.remove(root, container),
        _ => text,
    })
}

fn value(node: &ast::Value<'_>) -> Value {
    match node {
        ast::Value::StringLit(text) => Value::text(text.value.as_ref()),
        ast::Value::NumberLit(number) => Value::Other(number.value.to_owned()),
        ast::Value::BooleanLit(truth) => Value::Bool(truth.value),
        ast::Value::NullKeyword(_) => Value::Other(Value::NULL.to_owned()),
        ast::Value::Array(array) => Value::List(array.elements.iter().map(value).collect()),
        ast::Value::Object(object) => Value::Map(
            object
                .properties
                .iter()
                .map(|member| (member.name.as_str().to_owned(), value(&member.value)))
                .collect(),
        ),
    }
}

/// How the members of an object stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// On lines of their own, but short lists within a line.
    Lines,
    /// The same, and lists over several lines, too.
    TallLines,
    /// All in one line, with spaces after `:` and `,`.
    Spaced,
    /// All in one line, without.
    Dense,
}

struct Style<'a> {
    newline: &'a str,
    unit: &'a str,
    layout: Layout,
}

impl Style<'_> {
    fn render(&self, value: &Value, indent: &str) -> String {
        match value {
            Value::Text(text) => quoted(text),
            Value::Bool(truth) => truth.to_string(),
            Value::Other(text) => text.clone(),
            Value::List(items) => {
                let is_tall = self.layout == Layout::TallLines;
                let inner = if is_tall {
                    format!("{indent}{}", self.unit)
                } else {
                    indent.to_owned()
                };
                let items = items.iter().map(|item| self.render(item, &inner)).collect();
                self.enclosed("[", items, "]", indent, is_tall)
            }
            Value::Map(map) => {
                let inner = format!("{indent}{}", self.unit);
                let members = map.iter().map(|(key, value)| self.member(key, value, &inner)).collect();
                self.enclosed(
                    "{",
                    members,
                    "}",
                    indent,
                    matches!(self.layout, Layout::Lines | Layout::TallLines),
                )
            }
        }
    }

    fn member(&self, key: &str, value: &Value, indent: &str) -> String {
        let colon = if self.layout == Layout::Dense { ":" } else { ": " };
        format!("{}{colon}{}", quoted(key), self.render(value, indent))
    }

    fn enclosed(&self, open: &str, items: Vec<String>, close: &str, indent: &str, on_lines: bool) -> String {
        if items.is_empty() {
            return format!("{open}{close}");
        }
        if on_lines {
            let Self { newline, unit, .. } = self;
            let items = items.join(&format!(",{newline}{indent}{unit}"));
            format!("{open}{newline}{indent}{unit}{items}{newline}{indent}{close}")
        } else {
            let comma = if self.layout == Layout::Dense { "," } else { ", " };
            format!("{open}{}{close}", items.join(comma))
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

struct Document<'a> {
    text: &'a str,
    root: Option<ast::Value<'a>>,
    /// With the comments among them.
    tokens: Vec<TokenAndRange<'a>>,
}

impl<'a> Document<'a> {
    fn parse(text: &'a str) -> Result<Self, EditError> {
        let collect = CollectOptions {
            comments: CommentCollectionStrategy::AsTokens,
            tokens: true,
        };
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let result = parse_to_ast(text, &collect, &options).map_err(|error| broken(&error))?;
        Ok(Self {
            text,
            root: result.value,
            tokens: result.tokens.unwrap_or_default(),
        })
    }

    fn object(&self, path: &[&str]) -> Option<&Object<'a>> {
        let mut object = self.root.as_ref()?.as_object()?;
        for key in path {
            let member = object.properties.iter().find(|member| member.name.as_str() == *key)?;
            object = member.value.as_object()?;
        }
        Some(object)
    }

    /// What is between the braces.
    fn inside(&self, object: &Object<'_>) -> &'a str {
        slice(self.text, object.range.start + 1..object.range.end.saturating_sub(1))
    }

    fn layout(&self, object: &Object<'_>) -> Layout {
        match object.properties.first() {
            None => Layout::Lines,
            Some(first) if slice(self.text, object.range.start..first.range.start).contains('\n') => Layout::Lines,
            Some(first) => {
                let colon = slice(self.text, first.name.range().end..first.value.range().start);
                if colon.contains(char::is_whitespace) {
                    Layout::Spaced
                } else {
                    Layout::Dense
                }
            }
        }
    }

    fn style(&self, object: &Object<'_>) -> Style<'a> {
        let root = self.object(&[]);
        let first = root
            .filter(|root| self.layout(root) == Layout::Lines)
            .and_then(|root| root.properties.first());
        let unit = first.map_or("", |first| indent(self.text, first.range.start));
        Style {
            newline: newline(self.text),
            unit: if unit.is_empty() { INDENT } else { unit },
            layout: self.layout(object),
        }
    }

    /// The comma after this place, if it is the next thing but for comments.
    fn comma_after(&self, at: usize) -> Option<Range> {
        let is_comment = |token: &Token<'_>| matches!(token, Token::CommentLine(_) | Token::CommentBlock(_));
        let next = self
            .tokens
            .iter()
            .find(|token| token.range.start >= at && !is_comment(&token.token))?;
        (next.token == Token::Comma).then_some(next.range)
    }

    /// The end of the line of this place, if it is before `limit`. A comment that goes on over the end belongs to the line.
    fn end_of_line(&self, from: usize, limit: usize) -> Option<usize> {
        let mut at = line_end(self.text, from);
        while let Some(comment) = self
            .tokens
            .iter()
            .find(|token| token.range.start >= from && token.range.start < at && at < token.range.end)
        {
            at = line_end(self.text, comment.range.end);
        }
        (at < limit).then_some(at)
    }

    /// Puts a new member after the last one.
    fn insert(&self, object: &Object<'a>, key: &str, value: &Value) -> String {
        let style = self.style(object);
        let mut splices = Splices::default();
        let close = object.range.end.saturating_sub(1);
        let Some(last) = object.properties.last() else {
            let base = indent(self.text, object.range.start);
            let inner = format!("{base}{}", style.unit);
            let inside = self.inside(object);
            let comments = inside.trim_end();
            let at = object.range.start + 1 + comments.len();
            let member = style.member(key, value, &inner);
            splices.insert(at, format!("{}{inner}{member}", style.newline));
            if !slice(inside, comments.len()..inside.len()).contains('\n') {
                splices.replace(at..close, format!("{}{base}", style.newline));
            }
            return splices.apply(self.text);
        };
        let end = last.range.end;
        let comma = self.comma_after(end);
        let after = comma.map_or(end, |comma| comma.end);
        let trailing = if comma.is_some() { "," } else { "" };
        if style.layout == Layout::Lines {
            let inner = object
                .properties
                .first()
                .map_or("", |first| indent(self.text, first.range.start));
            let member = style.member(key, value, inner);
            if comma.is_none() {
                splices.insert(end, ",");
            }
            let at = self.end_of_line(after, close).unwrap_or(after);
            splices.insert(at, format!("{}{inner}{member}{trailing}", style.newline));
        } else {
            let space = if style.layout == Layout::Dense { "" } else { " " };
            let comma = if comma.is_none() { "," } else { "" };
            let member = style.member(key, value, "");
            splices.insert(after, format!("{comma}{space}{member}{trailing}"));
        }
        splices.apply(self.text)
    }

    /// Takes a member out, with the comma that it needed and the line that it had for itself. Comments stay.
    fn remove(&self, object: &Object<'a>, key: &str) -> String {
        let members = &object.properties;
        let Some(index) = members.iter().position(|member| member.name.as_str() == key) else {
            return self.text.to_owned();
        };
        let Some(member) = members.get(index) else {
            return self.text.to_owned();
        };
        let range = member.range;
        let previous = index.checked_sub(1).and_then(|index| members.get(index));
        let next = members.get(index + 1);
        let comma = self.comma_after(range.end);
        let comma_before = previous.and_then(|previous| self.comma_after(previous.range.end));
        let mut splices = Splices::default();
        // A comment may stand between a member and its comma.
        let end = match comma {
            Some(comma) if is_blank(slice(self.text, range.end..comma.start)) => comma.end,
            Some(comma) => {
                splices.cut(comma.start..comma.end);
                range.end
            }
            None => range.end,
        };
        if let (None, None, Some(before)) = (next, comma, comma_before) {
            splices.cut(before.start..before.end);
        }
        splices.cut(self.with_space(range.start..end, object.range.end.saturating_sub(1), comma_before, next));
        let text = splices.apply(self.text);
        if members.len() > 1 {
            return text;
        }
        // What is left of the only member's object, if it is nothing, needs no line.
        let removed = self.text.len() - text.len();
        let inside = object.range.start + 1..(object.range.end - removed).saturating_sub(1);
        let mut splices = Splices::default();
        if is_blank(slice(&text, inside.clone())) {
            splices.cut(inside);
        }
        splices.apply(&text)
    }

    /// The place of a member with the white space that came with it.
    fn with_space(
        &self,
        Span { start, end }: Span<usize>,
        close: usize,
        comma_before: Option<Range>,
        next: Option<&ObjectProp<'_>>,
    ) -> Span<usize> {
        let line = line_start(self.text, start);
        let rest = slice(self.text, end..line_end(self.text, end));
        if line > 0 && is_blank(slice(self.text, line..start)) {
            if is_blank(rest) {
                return previous_line_end(self.text, line)..end + rest.len();
            }
            // A comment, or the next member.
            if self.end_of_line(end, close).is_some() {
                return start..end + rest.len() - rest.trim_start().len();
            }
        }
        if let Some(next) = next.filter(|next| is_blank(slice(self.text, end..next.range.start))) {
            return start..next.range.start;
        }
        match comma_before {
            Some(comma) if is_blank(slice(self.text, comma.end..start)) => comma.end..end,
            _ => start..end,
        }
    }
}

fn broken(error: &ParseError) -> EditError {
    EditError::Broken {
        format: Format::Json,
        line: error.line_display(),
        column: error.column_display(),
        reason: error.kind().to_string().to_lowercase(),
    }
}
