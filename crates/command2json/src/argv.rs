//! JSON arguments → the words of a command line.
//!
//! No value can become anything but the value of its flag or the positional it was given for: `--flag=value` is one word, and `--`
//! stands before positionals that could be read as something else. The order is that of the tree, always.

use component2json::{ArgumentError, ArgumentErrors, nearest_first};
use serde_json::{Map, Value};

use crate::input_schema::MAX_COUNT;
use crate::plan::{Plan, PlannedFlag, PlannedPositional, spelling};
use crate::tree::{Flag, Pass, ValueType};
use crate::values;

/// What a program is started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// The name of the program first.
    pub argv: Vec<String>,
    pub stdin: Vec<u8>,
}

/// All words of a command line together are at most this long.
const MAX_ARGV: usize = 4 << 20;

/// Of the names that a wrong one could have been meant for, these many are told.
pub(crate) const MAX_SUGGESTED: usize = 8;

/// The command line for a call. What is wrong with the arguments is reported with its JSON path, all of it at once.
pub fn json_to_argv(plan: &Plan, arguments: &Value) -> Result<CommandLine, ArgumentErrors> {
    let mut reader = Reader::default();
    let line = reader.command_line(plan, arguments);
    let length: usize = line.argv.iter().map(|word| word.len() + 1).sum();
    if length > MAX_ARGV {
        reader.wrong(
            "$",
            format!("the command line would be {length} bytes long; the most is {MAX_ARGV}"),
        );
    }
    if reader.errors.is_empty() {
        Ok(line)
    } else {
        Err(ArgumentErrors::new(reader.errors))
    }
}

#[derive(Default)]
struct Reader {
    errors: Vec<ArgumentError>,
}

impl Reader {
    fn wrong(&mut self, path: &str, problem: impl Into<String>) {
        self.errors.push(ArgumentError {
            path: path.to_owned(),
            problem: problem.into(),
        });
    }

