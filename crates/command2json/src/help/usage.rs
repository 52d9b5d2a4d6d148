//! The usage line: `prog [OPTIONS] --name <NAME> <FILE> [DIR]...`.

use crate::tree::Positional;

use super::spec::Spec;
use super::values;

/// Brackets in brackets that are looked into.
const MAX_DEPTH: usize = 8;
const MAX_TOKENS: usize = 300;

/// What one form of the usage says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Form {
    pub(super) positionals: Vec<Positional>,
    /// Options that are written out.
    pub(super) options: Vec<UsageOption>,
    /// Alternatives of which one cannot tell what they take.
    pub(super) is_unclear: bool,
    /// Where a subcommand comes.
    pub(super) command: Option<CommandPlace>,
    /// `[OPTIONS]`, or an option.
    pub(super) takes_options: bool,
    /// `[ARGS]`: the list of arguments says which.
    pub(super) takes_listed_args: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct UsageOption {
    pub(super) spec: Spec,
    /// It is not in brackets.
    pub(super) required: bool,
    /// `[--x <X>]...`
    pub(super) repeated: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CommandPlace {
    /// `[COMMAND]`
    pub(super) optional: bool,
    /// Options come before it.
    pub(super) after_options: bool,
}

/// What of the rest of the text a usage line cannot be read without.
pub(super) struct Context<'a> {
    /// The subcommand's path: what the usage repeats before it gets to the point.
    pub(super) path: &'a [&'a str],
    /// The subcommands that are listed.
    pub(super) commands: &'a [&'a str],
    /// The arguments that are listed.
    pub(super) arguments: &'a [String],
    /// Whether an option of the list takes a value; `None` if it is not listed.
    pub(super) takes_value: &'a dyn Fn(&str) -> Option<bool>,
}

impl Context<'_> {
    /// Whether a word stands for all options. An argument may well be called `OPTION`; then it is listed.
    fn is_options_word(&self, token: &str) -> bool {
        is_options_word(token) && !self.arguments.contains(&positional_name(token))
    }
}

/// The name of the program in a form: `icepll` of `/x/icepll.wasm [options]`, `json.tool` of `python -m json.tool`.
pub(super) fn program(form: &str) -> Option<&str> {
    let words: Vec<&str> = form.split_whitespace().take(3).collect();
    program_name(words.get(program_words(&words).checked_sub(1)?)?)
}

/// How many words name the program: an interpreter may come before it.
fn program_words(words: &[&str]) -> usize {
    match words {
        [python, "-m", _, ..] if python.starts_with("python") => 3,
        [python, script, ..] if python.starts_with("python") && script.ends_with(".py") => 2,
        _ => 1,
    }
}

/// A path's last part without its ending.
pub(super) fn program_name(path: &str) -> Option<&str> {
    let path = path.trim_matches(['"', '\'', '`', ':']);
    let name = path.rsplit(['/', '\\']).next()?;
    let name = name.split('[').next().unwrap_or(name);
    let name = name.strip_suffix(".wasm").unwrap_or(name);
    (!name.is_empty() && name.len() <= 200 && !name.starts_with(['-', '[', '<', '{', '('])).then_some(name)
}

impl Form {
    pub(super) fn parse(form: &str, context: &Context) -> Form {
        let form = form.replace("(s)", "s...");
        let tokens = tokens(&form);
        let mut parsed = Form::default();
        let rest = tokens.get(words_to_skip(&tokens, context.path)..).unwrap_or_default();
        parsed.read(rest, false, 0, context);
        merge_repetitions(&mut parsed.positionals);
        parsed
    }

