//! What a value is: its type, its default and the values that are allowed, from its placeholder and its text.

use serde_json::{Number, Value};

use crate::tree::ValueType;

use super::Family;

/// A list that is longer says something else.
const MAX_VALUES: usize = 200;

/// What a placeholder and a text say of a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Nature {
    pub(super) ty: ValueType,
    pub(super) repeated: bool,
    pub(super) comma_separated: bool,
}

impl Nature {
    fn of(ty: ValueType) -> Nature {
        Nature { ty, ..Nature::default() }
    }

    fn list(ty: ValueType) -> Nature {
        Nature {
            ty,
            repeated: true,
            comma_separated: true,
        }
    }
}

/// The type words of pflag, and of the programs that add their own to it. `None` for what is only a name for the value.
pub(super) fn pflag_nature(word: &str) -> Option<Nature> {
    use ValueType::*;
    Some(match word {
        "string" => Nature::of(String),
        "strings" => Nature::list(String),
        "stringArray" | "list" => Nature {
            comma_separated: false,
            ..Nature::list(String)
        },
        "stringToString" => Nature {
            comma_separated: true,
            ..Nature::of(Map)
        },
        "stringToInt" | "stringToInt64" => Nature {
            comma_separated: true,
            ..Nature::of(IntegerMap)
        },
        "map" => Nature::of(Map),
        "int" | "int8" | "int16" | "int32" | "int64" => Nature::of(Integer),
        "uint" | "uint8" | "uint16" | "uint32" | "uint64" => Nature::of(Unsigned),
        "ints" | "int32Slice" | "int64Slice" => Nature::list(Integer),
        "uints" => Nature::list(Unsigned),
        "float" | "float32" | "float64" => Nature::of(Number),
        "float32Slice" | "float64Slice" => Nature::list(Number),
        "duration" => Nature::of(Duration),
        "durations" | "durationSlice" => Nature::list(Duration),
        "ip" => Nature::of(Ip),
        "ipSlice" => Nature::list(Ip),
        "ipNet" => Nature::of(IpNet),
        "ipNetSlice" => Nature::list(IpNet),
        "ipMask" => Nature::of(String),
        "bytesHex" => Nature::of(Hex),
        "bytesBase64" => Nature::of(Base64),
        "bool" => Nature::of(Bool),
        "bools" | "boolSlice" => Nature::list(String),
        "count" => Nature::of(Count),
        _ => return None,
    })
}

/// The type that a placeholder says, as `N` does; a text that contradicts it makes it a string.
pub(super) fn nature(family: Family, placeholder: &str, text: &str) -> Nature {
    let name = bare(placeholder);
    match family {
        Family::Cobra => pflag_nature(&name),
        Family::GoFlag => pflag_nature(&name).filter(|nature| !nature.repeated && nature.ty != ValueType::Map),
        _ => None,
    }
    .unwrap_or_else(|| Nature::of(type_of_placeholder(placeholder, &name, text)))
}

fn type_of_placeholder(placeholder: &str, name: &str, text: &str) -> ValueType {
    match name.to_ascii_lowercase().as_str() {
        "n" | "num" | "int" | "integer" | "count" | "port" if is_plain(placeholder) && !has_units(text) => ValueType::Integer,
        "float" | "number" | "decimal" if is_plain(placeholder) && !has_units(text) => ValueType::Number,
        "key=value" | "k=v" | "name=value" | "key=val" | "<key>=<value>" | "<name>=<value>" | "key>=<value" | "name>=<value" => {
            ValueType::Map
        }
        "json" => ValueType::Json,
        // Boost has the same word for all values; what it is may stand in the text.
        "arg" if text.contains("(int,") || text.contains("(int ") || text.contains("(int)") => ValueType::Integer,
        "arg" if text.contains("(float,") || text.contains("(float)") => ValueType::Number,
        _ if says_json(name, text) => ValueType::Json,
        _ => ValueType::String,
    }
}

/// Only brackets and the name: `[-]NUM` is more than a number.
fn is_plain(placeholder: &str) -> bool {
    !placeholder.contains("[-]") && !placeholder.contains("[+") && !placeholder.contains("[/")
}