    fn command_line(&mut self, plan: &Plan, arguments: &Value) -> CommandLine {
        let empty = Map::new();
        let root = match arguments {
            Value::Object(root) => root,
            Value::Null => &empty,
            _ => {
                self.wrong("$", "expected an object");
                &empty
            }
        };
        let (flags, args) = if plan.flat {
            self.flat(plan, root)
        } else {
            self.nested(plan, root)
        };
        let stdin = match root.get("stdin").filter(|_| plan.stdin) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::String(text)) => text.clone().into_bytes(),
            Some(_) => {
                self.wrong("$.stdin", "expected a string");
                Vec::new()
            }
        };
        let has_place_after_dashes = plan.args.iter().flatten().any(|planned| planned.positional.after_dashes);
        if has_place_after_dashes && args.needs_dashes(plan) {
            self.wrong(
                "$.args",
                "a positional of this command must not start with `-` or look like a command: after `--` come others",
            );
        }
        if !plan.dashes && args.could_be_read_otherwise(plan) {
            self.wrong(
                "$.args",
                "a positional of this command must not start with `-` or be the name of a command: the program may not know `--`",
            );
        }
        CommandLine {
            argv: words(plan, &flags, &args),
            stdin,
        }
    }

    /// The words of each flag, and those of the positionals.
    fn nested(&mut self, plan: &Plan, root: &Map<String, Value>) -> (Vec<Vec<String>>, Words) {
        let mut allowed = Vec::new();
        if !plan.flags.is_empty() {
            allowed.push("flags");
        }
        if plan.args.as_ref().is_none_or(|args| !args.is_empty()) {
            allowed.push("args");
        }
        if plan.stdin {
            allowed.push("stdin");
        }
        for (key, value) in root {
            let is_nothing =
                value.is_null() || value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty);
            if !allowed.contains(&key.as_str()) && !is_nothing {
                self.unknown("$", key, &allowed);
            }
        }
        let empty = Map::new();
        let section = |name: &str| root.get(name).filter(|_| allowed.contains(&name));
        let flags = match section("flags") {
            None | Some(Value::Null) => &empty,
            Some(Value::Object(flags)) => flags,
            Some(_) => {
                self.wrong("$.flags", "expected an object");
                &empty
            }
        };
        let flags = self.flags(plan, "$.flags", flags, &[]);
        let args = match (section("args").unwrap_or(&Value::Null), plan.args.as_deref()) {
            (Value::Null, None) => Words::default(),
            (Value::Null, Some(named)) => self.named_args("$.args", named, &empty),
            (Value::Object(args), Some(named)) => {
                let keys: Vec<&str> = named.iter().map(|planned| planned.key.as_str()).collect();
                for key in args.keys() {
                    if find_positional(named, key).is_none() {
                        self.unknown("$.args", key, &keys);
                    }
                }
                self.named_args("$.args", named, args)
            }
            (Value::Array(items), named) => self.listed_args(named, items),
            (_, Some(_)) => {
                self.wrong("$.args", "expected an object of the positionals, or an array of strings");
                Words::default()
            }
            (_, None) => {
                self.wrong("$.args", "expected an array of strings");
                Words::default()
            }
        };
        (flags, args)
    }

    fn flat(&mut self, plan: &Plan, root: &Map<String, Value>) -> (Vec<Vec<String>>, Words) {
        let mut others: Vec<&str> = match &plan.args {
            Some(named) => named.iter().map(|planned| planned.key.as_str()).collect(),
            None => vec!["args"],
        };
        if plan.stdin {
            others.push("stdin");
        }
        let flags = self.flags(plan, "$", root, &others);
        // A key is the one or the other: what a flag took is no positional.
        let is_left = |key: &str| others.contains(&key) || find_flag(&plan.flags, key).is_none();
        let left: Map<String, Value> = root
            .iter()
            .filter(|(key, _)| is_left(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let args = match (&plan.args, root.get("args")) {
            (Some(named), _) => self.named_args("$", named, &left),
            (None, None | Some(Value::Null)) => Words::default(),
            (None, Some(Value::Array(items))) => self.listed_args(None, items),
            (None, Some(_)) => {
                self.wrong("$.args", "expected an array of strings");
                Words::default()
            }
        };
        (flags, args)
    }

    fn unknown(&mut self, path: &str, key: &str, known: &[&str]) {
        let names: Vec<String> = nearest_first(key, known.iter().copied())
            .into_iter()
            .take(MAX_SUGGESTED)
            .map(|name| format!("`{name}`"))
            .collect();
        let there_is = match names.as_slice() {
            [] => "; the command takes none".to_owned(),
            names => format!("; there is {}", names.join(", ")),
        };
        let key = component2json::clean_text(key).unwrap_or_default();
        self.wrong(path, format!("there is no `{key}`{there_is}"));
    }

    /// The words of each flag of the plan. `others` are keys beside the flags that are somebody else's.
    fn flags(&mut self, plan: &Plan, path: &str, given: &Map<String, Value>, others: &[&str]) -> Vec<Vec<String>> {
        let mut values: Vec<Option<&Value>> = vec![None; plan.flags.len()];
        let keys: Vec<&str> = plan
            .flags
            .iter()
            .map(|planned| planned.key.as_str())
            .chain(others.iter().copied())
            .collect();
        for (key, value) in given {
            let index = find_flag(&plan.flags, key).filter(|_| !others.contains(&key.as_str()));
            match index.and_then(|index| values.get_mut(index)) {
                Some(Some(_)) => self.wrong(path, format!("`{key}` is given twice, in two spellings")),
                Some(slot) => *slot = Some(value),
                None if others.contains(&key.as_str()) => {}
                None => self.unknown(path, key, &keys),
            }
        }
        let words = |(planned, value): (&PlannedFlag, Option<&Value>)| {
            let PlannedFlag { key, flag, .. } = planned;
            let path = format!("{path}.{key}");
            match value.filter(|value| !value.is_null()) {
                Some(value) => self.flag(&path, planned, value),
                None if flag.required => {
                    self.wrong(&path, "is required");
                    vec![]
                }
                None => vec![],
            }
        };
        plan.flags.iter().zip(values).map(words).collect()
    }

    fn flag(&mut self, path: &str, planned: &PlannedFlag, value: &Value) -> Vec<String> {
        let flag = &planned.flag;
        let name = spelling(flag);
        match (flag.ty, value) {
            (ValueType::Bool, Value::Bool(true)) => vec![name.to_owned()],
            (ValueType::Bool, Value::Bool(false)) => off(flag),
            (ValueType::Count, value) => match values::whole_number(value).and_then(|text| text.parse::<u64>().ok()) {
                Some(count @ 0..=MAX_COUNT) => (0..count).map(|_| name.to_owned()).collect(),
                _ => {
                    self.wrong(path, format!("expected a whole number from 0 to {MAX_COUNT}"));
                    vec![]
                }
            },
            (ValueType::Map | ValueType::IntegerMap, Value::Object(entries)) => entries
                .iter()
                .flat_map(|(key, value)| self.entry(&format!("{path}.{key}"), flag, key, value))
                .collect(),
            (ValueType::Map | ValueType::IntegerMap, _) => {
                self.wrong(path, "expected an object of strings");
                vec![]
            }
            (_, Value::Array(items)) if flag.repeated => items
                .iter()
                .enumerate()
                .flat_map(|(index, item)| self.one(&format!("{path}[{index}]"), planned, item))
                .collect(),
            (_, Value::Bool(true)) if flag.optional_value && pass_of(flag) == Pass::Separate => {
                self.wrong(path, "needs a value: without one it would take the next word for its value");
                vec![]
            }
            (_, Value::Bool(true)) if flag.optional_value => vec![name.to_owned()],
            (_, Value::Bool(false)) if flag.optional_value => off(flag),
            (_, value) => self.one(path, planned, value),
        }
    }

    fn one(&mut self, path: &str, PlannedFlag { flag, checker, .. }: &PlannedFlag, value: &Value) -> Vec<String> {
        let text = match values::text(flag.ty, &flag.values, checker.as_ref(), value) {
            Ok(text) => text,
            Err(problem) => {
                self.wrong(path, problem);
                return vec![];
            }
        };
        let text = if flag.comma_separated { quoted(&text) } else { text };
        self.passed(path, flag, &text)
    }

    fn entry(&mut self, path: &str, flag: &Flag, key: &str, value: &Value) -> Vec<String> {
        let ty = match flag.ty {
            ValueType::IntegerMap => ValueType::Integer,
            _ => ValueType::String,
        };
        if key.is_empty() || key.contains(['=', '\0']) {
            self.wrong(path, "a key must not be empty and must not contain `=` or NUL");
            return vec![];
        }
        match values::text(ty, &[], None, value) {
            Ok(text) => {
                let entry = format!("{key}={text}");
                // pflag reads what has a single `=` as it is.
                let is_split = flag.comma_separated && entry.matches('=').count() > 1;
                let entry = if is_split { quoted(&entry) } else { entry };
                self.passed(path, flag, &entry)
            }
            Err(problem) => {
                self.wrong(path, problem);
                vec![]
            }
        }
    }

    /// The words that pass a value. It can never be read as a word of its own, unless the program wants that and it is harmless.
    fn passed(&mut self, path: &str, flag: &Flag, value: &str) -> Vec<String> {
        let name = spelling(flag);
        let is_number = matches!(flag.ty, ValueType::Integer | ValueType::Unsigned | ValueType::Number);
        match pass_of(flag) {
            Pass::Equals => vec![format!("{name}={value}")],
            Pass::Attached if value.is_empty() && flag.optional_value => {
                self.wrong(path, "an empty value cannot be passed to this flag");
                vec![]
            }
            // `-f` alone would take the next word for its value, so that is the empty one.
            Pass::Attached if value.is_empty() => vec![name.to_owned(), String::new()],
            Pass::Attached => vec![format!("{name}{value}")],
            Pass::Separate if value.len() > 1 && value.starts_with('-') && !is_number => {
                self.wrong(
                    path,
                    "a value for this flag must not start with `-`: the program could take it for another flag",
                );
                vec![]
            }
            Pass::Separate => vec![name.to_owned(), value.to_owned()],
        }
    }

    fn listed_args(&mut self, named: Option<&[PlannedPositional]>, items: &[Value]) -> Words {
        let mut words = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let path = format!("$.args[{index}]");
            match item {
                Value::String(text) if text.contains('\0') => self.wrong(&path, "a NUL character cannot be passed to a program"),
                Value::String(text) => words.push(text.clone()),
                // The rest of the checks need to know how many there are.
                _ => {
                    self.wrong(&path, "expected a string");
                    words.push(String::new());
                }
            }
        }
        let Some(named) = named else {
            return Words {
                plain: words,
                after_dashes: vec![],
            };
        };
        let least = named.iter().filter(|planned| planned.positional.required).count();
        let most = if named.iter().any(|planned| planned.positional.variadic) {
            usize::MAX
        } else {
            named.len()
        };
        if words.len() < least || words.len() > most {
            let names: Vec<String> = named.iter().map(|planned| format!("`{}`", planned.key)).collect();
            self.wrong(
                "$.args",
                format!("{} values do not fit the positionals {}", words.len(), names.join(", ")),
            );
        }
        let plain: Vec<&PlannedPositional> = named.iter().filter(|planned| !planned.positional.after_dashes).collect();
        // One that takes all that is left takes it here, too.
        let takes_all = plain.iter().any(|planned| planned.positional.variadic);
        let after_dashes = if plain.len() < named.len() && words.len() > plain.len() && !takes_all {
            words.split_off(plain.len())
        } else {
            vec![]
        };
        let plain_values = words
            .iter()
            .enumerate()
            .map(|(index, word)| (index, plain.get(index).or(plain.last()), word));
        let later = named
            .iter()
            .filter(|planned| planned.positional.after_dashes)
            .collect::<Vec<_>>();
        let later_values = after_dashes.iter().enumerate();
        let later_values = later_values.map(|(index, word)| (words.len() + index, later.get(index).or(later.last()), word));
        for (index, planned, word) in plain_values.chain(later_values) {
            if let Some(problem) = planned.and_then(|planned| problem_of(planned, word)) {
                self.wrong(&format!("$.args[{index}]"), problem);
            }
        }
        Words {
            plain: words,
            after_dashes,
        }
    }

    fn named_args(&mut self, path: &str, named: &[PlannedPositional], given: &Map<String, Value>) -> Words {
        let mut words = Words::default();
        let mut missing: Option<&str> = None;
        let mut seen: Vec<&str> = Vec::new();
        for key in given.keys() {
            let Some(planned) = find_positional(named, key) else {
                continue;
            };
            if seen.contains(&planned.key.as_str()) {
                self.wrong(path, format!("`{key}` is given twice, in two spellings"));
            }
            seen.push(&planned.key);
        }
        for planned in named {
            let PlannedPositional { key, positional, .. } = planned;
            let path = format!("{path}.{key}");
            let value = given
                .iter()
                .find(|(spelled, _)| find_positional(named, spelled).is_some_and(|planned| planned.key == *key))
                .map(|(_, value)| value)
                .filter(|value| !value.is_null());
            let list = if positional.after_dashes {
                &mut words.after_dashes
            } else {
                &mut words.plain
            };
            let before = list.len();
            match value {
                Some(value) => list.extend(self.positional(&path, planned, value)),
                None if positional.required => self.wrong(&path, "is required"),
                None => {}
            }
            let is_given = list.len() > before;
            match missing.filter(|_| is_given && !positional.after_dashes) {
                Some(earlier) => self.wrong(&path, format!("needs `{earlier}` to be given, too, which stands before it")),
                None if !is_given => missing = missing.or(Some(key)),
                None => {}
            }
        }
        words
    }

    fn positional(&mut self, path: &str, planned: &PlannedPositional, value: &Value) -> Vec<String> {
        let positional = &planned.positional;
        let one = |value: &Value| values::text(positional.ty, &positional.values, planned.checker.as_ref(), value);
        let items = match value {
            Value::Array(items) if positional.variadic => items.as_slice(),
            _ if positional.variadic => {
                self.wrong(path, "expected an array");
                return vec![];
            }
            single => std::slice::from_ref(single),
        };
        if items.is_empty() && positional.required {
            self.wrong(path, "needs at least one element");
        }
        let mut words = Vec::new();
        for (index, item) in items.iter().enumerate() {
            match one(item) {
                Ok(text) => words.push(text),
                Err(problem) if positional.variadic => self.wrong(&format!("{path}[{index}]"), problem),
                Err(problem) => self.wrong(path, problem),
            }
        }
        words
    }
}