    fn read(&mut self, tokens: &[&str], optional: bool, depth: usize, context: &Context) {
        let mut tokens = tokens.iter().copied().peekable();
        let mut after_dashes = false;
        while let Some(token) = tokens.next() {
            let next = tokens.peek().copied();
            if token == "|" {
                self.add_alternative(next);
                tokens.next();
            } else if token == "--" {
                after_dashes = true;
            } else if matches!(token, "..." | "[...]" | ".." | "[..]") {
                if let Some(last) = self.positionals.last_mut() {
                    last.variadic = true;
                }
            } else if is_option(token) {
                let takes = self.read_option(token, next, !optional, false, context);
                if takes {
                    tokens.next();
                }
            } else if self.is_command(token, next, context) {
                // What follows is the subcommand's.
                self.command = Some(CommandPlace {
                    optional: optional || is_group(token, '[', ']'),
                    after_options: self.takes_options,
                });
                return;
            } else {
                let before = self.positionals.len();
                self.read_argument(token, optional, depth, context);
                if after_dashes {
                    self.positionals
                        .iter_mut()
                        .skip(before)
                        .for_each(|positional| positional.after_dashes = true);
                }
            }
        }
    }

    /// `PATH | URL | -` outside of brackets: one argument.
    fn add_alternative(&mut self, other: Option<&str>) {
        match (self.positionals.last_mut(), other) {
            (_, Some("-")) => {}
            (Some(last), Some(other)) if is_word(other) => {
                last.name.push('|');
                last.name.push_str(&positional_name(other));
            }
            _ => self.is_unclear = true,
        }
    }

    /// An option that is written out. Returns whether it takes the next word as its value.
    fn read_option(&mut self, token: &str, next: Option<&str>, required: bool, repeated: bool, context: &Context) -> bool {
        self.takes_options = true;
        let Some(mut spec) = Spec::parse(token) else { return false };
        let is_value = |next: &str| !next.starts_with(['-', '[', '|', '.']) && !is_options_word(next);
        let takes = spec.value.is_none()
            && next.is_some_and(is_value)
            && spec
                .names
                .first()
                .and_then(|name| (context.takes_value)(name))
                .unwrap_or(true);
        if takes {
            spec.value = next.map(str::to_owned);
        }
        self.options.push(UsageOption {
            spec,
            required,
            repeated,
        });
        takes
    }

    fn is_command(&self, token: &str, next: Option<&str>, context: &Context) -> bool {
        let is_subparser = token.starts_with('{') && next == Some("...");
        let word = values::bare(token).to_ascii_lowercase();
        let is_word = matches!(
            word.as_str(),
            "command" | "commands" | "subcommand" | "subcommands" | "cmd" | "sub-command"
        );
        let names_commands = !context.commands.is_empty()
            && values::values_of_placeholder(token)
                .iter()
                .any(|value| context.commands.contains(&value.as_str()));
        is_subparser || (!context.commands.is_empty() && (is_word || names_commands))
    }

    /// A positional, or a bracket with more in it.
    fn read_argument(&mut self, token: &str, optional: bool, depth: usize, context: &Context) {
        let (token, dots) = match token.strip_suffix("...") {
            Some(token) => (token, true),
            None => (token, false),
        };
        let in_brackets = is_group(token, '[', ']');
        if in_brackets || is_group(token, '(', ')') {
            self.read_group(inside(token), optional || in_brackets, dots, depth, context);
        } else {
            self.add_positional(token, optional, dots, context);
        }
    }

    /// What stands in a bracket: alternatives, options, arguments and brackets.
    fn read_group(&mut self, inner: &str, optional: bool, dots: bool, depth: usize, context: &Context) {
        let parts = tokens(inner);
        let mut branches: Vec<&[&str]> = parts.split(|part| *part == "|").collect();
        // `FILE | -`: standard input is a file.
        branches.retain(|branch| *branch != ["-"]);
        let is_subcommands = inner.eq_ignore_ascii_case("args") && !context.commands.is_empty();
        if depth >= MAX_DEPTH || parts.is_empty() || is_subcommands {
            return;
        }
        if context.is_options_word(inner) {
            self.takes_options = true;
        } else if branches
            .iter()
            .all(|branch| branch.first().is_some_and(|part| is_option(part) || part.starts_with("(-")))
        {
            self.read_option_group(&branches, optional, dots, depth, context);
        } else if let [parts] = branches.as_slice() {
            let before = self.positionals.len();
            if parts.len() > 1 && parts.iter().all(|part| is_plain_word(part)) {
                // Some words that name one thing; with more, they are a sentence.
                self.is_unclear |= parts.len() > 3;
                self.add_positional(inner, optional, dots, context);
            } else {
                self.takes_listed_args |= inner == "ARGS" && before == 0;
                self.read(parts, optional, depth + 1, context);
            }
            self.positionals
                .iter_mut()
                .skip(before)
                .for_each(|positional| positional.variadic |= dots);
        } else if branches
            .iter()
            .all(|branch| matches!(branch, [word] if !word.starts_with('-') && !word.contains(['[', '('])))
        {
            self.add_positional(&branches.concat().join("|"), optional, dots, context);
        } else {
            self.is_unclear = true;
        }
    }