/// Words that a number does not have to do with, if it is only one.
fn has_units(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    [
        "suffix",
        "percent",
        "%",
        "[+-]",
        "+n",
        "-n ",
        "e.g. 10k",
        "kib",
        "multiplier",
        "range of",
        "comma-sep",
        "comma sep",
    ]
    .iter()
    .any(|sign| text.contains(sign))
}

/// Whether the value itself is JSON, and not the file or the output that the text is about.
fn says_json(name: &str, text: &str) -> bool {
    let about_files = ["file", "path", "dir"]
        .iter()
        .any(|word| name.to_ascii_lowercase().contains(word));
    !about_files
        && [
            "JSON object",
            "JSON string",
            "JSON array",
            "JSON value",
            "JSON-encoded",
            "inline JSON",
        ]
        .iter()
        .any(|words| text.contains(words))
        && !["file", "path", "output", "print", "report"]
            .iter()
            .any(|word| text.to_ascii_lowercase().contains(word))
}

/// The placeholder without what is written around it: `<FILE>`, `[=WHEN]`, `FILE...`.
pub(super) fn bare(placeholder: &str) -> String {
    let name = placeholder.trim_end_matches('.').trim();
    let name = name
        .strip_prefix("[=")
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or(name);
    let name = [('[', ']'), ('<', '>'), ('{', '}'), ('(', ')'), ('\'', '\''), ('"', '"')]
        .iter()
        .fold(name, |name, (open, close)| {
            name.strip_prefix(*open)
                .and_then(|name| name.strip_suffix(*close))
                .filter(|inner| !inner.contains([*open, *close]))
                .unwrap_or(name)
        });
    name.trim_end_matches('.').trim().to_owned()
}

/// The literals of `{a,b}`, `<a|b>` and `a|b`. `<file|url>` names kinds of values instead.
pub(super) fn values_of_placeholder(placeholder: &str) -> Vec<String> {
    const KINDS: [&str; 32] = [
        "file",
        "files",
        "path",
        "dir",
        "directory",
        "date",
        "dur",
        "duration",
        "url",
        "uri",
        "name",
        "num",
        "n",
        "number",
        "size",
        "time",
        "timestamp",
        "string",
        "str",
        "text",
        "id",
        "group",
        "port",
        "pattern",
        "glob",
        "key",
        "value",
        "int",
        "secs",
        "spec",
        "ip",
        "address",
    ];
    let separator = if placeholder.starts_with('{') && !placeholder.contains('|') {
        ','
    } else {
        '|'
    };
    let inner = bare(placeholder);
    if !inner.contains(separator) || inner.contains('=') {
        return Vec::new();
    }
    let values: Vec<String> = inner.split(separator).map(|value| bare_literal(value).to_owned()).collect();
    let are_literals = separator == ','
        || values
            .iter()
            .all(|value| !KINDS.contains(&value.as_str()) && !value.chars().all(|c| c.is_ascii_uppercase() || c == '_'));
    if are_literals && values.len() <= MAX_VALUES && values.iter().all(|value| is_literal(value)) {
        values
    } else {
        Vec::new()
    }
}

fn bare_literal(value: &str) -> &str {
    let value = value.trim();
    let quoted = |sign| value.strip_prefix(sign).and_then(|value| value.strip_suffix(sign));
    quoted('"').or_else(|| quoted('\'')).or_else(|| quoted('`')).unwrap_or(value)
}

fn is_literal(value: &str) -> bool {
    (1..=64).contains(&value.len())
        && value.chars().all(|c| c.is_alphanumeric() || "-_.+/:@#".contains(c))
        && value.chars().any(char::is_alphanumeric)
}

/// The values that a text lists as the only ones.
pub(super) fn values_of_text(text: &str) -> Vec<String> {
    const MARKS: [&str; 11] = [
        "[possible values:",
        "(possible values:",
        "possible values:",
        "one of:",
        "one of",
        "(choices:",
        "[choices:",
        "choices:",
        "available:",
        "allowed values:",
        "valid values:",
    ];
    let lower = text.to_ascii_lowercase();
    for mark in MARKS {
        let Some(at) = lower.find(mark) else { continue };
        let list = text.get(at + mark.len()..).unwrap_or_default();
        let values = if list.trim_start().starts_with("- ") {
            bulleted_values(list)
        } else {
            listed_values(list)
        };
        if !values.is_empty() {
            return values;
        }
    }
    alternatives(text)
}