/// What is wrong with a positional that was given as text, if anything is.
fn problem_of(planned: &PlannedPositional, word: &str) -> Option<String> {
    let positional = &planned.positional;
    let number = || serde_json::from_str(word).ok().filter(Value::is_number);
    let value = match positional.ty {
        ValueType::Integer | ValueType::Unsigned | ValueType::Number => number().unwrap_or_else(|| word.into()),
        _ => word.into(),
    };
    values::text(positional.ty, &positional.values, planned.checker.as_ref(), &value).err()
}

/// The words of the positionals.
#[derive(Default)]
struct Words {
    plain: Vec<String>,
    after_dashes: Vec<String>,
}

impl Words {
    /// Whether one of the plain words could be read as something else. A lone `-` is no flag but, by custom, the standard input.
    fn needs_dashes(&self, plan: &Plan) -> bool {
        // Subcommands that are not known could be meant as well.
        let could_be_a_command = !plan.subcommands.is_empty() && !self.plain.is_empty();
        plan.dashes && !plan.bare && (could_be_a_command || self.could_be_read_otherwise(plan))
    }

    fn could_be_read_otherwise(&self, plan: &Plan) -> bool {
        let could_be_a_flag = |word: &String| word.len() > 1 && word.starts_with('-');
        let is_a_command = self.plain.first().is_some_and(|word| plan.subcommands.contains(word));
        !plan.bare && (is_a_command || self.plain.iter().any(could_be_a_flag))
    }
}

