//! Texts of servers as parts of a page.
//!
//! A text is read as Markdown, and what it says is written anew: lists, code, tables and emphasis stay; headings become bold lines;
//! HTML, images, and links that lead anywhere but to the web become text. So a text cannot end the block it stands in, open another
//! section, or show what is not there, whatever its author wrote.

use std::iter::repeat_n;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::text::plain;

/// Deeper lists and quotations are written at this depth.
const MAX_DEPTH: usize = 6;
/// A line that ends earlier was meant to end there; a longer one was wrapped.
const WRAPPED: usize = 60;
/// A word that is longer is taken for an address without a look at the rest of it.
const LONG_WORD: usize = 300;

/// A text as blocks of a page.
pub(super) fn blocks(text: &str) -> String {
    Writer::write(text, false)
}

/// A text as the cell of a table: one line.
pub(super) fn cell(text: &str) -> String {
    Writer::write(text, true)
}

/// A text that is no Markdown, on one line.
pub(super) fn line(text: &str) -> String {
    let mut line = String::new();
    escape(&crate::text::plain_line(text), &mut line);
    guard_line_start(&line)
}

/// A name or a value as code.
pub(super) fn code(text: &str) -> String {
    let text = one_line(text);
    if text.trim().is_empty() {
        return "(empty)".to_owned();
    }
    let fence = fence_of(&text, 1);
    let touches = |c: Option<char>| matches!(c, Some('`' | ' '));
    let space = if touches(text.chars().next()) || touches(text.chars().next_back()) {
        " "
    } else {
        ""
    };
    format!("{fence}{space}{text}{space}{fence}")
}

/// The same in a table, where `|` would end the cell even within code.
pub(super) fn cell_code(text: &str) -> String {
    let text = one_line(text);
    if text.contains('|') && text.contains('\\') {
        // Renderers do not agree on what a backslash before a bar means here.
        return html_code(&text);
    }
    code(&text).replace('|', "\\|")
}

/// The same where backticks cannot be used.
fn html_code(text: &str) -> String {
    let mut escaped = String::new();
    escape(&one_line(text), &mut escaped);
    format!("<code>{}</code>", escaped.replace("\\|", "&#124;"))
}

/// Is the last word one that renderers make a link of? Then it goes on to the next space or `<`, whatever is written behind it.
fn ends_in_address(text: &str) -> bool {
    let word: String = text
        .chars()
        .rev()
        .take_while(|c| !c.is_whitespace() && *c != '<')
        .take(LONG_WORD)
        .collect();
    // From its end, so backwards.
    word.len() >= LONG_WORD || word.contains("//:") || word.to_ascii_lowercase().contains(".www")
}

/// A block of code that ends where it should.
pub(super) fn code_block(language: &str, text: &str) -> String {
    let text = plain(text);
    let fence = fence_of(&text, 3);
    let text = text.trim_end_matches('\n');
    format!("{fence}{language}\n{text}\n{fence}")
}

fn one_line(text: &str) -> String {
    plain(text).replace(['\n', '\t'], " ")
}

/// The shortest run of backticks, of at least that length, that does not occur in the text.
fn fence_of(text: &str, at_least: usize) -> String {
    let runs: std::collections::HashSet<usize> = text.split(|c| c != '`').map(str::len).collect();
    // Within a block a longer run would end it, too.
    let shortest = match at_least {
        1 => (1..).find(|length| !runs.contains(length)).unwrap_or(1),
        _ => runs
            .iter()
            .copied()
            .max()
            .map_or(at_least, |longest| at_least.max(longest + 1)),
    };
    repeat_n('`', shortest).collect()
}

/// So that every character stands for itself, but for the start of a line.
fn escape(text: &str, into: &mut String) {
    let mut chars = text.chars().peekable();
    let mut before = into.chars().next_back();
    while let Some(c) = chars.next() {
        let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        match c {
            // Also in `snake_case`, where it is left alone.
            '_' if is_word(before) && is_word(chars.peek().copied()) => into.push('_'),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' => {
                into.push('\\');
                into.push(c);
            }
            // As entities: a renderer that makes links of addresses takes a backslash for a part of them, and what follows is bare.
            '&' => into.push_str("&amp;"),
            '<' => into.push_str("&lt;"),
            '\n' | '\r' => into.push(' '),
            _ => into.push(c),
        }
        before = Some(c);
    }
}

