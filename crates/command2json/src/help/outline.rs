//! The parts of a help text: usage, lists of options, commands and arguments, examples, and the prose between them.

use super::lines::{Line, split_at_gap};
use super::spec::Spec;

/// More than that is no help to anybody.
const MAX_ENTRIES: usize = 1000;
const MAX_FORMS: usize = 40;
const MAX_FORM_BYTES: usize = 8192;
const MAX_EXAMPLES: usize = 50;

/// The parts of a text, each in its order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outline {
    /// The ways to call it, each on one line: `prog [OPTIONS] FILE`.
    pub(super) forms: Vec<String>,
    /// `prog` of `Usage of prog:`.
    pub(super) usage_of: Option<String>,
    pub(super) has_usage: bool,
    pub(super) options: Vec<(Spec, Entry)>,
    pub(super) commands: Vec<Entry>,
    pub(super) arguments: Vec<Entry>,
    pub(super) examples: Vec<String>,
    pub(super) prose: Vec<Line>,
    /// How many of these lines stand before the first list.
    pub(super) lead: usize,
    /// All headings, in lower case.
    pub(super) headings: Vec<String>,
}

/// A row of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Entry {
    /// The left column.
    pub(super) head: String,
    /// The right column and what follows it.
    pub(super) text: Vec<Line>,
    /// The heading above the list, in lower case.
    pub(super) heading: String,
}

