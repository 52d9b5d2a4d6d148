//! Description files: what somebody wrote about a program, and how it completes what its help says.
//!
//! Whether a key was written is what counts when two trees are merged, and [`Command`] no longer knows it (a `false` that is written
//! and one that is left out are the same there). So a description is kept as it was written, and merged as JSON.

use std::collections::{HashMap, HashSet};

use component2json::{nearest_first, without_hidden};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::schema::compile;
use crate::tree::{Command, Description, Flag, MAX_DEPTH, Output, Positional, ValueType};

/// How many commands a description may have.
pub(crate) const MAX_COMMANDS: usize = 2000;

/// What is wrong with a description, where, and what would be right. Places read like `command.commands[1].flags[0]`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DescriptionError {
    #[error("not JSON: {0}")]
    NotJson(String),
    #[error("{at}: unknown key `{key}`; the keys here are, the nearest first, {keys}")]
    UnknownKey { at: String, key: String, keys: String },
    #[error("{at}: the key `{key}` is missing")]
    MissingKey { at: String, key: &'static str },
    #[error("{at}: {reason}")]
    WrongValue { at: String, reason: String },
    #[error(
        "{at}: `{name}` is no name for a command; it must be a word without spaces and control characters that starts with no dash"
    )]
    CommandName { at: String, name: String },
    #[error("{at}: there is a command `{name}` already; a name stands once")]
    SharedCommand { at: String, name: String },
    #[error("{at}: it is empty; write each spelling as it is typed, as in [\"--output\", \"-o\"]")]
    NoFlagName { at: String },
    #[error(
        "{at}: `{name}` is no spelling of a flag; it must start with a dash, go on, and have no spaces, `=` or control characters"
    )]
    FlagName { at: String, name: String },
    #[error("{at}: another flag of this command is spelled `{name}` too; a spelling belongs to one flag")]
    SharedFlag { at: String, name: String },
    #[error("{at}: `{name}` is no name for a positional; it must have at least one character and no control characters")]
    PositionalName { at: String, name: String },
    #[error("{at}: a positional is one word of text, so it cannot be `bool`, `count`, `map` or `integerMap`")]
    PositionalType { at: String },
    #[error("{at}: there is a positional `{name}` already; a name stands once")]
    SharedPositional { at: String, name: String },
    #[error("{at}: `{name}` is variadic and takes all that is left, so only positionals with `afterDashes` may follow it")]
    VariadicNotLast { at: String, name: String },
    #[error("{at}: not a JSON Schema that can be used: {reason}")]
    Schema { at: String, reason: String },
    #[error("{at}: it has a NUL character, which no argument can have")]
    Nul { at: String },
    #[error("{at}: commands nest deeper than {MAX_DEPTH} levels")]
    TooDeep { at: String },
    #[error("there are more than {MAX_COMMANDS} commands")]
    TooManyCommands,
    #[error("not a usage spec: {0}")]
    NotUsage(String),
    #[error("line {line}: `{node}` would read another file, which is not done; write its content here")]
    OtherFile { line: usize, node: &'static str },
}

/// A description as it was given: checked, and still aware of what it leaves out.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    complete: bool,
    written: Map<String, Value>,
    command: Command,
}

impl Given {
    pub(crate) fn whole(command: Command) -> Result<Self, DescriptionError> {
        let written = match serde_json::to_value(&command) {
            Ok(Value::Object(written)) => written,
            _ => Map::new(),
        };
        check_object(&mut Count::default(), Kind::Command, "command", &written, 1)?;
        check_command("command", &command)?;
        Self::cleaned(true, written)
    }

    /// A description that was checked, without what no text of a stranger may have in it.
    fn cleaned(complete: bool, written: Map<String, Value>) -> Result<Self, DescriptionError> {
        let written: Map<String, Value> = written.into_iter().map(|(key, value)| (key, cleaned(value))).collect();
        let command: Command = typed("command", Value::Object(without_nulls(Kind::Command, &written)))?;
        // A name of nothing but hidden characters is none any more.
        check_command("command", &command)?;
        Ok(Self {
            complete,
            written,
            command,
        })
    }

