//! Raw output to clean lines: nothing that steers a terminal, tabs as spaces, indents counted.

/// What of a help text is read.
const MAX_TEXT_BYTES: usize = 1024 * 1024;
const MAX_LINE_CHARS: usize = 8192;
const TAB: usize = 8;
/// Deeper lines are shown no deeper.
const MAX_DEPTH: usize = 40;

/// A line without the blanks around it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Line {
    pub(super) indent: usize,
    /// Empty for a blank line.
    pub(super) text: String,
}

impl Line {
    pub(super) fn is_blank(&self) -> bool {
        self.text.is_empty()
    }

    /// The text at a column of the whole line, if a word starts there.
    pub(super) fn split_at_column(&self, column: usize) -> Option<(&str, &str)> {
        let (at, _) = self.text.char_indices().nth(column.checked_sub(self.indent)?)?;
        let (head, tail) = self.text.split_at_checked(at)?;
        (head.ends_with(' ') && !tail.starts_with(' ')).then(|| (head.trim_end(), tail))
    }
}

/// The lines of a text. Blank lines in a row are one, so that looking for the next line that says something takes one step.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for raw in capped(text).split('\n') {
        let line = line(&without_overstrikes(&without_escapes(raw)));
        if !(line.is_blank() && lines.last().is_none_or(Line::is_blank)) {
            lines.push(line);
        }
    }
    lines
}

fn capped(text: &str) -> &str {
    (0..4)
        .find_map(|back| text.get(..MAX_TEXT_BYTES - back))
        .filter(|_| text.len() > MAX_TEXT_BYTES)
        .unwrap_or(text)
}

/// Drops terminal sequences: `ESC [ … letter`, and `ESC ] … BEL`, which ends with the line at the latest.
fn without_escapes(raw: &str) -> String {
    let mut kept = String::with_capacity(raw.len());
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            kept.push(c);
            continue;
        }
        match chars.next() {
            Some('[') => drop(chars.by_ref().find(|c| ('@'..='~').contains(c))),
            Some(']') => drop(chars.by_ref().find(|c| matches!(c, '\u{7}' | '\u{1b}'))),
            _ => {}
        }
    }
    kept
}

/// `x\bx` and `_\bx`, which is how man pages say bold and underlined.
fn without_overstrikes(raw: &str) -> String {
    let mut kept = String::with_capacity(raw.len());
    for c in raw.chars() {
        match c {
            '\u{8}' => drop(kept.pop()),
            _ => kept.push(c),
        }
    }
    kept
}

fn line(raw: &str) -> Line {
    let mut flat = String::with_capacity(raw.len());
    let mut column = 0;
    for c in raw.chars() {
        if c == '\t' {
            let width = TAB - column % TAB;
            flat.extend(std::iter::repeat_n(' ', width));
            column += width;
        } else {
            flat.push(c);
            column += 1;
        }
    }
    let text = flat.trim_start();
    Line {
        indent: flat.chars().count() - text.chars().count(),
        text: text
            .chars()
            .filter(|c| is_visible(*c))
            .take(MAX_LINE_CHARS)
            .collect::<String>()
            .trim()
            .to_owned(),
    }
}

/// What `clean_text` leaves; that one also shortens, so it is asked for single characters.
fn is_visible(c: char) -> bool {
    c == ' ' || c.is_ascii_graphic() || (!c.is_ascii() && component2json::clean_text(c.encode_utf8(&mut [0; 4])).is_some())
}

/// Splits at the first run of two blanks or more, which is what separates columns. Blanks between two spellings of an option do not:
/// `-o,  --output  the file`, `-p NUM  --strip=NUM  the number`.
pub(super) fn split_at_gap(text: &str) -> Option<(&str, &str)> {
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.find("  ")?;
        let (head, tail) = text.split_at_checked(at)?;
        let rest = tail.trim_start();
        let after_comma = head.ends_with(',') && rest.starts_with('-');
        let after_short = head.starts_with('-') && !head.starts_with("--") && rest.starts_with("--") && rest.contains("  ");
        if !after_comma && !after_short {
            return Some((head, rest));
        }
        from = text.len() - rest.len();
    }
}