impl Entry {
    /// An entry with what stands in its first line: the text starts at `column`.
    fn new(head: &str, text: &str, column: Option<usize>, heading: &str) -> Entry {
        let text = text.trim_start_matches(':').trim_start();
        let line = Line {
            indent: column.unwrap_or_default(),
            text: text.to_owned(),
        };
        Entry {
            head: head.to_owned(),
            text: if text.is_empty() { Vec::new() } else { vec![line] },
            heading: heading.to_owned(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Prose,
    Options,
    Commands,
    Arguments,
    Examples,
    /// Aliases, help topics.
    Ignored,
}

#[derive(Clone, Debug)]
struct Section {
    kind: Kind,
    indent: usize,
    title: String,
}

impl Section {
    fn prose() -> Section {
        Section {
            kind: Kind::Prose,
            indent: 0,
            title: String::new(),
        }
    }
}

/// Reads the parts of a text. `program` is what the program is expected to be called.
pub(super) fn outline(lines: &[Line], program: &str) -> Outline {
    let mut reader = Reader {
        lines,
        at: 0,
        program,
        section: Section::prose(),
        column: None,
        row_column: None,
        in_command_groups: false,
        outline: Outline::default(),
    };
    while let Some(line) = lines.get(reader.at) {
        reader.read(line);
    }
    reader.outline
}

struct Reader<'a> {
    lines: &'a [Line],
    at: usize,
    program: &'a str,
    section: Section,
    /// Where the texts of the last option started.
    column: Option<usize>,
    /// Where the texts of the last row of another list started.
    row_column: Option<usize>,
    /// After a line such as git's "These are common Git commands …:", whose groups have headings without a mark.
    in_command_groups: bool,
    outline: Outline,
}

impl<'a> Reader<'a> {
    fn read(&mut self, line: &'a Line) {
        if line.is_blank() {
            self.outline.prose.push(Line::default());
            self.at += 1;
        } else if !self.read_usage(line) && !self.read_heading(line) && !self.read_content(line) {
            if line.text.ends_with(':') && has_word(&line.text.to_lowercase(), &["commands", "subcommands"]) {
                self.in_command_groups = true;
            } else {
                self.outline.prose.push(line.clone());
            }
            self.at += 1;
        }
    }

    /// What the section that it stands in makes of a line.
    fn read_content(&mut self, line: &'a Line) -> bool {
        let is_outside = line.indent <= self.section.indent;
        // Arguments are sometimes not indented; they are told by their gap.
        let is_flat_row =
            self.section.kind == Kind::Arguments && line.indent == self.section.indent && split_at_gap(&line.text).is_some();
        // Options are told by their dashes, wherever they stand.
        if is_outside && !is_flat_row && self.section.kind != Kind::Options {
            self.section = Section::prose();
        }
        match self.section.kind {
            Kind::Examples => {
                self.read_examples();
                true
            }
            Kind::Ignored => {
                self.at += 1;
                true
            }
            Kind::Commands | Kind::Arguments => self.read_option(line) || self.read_row(line),
            Kind::Options | Kind::Prose => self.read_option(line),
        }
    }

    fn next_text(&self, from: usize) -> Option<&'a Line> {
        self.lines.iter().skip(from).take(2).find(|line| !line.is_blank())
    }

    // Usage

    fn read_usage(&mut self, line: &'a Line) -> bool {
        let Some(usage) = usage_start(&line.text).or_else(|| self.bare_usage(line)) else {
            return false;
        };
        if let Some(first) = self.outline.forms.first() {
            // The help of another command follows.
            let is_other =
                matches!(usage, UsageStart::Form(form) if line.indent == 0 && form.split(' ').next() == first.split(' ').next());
            if is_other {
                self.at = self.lines.len();
            }
            return is_other;
        }
        self.outline.has_usage = true;
        self.section = Section::prose();
        self.at += 1;
        match usage {
            UsageStart::Of(program) => {
                self.outline.usage_of = Some(program.to_owned());
                self.read_forms_below(line, true);
            }
            UsageStart::Form("") => self.read_forms_below(line, false),
            UsageStart::Form(form) => {
                self.outline.forms.push(form.to_owned());
                // Lines that go on are aligned with the first argument, or are inside of a bracket; option lists are not that deep.
                self.read_more_forms(|next| {
                    next.indent > line.indent && (next.indent >= line.indent + 7 || next.text.starts_with(['[', '<', '(']))
                });
            }
        }
        true
    }

    /// A usage without a word for it, at the start: `systemctl [OPTIONS...] COMMAND ...`.
    fn bare_usage(&self, line: &'a Line) -> Option<UsageStart<'a>> {
        let arguments = line
            .text
            .strip_prefix(self.program)
            .filter(|_| self.at == 0 && !self.program.is_empty());
        let is_usage = arguments.is_some_and(|arguments| arguments.starts_with(" ["));
        is_usage.then_some(UsageStart::Form(&line.text))
    }

    /// The forms under a `Usage:` of its own line.
    fn read_forms_below(&mut self, heading: &Line, only_program: bool) {
        if self.lines.get(self.at).is_some_and(Line::is_blank) {
            self.at += 1;
        }
        let Some(first) = self.lines.get(self.at) else { return };
        let first_word = first.text.split(' ').next().unwrap_or_default();
        let names_program = first_word == self.program || self.outline.usage_of.as_deref() == Some(first_word);
        let is_form = names_program || (!only_program && (first.indent > heading.indent || !first.text.ends_with(':')));
        if !is_form || first.is_blank() || first.text.starts_with('-') || first.text.ends_with(':') {
            return;
        }
        self.outline.forms.push(form_of(&first.text).to_owned());
        self.at += 1;
        self.read_more_forms(|next| next.indent >= first.indent);
    }

    /// More forms, and the lines that go on with the last one.
    fn read_more_forms(&mut self, goes_on: impl Fn(&Line) -> bool) {
        let program = self
            .outline
            .forms
            .first()
            .and_then(|form| form.split(' ').next())
            .unwrap_or_default()
            .to_owned();
        while let Some(next) = self.lines.get(self.at) {
            let alternative = next.text.strip_prefix("or:").or_else(|| next.text.strip_prefix("or "));
            let form = alternative.unwrap_or(&next.text).trim_start();
            let is_form = form.split(' ').next() == Some(program.as_str());
            let is_full =
                self.outline.forms.len() >= MAX_FORMS || self.outline.forms.last().is_some_and(|form| form.len() > MAX_FORM_BYTES);
            if next.is_blank() || is_full {
                return;
            } else if is_form && (alternative.is_some() || next.indent > 0 || goes_on(next)) {
                self.outline.forms.push(form_of(form).to_owned());
            } else if goes_on(next)
                && let Some(last) = self.outline.forms.last_mut()
            {
                last.push(' ');
                last.push_str(&next.text);
            } else {
                return;
            }
            self.at += 1;
        }
    }

    // Headings

    fn read_heading(&mut self, line: &'a Line) -> bool {
        let inside = self.section.kind == Kind::Examples || self.section.kind == Kind::Ignored;
        if inside && line.indent > self.section.indent {
            return false;
        }
        let Some(section) = self.heading(line) else { return false };
        self.outline.headings.push(section.title.clone());
        let says_nothing = ["description", "synopsis", "about", "name"].contains(&section.title.as_str());
        if section.kind == Kind::Prose && !says_nothing {
            self.outline.prose.push(line.clone());
        }
        self.in_command_groups &= section.kind == Kind::Commands;
        self.section = section;
        self.at += 1;
        true
    }

    fn heading(&self, line: &Line) -> Option<Section> {
        if line.text.starts_with('-') || line.text.chars().count() > 100 || split_at_gap(&line.text).is_some() {
            return None;
        }
        let next = self.next_text(self.at + 1);
        let follows = next.is_some_and(|next| next.indent > line.indent);
        let options_follow = next.is_some_and(|next| self.option_head(self.at + 1, next).is_some());
        let title = line.text.trim_end_matches(':').trim().to_lowercase();
        let kind = kind_of_title(&title);
        let is_heading = if line.text.ends_with(':') {
            follows || options_follow || kind.is_some()
        } else if is_upper_case(&line.text) {
            line.indent == 0 && (follows || options_follow)
        } else {
            self.is_unmarked_heading(line)
        };
        if !is_heading {
            return None;
        }
        let kind = match kind {
            Some(Kind::Commands) if options_follow => Kind::Options,
            Some(kind) => kind,
            None if options_follow => Kind::Options,
            None if self.in_command_groups && follows => Kind::Commands,
            None => Kind::Prose,
        };
        Some(Section {
            kind,
            indent: line.indent,
            title,
        })
    }

    /// A line of its own with a list right below, as in git's help.
    fn is_unmarked_heading(&self, line: &Line) -> bool {
        let before = self.at.checked_sub(1).and_then(|at| self.lines.get(at));
        let starts = before.is_none_or(Line::is_blank);
        let Some(next) = self.lines.get(self.at + 1) else {
            return false;
        };
        let is_list =
            self.option_head(self.at + 1, next).is_some() || (self.in_command_groups && split_at_gap(&next.text).is_some());
        starts && next.indent > line.indent && !line.text.ends_with('.') && line.text.split(' ').count() <= 12 && is_list
    }

    // Lists

    fn read_option(&mut self, line: &'a Line) -> bool {
        if self.outline.options.len() >= MAX_ENTRIES {
            return false;
        }
        let Some((mut spec, head, text)) = self.option_head(self.at, line) else {
            return false;
        };
        let next = self.lines.get(self.at + 1);
        let more = next.filter(|_| head.ends_with(',') && text.is_empty());
        let (line, head, text) = match more.and_then(|next| Some((next, self.option_head(self.at + 1, next)?))) {
            // More spellings on the next line.
            Some((next, (other, head, text))) => {
                spec.names.extend(other.names);
                self.at += 1;
                (next, head, text)
            }
            None => (line, head, text),
        };
        let column = column_of(line, text);
        let mut entry = Entry::new(head, text, column, &self.section.title);
        self.at += 1;
        self.column = column.or(self.column);
        self.read_continuation(line.indent, column, &mut entry);
        if entry.text.is_empty() {
            self.read_flat_text(line.indent, &mut entry);
        }
        self.mark_lead();
        self.push_options(spec, entry);
        true
    }

    /// Remembers where the first list starts.
    fn mark_lead(&mut self) {
        if self.outline.options.is_empty() && self.outline.commands.is_empty() && self.outline.arguments.is_empty() {
            self.outline.lead = self.outline.prose.len();
        }
    }

    /// An option, and the one that may stand beside it: `-f   freshen  -u   update`.
    fn push_options(&mut self, spec: Spec, mut entry: Entry) {
        let beside = entry.text.first_mut().and_then(|line| {
            let (text, rest) = split_at_gap(&line.text).filter(|(_, rest)| rest.starts_with('-'))?;
            let (head, more) = split_at_gap(rest)?;
            let spec = Spec::parse(head)?;
            let other = Entry::new(head, more, column_of(line, more), &self.section.title);
            line.text = text.to_owned();
            Some((spec, other))
        });
        self.outline.options.push((spec, entry));
        self.outline.options.extend(beside);
    }

    /// An option line: its left column, and the text in the right one.
    fn option_head(&self, at: usize, line: &'a Line) -> Option<(Spec, &'a str, &'a str)> {
        if !line.text.starts_with('-') {
            return None;
        }
        let whole = (line.text.as_str(), "");
        let text_is_below = self
            .lines
            .get(at + 1)
            .is_some_and(|next| next.indent > line.indent && !next.text.starts_with('-'));
        let whole_if_alone = Some(whole).filter(|_| text_is_below && Spec::parse(whole.0).is_some_and(|spec| !spec.more_values));
        let clearly = split_at_gap(&line.text)
            .into_iter()
            .chain(whole_if_alone)
            .chain(self.columns_around(at).filter_map(|column| line.split_at_column(column)))
            .chain(split_at_colon(&line.text))
            .chain(split_after_value(&line.text))
            .find_map(|(head, text)| Some((Spec::parse(head)?, head, text)));
        if clearly.is_some() {
            return clearly;
        }
        // Nothing tells this from a sentence but that it is short, and that it stands in a list.
        let spec = Spec::parse(whole.0)?;
        let is_in_list = self.section.kind == Kind::Options || line.indent > 0 || spec.value.is_none();
        (is_in_list && (!spec.more_values || text_is_below)).then_some((spec, whole.0, whole.1))
    }

    /// Where the texts of the options nearby start: long heads leave a single blank before theirs.
    fn columns_around(&self, at: usize) -> impl Iterator<Item = usize> + use<'a> {
        let after = self
            .lines
            .iter()
            .skip(at + 1)
            .take(4)
            .filter(|line| line.text.starts_with('-'));
        let after = after.filter_map(|line| column_of(line, split_at_gap(&line.text)?.1));
        self.column.into_iter().chain(after)
    }

    fn read_row(&mut self, line: &'a Line) -> bool {
        let is_command = self.section.kind == Kind::Commands;
        let list = if is_command {
            &self.outline.commands
        } else {
            &self.outline.arguments
        };
        if list.len() >= MAX_ENTRIES {
            return false;
        }
        let (head, text) = split_at_gap(&line.text)
            .or_else(|| line.split_at_column(self.row_column?))
            .or_else(|| line.text.split_once(" - "))
            .or_else(|| split_at_colon(&line.text))
            .unwrap_or((&line.text, ""));
        if !is_row_head(head) {
            return false;
        }
        let column = column_of(line, text);
        let mut entry = Entry::new(head, text, column, &self.section.title);
        self.at += 1;
        self.row_column = column.or(self.row_column);
        self.mark_lead();
        self.read_continuation(line.indent, column, &mut entry);
        if is_command {
            self.outline.commands.push(entry);
        } else {
            self.outline.arguments.push(entry);
        }
        true
    }

    /// The lines below that belong to an entry: the deeper ones. After a blank line only those under its text.
    fn read_continuation(&mut self, indent: usize, mut column: Option<usize>, entry: &mut Entry) {
        while let Some(line) = self.lines.get(self.at) {
            if line.is_blank() {
                let goes_on = self.next_text(self.at).is_some_and(|next| {
                    next.indent > indent
                        && column.is_none_or(|column| next.indent >= column)
                        && !self.is_next_entry(self.at + 1, next, column)
                });
                if !goes_on {
                    return;
                }
                if !entry.text.is_empty() {
                    entry.text.push(Line::default());
                }
            } else if line.indent <= indent || self.is_next_entry(self.at, line, column) {
                return;
            } else {
                column.get_or_insert(line.indent);
                entry.text.push(line.clone());
            }
            self.at += 1;
        }
    }

    /// An option deeper than the one before, as `--long` below `-s, --short`; under its text it is part of that.
    fn is_next_entry(&self, at: usize, line: &'a Line, column: Option<usize>) -> bool {
        column.is_none_or(|column| line.indent < column) && self.option_head(at, line).is_some()
    }

    /// A text that is not deeper than its option, as in icemulti's help.
    fn read_flat_text(&mut self, indent: usize, entry: &mut Entry) {
        while let Some(line) = self.lines.get(self.at) {
            if line.is_blank() || line.indent != indent || indent == 0 || line.text.starts_with('-') || self.heading(line).is_some()
            {
                return;
            }
            entry.text.push(line.clone());
            self.at += 1;
        }
    }

    /// The whole section: a block between blank lines is an example; without blank lines, a line is, with the comments above it.
    fn read_examples(&mut self) {
        let mut block: Vec<&Line> = Vec::new();
        let mut blocks = Vec::new();
        let mut base = None;
        while let Some(line) = self.lines.get(self.at) {
            let is_heading = base.is_some_and(|base| line.indent < base) && self.heading(line).is_some();
            if !line.is_blank() && (line.indent <= self.section.indent || is_heading) {
                break;
            }
            if line.is_blank() {
                blocks.push(std::mem::take(&mut block));
            } else {
                base.get_or_insert(line.indent);
                block.push(line);
            }
            self.at += 1;
        }
        self.section = Section::prose();
        blocks.push(block);
        blocks.retain(|block| !block.is_empty());
        if let [block] = blocks.as_slice() {
            blocks = single_examples(block);
        }
        let room = MAX_EXAMPLES.saturating_sub(self.outline.examples.len());
        self.outline
            .examples
            .extend(blocks.into_iter().take(room).map(|block| example(&block)));
    }
}

/// Every line at the left is an example of its own, unless it is a comment on the next one.
fn single_examples<'a>(block: &[&'a Line]) -> Vec<Vec<&'a Line>> {
    let base = block.iter().map(|line| line.indent).min().unwrap_or(0);
    let has_prompts = block.iter().any(|line| line.text.starts_with("$ "));
    let mut examples: Vec<Vec<&Line>> = Vec::new();
    for line in block {
        let goes_on = examples.last().and_then(|example| example.last()).is_some_and(|last| {
            let is_output = has_prompts && !line.text.starts_with(['$', '#']);
            line.indent > base || is_output || last.text.starts_with('#') || last.text.ends_with('\\') || last.text.ends_with(':')
        });
        match examples.last_mut() {
            Some(example) if goes_on => example.push(line),
            _ => examples.push(vec![line]),
        }
    }
    examples
}