    /// Is this all there is to know, so that the program is not asked for its help?
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// What is written here, and nothing else.
    pub fn command(&self) -> &Command {
        &self.command
    }

    /// What is written here wins; what is left out stays as inferred, unless this is all there is to know.
    ///
    /// Objects are merged key by key, and a `null` removes a key. Commands and positionals are matched by name, flags by any spelling.
    /// The order of positionals is the given one, and those that are not given again are gone.
    pub fn apply_to(&self, inferred: Command) -> Result<Command, DescriptionError> {
        if self.complete {
            return Ok(self.command.clone());
        }
        let mut merged = serde_json::to_value(&inferred).map_err(|error| wrong("command", &error))?;
        if let Value::Object(merged) = &mut merged {
            overlay(Kind::Command, merged, &self.written);
        }
        let merged = typed("command", merged)?;
        check_merged_positionals("command", &self.command, &merged)?;
        Ok(merged)
    }
}

/// Reads a description file, `NAME.cli.json`.
pub fn read_cli_json(text: &str) -> Result<Given, DescriptionError> {
    let file: Value = serde_json::from_str(text).map_err(|error| DescriptionError::NotJson(error.to_string()))?;
    let file = as_object(ROOT, &file)?;
    check_object(&mut Count::default(), Kind::Description, ROOT, file, 0)?;
    let description: Description = typed(ROOT, Value::Object(without_nulls(Kind::Description, file)))?;
    check_command("command", &description.command)?;
    let written = file.get("command").and_then(Value::as_object).cloned().unwrap_or_default();
    Given::cleaned(description.complete, written)
}

/// No text of a description is longer than this.
const MAX_TEXT: usize = 4_096;

/// The value without hidden characters and overlong texts, its keys too.
fn cleaned(value: Value) -> Value {
    match value {
        Value::String(text) => without_hidden(&text).chars().take(MAX_TEXT).collect::<String>().into(),
        Value::Array(items) => items.into_iter().map(cleaned).collect(),
        Value::Object(object) => {
            let entries = object.into_iter().map(|(key, value)| (without_hidden(&key), cleaned(value)));
            Value::Object(entries.collect())
        }
        other => other,
    }
}

/// What the file as a whole is called in messages.
const ROOT: &str = "the description";

/// The objects that a description consists of. Everything else in it is a value.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Description,
    Command,
    Flag,
    Positional,
    Output,
}

/// What stands under a key.
enum Member {
    One(Kind),
    List(Kind),
    Value,
}

impl Kind {
    #[rustfmt::skip]
    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Description => &["complete", "command"],
            Self::Command => &[
                "name", "title", "summary", "description", "examples", "hidden", "deprecated", "runnable", "flags", "args", "bare", "dashes", "stdin",
                "output", "effect", "idempotent", "openWorld", "commands",
            ],
            Self::Flag => &[
                "names", "type", "valueName", "description", "required", "default", "values", "repeated", "optionalValue", "negation",
                "inherited", "hidden", "deprecated", "pass", "commaSeparated", "jsonschema", "effect",
            ],
            Self::Positional => &[
                "name", "type", "description", "required", "variadic", "default", "values", "afterDashes", "jsonschema",
            ],
            Self::Output => &["format", "schema", "force"],
        }
    }

    /// The key that cannot be left out.
    fn required(self) -> Option<&'static str> {
        match self {
            Self::Description => Some("command"),
            Self::Command | Self::Positional => Some("name"),
            Self::Flag => Some("names"),
            Self::Output => None,
        }
    }

    fn member(self, key: &str) -> Member {
        match (self, key) {
            (Self::Description, "command") => Member::One(Self::Command),
            (Self::Command, "commands") => Member::List(Self::Command),
            (Self::Command, "flags") => Member::List(Self::Flag),
            (Self::Command, "args") => Member::List(Self::Positional),
            (Self::Command, "output") => Member::One(Self::Output),
            _ => Member::Value,
        }
    }

    /// Is the value under `key` of the right type? Asked of an object that has nothing else, so that the answer is about this key.
    fn check_value(self, at: &str, key: &str, value: &Value) -> Result<(), DescriptionError> {
        let with = |smallest: Value| {
            let mut object = smallest;
            if let Value::Object(object) = &mut object {
                object.insert(key.to_owned(), value.clone());
            }
            object
        };
        match self {
            Self::Description => typed::<Description>(at, with(json!({"command": {"name": ""}}))).map(drop),
            Self::Command => typed::<Command>(at, with(json!({"name": ""}))).map(drop),
            Self::Flag => typed::<Flag>(at, with(json!({"names": []}))).map(drop),
            Self::Positional => typed::<Positional>(at, with(json!({"name": ""}))).map(drop),
            Self::Output => typed::<Output>(at, with(json!({}))).map(drop),
        }
    }
}