/// No line opens a block: a heading, a list, a quotation, a rule.
fn guard_line_start(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| guarded(line.trim_start())).collect();
    lines.join("\n")
}

fn guarded(line: &str) -> String {
    if line.starts_with(['#', '+', '-', '=', '>', ':']) {
        return format!("\\{line}");
    }
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    match line.split_at_checked(digits) {
        Some((number, rest)) if digits > 0 && rest.starts_with(['.', ')']) => format!("{number}\\{rest}"),
        _ => line.to_owned(),
    }
}

/// What a block stands in.
enum Container {
    Page,
    Quote,
    /// The number of the next item, where they have numbers.
    List {
        number: Option<u64>,
    },
    Item {
        marker: String,
    },
}

/// The blocks of a container, as far as they are written.
struct Frame {
    container: Container,
    text: String,
    /// Are the items of the list paragraphs, with space between them?
    is_loose: bool,
}

#[derive(PartialEq)]
enum Kind {
    Paragraph,
    /// What may follow a line of text at once.
    Tight,
}

struct Writer<'a> {
    source: &'a str,
    in_cell: bool,
    frames: Vec<Frame>,
    /// Containers that are deeper than is written.
    too_deep: usize,
    inline: String,
    /// Where the links and images that are open lead to: as written, and as an address if they stay links.
    links: Vec<(String, Option<String>)>,
    code: Option<(String, String)>,
    rows: Vec<Vec<String>>,
    in_heading: bool,
    in_row: bool,
}

impl<'a> Writer<'a> {
    fn write(text: &str, in_cell: bool) -> String {
        let source = dedent(&plain(text));
        let mut writer = Writer {
            source: &source,
            in_cell,
            frames: vec![Frame::new(Container::Page)],
            too_deep: 0,
            inline: String::new(),
            links: Vec::new(),
            code: None,
            rows: Vec::new(),
            in_heading: false,
            in_row: false,
        };
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
        for (event, place) in Parser::new_ext(&source, options).into_offset_iter() {
            writer.event(event, place.start);
        }
        writer.flush();
        writer.frames.pop().map(|page| page.text).unwrap_or_default()
    }

