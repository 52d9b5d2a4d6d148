//! The left column of an option list: `-o, --output <FILE>` and all the other ways to write that.

/// What the left column says of an option.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Spec {
    /// All spellings.
    pub(super) names: Vec<String>,
    /// `--no-color` of `--[no-]color` and of `--color / --no-color`.
    pub(super) negation: Option<String>,
    /// Its value as it is written, brackets included.
    pub(super) value: Option<String>,
    /// The value is written after a blank: `--output FILE`.
    pub(super) spaced: bool,
    /// `--color[=WHEN]`
    pub(super) optional_value: bool,
    /// `--file <FILE>...`, or `--verbose...` without a value.
    pub(super) dots: bool,
    /// It takes more values at once than one.
    pub(super) more_values: bool,
    /// `--dry-run='none':`, where the value is the default (kubectl, and the flag package of old Go).
    pub(super) value_is_default: bool,
    /// `12` of boost's `--freq arg (=12)`.
    pub(super) default: Option<String>,
}

/// No option has more spellings; more are an enumeration.
const MAX_NAMES: usize = 12;

impl Spec {
    /// Reads the whole of `head`; `None` when it is something else, such as a sentence that starts with a dash.
    pub(super) fn parse(head: &str) -> Option<Spec> {
        let head = without_boost_brackets(head.trim());
        let (head, value_is_default) = match head.strip_suffix(':') {
            Some(head) => (head, head.contains('=')),
            None => (head.trim_end_matches([',', ';']), false),
        };
        let mut spec = Spec {
            value_is_default,
            ..Spec::default()
        };
        if let Some(names) = digit_range(head) {
            spec.names = names;
            return Some(spec);
        }
        let mut rest = head;
        let mut negated = false;
        loop {
            rest = spec.read_spelling(rest, negated)?;
            rest = spec.read_spaced_values(rest)?;
            if rest.is_empty() {
                return Some(spec);
            }
            if spec.names.len() >= MAX_NAMES {
                return None;
            }
            // `-h --help`
            if rest.starts_with("--") && spec.names.iter().all(|name| name.chars().count() == 2) {
                continue;
            }
            (rest, negated) = next_spelling(rest, negated)?;
        }
    }

    /// `--output`, and what is written to it without a blank.
    fn read_spelling<'a>(&mut self, text: &'a str, negated: bool) -> Option<&'a str> {
        let (dashes, text) = match text.strip_prefix("--") {
            Some(text) => ("--", text),
            None => ("-", text.strip_prefix('-')?),
        };
        let (no, text) = ["no-", "no"]
            .iter()
            .find_map(|no| Some((*no, text.strip_prefix('[')?.strip_prefix(no)?.strip_prefix(']')?)))
            .unwrap_or(("", text));
        let (name, mut rest) = split_name(text, dashes == "-")?;
        let spelling = format!("{dashes}{name}");
        if !no.is_empty() {
            self.negation.get_or_insert(format!("{dashes}{no}{name}"));
        }
        if negated {
            if dashes == "--" || self.negation.is_none() {
                self.negation = Some(spelling);
            }
        } else if self.names.contains(&spelling) {
            // `--check, --check=quiet`
            self.optional_value = true;
        } else {
            self.names.push(spelling);
        }
        while !rest.is_empty() && !rest.starts_with([' ', ',', '|']) && !rest.starts_with("/-") {
            rest = self.read_attached(rest)?;
        }
        Some(rest)
    }

    fn read_attached<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        if let Some(rest) = text.strip_prefix("...") {
            self.dots = true;
            return Some(rest);
        }
        let (token, rest) = take_token(text);
        match token.strip_prefix('=') {
            // Kubectl's `--from-file=[]` is a default; Argparse's `--cache-show=[WHEN]` is not.
            Some(value) if value.starts_with('[') && value.ends_with(']') && value.len() > 2 && !self.value_is_default => {
                self.optional_value = true;
                self.set_value(value);
            }
            Some(value) => self.set_value(value),
            None if token.starts_with("[=") || token.starts_with("[") => {
                self.optional_value = true;
                self.set_value(token);
            }
            None if token.starts_with(|c: char| c.is_ascii_uppercase() || "<{#".contains(c)) => self.set_value(token),
            None => return None,
        }
        Some(rest)
    }

    /// The values after a blank: `--output FILE`.
    fn read_spaced_values<'a>(&mut self, mut text: &'a str) -> Option<&'a str> {
        let mut values = 0;
        loop {
            let rest = text.trim_start();
            let is_spelling = ends_spelling(rest) && alternative_value(rest).is_none();
            if rest.len() == text.len() || rest.is_empty() || is_spelling {
                return Some(rest);
            }
            if let Some(other) = alternative_value(rest).filter(|_| values > 0) {
                text = other;
                continue;
            }
            let (token, rest) = take_token(rest);
            match token {
                "..." => self.dots = true,
                // `-1 ("one")`: how it is read aloud.
                _ if token.starts_with("(\"") => {}
                _ if token.starts_with("(=") => {
                    self.default = token
                        .strip_prefix("(=")
                        .and_then(|token| token.strip_suffix(')'))
                        .map(str::to_owned)
                }
                _ if !is_placeholder(token) => return None,
                // One value does in `<NAME> [<FILE> ...]`; `FILE [FILE ...]` is a list.
                _ if values > 0 && token.starts_with('[') => {
                    self.dots |= self.value.as_deref().is_some_and(|first| token == format!("[{first} ...]"));
                }
                _ => {
                    values += 1;
                    // `--color [WHEN]`: without a value it would take the next word for one, so it is never given without.
                    self.more_values |= values > 1;
                    self.spaced = true;
                    self.set_value(token);
                }
            }
            if values > 3 {
                return None;
            }
            text = rest;
        }
    }

    /// The first value with a name is kept; all spellings of an option have the same.
    fn set_value(&mut self, token: &str) {
        let token = match token.strip_suffix("...") {
            Some(token) => {
                self.dots = true;
                token
            }
            None => token,
        };
        self.dots |= token.ends_with(" ...]");
        if self.value.as_deref().is_none_or(str::is_empty) {
            self.value = Some(token.to_owned());
        }
    }
}