fn typed<T: DeserializeOwned>(at: &str, value: Value) -> Result<T, DescriptionError> {
    serde_json::from_value(value).map_err(|error| wrong(at, &error))
}

fn wrong(at: &str, reason: &dyn std::fmt::Display) -> DescriptionError {
    DescriptionError::WrongValue {
        at: at.to_owned(),
        reason: reason.to_string(),
    }
}

fn as_object<'a>(at: &str, value: &'a Value) -> Result<&'a Map<String, Value>, DescriptionError> {
    value.as_object().ok_or_else(|| wrong(at, &"it must be an object"))
}

/// How many commands have been seen.
#[derive(Default)]
struct Count(usize);

/// Checks the form: keys, types, and how much there is. `depth` is that of the command which this object is or belongs to.
fn check_object(
    count: &mut Count,
    kind: Kind,
    at: &str,
    object: &Map<String, Value>,
    depth: usize,
) -> Result<(), DescriptionError> {
    if matches!(kind, Kind::Command) {
        count.0 += 1;
        if count.0 > MAX_COMMANDS {
            return Err(DescriptionError::TooManyCommands);
        }
        if depth > MAX_DEPTH {
            return Err(DescriptionError::TooDeep { at: at.to_owned() });
        }
    }
    if let Some(key) = kind.required().filter(|key| object.get(*key).is_none_or(Value::is_null)) {
        // A key that is misspelled is missing too, and its spelling is the better hint.
        check_keys(kind, at, object)?;
        return Err(DescriptionError::MissingKey { at: at.to_owned(), key });
    }
    check_keys(kind, at, object)?;
    for (key, value) in object.iter().filter(|(_, value)| !value.is_null()) {
        let at = below(at, key);
        match (kind.member(key), value) {
            (Member::One(kind), value) => check_object(
                count,
                kind,
                &at,
                as_object(&at, value)?,
                depth + usize::from(key == "command"),
            )?,
            (Member::List(kind), Value::Array(list)) => {
                for (index, item) in list.iter().enumerate() {
                    let at = format!("{at}[{index}]");
                    check_object(
                        count,
                        kind,
                        &at,
                        as_object(&at, item)?,
                        depth + usize::from(key == "commands"),
                    )?;
                }
            }
            (Member::List(_), _) => return Err(wrong(&at, &"it must be a list")),
            (Member::Value, value) => kind.check_value(&at, key, value)?,
        }
    }
    Ok(())
}

fn check_keys(kind: Kind, at: &str, object: &Map<String, Value>) -> Result<(), DescriptionError> {
    let Some(key) = object.keys().find(|key| !kind.keys().contains(&key.as_str())) else {
        return Ok(());
    };
    let keys = nearest_first(key, kind.keys().iter().copied());
    Err(DescriptionError::UnknownKey {
        at: at.to_owned(),
        key: shown(key),
        keys: keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", "),
    })
}

fn below(at: &str, key: &str) -> String {
    if at == ROOT { key.to_owned() } else { format!("{at}.{key}") }
}

