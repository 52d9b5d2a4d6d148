//! A program's help text to its command.
//!
//! The text is read in steps: clean lines, the parts that they make up, and then what each part says. Nothing is guessed that could
//! make a call fail: where a text leaves open what a value is, it is a string; where it leaves open what the positionals are, they
//! are not known.

mod about;
mod commands;
mod family;
mod flags;
mod lines;
mod outline;
mod spec;
mod usage;
mod values;

use std::collections::HashSet;

use crate::tree::{Command, Positional, ValueType};

pub use family::Family;
use lines::paragraphs;
use outline::{Entry, Outline};
use usage::{Context, Form};

/// Flags of a command, and subcommands.
const MAX_LIST: usize = 500;
const MAX_NAME_CHARS: usize = 200;
/// A text without a usage line is help if it lists at least this many options and commands.
const MIN_LISTED: usize = 3;

const MAX_TEXT_CHARS: usize = 4096;

/// What a help text says.
#[derive(Clone, Debug, PartialEq)]
pub struct Help {
    pub family: Family,
    /// The program's name as the usage line has it.
    pub program: Option<String>,
    pub command: Command,
}

/// Reads the help of the command at `path`: the file's name without its ending, then the names of subcommands.
///
/// `None` when the text makes no sense as help: it has no usage line, and no list of options or commands worth the name.
pub fn parse_help(text: &str, path: &[&str]) -> Option<Help> {
    let lines = lines::lines(text);
    let outline = outline::outline(&lines, path.first().copied().unwrap_or_default());
    if !outline.has_usage && outline.options.len() + outline.commands.len() < MIN_LISTED {
        return None;
    }
    let family = family::family(text, &outline);
    let commands = commands::commands(&outline, path);
    let forms = forms(&outline, path, &commands);
    let program = outline
        .forms
        .first()
        .and_then(|form| usage::program(form))
        .or_else(|| usage::program(outline.usage_of.as_deref()?))
        .map(str::to_owned);
    let about = about::about(&outline, program.as_deref().or(path.first().copied()));
    let mut command = Command {
        name: name(path, program.as_deref()),
        flags: flags::flags(&outline, &forms, family),
        args: args(&outline, &forms, family),
        runnable: runnable(&forms, family, !commands.is_empty(), outline.forms.len()),
        examples: outline.examples.iter().filter_map(|example| capped_text(example)).collect(),
        summary: about.summary,
        description: about.description,
        commands,
        ..Command::default()
    };
    command.stdin = about::reads_stdin(&command).then_some(true);
    let takes_options_first = |form: &Form| form.command.as_ref().is_some_and(|place| place.after_options);
    if family != Family::Cobra && forms.iter().any(takes_options_first) {
        command.flags.iter_mut().for_each(|flag| flag.inherited = true);
    }
    Some(Help {
        family,
        program,
        command,
    })
}

/// A text that is shown: not empty, and not too long.
fn capped_text(text: &str) -> Option<String> {
    let text = text.trim();
    let capped = match text.char_indices().nth(MAX_TEXT_CHARS) {
        None => text.to_owned(),
        Some(_) => text.chars().take(MAX_TEXT_CHARS - 1).chain(['…']).collect(),
    };
    (!capped.is_empty()).then_some(capped)
}

fn name(path: &[&str], program: Option<&str>) -> String {
    let asked = path.last().copied().unwrap_or_default();
    let name = if path.len() > 1 { asked } else { program.unwrap_or(asked) };
    name.chars().take(MAX_NAME_CHARS).collect()
}

fn forms(outline: &Outline, path: &[&str], commands: &[Command]) -> Vec<Form> {
    let commands: Vec<&str> = commands.iter().map(|command| command.name.as_str()).collect();
    let takes_value = |name: &str| {
        let listed = outline
            .options
            .iter()
            .find(|(spec, _)| spec.names.iter().any(|other| other == name));
        listed.map(|(spec, _)| spec.value.is_some() && !spec.optional_value)
    };
    let arguments: Vec<String> = outline
        .arguments
        .iter()
        .map(|entry| usage::positional_name(&entry.head))
        .collect();
    let context = Context {
        path,
        commands: &commands,
        arguments: &arguments,
        takes_value: &takes_value,
    };
    let in_usage = commands::in_usage(outline, path);
    let is_own = |form: &&String| usage::command_word(form, path).is_none_or(|word| !in_usage.contains(&word));
    // A text for several commands has forms that are not about this one.
    let names_it = |form: &String| path.len() < 2 || form.split(' ').any(|word| path.last() == Some(&word));
    let any_names_it = outline.forms.iter().any(names_it);
    let forms = outline
        .forms
        .iter()
        .filter(is_own)
        .filter(|form| !any_names_it || names_it(form));
    forms.map(|form| Form::parse(form, &context)).collect()
}