/// `\n- auto: Use a terminal's colors\n- never`, as clap's long help has it.
fn bulleted_values(list: &str) -> Vec<String> {
    list.split('\n')
        .skip_while(|line| line.trim().is_empty())
        .map_while(|line| line.trim().strip_prefix("- "))
        .map(|item| bare_literal(item.split_once(':').map_or(item, |(value, _)| value)).to_owned())
        .filter(|value| is_literal(value))
        .take(MAX_VALUES)
        .collect()
}

/// `a, b or c` up to the end of the bracket or the sentence; none if any of it is more than a word.
fn listed_values(list: &str) -> Vec<String> {
    let list = list.trim_start_matches([' ', ':', '(', '[', '{', '\n']);
    let ends = [list.find([')', ']', '}', ';']), list.find("\n\n"), list.find(". ")];
    let end = ends.into_iter().flatten().min().unwrap_or(list.len());
    let list = list.get(..end).unwrap_or_default();
    let separator = if list.contains('|') { '|' } else { ',' };
    let values: Vec<String> = list
        .split(separator)
        .flat_map(|item| item.split(" or "))
        .map(|item| {
            item.trim()
                .trim_start_matches("or ")
                .trim_start_matches("and ")
                .trim_end_matches('.')
        })
        .filter(|item| !item.is_empty())
        .map(|item| bare_literal(item).to_owned())
        .take(MAX_VALUES + 1)
        .collect();
    let is_list = (2..=MAX_VALUES).contains(&values.len()) && values.iter().all(|value| is_literal(value));
    if is_list { values } else { Vec::new() }
}

/// `(a|b|c)` and `"json"|"yaml"` in a text.
fn alternatives(text: &str) -> Vec<String> {
    text.split([' ', '\n'])
        .filter(|word| word.contains('|'))
        .map(|word| word.trim_end_matches(['.', ',', ';', ':']))
        .filter(|word| (word.starts_with('(') && word.ends_with(')')) || word.contains('"'))
        .map(|word| values_of_placeholder(word.trim_matches(['(', ')', '[', ']', '{', '}'])))
        .find(|values| !values.is_empty())
        .unwrap_or_default()
}

/// The default that a text states, as it is written.
pub(super) fn default_of_text(text: &str) -> Option<Default> {
    let lower = text.to_ascii_lowercase();
    lower
        .match_indices("default")
        .find_map(|(at, word)| default_at(text.get(..at)?, text.get(at + word.len()..)?))
}

/// A default as it is written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Default {
    pub(super) text: String,
    /// It is in clap's brackets: a value, or several, and not a remark such as `(default: no limit)`.
    pub(super) is_value: bool,
    pub(super) is_quoted: bool,
}

/// `(default x)`, `[default: x]`; with a colon also in the middle of a bracket, `(int, default: 2)`, and as a sentence of its own.
fn default_at(before: &str, after: &str) -> Option<Default> {
    let opens = before.ends_with(['(', '[']);
    let goes_on = before.ends_with(", ") || before.ends_with("; ") || before.ends_with(". ") || before.is_empty();
    let (rest, has_colon) = match after.strip_prefix(':').or_else(|| after.strip_prefix('=')) {
        Some(rest) => (rest, true),
        None => (after.strip_prefix(' ')?, false),
    };
    if !(opens || (goes_on && has_colon)) {
        return None;
    }
    let rest = rest.trim_start();
    let rest = rest
        .strip_prefix("is ")
        .or_else(|| rest.strip_prefix("value "))
        .unwrap_or(rest);
    let inside = up_to_close(rest, goes_on && !opens);
    let inside = if opens { inside } else { inside.trim_end_matches('.') };
    let value = bare_literal(inside);
    let is_quoted = value.len() < inside.trim().len();
    Some(Default {
        is_value: before.ends_with('[') && has_colon,
        is_quoted,
        text: value.to_owned(),
    })
}