/// `-0 ... -9`
fn digit_range(head: &str) -> Option<Vec<String>> {
    let (first, last) = head.split_once(" ... ").or_else(|| head.split_once(" .. "))?;
    let digit = |name: &str| name.strip_prefix('-').filter(|digits| digits.len() == 1)?.parse::<u8>().ok();
    Some((digit(first)?..=digit(last)?).map(|digit| format!("-{digit}")).collect())
}

/// What is behind the other value of `USER | TOKEN`.
fn alternative_value(text: &str) -> Option<&str> {
    let other = text.strip_prefix("| ").filter(|other| !other.starts_with('-'))?;
    Some(take_token(other).1)
}

/// Whether another spelling follows, or nothing.
fn ends_spelling(text: &str) -> bool {
    text.starts_with(['-', ',', '|', '/']) || text.starts_with("or -")
}

/// What stands between two spellings. After `--color / --no-color`'s slash come those that turn it off.
fn next_spelling(text: &str, negated: bool) -> Option<(&str, bool)> {
    let slash = text.strip_prefix("/ ");
    let rest = slash
        .or_else(|| text.strip_prefix([',', '|', '/']))
        .or_else(|| text.strip_prefix("or "))?
        .trim_start();
    rest.starts_with('-').then_some((rest, negated || slash.is_some()))
}

/// The name behind the dashes. With one dash a value may follow without a mark: `-oFILE`, `-a<n>`.
fn split_name(text: &str, single: bool) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !is_name_char(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at_checked(end)?;
    let (name, rest) = match name.strip_suffix("...") {
        Some(bare) => (bare, text.get(bare.len()..)?),
        None => (name, rest),
    };
    if name.is_empty() {
        // `-?` and the like.
        let (sign, rest) = text.split_at_checked(1)?;
        return (single && matches!(sign, "?" | "@" | "%")).then_some((sign, rest));
    }
    let (first, value) = name.split_at_checked(1)?;
    let has_attached = single && value.len() > 1 && value.chars().all(|c| c.is_ascii_uppercase()) && first != value.get(..1)?;
    if has_attached {
        return text.split_at_checked(1);
    }
    (name.chars().count() <= 100 && !name.starts_with('-') && (name == "." || !name.ends_with('.'))).then_some((name, rest))
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '+')
}

/// Up to the next blank or comma outside of brackets and quotes.
fn take_token(text: &str) -> (&str, &str) {
    let mut depth = 0_usize;
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match c {
            _ if quote == Some(c) => quote = None,
            _ if quote.is_some() => {}
            '\'' | '"' if text.get(..at).is_some_and(|before| before.ends_with(['=', '['])) => quote = Some(c),
            '[' | '<' | '{' | '(' => depth += 1,
            ']' | '>' | '}' | ')' => depth = depth.saturating_sub(1),
            ' ' | ',' if depth == 0 => return text.split_at_checked(at).unwrap_or((text, "")),
            _ => {}
        }
    }
    (text, "")
}

