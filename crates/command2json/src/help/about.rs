//! The prose of a help text: what the command does, in one line and in full.

use crate::tree::Command;

use super::capped_text;
use super::lines::{Line, paragraphs};
use super::outline::Outline;

const MAX_SUMMARY_CHARS: usize = 300;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct About {
    pub(super) summary: Option<String>,
    /// Only if it says more than the summary.
    pub(super) description: Option<String>,
}

/// The prose of a text. What stands behind the lists is about details, so the summary is not taken from there.
pub(super) fn about(outline: &Outline, program: Option<&str>) -> About {
    let lists = outline.options.len() + outline.commands.len() + outline.arguments.len();
    let lead_len = if lists == 0 { outline.prose.len() } else { outline.lead };
    // A row of a list that could not be read is no summary.
    let lead = outline.prose.iter().take(lead_len).filter(|line| !line.text.starts_with('-'));
    let lead = text_of(lead, program);
    let text = text_of(&outline.prose, program);
    let first = lead.split("\n\n").next().unwrap_or_default();
    let sentence = first_sentence(first.split('\n').next().unwrap_or_default());
    let summary: String = without_name(sentence, program).chars().take(MAX_SUMMARY_CHARS).collect();
    About {
        description: capped_text(&text).filter(|text| text != sentence),
        summary: capped_text(&summary),
    }
}

fn text_of<'a>(prose: impl IntoIterator<Item = &'a Line>, program: Option<&str>) -> String {
    let text = paragraphs(prose.into_iter().filter(|line| !is_noise(&line.text, program)));
    collapse_blank_lines(&text)
}

/// `prog - does something` without the name, which everybody knows.
fn without_name<'a>(sentence: &'a str, program: Option<&str>) -> &'a str {
    let (name, rest) = match sentence.split_once(" -- ").or_else(|| sentence.split_once(" - ")) {
        Some(split) => split,
        None => return sentence,
    };
    let first = name.split(' ').next().unwrap_or_default().trim_matches('"');
    if Some(first) == program && name.split(' ').count() <= 3 {
        rest
    } else {
        sentence
    }
}

/// Lines that say nothing of the command: the version, where to get more help, where to report bugs, that an option is not known.
fn is_noise(text: &str, program: Option<&str>) -> bool {
    const STARTS: [&str; 18] = [
        "GNU coreutils online help",
        "Report any translation bugs",
        "Report bugs to",
        "Full documentation <",
        "or available locally via",
        "General help using GNU",
        "Mandatory arguments to long options",
        "For complete documentation, run",
        "Use \"",
        "Use `",
        "Get help for ",
        "Run `",
        "...",
        "Use '",
        "Run '",
        "Try '",
        "E-mail bug reports",
        "unknown option",
    ];
    let is_underline = text.chars().all(|c| c == '=' || c == '-') && !text.is_empty();
    let is_error = ["unrecognized option", "unknown option", "invalid option"]
        .iter()
        .any(|error| text.contains(error));
    STARTS.iter().any(|start| text.starts_with(start)) || is_error || is_version(text, program) || is_author(text) || is_underline
}

/// `prog 1.2.3`, and nothing else.
fn is_version(text: &str, program: Option<&str>) -> bool {
    let Some((name, version)) = text.split_once(' ') else {
        return false;
    };
    let is_number = version.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit());
    is_number && (!version.contains(' ') || (Some(name) == program && version.split(' ').count() < 4))
}

/// `Some Body <body@example.org>`
fn is_author(text: &str) -> bool {
    text.ends_with('>') && text.contains('@') && text.contains(" <") && text.split(' ').count() <= 5
}

fn collapse_blank_lines(text: &str) -> String {
    let blocks = text
        .split("\n\n")
        .map(|block| block.trim_matches('\n'))
        .filter(|block| !block.trim().is_empty());
    blocks.collect::<Vec<_>>().join("\n\n")
}

/// Up to the first stop that ends a sentence: one before a blank and a capital letter.
fn first_sentence(text: &str) -> &str {
    let ends = |(at, _): &(usize, &str)| {
        text.get(at + 1..)
            .is_some_and(|rest| rest.trim_start().starts_with(|c: char| c.is_uppercase()))
    };
    let end = text.match_indices(". ").find(ends).map_or(text.len(), |(at, _)| at + 1);
    text.get(..end).unwrap_or(text)
}

/// Whether a command says that it reads its standard input. What it says of subcommands is not about itself.
pub(super) fn reads_stdin(command: &Command) -> bool {
    let flags = command.flags.iter().filter_map(|flag| flag.description.as_deref());
    let args = command.args.iter().flatten().filter_map(|arg| arg.description.as_deref());
    let own = command.summary.iter().chain(&command.description).map(String::as_str);
    own.chain(flags).chain(args).any(mentions_stdin)
}

fn mentions_stdin(text: &str) -> bool {
    text.to_ascii_lowercase().split(". ").any(|sentence| {
        let says = |words: &[&str]| words.iter().any(|word| sentence.contains(word));
        says(&["stdin", "standard input"])
            && says(&[
                "read",
                "from s",
                "from the s",
                "of s",
                "of the s",
                "defaults to",
                "default:",
                "use -",
                "use '-'",
                "\"-\"",
                "'-'",
                "via s",
                "through s",
            ])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_are_sentences() {
        assert_eq!(first_sentence("Copy files, e.g. those. Or not."), "Copy files, e.g. those.");
        assert_eq!(first_sentence("No stop"), "No stop");
    }

    #[test]
    fn stdin_is_read() {
        for text in [
            "With no FILE, or when FILE is -, read standard input.",
            "Path to a file, or - to read from stdin",
            "from standard input",
            "Count the lines of the standard input",
        ] {
            assert!(mentions_stdin(text), "{text}");
        }
        for text in [
            "Attach local standard input, output, and error",
            "Buffer stdout",
            "not a terminal: stdin",
        ] {
            assert!(!mentions_stdin(text), "{text}");
        }
    }
}
