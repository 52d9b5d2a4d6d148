//! Which library wrote a help text: that settles what its words mean.

use serde::Serialize;

use super::outline::{Entry, Outline};
use super::values::pflag_nature;

/// The kind of a help text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Family {
    /// clap 2 to 4.
    Clap,
    /// Cobra and pflag, with or without a template of the program's own.
    Cobra,
    Argparse,
    /// Go's `flag`.
    GoFlag,
    /// getopt_long and argp, as in coreutils.
    Gnu,
    /// Everything else, written by hand or by a library that is not known.
    Plain,
}

/// Which family a text is of.
pub(super) fn family(text: &str, outline: &Outline) -> Family {
    if is_go_flag(text, outline) {
        Family::GoFlag
    } else if is_argparse(text, outline) {
        Family::Argparse
    } else if is_cobra(text, outline) {
        Family::Cobra
    } else if is_clap(text, outline) {
        Family::Clap
    } else if is_gnu(text, outline) {
        Family::Gnu
    } else {
        Family::Plain
    }
}

fn has_heading(outline: &Outline, headings: &[&str]) -> bool {
    outline.headings.iter().any(|heading| headings.contains(&heading.as_str()))
}

fn is_go_flag(text: &str, outline: &Outline) -> bool {
    // Texts are four blanks and a tab away from the margin, or a tab away from a name of one letter.
    let has_tabs = text
        .split('\n')
        .any(|line| line.starts_with("    \t") || (line.starts_with("  -") && line.get(4..5) == Some("\t")));
    let states_defaults = outline
        .options
        .iter()
        .any(|(spec, _)| spec.value_is_default && !spec.names.iter().any(|name| name.starts_with("--")));
    let has_long = outline
        .options
        .iter()
        .any(|(spec, _)| spec.names.iter().any(|name| name.starts_with("--")));
    (has_tabs && !has_long)
        || states_defaults
        || outline.usage_of.is_some()
        || (has_heading(outline, &["the commands are"]) && text.contains(" help <command>\""))
}

fn is_argparse(text: &str, outline: &Outline) -> bool {
    text.contains("show this help message and exit") || has_heading(outline, &["positional arguments", "optional arguments"])
}

fn is_cobra(text: &str, outline: &Outline) -> bool {
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let pflag_words = outline.options.iter().filter_map(|(spec, _)| spec.value.as_deref());
    let mut pflag_words = pflag_words.filter(|word| word.len() > 2 && *word != "list" && *word != "count" && *word != "map");
    says(&[
        "[command] --help\"",
        "' for more information on a command",
        "<command> <subcommand> --help'",
        "options\" for a list of global command-line options",
    ]) || has_heading(outline, &["available commands", "global flags", "inherited flags"])
        || outline.forms.iter().any(|form| form.ends_with("[flags]"))
        || outline.options.iter().any(|(spec, _)| spec.value_is_default)
        || (pflag_words.any(|word| pflag_nature(word.split('[').next().unwrap_or_default()).is_some())
            && !says(&["display this help"]))
}

fn is_clap(text: &str, outline: &Outline) -> bool {
    let prints_help = |entry: &Entry| {
        entry
            .text
            .first()
            .is_some_and(|line| line.text.starts_with("Print help") || line.text.starts_with("Prints help"))
    };
    let has_help = outline
        .options
        .iter()
        .any(|(spec, entry)| spec.names.iter().any(|name| name == "--help") && prints_help(entry));
    let has_angles = outline
        .options
        .iter()
        .any(|(spec, _)| spec.value.as_deref().is_some_and(|value| value.starts_with('<')));
    has_help || text.contains("[possible values:") || (has_angles && outline.forms.iter().any(|form| form.contains("[OPTIONS]")))
}

fn is_gnu(text: &str, outline: &Outline) -> bool {
    let has_equals = |head: &str| {
        head.split_once('=').is_some_and(|(_, value)| {
            value
                .trim_start_matches(['[', '<'])
                .starts_with(|c: char| c.is_ascii_uppercase())
        })
    };
    outline
        .forms
        .iter()
        .any(|form| form.contains("[OPTION]") || form.contains("[OPTION..."))
        || text.contains("display this help and exit")
        || outline
            .options
            .iter()
            .any(|(spec, entry)| spec.names.iter().any(|name| name.starts_with("--")) && has_equals(&entry.head))
}
