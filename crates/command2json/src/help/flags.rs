//! Flags, from the rows of the option lists and from the options that only the usage line has.

use std::collections::{HashMap, HashSet};

use crate::tree::{Flag, Pass, ValueType};

use super::lines::{Line, paragraphs};
use super::outline::{Entry, Outline};
use super::spec::Spec;
use super::usage::{Form, UsageOption};
use super::values::{self, Nature};
use super::{Family, MAX_LIST, MAX_NAME_CHARS, capped_text};

/// All flags of a text but those for help and version.
pub(super) fn flags(outline: &Outline, forms: &[Form], family: Family) -> Vec<Flag> {
    let notes = notes(&outline.prose);
    let listed = outline.options.iter().flat_map(|(spec, entry)| {
        let flag = flag(spec, entry, family, &notes);
        flag.map(numbered).unwrap_or_default()
    });
    let mut flags = distinct(listed);
    if !matches!(family, Family::Clap | Family::Cobra) {
        add_from_usage(&mut flags, forms, family, outline);
    }
    mark_from_usage(&mut flags, forms);
    // First, so that `--no-version` is no negation of what is not offered.
    flags.retain(|flag| !asks_for_help(flag) && !asks_for_version(flag));
    merge_negations(&mut flags);
    flags.truncate(MAX_LIST);
    keep_own_negations(&mut flags);
    flags
}

/// What turns one flag off is no spelling of another.
fn keep_own_negations(flags: &mut [Flag]) {
    let mut taken: HashSet<String> = flags.iter().flat_map(|flag| flag.names.iter().cloned()).collect();
    for flag in flags {
        flag.negation = flag.negation.take().filter(|negation| taken.insert(negation.clone()));
    }
}

/// What the prose says of a placeholder: `NUM may have a multiplier suffix`.
fn notes(prose: &[Line]) -> HashMap<&str, &str> {
    let notes = prose.iter().filter_map(|line| line.text.split_once(' '));
    notes
        .filter(|(word, _)| word.chars().all(|c| c.is_ascii_uppercase()))
        .collect()
}

fn flag(spec: &Spec, entry: &Entry, family: Family, notes: &HashMap<&str, &str>) -> Option<Flag> {
    if spec.more_values || spec.names.iter().any(|name| name.chars().count() > MAX_NAME_CHARS) {
        return None;
    }
    let text = paragraphs(&entry.text);
    let mut flag = Flag {
        names: spec.names.clone(),
        negation: spec.negation.clone(),
        description: capped_text(&text),
        required: says_required(&text, &entry.heading),
        deprecated: says_deprecated(&text),
        ..Flag::default()
    };
    match &spec.value {
        None => flag.ty = switch_type(spec, &text),
        Some(value) if spec.value_is_default => set_stated_default(&mut flag, value, &text),
        Some(value) => set_value(&mut flag, spec, value, &text, family, notes),
    }
    if flag.ty == ValueType::Bool {
        flag.negation = flag.negation.or_else(|| negation_in_text(&spec.names, &text));
        flag.default = values::default_of_text(&text).and_then(|default| values::typed_default(&default, ValueType::Bool, false));
    }
    let is_switch = matches!(flag.ty, ValueType::Bool | ValueType::Count);
    if family == Family::GoFlag && !is_switch && flag.names.iter().all(|name| !name.starts_with("--")) {
        flag.pass = Some(Pass::Equals);
    }
    // Who writes the help by hand may well read the command line by hand, word by word.
    if family == Family::Plain && !is_switch && spec.spaced && !flag.optional_value {
        flag.pass = Some(Pass::Separate);
    }
    Some(flag)
}

/// "Use `--no-fix` to disable", as ruff has it.
fn negation_in_text(names: &[String], text: &str) -> Option<String> {
    let negations = names
        .iter()
        .filter_map(|name| name.strip_prefix("--"))
        .map(|name| format!("--no-{name}"));
    negations
        .into_iter()
        .find(|negation| text.contains(&format!("Use `{negation}` to disable")))
}

fn switch_type(spec: &Spec, text: &str) -> ValueType {
    if spec.dots || (values::says_repeated(text) && spec.negation.is_none()) {
        ValueType::Count
    } else {
        ValueType::Bool
    }
}

