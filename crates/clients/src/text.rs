//! Lines, line endings and splices of a text.

use std::ops::Range;

pub(crate) const BOM: char = '\u{feff}';

/// The line ending of a text: that of its first line.
pub(crate) fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text.get(..at).is_some_and(|line| line.ends_with('\r')) => "\r\n",
        _ => "\n",
    }
}

pub(crate) fn slice(text: &str, range: Range<usize>) -> &str {
    text.get(range).unwrap_or_default()
}

pub(crate) fn is_blank(text: &str) -> bool {
    text.chars().all(char::is_whitespace)
}

/// Where the line of this place begins.
pub(crate) fn line_start(text: &str, at: usize) -> usize {
    slice(text, 0..at).rfind('\n').map_or(0, |newline| newline + 1)
}

/// Where the line of this place ends, before its line ending.
pub(crate) fn line_end(text: &str, at: usize) -> usize {
    let rest = slice(text, at..text.len());
    let line = rest
        .split_once('\n')
        .map_or(rest, |(line, _)| line.strip_suffix('\r').unwrap_or(line));
    at + line.len()
}

/// Where the line after this place begins.
pub(crate) fn next_line(text: &str, at: usize) -> usize {
    let rest = slice(text, at..text.len());
    rest.find('\n').map_or(text.len(), |newline| at + newline + 1)
}

/// Where the line before this start of a line ends, before its line ending.
pub(crate) fn previous_line_end(text: &str, start: usize) -> usize {
    let before = slice(text, 0..start);
    let line = before.strip_suffix('\n').unwrap_or(before);
    line.strip_suffix('\r').unwrap_or(line).len()
}

/// The white space at the beginning of the line of this place.
pub(crate) fn indent(text: &str, at: usize) -> &str {
    let line = slice(text, line_start(text, at)..line_end(text, at));
    line.strip_suffix(line.trim_start()).unwrap_or_default()
}

/// Changes of a text, to be made all at once. They speak of places in the text as it was.
#[derive(Default)]
pub(crate) struct Splices(Vec<(Range<usize>, String)>);

impl Splices {
    pub(crate) fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at..at, text);
    }

    pub(crate) fn cut(&mut self, range: Range<usize>) {
        self.replace(range, "");
    }

    pub(crate) fn replace(&mut self, range: Range<usize>, text: impl Into<String>) {
        self.0.push((range, text.into()));
    }

    /// What overlaps is cut only once.
    pub(crate) fn apply(mut self, text: &str) -> String {
        self.0.sort_by_key(|(range, _)| range.start);
        let mut result = String::with_capacity(text.len());
        let mut at = 0;
        for (range, replacement) in self.0 {
            result.push_str(slice(text, at..range.start.max(at)));
            result.push_str(&replacement);
            at = range.end.max(at);
        }
        result.push_str(slice(text, at..text.len()));
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let text = "a\r\n  b\r\n\nc";
        assert_eq!(newline(text), "\r\n");
        assert_eq!(newline("a\nb\r\n"), "\n");
        assert_eq!(newline(""), "\n");
        assert_eq!((line_start(text, 5), line_end(text, 5), next_line(text, 5)), (3, 6, 8));
        assert_eq!((line_start(text, 0), line_end(text, 0), next_line(text, 0)), (0, 1, 3));
        assert_eq!((line_start(text, 9), line_end(text, 9), next_line(text, 9)), (9, 10, 10));
        assert_eq!(previous_line_end(text, 3), 1);
        assert_eq!(previous_line_end(text, 0), 0);
        assert_eq!(indent(text, 5), "  ");
        assert_eq!(indent(text, 9), "");
    }

    #[test]
    fn splices_are_applied_in_the_order_of_the_text() {
        let mut splices = Splices::default();
        splices.cut(2..4);
        splices.cut(3..5);
        splices.insert(0, "<");
        splices.replace(5..6, "X");
        assert_eq!(splices.apply("abcdefg"), "<abXg");
    }
}