/// The positionals, if all forms agree on them.
fn args(outline: &Outline, forms: &[Form], family: Family) -> Option<Vec<Positional>> {
    let listed: Vec<&Entry> = outline
        .arguments
        .iter()
        .filter(|entry| !commands::is_subparser(entry, outline))
        .collect();
    let longest = forms.iter().max_by_key(|form| form.positionals.len())?;
    if forms
        .iter()
        .any(|form| form.is_unclear || !usage::covers(&longest.positionals, &form.positionals))
    {
        return None;
    }
    let mut args = if longest.takes_listed_args && longest.positionals.len() == 1 && !listed.is_empty() {
        listed.iter().map(|entry| listed_arg(entry)).collect()
    } else {
        longest.positionals.clone()
    };
    if args.is_empty() && family == Family::Cobra {
        // Cobra only shows what the author wrote down.
        return None;
    }
    for arg in &mut args {
        if let Some(entry) = listed.iter().find(|entry| usage::positional_name(&entry.head) == arg.name) {
            describe(arg, entry);
        }
    }
    args.truncate(MAX_LIST);
    tell_apart(&mut args);
    Some(args)
}

/// A description has each name once, so `cmp FILE DIR FILE` has a `FILE`, a `DIR` and a `FILE_2`.
fn tell_apart(args: &mut [Positional]) {
    let mut seen = HashSet::new();
    for arg in args {
        let name = arg.name.clone();
        let mut number = 1;
        while !seen.insert(arg.name.clone()) {
            number += 1;
            arg.name = format!("{name}_{number}");
        }
    }
}

/// An argument that only its list knows: `[FILE]...`.
fn listed_arg(entry: &Entry) -> Positional {
    Positional {
        name: usage::positional_name(&entry.head),
        required: entry.head.starts_with('<'),
        variadic: entry.head.ends_with("..."),
        ..Positional::default()
    }
}

fn describe(arg: &mut Positional, entry: &Entry) {
    let text = paragraphs(&entry.text);
    arg.ty = values::nature(Family::Plain, &arg.name, &text).ty;
    if arg.values.is_empty() && arg.ty == ValueType::String {
        arg.values = values::values_of_text(&text);
    }
    arg.default = values::default_of_text(&text).and_then(|default| values::typed_default(&default, arg.ty, arg.variadic));
    arg.values = values::only_with_default(std::mem::take(&mut arg.values), arg.default.as_ref());
    arg.description = capped_text(&text);
}