    /// `[-a | -b FILE]`
    fn read_option_group(&mut self, branches: &[&[&str]], optional: bool, dots: bool, depth: usize, context: &Context) {
        if let Some(spec) = two_spellings(branches) {
            self.takes_options = true;
            self.options.push(UsageOption {
                spec,
                required: false,
                repeated: dots,
            });
            return;
        }
        let is_required = !optional && branches.len() == 1;
        for branch in branches {
            self.read_group_options(branch, is_required, dots, depth, context);
        }
    }

    /// `[-o FILE]`, and more options in the same bracket.
    fn read_group_options(&mut self, parts: &[&str], required: bool, repeated: bool, depth: usize, context: &Context) {
        if parts.first().is_some_and(|part| part.starts_with('(')) {
            // `(-c | -C) <commit>`: the list of options says more.
            return;
        }
        let mut parts = parts.iter().copied().peekable();
        let mut is_first = true;
        while let Some(part) = parts.next() {
            if is_option(part) {
                let more = parts.peek().copied();
                let optional_value = is_first
                    && more.is_some_and(|value| is_group(value, '[', ']') && !value.contains("...") && !value.starts_with("[-"));
                let takes = self.read_option(part, more, required, repeated, context);
                if optional_value && let Some(last) = self.options.last_mut() {
                    last.spec.optional_value = true;
                    last.spec.value = more.map(str::to_owned);
                }
                if takes || optional_value {
                    parts.next();
                }
            } else if is_group(part, '[', ']') {
                let is_list = part.ends_with(" ...]") || part.ends_with("...]");
                match self.options.last_mut() {
                    Some(last) if is_list => {
                        last.repeated = last
                            .spec
                            .value
                            .as_deref()
                            .is_some_and(|value| values::bare(value) == positional_name(part));
                    }
                    _ if depth < MAX_DEPTH && part.starts_with("[-") => self.read_argument(part, true, depth + 1, context),
                    _ => {}
                }
            } else if let Some(last) = self.options.last_mut() {
                last.spec.more_values = true;
            }
            is_first = false;
        }
    }

    fn add_positional(&mut self, token: &str, optional: bool, dots: bool, context: &Context) {
        let name = positional_name(token);
        if context.is_options_word(token) {
            self.takes_options = true;
        } else if name.contains("|-") {
            // `<RULE|--all>`: the option does instead.
            let words: Vec<&str> = name.split('|').filter(|word| !word.starts_with('-')).collect();
            self.add_positional(&words.join("|"), true, dots, context);
        } else if name.chars().any(char::is_alphanumeric) && name.len() <= 200 {
            let literals = values::values_of_placeholder(token);
            self.positionals.push(Positional {
                name,
                required: !optional,
                variadic: dots || token.contains("...") || is_plural(token),
                values: literals,
                ..Positional::default()
            });
        }
    }
}

/// `[-v | --version]`: one option, and not a choice of two.
fn two_spellings(branches: &[&[&str]]) -> Option<Spec> {
    let [[short], [long]] = branches else { return None };
    let letter = short.strip_prefix('-').filter(|letter| letter.chars().count() == 1)?;
    long.strip_prefix("--").filter(|name| name.starts_with(letter))?;
    Spec::parse(&format!("{short}, {long}"))
}

/// `input-file` of `<input-file>...`, `REPOSITORY` of `REPOSITORY[:TAG]`.
pub(super) fn positional_name(token: &str) -> String {
    let name = values::bare(token);
    let name = name.trim_end_matches(['.', ',', ':', ' ']);
    let name = match name.split_once('[') {
        Some((start, _)) if !start.is_empty() => start,
        _ => name,
    };
    name.replace(['<', '>', '[', ']', '{', '}', '(', ')', '"', '\''], "")
        .trim()
        .to_owned()
}

