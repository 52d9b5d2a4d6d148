//! A command that can be run, with all that a call of it needs: the flags of its parents among its own, every input under the key
//! that it has in JSON.

use std::collections::{HashMap, HashSet};

use component2json::{property_key, snake_case};

use crate::schema::Checker;
use crate::select::Patterns;
use crate::tree::{Command, Flag, MAX_DEPTH, Output, Positional, ValueType};

/// Commands that every program has, and that are of no use to an agent.
pub(crate) const NEVER_OFFERED: [&str; 3] = ["help", "completion", "completions"];

/// What the plans of one program may take together, in bytes of text, about. A flag that is inherited counts in every command.
const MAX_PLANS: usize = 8 << 20;

/// What a flag or command takes beside its texts.
const OVERHEAD: usize = 200;

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
    /// Words that are always passed, each after the name of the command with that index in the path.
    pub(crate) force: Vec<(usize, String)>,
    /// What the data in the output is held against.
    pub output_checker: Option<Checker>,
    /// A positional could be taken for the name of one of these.
    pub(crate) subcommands: Vec<String>,
    /// `--` ends the flags.
    pub(crate) dashes: bool,
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
        self.usage_as(self.name(), &[])
    }

    /// The same under another name, without certain flags.
    pub(crate) fn usage_as(&self, name: String, left_out: &[&PlannedFlag]) -> String {
        let is_shown = |planned: &&PlannedFlag| !left_out.iter().any(|out| out.key == planned.key);
        let mut words = vec![name];
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

    /// How many bytes of text it has, about.
    fn size(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let flags = self.flags.iter().map(|PlannedFlag { flag, .. }| {
            let lists: usize = flag.names.iter().chain(&flag.values).map(String::len).sum();
            let schema = flag.jsonschema.as_ref().map_or(0, |schema| schema.to_string().len());
            OVERHEAD + lists + text(&flag.description) + schema
        });
        let args = self.args.iter().flatten().map(|PlannedPositional { positional, .. }| {
            let values: usize = positional.values.iter().map(String::len).sum();
            OVERHEAD + values + text(&positional.description)
        });
        let subcommands = self.subcommands.iter().map(|name| OVERHEAD / 4 + name.len());
        OVERHEAD + flags.chain(args).chain(subcommands).sum::<usize>()
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

/// The plans of the commands of a program.
#[derive(Default)]
pub(crate) struct Plans<'a> {
    /// Each with the command that it is made from, in the order of the tree.
    pub(crate) offered: Vec<(Plan, &'a Command)>,
    /// Commands of which nothing is known, where something was to be left out that could be in their arguments.
    pub(crate) unsure: Vec<String>,
    /// There were more than have room.
    pub(crate) cut: bool,
    size: usize,
}

/// The plans of all commands of a program that are offered.
pub(crate) fn plans<'a>(root: &'a Command, choice: &Choice<'_>) -> Plans<'a> {
    let mut found = Plans::default();
    walk(&mut vec![root], choice, &mut found);
    found
}

fn walk<'a>(path: &mut Vec<&'a Command>, choice: &Choice<'_>, found: &mut Plans<'a>) {
    let Some(command) = path.last().copied() else { return };
    let is_root = path.len() == 1;
    let is_left_out = command.hidden || command.deprecated || NEVER_OFFERED.contains(&command.name.as_str());
    if found.cut || path.len() > MAX_DEPTH || (is_left_out && !is_root) {
        return;
    }
    let runs = command.runnable.unwrap_or(command.commands.is_empty());
    let names: Vec<&str> = path.iter().map(|command| command.name.as_str()).collect();
    if runs && choice.commands.is_none_or(|patterns| patterns.admit_command(&names)) {
        found.add(plan(path, command, choice), command, choice);
    }
    for child in &command.commands {
        path.push(child);
        walk(path, choice, found);
        path.pop();
    }
}

impl<'a> Plans<'a> {
    fn add(&mut self, plan: Plan, command: &'a Command, choice: &Choice<'_>) {
        let excludes = |patterns: Option<&Patterns>| patterns.is_some_and(Patterns::excludes);
        // Any flag and any subcommand could be among its words.
        if plan.bare && (excludes(choice.commands) || excludes(choice.flags)) {
            self.unsure.push(plan.name());
            return;
        }
        self.size += plan.size();
        self.cut = self.size > MAX_PLANS;
        if !self.cut {
            self.offered.push((plan, command));
        }
    }
}

fn plan(path: &[&Command], command: &Command, choice: &Choice<'_>) -> Plan {
    let mut output = command.output.clone();
    if choice.json && output.as_ref().is_none_or(|output| output.force.is_empty()) {
        let force = placed_flags(path).find_map(|(_, flag)| json_flag(flag));
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
    let last = path.len().saturating_sub(1);
    let level_of = |token: &String| {
        let name = token.split('=').next();
        let placed = placed_flags(path).find(|(_, flag)| flag.names.iter().any(|known| Some(known.as_str()) == name));
        placed.map_or(last, |(level, _)| level)
    };
    let tokens = output.iter().flat_map(|output| &output.force);
    let force = tokens.map(|token| (level_of(token), token.clone())).collect();
    let mut plan = Plan {
        path: path.iter().map(|command| command.name.clone()).collect(),
        flags,
        args,
        bare: command.bare && command.args.is_none() && command.flags.is_empty(),
        stdin: command.stdin.unwrap_or(false),
        output_checker: output.as_ref().and_then(|output| output.schema.as_ref()).map(Checker::new),
        output,
        force,
        subcommands: command.commands.iter().map(|child| child.name.clone()).collect(),
        dashes: command.dashes.unwrap_or(true),
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
struct Keys {
    used: HashSet<String>,
    /// The next number for a key, so that many of one name take no longer than many of different names.
    numbers: HashMap<String, usize>,
}

impl Keys {
    fn unique(&mut self, wanted: String) -> String {
        let mut key = wanted.clone();
        let number = self.numbers.entry(wanted.clone()).or_insert(1);
        while !self.used.insert(key.clone()) {
            *number += 1;
            key = format!("{wanted}_{number}");
        }
        key
    }
}
