//! A command that can be run, with all that a call of it needs: the flags of its parents among its own, every input under the key
//! that it has in JSON.

use std::collections::HashSet;

use component2json::{property_key, snake_case};

use crate::schema::Checker;
use crate::select::Patterns;
use crate::tree::{Command, Flag, Output, Positional, ValueType};

/// Commands that every program has, and that are of no use to an agent.
const NEVER_OFFERED: [&str; 3] = ["help", "completion", "completions"];

/// Deeper than this no program nests its commands.
const MAX_DEPTH: usize = 16;

/// A command that can be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the program is called, and the names of the subcommands down to this one.
    pub path: Vec<String>,
    pub flags: Vec<PlannedFlag>,
    /// The positionals in their order; `None` where nothing is known of them.
    pub args: Option<Vec<PlannedPositional>>,
    /// What is in `args` may be flags as well: they are passed as they are.
    pub bare: bool,
    pub stdin: bool,
    pub output: Option<Output>,
    /// What the data in the output is held against.
    pub output_checker: Option<Checker>,
    /// A positional could be taken for the name of a subcommand.
    pub has_subcommands: bool,
    /// All inputs stand side by side.
    pub flat: bool,
}

/// A flag under its key, and where in the command line it goes.
#[derive(Clone, Debug)]
pub struct PlannedFlag {
    pub key: String,
    pub flag: Flag,
    /// What the JSON of a `json` flag is held against.
    pub(crate) checker: Option<Checker>,
    /// The index in the path of the command that has it: it is passed right after that name.
    pub level: usize,
}

/// A positional under its key.
#[derive(Clone, Debug)]
pub struct PlannedPositional {
    pub key: String,
    pub positional: Positional,
    pub(crate) checker: Option<Checker>,
}

impl Plan {
    /// `git remote add`
    pub fn name(&self) -> String {
        self.path.join(" ")
    }

    /// `git remote add [--tags] <name> <url>`
    pub fn usage(&self) -> String {
        self.usage_without(&[])
    }

    /// The same without certain flags.
    pub(crate) fn usage_without(&self, left_out: &[&PlannedFlag]) -> String {
        let is_shown = |planned: &&PlannedFlag| !left_out.iter().any(|out| out.key == planned.key);
        let mut words = vec![self.name()];
        words.extend(self.flags.iter().filter(is_shown).map(PlannedFlag::usage));
        match &self.args {
            None => words.push("[args]...".to_owned()),
            Some(args) => words.extend(args.iter().map(|planned| {
                let positional = &planned.positional;
                let (open, close) = if positional.required { ("<", ">") } else { ("[", "]") };
                let more = if positional.variadic { "..." } else { "" };
                format!("{open}{}{close}{more}", planned.key)
            })),
        }
        words.join(" ")
    }

    pub(crate) fn has_flag(&self, key: &str) -> bool {
        self.flags.iter().any(|planned| planned.key == key)
    }

    fn can_be_flat(&self) -> bool {
        let mut used: HashSet<&str> = HashSet::new();
        if self.stdin {
            used.insert("stdin");
        }
        let args: Vec<&str> = match &self.args {
            None => vec!["args"],
            Some(args) => args.iter().map(|planned| planned.key.as_str()).collect(),
        };
        let flags = self.flags.iter().map(|planned| planned.key.as_str());
        flags.chain(args).all(|key| used.insert(key))
    }
}

impl PlannedFlag {
    /// `[--tags]`, `--name NAME`
    pub(crate) fn usage(&self) -> String {
        let flag = &self.flag;
        let name = spelling(flag);
        let shown = match flag.ty {
            ValueType::Bool | ValueType::Count => name.to_owned(),
            _ => format!("{name} {}", flag.value_name.as_deref().unwrap_or("VALUE")),
        };
        if flag.required { shown } else { format!("[{shown}]") }
    }
}

/// How a flag is typed: the first long name, else the first.
pub(crate) fn spelling(flag: &Flag) -> &str {
    let long = flag.names.iter().find(|name| name.starts_with("--"));
    long.or_else(|| flag.names.iter().max_by_key(|name| name.len()))
        .map_or("", String::as_str)
}

/// What is planned of a program's commands, and how.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Choice<'a> {
    pub(crate) commands: Option<&'a Patterns>,
    pub(crate) flags: Option<&'a Patterns>,
    pub(crate) flat: bool,
    /// Pass the program's own flag for JSON output where it has one.
    pub(crate) json: bool,
}

/// The plans of all commands of a program that are offered, each with the command it is made from, in the order of the tree.
pub(crate) fn plans<'a>(root: &'a Command, choice: &Choice<'_>) -> Vec<(Plan, &'a Command)> {
    let mut found = Vec::new();
    walk(&mut vec![root], choice, &mut found);
    found
}