/// Up to the bracket that closes what `text` starts in, or to the next stop if it is in none.
fn up_to_close(text: &str, stops_at_comma: bool) -> &str {
    let mut depth = 0_usize;
    let mut quote = None;
    for (at, c) in text.char_indices() {
        let ends = match c {
            _ if quote == Some(c) => {
                quote = None;
                false
            }
            _ if quote.is_some() => false,
            '"' | '`' => {
                quote = Some(c);
                false
            }
            '(' | '[' => {
                depth += 1;
                false
            }
            ')' | ']' if depth == 0 => true,
            ')' | ']' => {
                depth -= 1;
                false
            }
            ',' | ';' => stops_at_comma && depth == 0,
            _ => false,
        };
        if ends {
            return text.get(..at).unwrap_or(text);
        }
    }
    text
}

/// A default as JSON of its type; `None` when it is a remark, or nothing at all.
pub(super) fn typed_default(default: &Default, ty: ValueType, repeated: bool) -> Option<Value> {
    let text = default.text.trim();
    if repeated {
        return list_default(text, ty, default.is_value || default.is_quoted);
    }
    match ty {
        ValueType::Bool => (text == "true").then_some(Value::Bool(true)),
        ValueType::Map | ValueType::IntegerMap | ValueType::Count => None,
        ValueType::String | ValueType::Json if is_single(default) || is_word(text) => scalar(text, ty),
        ValueType::String | ValueType::Json => None,
        _ => scalar(text, ty),
    }
}

/// Whether it is one value for sure. One that is not quoted and has blanks was wrapped, and is not what it was.
fn is_single(default: &Default) -> bool {
    default.is_quoted || (default.is_value && !default.text.contains(char::is_whitespace))
}

fn list_default(text: &str, ty: ValueType, is_value: bool) -> Option<Value> {
    let items: Vec<Value> = match text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        Some(items) => items.split(',').map_while(|item| scalar(bare_literal(item), ty)).collect(),
        None if is_value || is_word(text) => text
            .split_whitespace()
            .map_while(|item| scalar(bare_literal(item), ty))
            .collect(),
        None => return None,
    };
    (!items.is_empty()).then_some(Value::Array(items))
}

fn scalar(text: &str, ty: ValueType) -> Option<Value> {
    match ty {
        ValueType::Integer => text.parse::<i64>().ok().map(Value::from),
        ValueType::Unsigned => text.parse::<u64>().ok().map(Value::from),
        ValueType::Number if text.parse::<i64>().is_ok() => scalar(text, ValueType::Integer),
        ValueType::Number => text.parse::<f64>().ok().and_then(Number::from_f64).map(Value::Number),
        // `--wait duration (default never)`: what the program means by it is not what the flag takes.
        _ => (!text.is_empty() && crate::values::matches(ty, text)).then(|| Value::from(text)),
    }
}

/// A list without the default is not the whole list.
pub(super) fn only_with_default(values: Vec<String>, default: Option<&Value>) -> Vec<String> {
    let defaults = match default {
        Some(Value::Array(items)) => items.as_slice(),
        other => other.map_or(&[][..], std::slice::from_ref),
    };
    let is_listed = |default: &Value| default.as_str().is_none_or(|text| values.iter().any(|value| value == text));
    if defaults.iter().all(is_listed) { values } else { Vec::new() }
}

/// Whether an unquoted default is one, and not a remark (`none`, `$VARIABLE`, `see below`).
fn is_word(text: &str) -> bool {
    !text.contains(char::is_whitespace)
        && !text.contains('|')
        && !text.starts_with(['$', '<', '['])
        && ![
            "none",
            "unset",
            "null",
            "nil",
            "unlimited",
            "disabled",
            "enabled",
            "map[]",
            "stdin",
            "stdout",
            "off)",
        ]
        .contains(&text.to_ascii_lowercase().as_str())
}