/// Words that mean many, where nothing is written around them to say so.
fn is_plural(token: &str) -> bool {
    let last = token.rsplit(['-', '_']).next().unwrap_or_default();
    ["files", "paths", "urls", "packages", "arguments"].contains(&last.to_ascii_lowercase().as_str())
}

/// The subcommand that a form is about: `add` of `git remote add <name>`.
pub(super) fn command_word<'a>(form: &'a str, path: &[&str]) -> Option<&'a str> {
    let tokens = tokens(form);
    let rest = tokens.get(words_to_skip(&tokens, path)..)?;
    let word = rest.iter().find(|token| !token.starts_with('['))?;
    (is_plain_word(word) && word.len() > 1).then_some(word)
}

/// `file [file ...]` is one argument that takes many.
fn merge_repetitions(positionals: &mut Vec<Positional>) {
    positionals.dedup_by(|next, kept| {
        let same = next.name == kept.name;
        if same {
            kept.variadic = true;
            kept.required |= next.required;
        }
        same
    });
}

/// Whether one list of arguments is good for the calls of another: it names the same, and what it has more may be left out.
pub(super) fn covers(list: &[Positional], other: &[Positional]) -> bool {
    let starts_alike = list
        .iter()
        .zip(other)
        .all(|(a, b)| a.name == b.name && a.variadic == b.variadic);
    starts_alike && list.len() >= other.len() && list.iter().skip(other.len()).all(|more| !more.required)
}

/// The program's name and the subcommands before the part that matters.
fn words_to_skip(tokens: &[&str], path: &[&str]) -> usize {
    let program = program_words(tokens);
    let Some(last) = path.get(1..).and_then(<[&str]>::last) else {
        return program;
    };
    // Options of the parent may stand in between.
    let at = tokens.iter().skip(program).position(|token| token == last);
    at.map_or(program, |at| program + at + 1)
}

/// Splits at blanks outside of brackets. A bracket that is never closed takes the rest.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut depth = 0_usize;
    let mut start = None;
    let last_angle = text.rfind('>').unwrap_or_default();
    for (at, c) in text.char_indices() {
        match c {
            ' ' if depth == 0 => {
                if let Some(start) = start.take() {
                    tokens.extend(text.get(start..at));
                }
                if tokens.len() >= MAX_TOKENS {
                    return tokens;
                }
                continue;
            }
            '[' | '(' | '{' => depth += 1,
            ']' | ')' | '}' => depth = depth.saturating_sub(1),
            // A placeholder, and not a redirection.
            '<' => depth += usize::from(at < last_angle),
            '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        start.get_or_insert(at);
    }
    if let Some(start) = start {
        tokens.extend(text.get(start..));
    }
    tokens
}

fn is_group(token: &str, open: char, close: char) -> bool {
    token.starts_with(open) && token.trim_end_matches('.').ends_with(close)
}

fn inside(token: &str) -> &str {
    let mut chars = token.trim_end_matches('.').chars();
    chars.next();
    chars.next_back();
    chars.as_str().trim()
}

fn is_option(part: &str) -> bool {
    part.starts_with('-') && part.len() > 1 && part != "--"
}

/// A name for an argument, with or without angles.
fn is_word(part: &str) -> bool {
    part.chars().all(|c| c.is_alphanumeric() || "-_<>".contains(c)) && !part.starts_with('-') && part.len() <= 64
}

fn is_plain_word(part: &str) -> bool {
    part.chars().all(|c| c.is_ascii_lowercase() || c == '-' || c == '_') && !part.starts_with('-')
}