/// Checks what the types cannot say.
fn check_command(at: &str, command: &Command) -> Result<(), DescriptionError> {
    let name = &command.name;
    if name.is_empty() || name.starts_with('-') || name.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(DescriptionError::CommandName {
            at: format!("{at}.name"),
            name: shown(name),
        });
    }
    check_flags(at, &command.flags)?;
    check_positionals(at, command.args.as_deref().unwrap_or_default())?;
    if let Some(output) = &command.output {
        check_schema(&format!("{at}.output.schema"), output.schema.as_ref())?;
        if let Some(index) = output.force.iter().position(|token| token.contains('\0')) {
            return Err(DescriptionError::Nul {
                at: format!("{at}.output.force[{index}]"),
            });
        }
    }
    let mut seen = HashSet::new();
    for (index, child) in command.commands.iter().enumerate() {
        let at = format!("{at}.commands[{index}]");
        if !seen.insert(&child.name) {
            return Err(DescriptionError::SharedCommand {
                at,
                name: shown(&child.name),
            });
        }
        check_command(&at, child)?;
    }
    Ok(())
}

fn check_flags(at: &str, flags: &[Flag]) -> Result<(), DescriptionError> {
    let mut seen = HashSet::new();
    for (index, flag) in flags.iter().enumerate() {
        let at = format!("{at}.flags[{index}]");
        if flag.names.is_empty() {
            return Err(DescriptionError::NoFlagName {
                at: format!("{at}.names"),
            });
        }
        let names = flag
            .names
            .iter()
            .enumerate()
            .map(|(index, name)| (format!("{at}.names[{index}]"), name));
        for (at, name) in names.chain(flag.negation.iter().map(|name| (format!("{at}.negation"), name))) {
            let is_spelling = name.starts_with('-')
                && name.contains(|c| c != '-')
                && !name.contains(|c: char| c == '=' || c.is_whitespace() || c.is_control());
            if !is_spelling {
                return Err(DescriptionError::FlagName { at, name: shown(name) });
            }
            if !seen.insert(name) {
                return Err(DescriptionError::SharedFlag { at, name: shown(name) });
            }
        }
        check_schema(&format!("{at}.jsonschema"), flag.jsonschema.as_ref())?;
    }
    Ok(())
}

fn check_positionals(at: &str, positionals: &[Positional]) -> Result<(), DescriptionError> {
    let mut seen = HashSet::new();
    let mut variadic: Option<(usize, &Positional)> = None;
    for (index, positional) in positionals.iter().enumerate() {
        let at_this = format!("{at}.args[{index}]");
        let name = &positional.name;
        if matches!(
            positional.ty,
            ValueType::Bool | ValueType::Count | ValueType::Map | ValueType::IntegerMap
        ) {
            return Err(DescriptionError::PositionalType { at: at_this });
        }
        if name.is_empty() || name.contains(char::is_control) {
            return Err(DescriptionError::PositionalName {
                at: at_this,
                name: shown(name),
            });
        }
        if !seen.insert(name) {
            return Err(DescriptionError::SharedPositional {
                at: at_this,
                name: shown(name),
            });
        }
        if let Some((index, taker)) = variadic
            && (taker.after_dashes || !positional.after_dashes)
        {
            return Err(DescriptionError::VariadicNotLast {
                at: format!("{at}.args[{index}]"),
                name: shown(&taker.name),
            });
        }
        if positional.variadic {
            variadic = Some((index, positional));
        }
        check_schema(&format!("{at_this}.jsonschema"), positional.jsonschema.as_ref())?;
    }
    Ok(())
}

/// Checks the positionals that were given: one of them can have become variadic by what was inferred of it.
fn check_merged_positionals(at: &str, given: &Command, merged: &Command) -> Result<(), DescriptionError> {
    if given.args.is_some() {
        check_positionals(at, merged.args.as_deref().unwrap_or_default())?;
    }
    for child in &given.commands {
        if let Some((index, merged)) = merged
            .commands
            .iter()
            .enumerate()
            .find(|(_, merged)| merged.name == child.name)
        {
            check_merged_positionals(&format!("{at}.commands[{index}]"), child, merged)?;
        }
    }
    Ok(())
}

fn check_schema(at: &str, schema: Option<&Value>) -> Result<(), DescriptionError> {
    let compiled = schema.map(compile).transpose();
    compiled.map(drop).map_err(|reason| DescriptionError::Schema {
        at: at.to_owned(),
        reason,
    })
}

/// A name in a message: enough of it, and nothing that a terminal would obey.
fn shown(name: &str) -> String {
    name.escape_debug().take(60).collect()
}