fn example(block: &[&Line]) -> String {
    let base = block.iter().map(|line| line.indent).min().unwrap_or(0);
    let lines = block
        .iter()
        .map(|line| format!("{}{}", " ".repeat((line.indent - base).min(40)), line.text));
    lines.collect::<Vec<_>>().join("\n")
}

enum UsageStart<'a> {
    /// `Usage of prog:`
    Of(&'a str),
    /// `Usage: prog FILE`, or nothing when it is on the lines below.
    Form(&'a str),
}

fn usage_start(text: &str) -> Option<UsageStart<'_>> {
    if text.to_ascii_lowercase().ends_with(" line usage:") {
        return Some(UsageStart::Form(""));
    }
    let (word, rest) = text
        .split_at_checked(5)
        .filter(|(word, _)| word.eq_ignore_ascii_case("usage"))?;
    if rest.is_empty() && word == "USAGE" {
        return Some(UsageStart::Form(""));
    }
    if let Some(program) = rest.strip_prefix(" of ") {
        let program = program.strip_suffix(':')?.trim_matches(['\'', '"', '`']);
        return Some(UsageStart::Of(program));
    }
    rest.strip_prefix(':').map(|form| UsageStart::Form(form_of(form.trim())))
}

/// A form without the remark that may stand behind it.
fn form_of(text: &str) -> &str {
    match split_at_gap(text) {
        Some((form, remark)) if remark.starts_with(|c: char| c.is_lowercase()) && !remark.contains(['[', '<']) => form,
        _ => text,
    }
}

