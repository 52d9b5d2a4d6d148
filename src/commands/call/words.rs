//! Options of `host call` may stand anywhere; what it does not know after the tool is an argument of the tool.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command};

/// How many words name what is called: the target and the tool.
const NAMES: usize = 2;

/// Puts the options of `host call` before a `--` and the arguments of the tool after it. Any other command line stays as it is.
pub(crate) fn regroup(words: Vec<OsString>, cli: &Command) -> Vec<OsString> {
    let Some(call) = cli.find_subcommand("call") else {
        return words;
    };
    let options: Vec<&Arg> = cli
        .get_arguments()
        .filter(|arg| arg.is_global_set())
        .chain(call.get_arguments())
        .collect();
    let mut words = words.into_iter();
    let mut ours: Vec<OsString> = words.next().into_iter().collect();
    // What stands before the command are options of `host` itself.
    loop {
        let Some(word) = words.next() else { return ours };
        let is_call = word == "call";
        let is_option = word.to_string_lossy().starts_with('-');
        let value = if takes_value(&options, &word) { words.next() } else { None };
        ours.push(word);
        ours.extend(value);
        if is_call {
            break;
        }
        if !is_option {
            ours.extend(words);
            return ours;
        }
    }
    let mut for_tool = Vec::new();
    let mut names = 0;
    while let Some(word) = words.next() {
        if word == "--" {
            for_tool.extend(words);
            break;
        }
        let text = word.to_string_lossy();
        let is_option = text.starts_with('-') && text.len() > 1;
        let is_help = matches!(&*text, "-h" | "--help");
        if is_option && !is_help && find(&options, &text).is_some() {
            let value = if takes_value(&options, &word) { words.next() } else { None };
            ours.push(word);
            ours.extend(value);
        } else if names < NAMES {
            names += usize::from(!is_option);
            ours.push(word);
        } else {
            for_tool.push(word);
        }
    }
    if !for_tool.is_empty() {
        ours.push("--".into());
        ours.extend(for_tool);
    }
    ours
}

/// The names of all options, without dashes: no argument of a tool can be given under one of them as a flag.
pub(crate) fn option_names(cli: &Command) -> Vec<String> {
    let call = cli.find_subcommand("call").into_iter().flat_map(Command::get_arguments);
    let global = cli.get_arguments().filter(|arg| arg.is_global_set());
    let names = global.chain(call).filter_map(|arg| arg.get_long().map(str::to_owned));
    names.chain(["help".to_owned()]).collect()
}

fn find<'a>(options: &[&'a Arg], word: &str) -> Option<&'a Arg> {
    let name = word.split_once('=').map_or(word, |(name, _)| name).strip_prefix("--")?;
    options.iter().find(|option| option.get_long() == Some(name)).copied()
}

/// Is the next word the value of this one?
fn takes_value(options: &[&Arg], word: &OsStr) -> bool {
    let word = word.to_string_lossy();
    !word.contains('=') && find(options, &word).is_some_and(|option| option.get_action().takes_values())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    #[test]
    fn options_are_found_anywhere() {
        let cases = [
            ("host call x t a=1 --json", "host call x t --json -- a=1"),
            ("host call --json x t --name Ada", "host call --json x t -- --name Ada"),
            (
                "host call x t --timeout 5s --a b --args={}",
                "host call x t --timeout 5s --args={} -- --a b",
            ),
            ("host call x t -- --json", "host call x t -- --json"),
            ("host call x t --help", "host call x t -- --help"),
            ("host call --help", "host call --help"),
            (
                "host --log debug call x t --log-format json n=1",
                "host --log debug call x t --log-format json -- n=1",
            ),
            ("host serve call --json", "host serve call --json"),
            ("host call x", "host call x"),
            ("host", "host"),
        ];
        for (given, expected) in cases {
            let words = given.split(' ').map(OsString::from).collect();
            let expected: Vec<OsString> = expected.split(' ').map(OsString::from).collect();
            assert_eq!(regroup(words, &Cli::command()), expected, "{given}");
        }
    }
}
