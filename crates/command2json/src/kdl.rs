//! Whether a text is plain KDL.
//!
//! The parser that reads usage specs recurses where it recovers from errors, and takes exponential time for some texts. A program's
//! text is hostile here, so it sees only texts that have no error in their form, that nest within bounds, and that do without rare
//! forms: no `/-`, no type annotations, no line continuation, and only decimal numbers.

/// What ends a line, and so a comment, in KDL. Only the first two are read here outside of comments and strings.
const NEWLINES: [char; 7] = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];

/// What stands before a place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// The start of a line, or of a block.
    Start,
    /// A node's name.
    Name,
    Space,
    /// A word or string, which a `=` may make a key.
    Word,
    Equals,
    Value,
    /// The end of a block.
    Closed,
}

/// What is there to read next.
enum Token {
    Space,
    NodeEnd,
    Open,
    Close,
    Equals,
    Word,
    Value,
}

/// Is `text` plain KDL that nests at most `most` deep? Else the place in bytes, and what is wrong there.
pub(crate) fn check(text: &str, most: usize) -> Result<(), (usize, &'static str)> {
    let mut before = Before::Start;
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let wrong = |what| (at, what);
        let (token, length) = token(rest).map_err(wrong)?;
        before = match (token, before) {
            (Token::Space, Before::Start | Before::Closed) => before,
            (Token::Space, Before::Name | Before::Space | Before::Word | Before::Value) => Before::Space,
            (Token::NodeEnd, Before::Equals) => return Err(wrong("a `=` without a value")),
            (Token::NodeEnd, _) => Before::Start,
            (Token::Open, Before::Name | Before::Space | Before::Word | Before::Value) => {
                depth += 1;
                Before::Start
            }
            (Token::Close, Before::Equals) => return Err(wrong("a `=` without a value")),
            (Token::Close, _) => {
                depth = depth.checked_sub(1).ok_or(wrong("a `}` that closes nothing"))?;
                Before::Closed
            }
            (Token::Equals, Before::Word) => Before::Equals,
            (Token::Word, Before::Start) => Before::Name,
            (Token::Word, Before::Space) => Before::Word,
            (Token::Word | Token::Value, Before::Equals) | (Token::Value, Before::Space) => Before::Value,
            _ => return Err(wrong("this cannot stand here")),
        };
        if depth > most {
            return Err(wrong("blocks nest too deep"));
        }
        at += length;
    }
    match (depth, before) {
        (0, Before::Equals) => Err((at, "a `=` without a value")),
        (0, _) => Ok(()),
        _ => Err((at, "a block is not closed")),
    }
}

/// The next token and its length.
fn token(rest: &str) -> Result<(Token, usize), &'static str> {
    let first = rest.chars().next().unwrap_or_default();
    let one = |token| Ok((token, first.len_utf8()));
    match first {
        '\n' | '\r' => one(Token::NodeEnd),
        ' ' | '\t' => one(Token::Space),
        ';' => one(Token::NodeEnd),
        '{' => one(Token::Open),
        '}' => one(Token::Close),
        '=' => one(Token::Equals),
        '/' if rest.starts_with("//") => Ok((Token::Space, rest.find(NEWLINES).unwrap_or(rest.len()))),
        '/' if rest.starts_with("/*") => comment_length(rest).map(|length| (Token::Space, length)),
        '"' => string_length(rest).map(|length| (Token::Word, length)),
        '#' if rest.trim_start_matches('#').starts_with('"') => string_length(rest).map(|length| (Token::Word, length)),
        '#' => ["#true", "#false", "#null"]
            .into_iter()
            .find(|keyword| rest.starts_with(keyword))
            .map(|keyword| (Token::Value, keyword.len()))
            .ok_or("`#` is for `#true`, `#false`, `#null` and raw strings"),
        _ => word(rest),
    }
}

/// Comments could nest, but need not.
fn comment_length(rest: &str) -> Result<usize, &'static str> {
    let inside = rest.get(2..).unwrap_or_default();
    let end = inside.find("*/").ok_or("a comment that does not end")?;
    // With the `*`: that of `/*/` would open another one.
    match inside.get(..=end).is_some_and(|inside| inside.contains("/*")) {
        true => Err("a comment with another one in it"),
        false => Ok(end + 4),
    }
}

fn word(rest: &str) -> Result<(Token, usize), &'static str> {
    let is_plain = |c: char| c.is_alphanumeric() || c.is_ascii_graphic() && !"\\/(){};[]\"#=".contains(c) || c == '…';
    let word = rest.find(|c| !is_plain(c)).and_then(|end| rest.get(..end)).unwrap_or(rest);
    let number = word.strip_prefix(['+', '-']).unwrap_or(word);
    if word.is_empty() {
        return Err("a character that stands only in strings, or a form that is not read here");
    }
    if number.trim_start_matches('.').starts_with(|c: char| c.is_ascii_digit()) {
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let is_digits = |text: &str| !text.is_empty() && text.len() <= 15 && text.bytes().all(|c| c.is_ascii_digit());
        return match is_digits(whole) && is_digits(fraction) {
            true => Ok((Token::Value, word.len())),
            false => Err("a number that is not decimal, or a word that starts like one"),
        };
    }
    match ["true", "false", "null", "inf", "-inf", "nan"].contains(&word) {
        true => Err("a keyword without its `#`"),
        false => Ok((Token::Word, word.len())),
    }
}

/// The length of the string that `text` starts with: quoted, of several lines, or raw in any number of `#`.
fn string_length(text: &str) -> Result<usize, &'static str> {
    const UNENDED: &str = "a string that does not end";
    let hashes: String = text.chars().take_while(|c| *c == '#').collect();
    let quoted = text.get(hashes.len()..).unwrap_or_default();
    let of_lines = quoted
        .strip_prefix("\"\"\"")
        .is_some_and(|after| after.starts_with(['\n', '\r']));
    let quotes = if of_lines { "\"\"\"" } else { "\"" };
    let end = format!("{quotes}{hashes}");
    let mut at = hashes.len() + quotes.len();
    loop {
        let rest = text.get(at..).unwrap_or_default();
        if rest.starts_with(&end) {
            return Ok(at + end.len());
        }
        at += match rest.chars().next().ok_or(UNENDED)? {
            '\n' | '\r' if !of_lines => return Err(UNENDED),
            '\\' if hashes.is_empty() => escape_length(rest)?,
            c => c.len_utf8(),
        };
    }
}

fn escape_length(text: &str) -> Result<usize, &'static str> {
    let hexadecimal = || {
        let (digits, _) = text.strip_prefix("\\u{")?.split_once('}')?;
        let code = u32::from_str_radix(digits, 16).ok().filter(|_| digits.len() <= 6)?;
        char::from_u32(code).map(|_| "\\u{}".len() + digits.len())
    };
    match text.chars().nth(1) {
        Some('n' | 'r' | 't' | '\\' | '"' | 'b' | 'f' | 's') => Ok(2),
        Some('u') => hexadecimal().ok_or("an escape `\\u{…}` that names no character"),
        _ => Err("an escape that is not known"),
    }
}