fn set_value(flag: &mut Flag, spec: &Spec, value: &str, text: &str, family: Family, notes: &HashMap<&str, &str>) {
    // pflag's `string[="x"]` may be left out.
    let (value, optional) = match value.split_once("[=") {
        Some((word, _)) if !word.is_empty() && family == Family::Cobra => (word, true),
        _ => (value, spec.optional_value),
    };
    let name = values::bare(value);
    let note = notes.get(name.as_str()).copied().unwrap_or_default();
    let Nature {
        ty,
        repeated,
        comma_separated,
    } = values::nature(family, value, &format!("{text}\n{note}"));
    flag.ty = ty;
    flag.comma_separated = comma_separated;
    if matches!(ty, ValueType::Bool | ValueType::Count) {
        return;
    }
    flag.repeated = repeated || (ty != ValueType::Map && (spec.dots || values::says_repeated(text)));
    flag.optional_value = optional;
    flag.values = literals(value, text, ty, family);
    let is_word = name.chars().any(char::is_alphanumeric) && flag.values.join(",") != name && flag.values.join("|") != name;
    flag.value_name = is_word.then_some(name).filter(|name| name.chars().count() <= MAX_NAME_CHARS);
    if !(has_parts(value) && value.starts_with('[')) {
        set_default(flag, spec, text);
    }
}

fn literals(value: &str, text: &str, ty: ValueType, family: Family) -> Vec<String> {
    let lower = text.to_ascii_lowercase();
    let is_list = lower.contains("comma separated") || lower.contains("comma-separated");
    if ty != ValueType::String || is_list {
        return Vec::new();
    }
    let values = values::values_of_placeholder(value);
    // What clap knows to be the only values has a mark of its own.
    let is_stated = family != Family::Clap || lower.contains("possible values:");
    if values.is_empty() && is_stated && !has_parts(value) {
        values::values_of_text(text)
    } else {
        values
    }
}

/// In `[KIND=]PATH`, what the text says may be about a part of it.
fn has_parts(value: &str) -> bool {
    value.contains(['=', ':']) && !value.starts_with("[=")
}

fn set_default(flag: &mut Flag, spec: &Spec, text: &str) {
    let stated = spec.default.as_ref().map(|text| values::Default {
        text: text.clone(),
        is_value: true,
        is_quoted: true,
    });
    let Some(default) = stated.or_else(|| values::default_of_text(text)) else {
        return;
    };
    // `$PACK_SIZE` is no value, and neither is a sentence.
    let is_word = default.text.chars().all(|c| c.is_alphanumeric() || "+-.,%".contains(c));
    // pflag's `int` is a type and no name.
    let is_declared = flag
        .value_name
        .as_deref()
        .is_some_and(|name| name.trim_start_matches('u').starts_with("int"));
    if flag.ty == ValueType::Integer && default.text.parse::<i64>().is_err() && is_word && !is_declared {
        // `N (default 0.5)`, `N (default 10M)`, `N (default unlimited)`: not what its name says.
        flag.ty = if default.text.parse::<f64>().is_ok() {
            ValueType::Number
        } else {
            ValueType::String
        };
    }
    flag.default = values::typed_default(&default, flag.ty, flag.repeated);
    flag.values = values::only_with_default(std::mem::take(&mut flag.values), flag.default.as_ref());
}

/// `--dry-run='none':` and `-port=80: the port`, where the default says what the type is.
fn set_stated_default(flag: &mut Flag, value: &str, text: &str) {
    let is_quoted = value.starts_with(['\'', '"']);
    flag.ty = match value {
        "true" | "false" => ValueType::Bool,
        _ if is_quoted => ValueType::String,
        _ if value.parse::<i64>().is_ok() => ValueType::Integer,
        _ if value.parse::<f64>().is_ok() => ValueType::Number,
        _ if is_duration(value) => ValueType::Duration,
        _ => ValueType::String,
    };
    if flag.ty == ValueType::Bool {
        flag.default = (value == "true").then_some(serde_json::Value::Bool(true));
        return;
    }
    flag.repeated = value.starts_with('[') || values::says_repeated(text);
    let default = values::Default {
        text: value.trim_matches(['\'', '"']).to_owned(),
        is_value: true,
        is_quoted: true,
    };
    flag.default = values::typed_default(&default, flag.ty, flag.repeated);
    flag.values = values::only_with_default(literals("", text, flag.ty, Family::Cobra), flag.default.as_ref());
}