/// Whether a command with subcommands does something without one. `all_forms` counts those of subcommands too.
fn runnable(forms: &[Form], family: Family, has_commands: bool, all_forms: usize) -> Option<bool> {
    if !has_commands {
        return None;
    }
    let places: Vec<_> = forms.iter().filter_map(|form| form.command.as_ref()).collect();
    let says_more = |form: &Form| form.command.is_none() && (!form.options.is_empty() || !form.positionals.is_empty());
    if family == Family::Cobra && forms.iter().any(says_more) {
        return Some(true);
    }
    if places.is_empty() {
        // Forms for subcommands beside one without: that one can be done.
        return (!forms.is_empty() && forms.len() < all_forms).then_some(true);
    }
    // Cobra's `prog [command]` is no option: it stands beside `prog [flags]` if that can be done.
    let is_optional = family != Family::Cobra && places.iter().any(|place| place.optional);
    Some(is_optional || places.len() < forms.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tree::{Flag, Pass};

    fn help(text: &str) -> Help {
        parse_help(text, &["prog"]).unwrap()
    }

    fn flag(help: &Help, name: &str) -> Flag {
        let found = help
            .command
            .flags
            .iter()
            .find(|flag| flag.names.iter().any(|other| other == name));
        found
            .unwrap_or_else(|| panic!("{name} is not in {:#?}", help.command.flags))
            .clone()
    }

    #[test]
    fn every_type_of_pflag() {
        use ValueType::*;
        let text = "Does it.\n\nUsage:\n  prog [flags]\n\nFlags:\n  -a, --bool               x (default true)\n      --hex bytesHex       x\n      --ids ints           x (default [1,2])\n      --ip ip              x\n      --labels stringToString   x (default [])\n      --level string[=\"x\"]      x\n      --names strings      x\n      --net ipNet          x\n      --old string         x (DEPRECATED: use --new)\n      --raw stringArray    x\n      --sizes stringToInt   x\n      --token bytesBase64   x\n  -v, --verbose count      x\n      --wait duration      x (default 1m0s)\n";
        let help = help(text);
        assert_eq!(help.family, Family::Cobra);
        for (name, ty, repeated, comma_separated) in [
            ("--bool", Bool, false, false),
            ("--hex", Hex, false, false),
            ("--ids", Integer, true, true),
            ("--ip", Ip, false, false),
            ("--labels", Map, false, true),
            ("--level", String, false, false),
            ("--names", String, true, true),
            ("--net", IpNet, false, false),
            ("--raw", String, true, false),
            ("--sizes", IntegerMap, false, true),
            ("--token", Base64, false, false),
            ("--verbose", Count, false, false),
            ("--wait", Duration, false, false),
        ] {
            let flag = flag(&help, name);
            assert_eq!(
                (flag.ty, flag.repeated, flag.comma_separated),
                (ty, repeated, comma_separated),
                "{name}"
            );
        }
        assert_eq!(flag(&help, "--bool").default, Some(json!(true)));
        assert_eq!(flag(&help, "--ids").default, Some(json!([1, 2])));
        assert_eq!(flag(&help, "--labels").default, None);
        assert_eq!(flag(&help, "--wait").default, Some(json!("1m0s")));
        assert!(flag(&help, "--level").optional_value && flag(&help, "--old").deprecated);
    }

    #[test]
    fn what_clap_requires() {
        let text = "Usage: prog [OPTIONS] --name <NAME> <FILE> [-- <ARGS>...]\n\nArguments:\n  <FILE>     In [possible values: a, b]\n  [ARGS]...  More\n\nOptions:\n  -n, --name <NAME>      The name\n      --tag <K=V>        A tag\n      --data <JSON>      The data\n  -v, --verbose...       More output\n  -i, --include <DIR>... Where\n  -h, --help             Print help\n";
        let help = help(text);
        assert_eq!(help.family, Family::Clap);
        assert!(flag(&help, "--name").required && !flag(&help, "--tag").required);
        assert_eq!(flag(&help, "--tag").ty, ValueType::Map);
        assert_eq!(flag(&help, "--data").ty, ValueType::Json);
        assert_eq!(flag(&help, "--verbose").ty, ValueType::Count);
        assert!(flag(&help, "--include").repeated);
        let args = help.command.args.unwrap();
        assert_eq!(args[0].values, ["a", "b"]);
        assert!(args[0].required && !args[0].after_dashes);
        assert!(args[1].variadic && args[1].after_dashes && !args[1].required);
    }

    #[test]
    fn subparsers_of_argparse() {
        let text = "usage: prog [-h] [-v] --key KEY COMMAND ...\n\npositional arguments:\n  COMMAND\n    add       Add it\n    rm        Remove it (deprecated)\n\noptions:\n  -h, --help  show this help message and exit\n  -v          more\n  --key KEY   the key\n";
        let help = help(text);
        assert_eq!(help.family, Family::Argparse);
        let names: Vec<_> = help
            .command
            .commands
            .iter()
            .map(|command| (command.name.as_str(), command.deprecated))
            .collect();
        assert_eq!(names, [("add", false), ("rm", true)]);
        assert_eq!(help.command.runnable, Some(false));
        assert!(flag(&help, "--key").required && flag(&help, "-v").inherited);
        assert_eq!(help.command.args, Some(Vec::new()));
    }

    #[test]
    fn flags_of_go() {
        let help = help("Usage of /tmp/prog.wasm:\n  -n int\n    \thow many (default 3)\n  -v\tmore\n");
        assert_eq!((help.family, help.program.as_deref()), (Family::GoFlag, Some("prog")));
        let count = flag(&help, "-n");
        assert_eq!(
            (count.ty, count.default, count.pass),
            (ValueType::Integer, Some(json!(3)), Some(Pass::Equals))
        );
        assert_eq!(flag(&help, "-v").ty, ValueType::Bool);
        assert_eq!(help.command.args, None);
    }

    #[test]
    fn options_of_boost() {
        let help = help(
            "Options:\n  -h [ --help ]         help\n  -f [ --freq ] arg (=12)\n                        the frequency\n  --seed arg            the seed\n",
        );
        let freq = flag(&help, "--freq");
        assert_eq!(
            (freq.names, freq.default),
            (vec!["-f".to_owned(), "--freq".to_owned()], Some(json!("12")))
        );
        assert_eq!(help.command.flags.len(), 2);
    }
}