/// The whole command line: each name of the path with the flags of its level, then the positionals.
fn words(plan: &Plan, flags: &[Vec<String>], args: &Words) -> Vec<String> {
    let mut argv = Vec::new();
    for (level, name) in plan.path.iter().enumerate() {
        argv.push(name.clone());
        argv.extend(plan.force.iter().filter(|(at, _)| *at == level).map(|(_, word)| word.clone()));
        let of_level = plan.flags.iter().zip(flags).filter(|(planned, _)| planned.level == level);
        argv.extend(of_level.flat_map(|(_, words)| words.iter().cloned()));
    }
    let dashes = || "--".to_owned();
    if args.needs_dashes(plan) {
        argv.push(dashes());
    }
    argv.extend(args.plain.iter().cloned());
    if !args.after_dashes.is_empty() {
        argv.push(dashes());
        argv.extend(args.after_dashes.iter().cloned());
    }
    argv
}

fn pass_of(flag: &Flag) -> Pass {
    flag.pass.unwrap_or_else(|| usual_pass(spelling(flag)))
}

/// How a value is passed unless the tree knows better. Programs whose long names have one dash read their words one by one.
fn usual_pass(name: &str) -> Pass {
    if name.starts_with("--") {
        Pass::Equals
    } else if name.chars().count() == 2 {
        Pass::Attached
    } else {
        Pass::Separate
    }
}