/// Whether a word can stand for a value: no word of a sentence ends with a stop, and none has signs of its own.
fn is_placeholder(token: &str) -> bool {
    let bracketed = token.starts_with(['<', '[', '{', '(']);
    let is_sign = |c: char| c.is_alphanumeric() || "_-./:|=<>[]{}()#@,*+%\"'~\\$&".contains(c);
    token.chars().any(char::is_alphanumeric)
        && (bracketed || (token.chars().all(is_sign) && !token.ends_with(['.', ':', ')']) || token.ends_with("...")))
}

/// Drops what boost writes around the long spelling, `-h [ --help ] arg`, so that the rest reads like any other option.
fn without_boost_brackets(head: &str) -> String {
    match head
        .split_once(" [ -")
        .and_then(|(short, rest)| Some((short, rest.split_once(" ]")?)))
    {
        Some((short, (long, value))) => format!("{short}, -{long}{value}"),
        None => head.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(head: &str) -> Option<String> {
        let spec = Spec::parse(head)?;
        let mut shown = spec.names.join(" ");
        if let Some(value) = &spec.value {
            shown += &format!(" ={value}");
        }
        for (mark, is_set) in [
            ("?", spec.optional_value),
            ("...", spec.dots),
            ("&", spec.more_values),
            ("!", spec.value_is_default),
        ] {
            if is_set {
                shown += &format!(" {mark}");
            }
        }
        Some(shown + &spec.negation.map(|name| format!(" / {name}")).unwrap_or_default())
    }

    #[test]
    fn heads_of_options() {
        for (head, expected) in [
            ("-o, --output <FILE>", "-o --output =<FILE>"),
            ("-o,  --output=FILE", "-o --output =FILE"),
            ("-o FILE, --output FILE", "-o --output =FILE"),
            ("-oFILE", "-o =FILE"),
            ("-a<n>, -A<n>", "-a -A =<n>"),
            ("--[no-]color", "--color / --no-color"),
            ("-F, --[no-]file <file>", "-F --file =<file> / --no-file"),
            ("--fast / --safe", "--fast / --safe"),
            ("-v, --verbose...", "-v --verbose ..."),
            ("--color[=<WHEN>]", "--color =[=<WHEN>] ?"),
            ("-c, -C NUM, --context[=NUM]", "-c -C --context =NUM ?"),
            ("-j [N], --jobs[=N]", "-j --jobs =[N] ?"),
            ("-h [ --help ]", "-h --help"),
            ("-l [ --log ] arg", "-l --log =arg"),
            ("--dry-run='none':", "--dry-run ='none' !"),
            ("--from-file=[]:", "--from-file =[] !"),
            ("--cache-show=[CACHESHOW]", "--cache-show =[CACHESHOW] ?"),
            ("--lines=[-]NUM", "--lines =[-]NUM"),
            ("-n/--number N", "-n --number =N"),
            ("-n <module name>", "-n =<module name>"),
            ("-e <a> <b>, --extract <a> <b>", "-e --extract =<a> &"),
            ("-c <name> [<file> ...]", "-c =<name>"),
            ("--files FILE [FILE ...]", "--files =FILE ..."),
            ("--auth USER[:PASS] | TOKEN, -a USER[:PASS] | TOKEN", "--auth -a =USER[:PASS]"),
            ("-T#", "-T =#"),
            ("-1 (\"one\"), --single", "-1 --single"),
            ("--files [FILE ...]", "--files =[FILE ...] ..."),
            ("--target [a|b]", "--target =[a|b]"),
            ("-R, --repo [HOST/]OWNER/REPO", "-R --repo =[HOST/]OWNER/REPO"),
            ("-debug", "-debug"),
            ("-OO", "-OO"),
            ("-?", "-?"),
            ("-h --help", "-h --help"),
            ("-p NUM  --strip=NUM", "-p --strip =NUM"),
            ("-., --hidden", "-. --hidden"),
            ("-[no]header", "-header / -noheader"),
            ("-1 .. -3", "-1 -2 -3"),
            ("-l [<KIND>=]<NAME>[:<RENAME>]", "-l =[<KIND>=]<NAME>[:<RENAME>]"),
            ("--emit <TYPE>[=<FILE>]", "--emit =<TYPE>[=<FILE>]"),
            ("--check, --check=diagnose-first", "--check =diagnose-first ?"),
            ("-B0, -B1, -B2, -B3", "-B0 -B1 -B2 -B3"),
            ("--level={a, b}", "--level ={a, b}"),
        ] {
            assert_eq!(shown(head).as_deref(), Some(expected), "{head}");
        }
    }

    #[test]
    fn other_lines_that_start_with_a_dash() {
        for head in [
            "-",
            "--",
            "- item",
            "-- note",
            "---",
            "-t may be used only when translating.",
            "-amin N -anewer FILE",
            "-F/pattern/",
            "--foo, bar",
        ] {
            assert_eq!(shown(head), None, "{head}");
        }
    }
}