/// Whether a text says that the option can be given more than once.
pub(super) fn says_repeated(text: &str) -> bool {
    text.to_ascii_lowercase().split(". ").any(|sentence| {
        let says = |words: &[&str]| words.iter().any(|word| sentence.contains(word));
        let often = says(&[
            "multiple times",
            "more than once",
            "several times",
            "repeatedly",
            "once or more",
        ]);
        let given = says(&[
            "can be",
            "may be",
            "specify",
            "specified",
            "given",
            "pass",
            "supplied",
            "use this",
            "use multiple",
            "repeat",
        ]);
        let plainly = says(&[
            "can be repeated",
            "may be repeated",
            "(repeatable",
            "[repeatable",
            "is repeatable",
            "repeat to ",
            "specify twice",
            "option twice",
            "pass twice",
            "is additive",
            "can repeat",
            "repeat this",
            "(repeat ",
        ]) || sentence.starts_with("repeatable");
        (plainly || (often && given)) && !says(&["cannot", "can't", "must not", "may not", "only once"])
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn placeholders_have_types() {
        use ValueType::*;
        for (family, placeholder, text, ty) in [
            (Family::Clap, "<N>", "", Integer),
            (Family::Gnu, "[-]NUM", "", String),
            (Family::Gnu, "NUM", "NUM may have a multiplier suffix", String),
            (Family::Clap, "<KEY=VALUE>", "", Map),
            (Family::Clap, "<JSON>", "", Json),
            (Family::Clap, "<PARAMS>", "Parameters as a JSON object", Json),
            (Family::Clap, "<FILE>", "File with a JSON object", String),
            (Family::Cobra, "uint16", "", Unsigned),
            (Family::Cobra, "stringToInt", "", IntegerMap),
            (Family::GoFlag, "value", "", String),
            (Family::Argparse, "TIME", "", String),
        ] {
            assert_eq!(nature(family, placeholder, text).ty, ty, "{placeholder}");
        }
        assert_eq!(pflag_nature("strings"), Some(Nature::list(String)));
    }

    #[test]
    fn values_are_literals() {
        for (placeholder, values) in [
            ("{a,b}", vec!["a", "b"]),
            ("<on|off>", vec!["on", "off"]),
            ("[py33|py34]", vec!["py33", "py34"]),
            ("<date|dur>", vec![]),
            ("[FILE|DIR ...]", vec![]),
            ("FILE", vec![]),
        ] {
            assert_eq!(values_of_placeholder(placeholder), values, "{placeholder}");
        }
        for (text, values) in [
            ("When [default: auto] [possible values: auto, never]", vec!["auto", "never"]),
            ("Possible values:\n- a: first\n- b\nmore", vec!["a", "b"]),
            ("Output format. One of: (json, yaml). See", vec!["json", "yaml"]),
            ("mode, one of (auto|off|max) (default auto)", vec!["auto", "off", "max"]),
            ("must be one of a, b, or c", vec!["a", "b", "c"]),
            ("Must be one of: strict (or true), warn", vec![]),
            ("Output as \"json\"|\"yaml\"", vec!["json", "yaml"]),
            ("namespace (host|private)", vec!["host", "private"]),
            ("one of the many things, or not", vec![]),
            ("do not respect .(git|fd)ignore files", vec![]),
        ] {
            assert_eq!(values_of_text(text), values, "{text}");
        }
    }

    #[test]
    fn defaults_have_the_type_of_their_flag() {
        use ValueType::*;
        for (text, ty, repeated, expected) in [
            ("x [default: warn]", String, false, Some(json!("warn"))),
            ("x (default \"a b\")", String, false, Some(json!("a b"))),
            ("x (default: 12 MHz)", String, false, None),
            ("x (default: $HOME)", String, false, None),
            ("x (default 3) lines", Integer, false, Some(json!(3))),
            ("x (int, default: 2)", Integer, false, Some(json!(2))),
            ("x; default: heap", String, false, Some(json!("heap"))),
            ("x (default true)", Bool, false, Some(json!(true))),
            ("x (default [a,b])", String, true, Some(json!(["a", "b"]))),
            ("x (default [])", String, true, None),
            ("x (default \"\")", String, false, None),
            ("x [default: 1 2]", Integer, true, Some(json!([1, 2]))),
            ("the default is good", String, false, None),
            ("x (default: 0.5)", Number, false, Some(json!(0.5))),
            ("x. Default: 10.", Number, false, Some(json!(10))),
            ("x. Default: see below.", String, false, None),
        ] {
            let default = default_of_text(text);
            assert_eq!(
                default.and_then(|default| typed_default(&default, ty, repeated)),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn repetition() {
        for text in [
            "Can be repeated.",
            "may be specified multiple times",
            "verbose (repeat to increase verbosity)",
            "Repeatable",
        ] {
            assert!(says_repeated(text), "{text}");
        }
        for text in ["It cannot be used multiple times", "files that were read multiple times", ""] {
            assert!(!says_repeated(text), "{text}");
        }
    }
}
