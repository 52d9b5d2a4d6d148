//! Finding out what commands a program has, by asking it for help as a person would.

use crate::help::{Family, Help, parse_help};
use crate::plan::spelling;
use crate::tree::{Command, Pass, ValueType};

/// A program is asked no more often than this.
const MAX_QUESTIONS: usize = 600;

/// All answers together are at most this long; no program has more to say, and a tree is made of all of it.
const MAX_ANSWERS: usize = 8 << 20;

/// Subcommands of subcommands are looked at down to this depth.
const MAX_DEPTH: usize = 8;

/// More notes than this nobody reads.
const MAX_NOTES: usize = 20;

const NOT_UNDERSTOOD: &str = "its help (`--help`, `-h`, `help`) could not be understood, so that nothing is known of its commands and \
    flags: its tool takes bare `args`. A `.cli.json` file beside it can describe them";

const TOO_MUCH: &str = "it has more commands than it was asked about; the rest take bare `args`";

/// What became of one question.
#[derive(Clone, Debug)]
pub enum Answer {
    Printed {
        stdout: String,
        stderr: String,
        exit_code: i32,
    },
    /// It did not come to an end in an orderly way.
    Failed {
        reason: String,
        /// It used up its time, and would do so again.
        is_slow: bool,
    },
}

/// What asking gave.
#[derive(Clone, Debug)]
pub struct Discovered {
    pub command: Command,
    /// Whether its help said anything at all.
    pub understood: bool,
    /// What a person should know about it.
    pub notes: Vec<String>,
}

/// The command tree of a program. `ask` runs it with the given words, the name of the program first.
pub fn discover(file_name: &str, ask: &mut dyn FnMut(&[String]) -> Answer) -> Discovered {
    let mut explorer = Explorer {
        ask,
        questions: 0,
        answered: 0,
        notes: Vec::new(),
    };
    let found = explorer.root(file_name);
    let understood = found.is_some();
    if !understood {
        explorer.notes.push(NOT_UNDERSTOOD.to_owned());
    }
    let bare = || Command {
        name: file_name.to_owned(),
        bare: true,
        stdin: Some(true),
        ..Command::default()
    };
    Discovered {
        command: found.unwrap_or_else(bare),
        understood,
        notes: explorer.notes,
    }
}

struct Explorer<'a> {
    ask: &'a mut dyn FnMut(&[String]) -> Answer,
    questions: usize,
    /// How long the answers were so far.
    answered: usize,
    notes: Vec<String>,
}

impl Explorer<'_> {
    fn note_once(&mut self, note: &str) {
        if !self.notes.iter().any(|known| known == note) {
            self.notes.push(note.to_owned());
        }
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < MAX_NOTES {
            self.notes.push(note);
        }
    }

    fn root(&mut self, file_name: &str) -> Option<Command> {
        let mut help = self.help(&[file_name.to_owned()])?;
        help.command.name = help.program.clone().unwrap_or_else(|| file_name.to_owned());
        let path = vec![help.command.name.clone()];
        Some(self.below(&path, help))
    }

    /// The command with its subcommands filled in.
    fn below(&mut self, path: &[String], mut help: Help) -> Command {
        let whole = help.command.clone();
        pass_short_flags_safely(help.family, &mut help.command);
        // Who writes the help by hand may well read the command line by hand, and know no `--`.
        if help.family == Family::Plain {
            help.command.dashes = Some(false);
        }
        let stubs = std::mem::take(&mut help.command.commands);
        let is_deep = path.len() >= MAX_DEPTH;
        let commands = stubs
            .into_iter()
            .map(|stub| {
                let mut child = path.to_vec();
                child.push(stub.name.clone());
                let is_asked = !is_deep && !stub.hidden && !stub.deprecated;
                let found = if is_asked { self.help(&child) } else { None };
                match found {
                    // Some programs answer with the help of the whole whatever they are asked about.
                    Some(found) if !says_the_same(&found.command, &whole) => completed(self.below(&child, found), stub),
                    _ => {
                        if is_asked {
                            self.note(format!("nothing is known of `{}`: it takes bare `args`", child.join(" ")));
                        }
                        Command { bare: true, ..stub }
                    }
                }
            })
            .collect();
        help.command.commands = commands;
        help.command
    }

    /// Asks for help on a command in the usual ways, and takes the first good answer, else the one that says the most.
    fn help(&mut self, path: &[String]) -> Option<Help> {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        let mut best: Option<Help> = None;
        for words in questions(path) {
            if self.questions >= MAX_QUESTIONS || self.answered >= MAX_ANSWERS {
                self.note_once(TOO_MUCH);
                break;
            }
            self.questions += 1;
            match (self.ask)(&words) {
                Answer::Printed {
                    stdout,
                    stderr,
                    exit_code,
                } => {
                    self.answered += stdout.len() + stderr.len();
                    let found = parse_help(&stdout, &names).or_else(|| parse_help(&stderr, &names));
                    let is_good = exit_code == 0 && found.is_some();
                    if found.as_ref().map_or(0, weight) > best.as_ref().map_or(0, weight) || (best.is_none() && found.is_some()) {
                        best = found;
                    }
                    if is_good {
                        break;
                    }
                }
                Answer::Failed { reason, is_slow } => {
                    let reason = reason.lines().next().unwrap_or_default();
                    self.note(format!("`{}`: {reason}", words.join(" ")));
                    if is_slow {
                        break;
                    }
                }
            }
        }
        best
    }
}

/// `git remote --help`, `git remote -h`, `git help remote`.
fn questions(path: &[String]) -> [Vec<String>; 3] {
    let with = |last: &str| path.iter().cloned().chain([last.to_owned()]).collect();
    let (program, below) = path.split_at_checked(1).unwrap_or((path, &[]));
    let help = program
        .iter()
        .cloned()
        .chain(["help".to_owned()])
        .chain(below.iter().cloned());
    [with("--help"), with("-h"), help.collect()]
}

/// How much a help text says.
fn weight(help: &Help) -> usize {
    let Command {
        flags, args, commands, ..
    } = &help.command;
    1 + flags.len() + args.as_ref().map_or(0, Vec::len) + commands.len()
}

fn says_the_same(child: &Command, parent: &Command) -> bool {
    child.flags == parent.flags && child.args == parent.args && child.commands == parent.commands
}

/// The command with what its parent says of it, where it does not say that itself.
fn completed(command: Command, stub: Command) -> Command {
    Command {
        name: stub.name,
        summary: stub.summary.or(command.summary),
        ..command
    }
}

/// Flags that have a short name only: these families strip a `=` after it, getopt takes it for a part of the value.
fn pass_short_flags_safely(family: Family, command: &mut Command) {
    if !matches!(family, Family::Clap | Family::Cobra | Family::Argparse) {
        return;
    }
    for flag in &mut command.flags {
        let takes_a_value = !matches!(flag.ty, ValueType::Bool | ValueType::Count);
        if takes_a_value && flag.pass.is_none() && !spelling(flag).starts_with("--") {
            flag.pass = Some(Pass::Equals);
        }
    }
}