/// Go's way to write one: `0s`, `1m30s`.
fn is_duration(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.ends_with('s')
        && text.chars().all(|c| c.is_ascii_digit() || "hmsnu.µ".contains(c))
}

fn says_required(text: &str, heading: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ["(required)", "[required]", "(required:", "[required:"]
        .iter()
        .any(|note| lower.contains(note))
        || heading.starts_with("required ")
}

/// Whether a text says of what it describes that it should not be used any more.
pub(super) fn says_deprecated(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    [
        "(deprecated",
        "[deprecated",
        "deprecated:",
        "is deprecated",
        "deprecated;",
        "deprecated, ",
    ]
    .iter()
    .any(|note| lower.contains(note))
        || lower.starts_with("deprecated")
}

/// `-B0, -B1, -B2` are not spellings of one flag.
fn numbered(flag: Flag) -> Vec<Flag> {
    let letter = |name: &str| {
        let letter = name.strip_prefix('-')?.strip_suffix(|c: char| c.is_ascii_digit())?;
        (letter.chars().count() <= 1 && letter != "-").then(|| letter.to_owned())
    };
    let first = flag.names.first().and_then(|name| letter(name));
    if flag.names.len() < 2 || first.is_none() || !flag.names.iter().all(|name| letter(name) == first) {
        return vec![flag];
    }
    let one = |name: &String| Flag {
        names: vec![name.clone()],
        ..flag.clone()
    };
    flag.names.iter().map(one).collect()
}

/// The first to use a spelling keeps it.
fn distinct(flags: impl Iterator<Item = Flag>) -> Vec<Flag> {
    let mut seen = HashSet::new();
    let kept = flags.filter_map(|mut flag| {
        flag.names.retain(|name| seen.insert(name.clone()));
        (!flag.names.is_empty()).then_some(flag)
    });
    // Some more than are kept in the end: two may become one.
    kept.take(2 * MAX_LIST).collect()
}

/// Options that are only in the usage line.
fn add_from_usage(flags: &mut Vec<Flag>, forms: &[Form], family: Family, outline: &Outline) {
    let mut seen: HashSet<String> = flags
        .iter()
        .flat_map(|flag| flag.names.iter().chain(&flag.negation))
        .cloned()
        .collect();
    // What was left out of the list is not taken from the usage.
    seen.extend(outline.options.iter().flat_map(|(spec, _)| spec.names.iter().cloned()));
    let has_long_dash = flags
        .iter()
        .any(|flag| flag.names.iter().any(|name| is_long_with_one_dash(name)));
    for option in forms.iter().flat_map(|form| &form.options) {
        for spec in unbundled(&option.spec, has_long_dash) {
            if flags.len() < MAX_LIST && !spec.names.iter().any(|name| seen.contains(name)) {
                seen.extend(spec.names.iter().cloned());
                flags.extend(flag(&spec, &Entry::default(), family, &HashMap::new()));
            }
        }
    }
}

fn is_long_with_one_dash(name: &str) -> bool {
    !name.starts_with("--") && name.chars().count() > 2
}

/// `[-lv]` is `-l` and `-v`, where no name of several letters has one dash.
fn unbundled(spec: &Spec, has_long_dash: bool) -> Vec<Spec> {
    let [name] = spec.names.as_slice() else {
        return vec![spec.clone()];
    };
    if has_long_dash || !is_long_with_one_dash(name) {
        return vec![spec.clone()];
    }
    let letters: Vec<char> = name.chars().skip(1).collect();
    if spec.value.is_some() || (letters.len() > 3 && letters.iter().all(char::is_ascii_lowercase)) {
        return vec![spec.clone()];
    }
    let are_letters =
        letters.iter().all(char::is_ascii_alphanumeric) && letters.iter().collect::<HashSet<_>>().len() == letters.len();
    if !are_letters {
        return Vec::new();
    }
    let one = |letter: char| Spec {
        names: vec![format!("-{letter}")],
        ..Spec::default()
    };
    letters.into_iter().map(one).collect()
}

