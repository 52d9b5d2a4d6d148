//! What one value of each type looks like: its schema, and its text on a command line.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use crate::schema::Checker;
use crate::tree::ValueType;

/// Patterns are written once, so that the schema and the check cannot disagree. They are looser than the programs, which have the
/// last word.
const DURATION: &str = r"^-?(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h|d|w))+)$";
const IP: &str = r"^([0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9a-fA-F:]*:[0-9a-fA-F:.]*)$";
const IP_NET: &str = r"^([0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9a-fA-F:]*:[0-9a-fA-F:.]*)/[0-9]{1,3}$";
const HEX: &str = r"^([0-9a-fA-F]{2})*$";
const BASE64: &str = r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$";

/// A key ends at the first `=`.
const MAP_KEY: &str = "^[^=\\u0000]+$";

/// The pattern of a type whose values are strings of a certain form, with an example.
fn pattern(ty: ValueType) -> Option<(&'static str, &'static str)> {
    match ty {
        ValueType::Duration => Some((DURATION, "a duration such as \"1h30m\"")),
        ValueType::Ip => Some((IP, "an IP address such as \"10.0.0.1\"")),
        ValueType::IpNet => Some((IP_NET, "a network such as \"10.0.0.0/8\"")),
        ValueType::Hex => Some((HEX, "bytes in hexadecimal")),
        ValueType::Base64 => Some((BASE64, "bytes in base64")),
        _ => None,
    }
}

/// Whether a text has the form that values of this type have.
pub(crate) fn matches(ty: ValueType, text: &str) -> bool {
    type Compiled = LazyLock<Option<Regex>>;
    static DURATIONS: Compiled = LazyLock::new(|| Regex::new(DURATION).ok());
    static IPS: Compiled = LazyLock::new(|| Regex::new(IP).ok());
    static IP_NETS: Compiled = LazyLock::new(|| Regex::new(IP_NET).ok());
    static HEXES: Compiled = LazyLock::new(|| Regex::new(HEX).ok());
    static BASE64S: Compiled = LazyLock::new(|| Regex::new(BASE64).ok());
    let compiled = match ty {
        ValueType::Duration => &DURATIONS,
        ValueType::Ip => &IPS,
        ValueType::IpNet => &IP_NETS,
        ValueType::Hex => &HEXES,
        ValueType::Base64 => &BASE64S,
        _ => return true,
    };
    compiled.as_ref().is_none_or(|regex| regex.is_match(text))
}

/// The schema of one value.
pub(crate) fn schema(ty: ValueType, values: &[String], jsonschema: Option<&Value>) -> Value {
    let integer = || json!({"type": "integer", "minimum": i64::MIN, "maximum": u64::MAX});
    let map_of = |value: Value| json!({"type": "object", "additionalProperties": value, "propertyNames": {"pattern": MAP_KEY}});
    match ty {
        ValueType::Bool => json!({"type": "boolean"}),
        ValueType::Count => json!({"type": "integer", "minimum": 0}),
        ValueType::Map => map_of(json!({"type": "string"})),
        ValueType::IntegerMap => map_of(integer()),
        ValueType::Json => jsonschema.cloned().unwrap_or_else(any_json),
        _ if !values.is_empty() => json!({"type": "string", "enum": values}),
        ValueType::Unsigned => json!({"type": "integer", "minimum": 0, "maximum": u64::MAX}),
        ValueType::Integer => integer(),
        ValueType::Number => json!({"type": "number"}),
        _ => match pattern(ty) {
            Some((pattern, _)) => json!({"type": "string", "pattern": pattern}),
            None => json!({"type": "string"}),
        },
    }
}

/// Any JSON: an object, or the text of whatever else. (Other values are accepted as they are, but a list needs a schema for its items
/// in the eyes of some model APIs, and of them nothing is known.)
fn any_json() -> Value {
    json!({"anyOf": [{"type": "object"}, {"type": "string"}]})
}

/// One value as the program reads it, or what it should have been instead.
pub(crate) fn text(ty: ValueType, values: &[String], checker: Option<&Checker>, value: &Value) -> Result<String, String> {
    // One of several words is text, whatever each of them is.
    let ty = match ty {
        ValueType::Json => return json_text(checker, value),
        _ if values.is_empty() => ty,
        _ => ValueType::String,
    };
    let text = match (ty, value) {
        (ValueType::Bool, Value::Bool(flag)) => flag.to_string(),
        (ValueType::Integer | ValueType::Unsigned, value) => whole_number(value).ok_or("expected a whole number")?,
        (ValueType::Number, Value::Number(number)) => number.to_string(),
        (ValueType::Number, _) => return Err("expected a number".to_owned()),
        (ValueType::Bool, _) => return Err("expected true or false".to_owned()),
        (_, Value::String(text)) => text.clone(),
        // A program sees text only, so `5` says the same as `"5"`.
        (_, Value::Number(_) | Value::Bool(_)) if pattern(ty).is_none() => value.to_string(),
        _ if values.is_empty() => return Err("expected a string".to_owned()),
        _ => return Err(one_of(values)),
    };
    if text.contains('\0') {
        return Err("a NUL character cannot be passed to a program".to_owned());
    }
    if ty == ValueType::Unsigned && text.starts_with('-') {
        return Err("expected a whole number from 0 on".to_owned());
    }
    if let Some((_, example)) = pattern(ty).filter(|_| !matches(ty, &text)) {
        return Err(format!("expected {example}"));
    }
    if values.is_empty() || values.contains(&text) {
        return Ok(text);
    }
    Err(one_of(values))
}

fn one_of(values: &[String]) -> String {
    let values: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
    format!("expected one of {}", values.join(", "))
}

/// `5.0` is a whole number, too.
pub(crate) fn whole_number(value: &Value) -> Option<String> {
    let number = value.as_number()?;
    if number.is_f64() {
        let float = number.as_f64()?;
        let is_whole = float.fract() == 0.0 && (i64::MIN as f64..=u64::MAX as f64).contains(&float);
        return is_whole.then(|| format!("{float:.0}"));
    }
    Some(number.to_string())
}

/// JSON for a flag that takes JSON: any value is written out; a string that is JSON already is passed as it is.
fn json_text(checker: Option<&Checker>, value: &Value) -> Result<String, String> {
    let parsed = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let fits = |value: &Value| checker.map_or(Ok(()), |checker| checker.check(value));
    // A string is JSON itself where that is what the schema wants; else it is the text of some.
    let text = match (fits(value), parsed) {
        (Ok(()), Some(_)) if checker.is_none() => value.as_str().unwrap_or_default().to_owned(),
        (Ok(()), _) => value.to_string(),
        (Err(_), Some(parsed)) => {
            fits(&parsed)?;
            value.as_str().unwrap_or_default().to_owned()
        }
        (Err(error), None) => return Err(error),
    };
    if text.contains('\0') {
        return Err("a NUL character cannot be passed to a program".to_owned());
    }
    Ok(text)
}