/// The object without the keys that are null, and so are to be removed.
fn without_nulls(kind: Kind, object: &Map<String, Value>) -> Map<String, Value> {
    let cleaned = |kind, value: &Value| match value {
        Value::Object(object) => Value::Object(without_nulls(kind, object)),
        other => other.clone(),
    };
    object
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| {
            let value = match (kind.member(key), value) {
                (Member::One(kind), value) => cleaned(kind, value),
                (Member::List(kind), Value::Array(list)) => list.iter().map(|item| cleaned(kind, item)).collect(),
                (_, value) => value.clone(),
            };
            (key.clone(), value)
        })
        .collect()
}

/// Lays what is given over what there is.
fn overlay(kind: Kind, base: &mut Map<String, Value>, given: &Map<String, Value>) {
    for (key, value) in given {
        let merged = match (kind.member(key), value) {
            (_, Value::Null) => {
                base.shift_remove(key);
                continue;
            }
            (Member::One(kind), Value::Object(given)) => merged_object(kind, base.shift_remove(key), given),
            (Member::List(kind), Value::Array(given)) => {
                let base = match base.shift_remove(key) {
                    Some(Value::Array(base)) => base,
                    _ => Vec::new(),
                };
                merged_list(kind, base, given)
            }
            (_, value) => value.clone(),
        };
        base.insert(key.clone(), merged);
    }
}

fn merged_object(kind: Kind, base: Option<Value>, given: &Map<String, Value>) -> Value {
    let mut merged = match base {
        Some(Value::Object(base)) => base,
        _ => Map::new(),
    };
    overlay(kind, &mut merged, given);
    Value::Object(merged)
}

/// Merges two lists of named things: what is there keeps its place, and what is new follows. Positionals are as given: with them the
/// order has a meaning.
fn merged_list(kind: Kind, base: Vec<Value>, given: &[Value]) -> Value {
    let places: HashMap<String, usize> = base
        .iter()
        .enumerate()
        .filter_map(|(place, item)| Some((place, item.as_object()?)))
        .flat_map(|(place, item)| names_of(item).map(move |name| (name.to_owned(), place)))
        .collect();
    let mut open: Vec<Option<Value>> = base.into_iter().map(Some).collect();
    let mut take = |place: usize| open.get_mut(place).and_then(Option::take);
    let mut merged: Vec<(usize, Value)> = Vec::new();
    for given in given.iter().filter_map(Value::as_object) {
        let mut matches = names_of(given).filter_map(|name| places.get(name).copied());
        let place = matches.next();
        let base = place.and_then(&mut take);
        // Several inferred flags can turn out to be spellings of one.
        for spelling in matches.chain(negation_of(given).and_then(|name| places.get(name).copied())) {
            take(spelling);
        }
        merged.push((place.unwrap_or(usize::MAX), merged_object(kind, base, given)));
    }
    if !matches!(kind, Kind::Positional) {
        merged.extend(open.into_iter().enumerate().filter_map(|(place, item)| Some((place, item?))));
        merged.sort_by_key(|(place, _)| *place);
    }
    merged.into_iter().map(|(_, item)| item).collect()
}

/// What a command, a positional or a flag is called.
fn names_of(item: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let names = item.get("names").and_then(Value::as_array).into_iter().flatten();
    item.get("name").into_iter().chain(names).filter_map(Value::as_str)
}

fn negation_of(flag: &Map<String, Value>) -> Option<&str> {
    flag.get("negation")?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys that serde would take, as it says itself.
    fn keys_of<T: DeserializeOwned>() -> Vec<String> {
        let error = serde_json::from_value::<T>(json!({"\u{1}": 0})).err().unwrap().to_string();
        error.split('`').skip(3).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn the_keys_are_those_of_the_tree() {
        assert_eq!(keys_of::<Description>(), Kind::Description.keys());
        assert_eq!(keys_of::<Command>(), Kind::Command.keys());
        assert_eq!(keys_of::<Flag>(), Kind::Flag.keys());
        assert_eq!(keys_of::<Positional>(), Kind::Positional.keys());
        assert_eq!(keys_of::<Output>(), Kind::Output.keys());
    }
}
