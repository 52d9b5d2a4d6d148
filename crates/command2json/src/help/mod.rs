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

use crate::tree::{Command, Positional, ValueType};

pub use family::Family;
use lines::paragraphs;
use outline::{Entry, Outline};
use usage::{Context, Form};

/// Flags of a command, and subcommands.
const MAX_LIST: usize = 500;
const MAX_NAME_CHARS: usize = 200;
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
/// `None` when the text makes no sense as help: it has no usage line, no list of options and no list of commands.
pub fn parse_help(text: &str, path: &[&str]) -> Option<Help> {
    let lines = lines::lines(text);
    let outline = outline::outline(&lines, path.first().copied().unwrap_or_default());
    if !outline.has_usage && outline.options.is_empty() && outline.commands.is_empty() {
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
        runnable: runnable(&forms, family, !commands.is_empty()),
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
    let context = Context {
        path,
        commands: &commands,
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
    Some(args)
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
    arg.description = capped_text(&text);
}

/// Whether a command with subcommands does something without one.
fn runnable(forms: &[Form], family: Family, has_commands: bool) -> Option<bool> {
    if !has_commands {
        return None;
    }
    let places: Vec<_> = forms.iter().filter_map(|form| form.command.as_ref()).collect();
    match family {
        // `prog [command]` stands beside `prog [flags]` if both can be done.
        Family::Cobra
            if forms
                .iter()
                .any(|form| form.command.is_none() && (!form.options.is_empty() || !form.positionals.is_empty())) =>
        {
            Some(true)
        }
        Family::Cobra if places.is_empty() => None,
        Family::Cobra => Some(places.len() < forms.len()),
        _ if places.is_empty() => None,
        _ => Some(places.iter().any(|place| place.optional) || places.len() < forms.len()),
    }
}