/// What a heading is about, in lower case and without its colon.
fn kind_of_title(title: &str) -> Option<Kind> {
    match title {
        "aliases" | "alias" | "learn more" | "help topics" | "additional help topics" | "see also" => return Some(Kind::Ignored),
        "arguments" | "args" | "positional arguments" | "positionals" | "operands" | "parameters" => return Some(Kind::Arguments),
        "command" | "currently defined functions" => return Some(Kind::Commands),
        _ => {}
    }
    if title.starts_with("example") || title.ends_with("examples") || title.ends_with("for example") {
        Some(Kind::Examples)
    } else if title.split(' ').count() > 6 {
        // A sentence.
        None
    } else if has_word(title, &["commands", "subcommands"]) {
        Some(Kind::Commands)
    } else if has_word(title, &["options", "flags", "switches"]) {
        Some(Kind::Options)
    } else {
        None
    }
}

fn has_word(text: &str, words: &[&str]) -> bool {
    text.split(|c: char| !c.is_alphanumeric()).any(|word| words.contains(&word))
}

fn is_upper_case(text: &str) -> bool {
    text.chars().filter(char::is_ascii_uppercase).count() >= 3
        && text.chars().all(|c| c.is_ascii_uppercase() || " -_&()/".contains(c))
}

/// `-n/--number N: how often`. The colon stays with the head: after `=` it says that the value is the default.
fn split_at_colon(text: &str) -> Option<(&str, &str)> {
    let (head, text) = text.split_at_checked(text.find(": ")? + 1)?;
    Some((head, text.trim_start()))
}

/// `--data <data> Data to send`: a sentence after a value in brackets.
fn split_after_value(text: &str) -> Option<(&str, &str)> {
    let (head, text) = text.split_at_checked(text.find("> ")? + 1)?;
    let text = text.trim_start();
    text.starts_with(char::is_uppercase).then_some((head, text))
}

/// The left column of a list of commands or arguments: a word, and perhaps more in brackets or after commas.
fn is_row_head(head: &str) -> bool {
    let mut words = head.split(' ');
    let first = words.next().unwrap_or_default();
    let is_name =
        first.chars().any(char::is_alphanumeric) && first.chars().all(|c| c.is_alphanumeric() || "-_.:/<>[]{}|,+@*".contains(c));
    let is_list = first.ends_with(',') || first.starts_with(['{', '[', '<']);
    is_name
        && (is_list
            || words.all(|word| {
                word.starts_with(['<', '[', '-', '.', '(']) || word.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c == '.')
            }))
}

/// The column of the whole line at which the text at its end starts.
fn column_of(line: &Line, text: &str) -> Option<usize> {
    let before = line.text.strip_suffix(text).filter(|_| !text.is_empty())?;
    Some(line.indent + before.chars().count())
}