/// Required is what every form has outside of brackets.
fn mark_from_usage(flags: &mut [Flag], forms: &[Form]) {
    let is_same = |flag: &Flag, option: &UsageOption| option.spec.names.iter().any(|name| flag.names.contains(name));
    for flag in flags {
        let of_form = |form: &Form| form.options.iter().any(|option| option.required && is_same(flag, option));
        let required = !forms.is_empty() && forms.iter().all(of_form);
        let repeated = forms
            .iter()
            .flat_map(|form| &form.options)
            .any(|option| option.repeated && is_same(flag, option));
        flag.required |= required;
        match flag.ty {
            ValueType::Bool if repeated => flag.ty = ValueType::Count,
            ValueType::Bool | ValueType::Count | ValueType::Map | ValueType::IntegerMap => {}
            _ => flag.repeated |= repeated,
        }
    }
}

/// `--no-x` beside `--x` is its negation, if it does nothing else.
fn merge_negations(flags: &mut Vec<Flag>) {
    let switches = flags.iter().filter(|flag| flag.ty == ValueType::Bool);
    let names: HashSet<String> = switches.flat_map(|flag| flag.names.iter().cloned()).collect();
    let positive = |flag: &Flag| match flag.names.as_slice() {
        [name] if flag.ty == ValueType::Bool => name
            .strip_prefix("--no-")
            .map(|name| format!("--{name}"))
            .filter(|name| names.contains(name)),
        _ => None,
    };
    let negated: HashSet<String> = flags.iter().filter_map(positive).collect();
    flags.retain(|flag| positive(flag).is_none());
    for flag in flags.iter_mut().filter(|flag| flag.negation.is_none()) {
        let name = flag.names.iter().find(|name| negated.contains(*name));
        flag.negation = name
            .and_then(|name| name.strip_prefix("--"))
            .map(|name| format!("--no-{name}"));
    }
}

fn asks_for_help(flag: &Flag) -> bool {
    let text = flag.description.as_deref().unwrap_or_default().to_ascii_lowercase();
    let is_short = flag.names.iter().all(|name| name == "-h" || name == "-?");
    flag.names.iter().any(|name| name == "--help" || name == "-help")
        || (is_short && (text.contains("help") || text.contains("usage")))
}

fn asks_for_version(flag: &Flag) -> bool {
    let named = |names: &[&str]| flag.names.iter().any(|name| names.contains(&name.as_str()));
    let text = flag.description.as_deref().unwrap_or_default().to_ascii_lowercase();
    let text: Vec<&str> = text.split(' ').take(6).collect();
    let prints = text
        .first()
        .is_some_and(|verb| ["print", "prints", "show", "shows", "display", "output", "report"].contains(verb));
    let is_switch = matches!(flag.ty, ValueType::Bool | ValueType::Count);
    (is_switch && named(&["--version", "-version"]))
        || (named(&["-V", "-v"]) && flag.names.len() == 1 && is_switch && prints && text.contains(&"version"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(names: &[&str]) -> Flag {
        Flag {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            ty: ValueType::Bool,
            ..Flag::default()
        }
    }

    #[test]
    fn negations_are_merged() {
        let mut flags = vec![
            switch(&["-c", "--color"]),
            switch(&["--no-color"]),
            switch(&["--no-cache"]),
            switch(&["-n", "--no-verify"]),
            switch(&["--verify"]),
        ];
        merge_negations(&mut flags);
        let names: Vec<_> = flags.iter().map(|flag| flag.names.join(" ")).collect();
        assert_eq!(names, ["-c --color", "--no-cache", "-n --no-verify", "--verify"]);
        assert_eq!(flags[0].negation.as_deref(), Some("--no-color"));
    }

    #[test]
    fn numbered_switches_are_many() {
        assert_eq!(numbered(switch(&["-B0", "-B1"])).len(), 2);
        assert_eq!(numbered(switch(&["-1", "--fast"])).len(), 1);
    }
}