    fn event(&mut self, event: Event<'a>, place: usize) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => escape(&text, &mut self.inline),
            },
            Event::Code(text) => {
                let span = match self.in_cell || self.in_row {
                    _ if ends_in_address(&self.inline) => html_code(&text),
                    true => cell_code(&text),
                    false => code(&text),
                };
                self.inline.push_str(&span);
            }
            Event::Html(text) => {
                escape(text.trim_end_matches('\n'), &mut self.inline);
                self.break_line();
            }
            Event::SoftBreak if self.was_meant(place) => self.break_line(),
            Event::SoftBreak if self.in_cell || self.in_heading => self.inline.push(' '),
            Event::SoftBreak => self.inline.push('\n'),
            Event::HardBreak => self.break_line(),
            Event::Rule => self.flush(),
            // Inline HTML; the others are extensions that are not asked for.
            Event::InlineHtml(text) | Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                escape(&text, &mut self.inline)
            }
            Event::TaskListMarker(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'a>) {
        match tag {
            Tag::Paragraph => {
                self.flush();
                // Paragraphs are directly in an item, and that in its list.
                let mut inner = self.frames.iter_mut().rev();
                if let (
                    Some(Frame {
                        container: Container::Item { .. },
                        is_loose,
                        ..
                    }),
                    Some(list),
                ) = (inner.next(), inner.next())
                {
                    *is_loose = true;
                    list.is_loose = true;
                }
            }
            Tag::Heading { .. } => {
                self.flush();
                self.in_heading = true;
            }
            Tag::BlockQuote(_) => self.open(Container::Quote),
            Tag::List(number) => self.open(Container::List { number }),
            Tag::Item => {
                self.flush();
                let list = self.frames.last_mut().map(|frame| &mut frame.container);
                let marker = match list {
                    Some(Container::List { number: Some(number) }) => {
                        let marker = format!("{number}. ");
                        *number = number.saturating_add(1);
                        marker
                    }
                    _ => "- ".to_owned(),
                };
                self.open(Container::Item { marker });
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                let language = match kind {
                    CodeBlockKind::Fenced(info) => language(&info),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::Table(_) => {
                self.flush();
                self.rows.clear();
            }
            Tag::TableHead | Tag::TableRow => self.rows.push(Vec::new()),
            Tag::TableCell => self.in_row = true,
            Tag::Emphasis => self.inline.push('*'),
            Tag::Strong if !self.in_heading => self.inline.push_str("**"),
            Tag::Strikethrough => self.inline.push_str("~~"),
            Tag::Link { dest_url, .. } => {
                let address = web_address(&dest_url);
                if address.is_some() {
                    // Before a link, this would make an image of it.
                    if self.inline.ends_with('!') {
                        self.inline.pop();
                        self.inline.push_str("&#33;");
                    }
                    self.inline.push('[');
                }
                self.links.push((dest_url.into_string(), address));
            }
            Tag::Image { dest_url, .. } => {
                self.inline.push_str("!\\[");
                self.links.push((dest_url.into_string(), None));
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.flush(),
            TagEnd::HtmlBlock => {
                for end in ["\\\n", "<br>\n", "<br>"] {
                    let length = self.inline.trim_end_matches(end).len();
                    self.inline.truncate(length);
                }
                self.flush();
            }
            TagEnd::Heading(_) => {
                let text = std::mem::take(&mut self.inline);
                self.in_heading = false;
                if !text.trim().is_empty() {
                    self.push(&format!("**{}**", text.trim()), Kind::Paragraph);
                }
            }
            TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item => self.close(),
            TagEnd::CodeBlock => {
                let (language, text) = self.code.take().unwrap_or_default();
                let block = if self.in_cell {
                    let lines: Vec<String> = text.lines().filter(|line| !line.trim().is_empty()).map(cell_code).collect();
                    lines.join("<br>")
                } else {
                    code_block(&language, &text)
                };
                self.push(&block, Kind::Tight);
            }
            TagEnd::TableCell => {
                self.in_row = false;
                let cell = std::mem::take(&mut self.inline);
                if let Some(row) = self.rows.last_mut() {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                let rows = std::mem::take(&mut self.rows);
                let block = if self.in_cell {
                    let rows: Vec<String> = rows.iter().map(|row| row.join(" \\| ")).collect();
                    rows.join("<br>")
                } else {
                    table(&rows)
                };
                self.push(&block, Kind::Paragraph);
            }
            TagEnd::Emphasis => self.inline.push('*'),
            TagEnd::Strong if !self.in_heading => self.inline.push_str("**"),
            TagEnd::Strikethrough => self.inline.push_str("~~"),
            TagEnd::Link => {
                let (written, address) = self.links.pop().unwrap_or_default();
                match address {
                    Some(address) => self.inline.push_str(&format!("](<{address}>)")),
                    None if self.inline.ends_with(&written) => {}
                    None => {
                        self.inline.push_str(" (");
                        escape(&written, &mut self.inline);
                        self.inline.push(')');
                    }
                }
            }
            TagEnd::Image => {
                let (address, _) = self.links.pop().unwrap_or_default();
                self.inline.push_str("\\](");
                escape(&address, &mut self.inline);
                self.inline.push(')');
            }
            _ => {}
        }
    }

    /// Did the author end the line here, or did an editor?
    fn was_meant(&self, place: usize) -> bool {
        let before = self.source.get(..place).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        line.chars().take(WRAPPED).count() < WRAPPED
    }

    fn line_break(&self) -> &'static str {
        match (self.in_heading, self.in_cell || self.in_row) {
            (true, _) => " ",
            (false, true) => "<br>",
            (false, false) if ends_in_address(&self.inline) => "<br>\n",
            (false, false) => "\\\n",
        }
    }

    fn break_line(&mut self) {
        let end = self.line_break();
        self.inline.push_str(end);
    }

    fn open(&mut self, container: Container) {
        self.flush();
        if self.frames.len() > 2 * MAX_DEPTH {
            self.too_deep += 1;
        } else {
            self.frames.push(Frame::new(container));
        }
    }

    fn close(&mut self) {
        self.flush();
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return;
        }
        let Some(frame) = self.frames.pop() else { return };
        let is_loose = frame.is_loose;
        match frame.container {
            Container::Page => self.frames.push(frame),
            Container::Quote if self.in_cell => self.push(&frame.text, Kind::Paragraph),
            Container::Quote => self.push(&prefixed(&frame.text, "> ", "> "), Kind::Paragraph),
            Container::List { .. } => self.push(&frame.text, if is_loose { Kind::Paragraph } else { Kind::Tight }),
            // Of these, `- - -` would be a rule.
            Container::Item { .. } if frame.text.is_empty() => {}
            Container::Item { marker } => {
                let item = if self.in_cell {
                    let marker = if marker == "- " { "• " } else { marker.as_str() };
                    format!("{marker}{}", frame.text)
                } else {
                    let indent: String = repeat_n(' ', marker.len()).collect();
                    prefixed(&frame.text, &marker, &indent)
                };
                self.push(&item, Kind::Tight);
            }
        }
    }

    /// Ends the text that is being written, if there is any.
    fn flush(&mut self) {
        let text = std::mem::take(&mut self.inline);
        if text.trim().is_empty() {
            return;
        }
        let text = if self.in_cell {
            text.trim().to_owned()
        } else {
            guard_line_start(text.trim())
        };
        self.push(&text, Kind::Paragraph);
    }

    fn push(&mut self, block: &str, kind: Kind) {
        if block.is_empty() {
            return;
        }
        let in_cell = self.in_cell;
        let Some(frame) = self.frames.last_mut() else { return };
        if !frame.text.is_empty() {
            let is_list = matches!(frame.container, Container::List { .. } | Container::Item { .. });
            let end = match (in_cell, kind) {
                (true, _) => "<br>",
                (false, Kind::Tight) if is_list && !frame.is_loose => "\n",
                (false, _) => "\n\n",
            };
            frame.text.push_str(end);
        }
        frame.text.push_str(block);
    }
}

impl Frame {
    fn new(container: Container) -> Self {
        Self {
            container,
            text: String::new(),
            is_loose: false,
        }
    }
}

/// A table; every row has as many cells as the first.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let mut lines: Vec<String> = rows.iter().map(|row| format!("| {} |", row.join(" | "))).collect();
    let columns = rows.first().map_or(0, Vec::len);
    let rule: Vec<&str> = repeat_n("---", columns).collect();
    if !lines.is_empty() {
        lines.insert(1, format!("| {} |", rule.join(" | ")));
    }
    lines.join("\n")
}