/// The text of lines: a wrapped paragraph as one line, a blank line between paragraphs, and lists, tables and deeper lines as they
/// are.
pub(super) fn paragraphs<'a>(lines: impl IntoIterator<Item = &'a Line>) -> String {
    let lines: Vec<&Line> = lines.into_iter().collect();
    let base = lines
        .iter()
        .filter(|line| !line.is_blank())
        .map(|line| line.indent)
        .min()
        .unwrap_or(0);
    let mut text = String::new();
    let mut can_go_on = false;
    for line in lines {
        if line.is_blank() {
            text.push_str("\n\n");
            continue;
        }
        let depth = line.indent.saturating_sub(base);
        let is_item = ["- ", "* ", "• "].iter().any(|mark| line.text.starts_with(mark));
        let is_flush = depth < 4 && !is_item && !is_table_row(&line.text);
        if !text.is_empty() && !text.ends_with('\n') {
            text.push(if is_flush && can_go_on { ' ' } else { '\n' });
        }
        if !is_flush {
            text.extend(std::iter::repeat_n(' ', depth.min(MAX_DEPTH)));
        }
        text.push_str(&line.text);
        // What is wrapped under a list item goes on with it; what follows a heading does not.
        let is_heading = line.text.ends_with(':') && !line.text.contains(['[', '(']);
        can_go_on = (is_flush || (is_item && depth < 4)) && !is_heading;
    }
    text.trim().to_owned()
}

/// `name   what it is`. Two blanks after a stop are only a habit.
fn is_table_row(text: &str) -> bool {
    split_at_gap(text).is_some_and(|(head, rest)| {
        let blanks = text.len() - head.len() - rest.len();
        blanks > 2 || !head.ends_with(['.', '!', '?', ':', ';', ','])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_clean() {
        for (raw, indent, text) in [
            ("  -a\tfoo", 2, "-a    foo"),
            ("\t\tx", 16, "x"),
            ("\u{1b}[1mUsage:\u{1b}[0m x", 0, "Usage: x"),
            ("\u{1b}]8;;http://x\u{7}link", 0, "link"),
            ("N\u{8}NA\u{8}A _\u{8}f_\u{8}g", 0, "NA fg"),
            ("a\u{202e}b\r", 0, "ab"),
            (" \u{8}\u{8}\u{8}x", 0, "x"),
        ] {
            assert_eq!(
                lines(raw),
                [Line {
                    indent,
                    text: text.to_owned()
                }],
                "{raw:?}"
            );
        }
        assert_eq!(lines("\n\na\n\n \n\nb\n").len(), 4);
    }

    #[test]
    fn gaps_separate_columns() {
        assert_eq!(split_at_gap("-o,  --output   the file"), Some(("-o,  --output", "the file")));
        assert_eq!(
            split_at_gap("-p N  --strip=N  strip it"),
            Some(("-p N  --strip=N", "strip it"))
        );
        assert_eq!(
            split_at_gap("-s  --capture=no in short"),
            Some(("-s", "--capture=no in short"))
        );
        assert_eq!(split_at_gap("one two"), None);
    }

    #[test]
    fn wrapped_lines_are_joined() {
        let text = "a\nb\n\n- c\n  d\n- e\n\n    code\n    code\nf";
        assert_eq!(paragraphs(&lines(text)), "a b\n\n- c d\n- e\n\n    code\n    code\nf");
    }

    #[test]
    fn tables_are_kept() {
        let text = "values are:\nnone  no backups\nall   many.  Really\nmany";
        assert_eq!(
            paragraphs(&lines(text)),
            "values are:\nnone  no backups\nall   many.  Really\nmany"
        );
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        assert_eq!(capped(&"é".repeat(MAX_TEXT_BYTES)).len(), MAX_TEXT_BYTES);
        assert_eq!(capped(&format!("a{}", "é".repeat(MAX_TEXT_BYTES))).len(), MAX_TEXT_BYTES - 1);
        assert_eq!(capped("a"), "a");
    }
}