fn walk<'a>(path: &mut Vec<&'a Command>, choice: &Choice<'_>, found: &mut Vec<(Plan, &'a Command)>) {
    let Some(command) = path.last().copied() else { return };
    let is_root = path.len() == 1;
    let is_left_out = command.hidden || command.deprecated || NEVER_OFFERED.contains(&command.name.as_str());
    if path.len() > MAX_DEPTH || (is_left_out && !is_root) {
        return;
    }
    let runs = command.runnable.unwrap_or(command.commands.is_empty());
    let names: Vec<&str> = path.iter().map(|command| command.name.as_str()).collect();
    if runs && choice.commands.is_none_or(|patterns| patterns.admit_command(&names)) {
        found.push((plan(path, command, choice), command));
    }
    for child in &command.commands {
        path.push(child);
        walk(path, choice, found);
        path.pop();
    }
}

fn plan(path: &[&Command], command: &Command, choice: &Choice<'_>) -> Plan {
    let mut output = command.output.clone();
    if choice.json && output.as_ref().is_none_or(|output| output.force.is_empty()) {
        let force = command.flags.iter().find_map(json_flag);
        if let Some(force) = force {
            output.get_or_insert_default().force = vec![force];
        }
    }
    let forced = |flag: &Flag| {
        let tokens = output.as_ref().map_or(&[][..], |output| &output.force);
        tokens
            .iter()
            .any(|token| flag.names.iter().any(|name| token.split('=').next() == Some(name)))
    };
    let is_offered = |flag: &Flag| {
        let chosen = choice.flags.is_none_or(|patterns| patterns.admit_flag(&flag.names));
        !flag.hidden && !flag.deprecated && !forced(flag) && chosen && !spelling(flag).is_empty()
    };
    let flags = placed_flags(path).filter(|(_, flag)| is_offered(flag));
    let mut keys = Keys::default();
    let flags = flags
        .map(|(level, flag)| PlannedFlag {
            key: keys.unique(flag_key(flag)),
            flag: flag.clone(),
            checker: flag.jsonschema.as_ref().map(Checker::new),
            level,
        })
        .collect();
    let mut keys = Keys::default();
    let planned = |positional: &Positional| PlannedPositional {
        key: keys.unique(property_key(&positional.name)),
        positional: positional.clone(),
        checker: positional.jsonschema.as_ref().map(Checker::new),
    };
    let args = command.args.as_ref().map(|args| args.iter().map(planned).collect());
    let mut plan = Plan {
        path: path.iter().map(|command| command.name.clone()).collect(),
        flags,
        args,
        bare: command.bare && command.args.is_none() && command.flags.is_empty(),
        stdin: command.stdin.unwrap_or(false),
        output_checker: output.as_ref().and_then(|output| output.schema.as_ref()).map(Checker::new),
        output,
        has_subcommands: !command.commands.is_empty(),
        flat: false,
    };
    plan.flat = choice.flat && plan.can_be_flat();
    plan
}

/// The flags of a command and those it inherits, with the level each belongs to. A command's own flag wins over an inherited one of
/// the same name.
fn placed_flags<'a>(path: &[&'a Command]) -> impl Iterator<Item = (usize, &'a Flag)> {
    let last = path.len().saturating_sub(1);
    let mut taken: HashSet<&str> = HashSet::new();
    let mut placed = Vec::new();
    for (level, command) in path.iter().enumerate().rev() {
        let is_fresh =
            |flag: &&Flag| (level == last || flag.inherited) && !flag.names.iter().any(|name| taken.contains(name.as_str()));
        let fresh: Vec<&Flag> = command.flags.iter().filter(is_fresh).collect();
        taken.extend(fresh.iter().flat_map(|flag| flag.names.iter().map(String::as_str)));
        placed.extend(fresh.into_iter().map(|flag| (level, flag)));
    }
    placed.into_iter()
}

/// The token that makes a program print JSON, if this flag does that.
fn json_flag(flag: &Flag) -> Option<String> {
    let name = spelling(flag);
    match (name, flag.ty) {
        ("--json" | "-json", ValueType::Bool) => Some(name.to_owned()),
        ("--format" | "--output" | "--output-format", _) => {
            let takes_json = flag.values.iter().any(|value| value == "json");
            takes_json.then(|| format!("{name}=json"))
        }
        _ => None,
    }
}

/// `--dry-run` → `dry_run`. A single letter keeps its case, because `-s` and `-S` are two flags.
fn flag_key(flag: &Flag) -> String {
    let name = spelling(flag).trim_start_matches('-');
    let mut chars = name.chars();
    match (chars.next(), chars.next()) {
        (Some(letter), None) if letter.is_ascii_alphanumeric() => name.to_owned(),
        (Some(sign), None) => format!("flag_{:x}", u32::from(sign)),
        _ => property_key(&snake_case(name)),
    }
}

/// Keys that are told apart by a number where two would be the same.
#[derive(Default)]
struct Keys(HashSet<String>);

impl Keys {
    fn unique(&mut self, wanted: String) -> String {
        let mut candidates = std::iter::once(wanted.clone()).chain((2..).map(|number| format!("{wanted}_{number}")));
        let key = candidates.find(|key| !self.0.contains(key)).unwrap_or(wanted);
        self.0.insert(key.clone());
        key
    }
}