fn prefixed(text: &str, first: &str, others: &str) -> String {
    let lines = text.split('\n').enumerate();
    let lines: Vec<String> = lines
        .map(|(place, line)| {
            if place == 0 {
                format!("{first}{line}")
            } else {
                format!("{others}{line}")
            }
        })
        .map(|line| line.trim_end_matches(' ').to_owned())
        .collect();
    lines.join("\n")
}

/// Without the indentation that the lines after the first have in common, as in the documentation of a Python function.
fn dedent(text: &str) -> String {
    let text = text.trim_end();
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let lines = text.lines().skip(1).filter(|line| !line.trim().is_empty());
    let common = lines.map(indent).min().unwrap_or(0);
    let lines: Vec<&str> = text
        .lines()
        .enumerate()
        .map(|(place, line)| {
            if place == 0 {
                line.trim_start()
            } else {
                line.get(common..).unwrap_or_default()
            }
        })
        .collect();
    lines.join("\n")
}

/// The language of a code block, unless a renderer would run it: GitHub draws some.
fn language(info: &str) -> String {
    let word = info.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    let is_name = word.len() <= 20
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '#' | '_' | '.'));
    let is_drawn = matches!(word.as_str(), "mermaid" | "math" | "geojson" | "topojson" | "stl");
    if is_name && !is_drawn { word } else { String::new() }
}

/// Addresses as they may stand between `<` and `>`.
const ADDRESS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'#')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b'%')
    .remove(b'&');

/// An address that a page may lead to. Others run programs, or lead to places near the page that its reader takes for a part of it.
fn web_address(text: &str) -> Option<String> {
    let scheme = url::Url::parse(text).ok()?.scheme().to_owned();
    let is_web = matches!(scheme.as_str(), "http" | "https" | "mailto");
    is_web.then(|| utf8_percent_encode(text.trim(), ADDRESS).to_string().replace('&', "&amp;"))
}