/// The words that turn a flag off: nothing, unless it is on by itself or has a spelling for that.
fn off(flag: &Flag) -> Vec<String> {
    match &flag.negation {
        Some(negation) => vec![negation.clone()],
        None if flag.default == Some(Value::Bool(true)) => vec![format!("{}=false", spelling(flag))],
        None => vec![],
    }
}

/// An element of a list that the program splits at commas, in the quotes of CSV where it needs them.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// The flag that a key stands for: its own key, any of its spellings, with or without dashes, or its name in camelCase.
pub(crate) fn find_flag(flags: &[PlannedFlag], key: &str) -> Option<usize> {
    let exactly = flags.iter().position(|planned| planned.key == key);
    let spelled = || {
        flags.iter().position(|planned| {
            let mut names = planned.flag.names.iter();
            names.any(|name| name == key || name.trim_start_matches('-') == key)
        })
    };
    let camel = || {
        flags
            .iter()
            .position(|planned| component2json::camel_case(&planned.key) == key)
    };
    exactly.or_else(spelled).or_else(camel)
}

pub(crate) fn find_positional<'a>(named: &'a [PlannedPositional], key: &str) -> Option<&'a PlannedPositional> {
    let exactly = named.iter().find(|planned| planned.key == key);
    let spelled = || named.iter().find(|planned| planned.positional.name == key);
    let camel = || named.iter().find(|planned| component2json::camel_case(&planned.key) == key);
    exactly.or_else(spelled).or_else(camel)
}