/// `[OPTIONS]`, `[build flags]`, `[OPTION]...`, `[+toolchain]`.
fn is_options_word(token: &str) -> bool {
    let word = values::bare(token.trim_end_matches('.')).to_ascii_lowercase();
    let last = word.rsplit([' ', '-', '_']).next().unwrap_or_default().trim_end_matches('.');
    matches!(last, "options" | "option" | "opts" | "flags" | "flag" | "switches") && !word.starts_with('<') || word == "+toolchain"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(form: &str, path: &[&str], commands: &[&str]) -> Form {
        Form::parse(
            form,
            &Context {
                path,
                commands,
                arguments: &[],
                takes_value: &|_| None,
            },
        )
    }

    fn shown(form: &Form) -> String {
        let args = form.positionals.iter().map(|arg| {
            let dashes = if arg.after_dashes { "-- " } else { "" };
            let dots = if arg.variadic { "..." } else { "" };
            let name = format!("{dashes}{}{dots}", arg.name);
            if arg.required { name } else { format!("[{name}]") }
        });
        args.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn positionals() {
        for (form, expected) in [
            ("prog [OPTIONS] <file> [path]", "file [path]"),
            ("prog [OPTION]... [FILE]...", "[FILE...]"),
            ("prog [-h] [--x X] file [file ...]", "file..."),
            ("prog [input-file [output-file]]", "[input-file] [output-file]"),
            ("prog [file_or_dir] [file_or_dir] [...]", "[file_or_dir...]"),
            ("prog [OPTIONS] [-- <ARGS>...]", "[-- ARGS...]"),
            ("prog [options] file.s ...", "file.s..."),
            ("prog [build flags] [packages]", "[packages...]"),
            ("prog <RULE|--all>", "[RULE]"),
            ("prog [OPTIONS] PATH | URL | -", "PATH|URL"),
            ("prog <option(s)> <file(s)>", "files..."),
            ("prog <option(s)> elf-file(s)", "elf-files..."),
            ("prog [INPUT... | -] [-o OUTPUT]", "[INPUT...]"),
            ("prog --name <NAME> <FILE>", "FILE"),
            ("prog [FILE|DIR ...]", "[FILE|DIR...]"),
            ("prog IMAGE [COMMAND] [ARG...]", "IMAGE [COMMAND] [ARG...]"),
            ("prog [OPTIONS] [REPOSITORY[:TAG]]", "[REPOSITORY]"),
            ("prog source:path dest:path [flags]", "source:path dest:path"),
            ("prog [target] ...", "[target...]"),
            ("prog [--] [<pathspec>...]", "[pathspec...]"),
            ("python3 -m prog [-v] [tests ...]", "[tests...]"),
            ("prog", ""),
            ("prog [[[[[[", ""),
        ] {
            assert_eq!(shown(&parsed(form, &["prog"], &[])), expected, "{form}");
        }
        assert!(parsed("prog [-c cmd | file | -] [arg]", &["prog"], &[]).is_unclear);
        assert_eq!(shown(&parsed("prog [OPTIONS] sub <X>", &["prog", "sub"], &[])), "X");
    }

    #[test]
    fn commands() {
        for (form, optional, after_options) in [
            ("prog [OPTIONS] <COMMAND>", false, true),
            ("prog [OPTIONS] [COMMAND]", true, true),
            ("prog [-h] {a,b} ...", false, true),
            ("prog COMMAND", false, false),
            ("prog <command> [arguments]", false, false),
        ] {
            let form = parsed(form, &["prog"], &["a", "b"]);
            assert_eq!(form.command, Some(CommandPlace { optional, after_options }));
            assert!(form.positionals.is_empty());
        }
    }

    #[test]
    fn programs() {
        for (form, name) in [
            ("/x/icepll.wasm [options]", Some("icepll")),
            ("python -m json.tool [-h]", Some("json.tool")),
            ("rustup[EXE] [OPTIONS]", Some("rustup")),
            ("[options]", None),
            ("", None),
        ] {
            assert_eq!(program(form), name, "{form}");
        }
    }

    #[test]
    fn options_are_seen() {
        let form = parsed("prog [-a] --name <NAME> [-o FILE | -q] [--x <X>]... FILE", &["prog"], &[]);
        let options: Vec<_> = form
            .options
            .iter()
            .map(|option| (option.spec.names.join(" "), option.required, option.repeated))
            .collect();
        let expected = [
            ("-a", false, false),
            ("--name", true, false),
            ("-o", false, false),
            ("-q", false, false),
            ("--x", false, true),
        ];
        assert_eq!(
            options,
            expected.map(|(name, required, repeated)| (name.to_owned(), required, repeated))
        );
    }
}
