//! Arguments as a person types them: `name=value`, `--name value`, `--name=value`, `--flag`, `--no-flag`, read by the schema of the tool.

use serde_json::{Map, Value};

use crate::plain_line;
use crate::references::{follow, type_of};

/// How far references and nested objects are followed.
const MAX_DEPTH: usize = 3;
const MAX_PARAMETERS: usize = 500;
/// Of an `allOf`.
const MAX_PARTS: usize = 20;

/// What a tool takes, one entry for every value that can be given by itself.
#[derive(Clone, Debug)]
pub struct Parameters {
    all: Vec<Parameter>,
    /// The schema names none, and forbids none either.
    takes_any: bool,
    /// Options of the command itself, which no parameter can take.
    reserved: Vec<String>,
}

/// One value that a tool takes.
#[derive(Clone, Debug)]
struct Parameter {
    /// The keys that lead to it; more than one for what is inside an object.
    path: Vec<String>,
    types: Types,
    /// Of a list: the types of an item.
    items: Option<Types>,
    /// What a person reads about it.
    about: String,
}

/// The JSON types that a schema allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Types {
    text: bool,
    integer: bool,
    number: bool,
    boolean: bool,
    null: bool,
    list: bool,
    object: bool,
}

/// An argument that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    #[error("there is no argument `{name}`{}", nearest(.known))]
    Unknown { name: String, known: Vec<String> },
    #[error("`{name}` needs a value, as in `--{name} VALUE`")]
    NoValue { name: String },
    #[error("`{found}` is no value for `{name}`, which takes: {expected}")]
    Type { name: String, expected: String, found: String },
    #[error("`{name}` is given twice")]
    Twice { name: String },
    #[error("`{0}` is no argument\nhint: write it as `name=value` or `--name value`, or give all of them with `--args`")]
    Word(String),
    #[error("`{0}` is inside of what is given as something else than an object")]
    Inside(String),
}

fn nearest(known: &[String]) -> String {
    match known {
        [] => "; it takes none".to_owned(),
        [one] => format!("\nhint: there is `{one}`"),
        [best, others @ ..] => {
            let others = others.iter().take(7).map(|name| format!("`{name}`")).collect::<Vec<_>>();
            format!("\nhint: did you mean `{best}`? there are also {}", others.join(", "))
        }
    }
}

impl Parameters {
    /// Those of a schema. The names in `reserved` can be given as `name=value` only.
    pub fn of(schema: &Value, reserved: Vec<String>) -> Self {
        let mut all = Vec::new();
        collect(schema, schema, &mut Vec::new(), true, &mut all);
        let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        Self {
            takes_any: all.is_empty() && !is_closed,
            all,
            reserved,
        }
    }

    /// Is `--help` among the words, where it is no value of another?
    pub fn asks_for_help(&self, words: &[String]) -> bool {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if matches!(word.as_str(), "-h" | "--help") {
                return true;
            }
            let flag = word.strip_prefix("--").filter(|flag| !flag.contains('='));
            if flag
                .and_then(|flag| self.find(flag))
                .is_some_and(|parameter| !parameter.types.is_switch())
            {
                words.next();
            }
        }
        false
    }

    /// The name and the text of every argument, for who reads them otherwise: of a flag its last key, of `name=value` the name as it is.
    pub fn pairs(&self, words: &[String]) -> Result<Vec<(String, String)>, ArgumentError> {
        let given = self.given(words)?;
        let pair = |given: Given| {
            let name = match given.parameter {
                Some(parameter) if given.is_flag => parameter.path.last().cloned().unwrap_or_default(),
                _ => given.name,
            };
            (name, given.text)
        };
        Ok(given.into_iter().map(pair).collect())
    }

    /// Adds what was typed to the arguments.
    pub fn add(&self, arguments: &mut Map<String, Value>, words: &[String]) -> Result<(), ArgumentError> {
        let mut seen: Vec<&[String]> = Vec::new();
        for given in self.given(words)? {
            let Some(parameter) = given.parameter else {
                if self.takes_any && !given.is_flag {
                    let value = Types::ANY.read(&given.text).unwrap_or_default();
                    arguments.insert(given.name, value);
                    continue;
                }
                return Err(self.unknown(&given.name));
            };
            let Some((key, outer)) = parameter.path.split_last() else {
                continue;
            };
            let mut object = &mut *arguments;
            for step in outer {
                let entry = object.entry(step.clone()).or_insert_with(|| Value::Object(Map::new()));
                object = entry
                    .as_object_mut()
                    .ok_or_else(|| ArgumentError::Inside(given.name.clone()))?;
            }
            let is_first = !seen.contains(&parameter.path.as_slice());
            seen.push(&parameter.path);
            match parameter.value(&given)? {
                Typed::Item(item) => match object.get_mut(key) {
                    Some(Value::Array(items)) if !is_first => items.push(item),
                    _ => {
                        object.insert(key.clone(), Value::Array(vec![item]));
                    }
                },
                Typed::Whole(value) if is_first => {
                    object.insert(key.clone(), value);
                }
                Typed::Whole(_) => return Err(ArgumentError::Twice { name: given.name }),
            }
        }
        Ok(())
    }

    /// For `--help`: how each is written, and what it is.
    pub fn help(&self) -> Vec<(String, String)> {
        let row = |parameter: &Parameter| {
            let name = self.flag(parameter);
            let types = parameter.types_in_words();
            let written = match () {
                () if self.is_reserved(&name) => format!("{name}=<{types}>"),
                () if parameter.types.is_switch() => format!("--{name}"),
                () => format!("--{name} <{types}>"),
            };
            (written, parameter.about.clone())
        };
        self.all.iter().map(row).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    fn is_reserved(&self, flag: &str) -> bool {
        self.reserved.iter().any(|reserved| reserved == flag)
    }

    /// The last key where that is enough, else all of them, as people write flags.
    fn flag(&self, parameter: &Parameter) -> String {
        let last = parameter.path.last().map(String::as_str).unwrap_or_default();
        let alike = self
            .all
            .iter()
            .filter(|other| other.path.last().is_some_and(|key| same(key, last)));
        let name = if alike.count() == 1 {
            last.to_owned()
        } else {
            parameter.path.join(".")
        };
        kebab(&name)
    }

    fn find(&self, name: &str) -> Option<&Parameter> {
        let by = |is_it: &dyn Fn(&Parameter) -> bool| {
            let mut found = self.all.iter().filter(|parameter| is_it(parameter));
            found.next().filter(|_| found.next().is_none())
        };
        by(&|parameter| parameter.path.join(".") == name)
            .or_else(|| by(&|parameter| parameter.path.last().is_some_and(|key| key == name)))
            .or_else(|| by(&|parameter| same(&parameter.path.join("."), name)))
            .or_else(|| by(&|parameter| parameter.path.last().is_some_and(|key| same(key, name))))
    }

    fn unknown(&self, name: &str) -> ArgumentError {
        let mut known: Vec<String> = self.all.iter().map(|parameter| self.flag(parameter)).collect();
        known.sort_by_cached_key(|known| (strsim::damerau_levenshtein(known, name), known.clone()));
        ArgumentError::Unknown {
            name: plain_line(name),
            known,
        }
    }

    /// What the words mean, without reading any value.
    fn given<'a>(&'a self, words: &[String]) -> Result<Vec<Given<'a>>, ArgumentError> {
        let mut given = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(flag) = word.strip_prefix("--").filter(|flag| !flag.is_empty()) else {
                let (name, text) = word.split_once('=').ok_or_else(|| ArgumentError::Word(word.clone()))?;
                given.push(Given {
                    name: name.to_owned(),
                    is_flag: false,
                    parameter: self.find(name),
                    text: text.to_owned(),
                });
                continue;
            };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (flag, None),
            };
            let negated = || {
                let parameter = self.find(name.strip_prefix("no-")?)?;
                parameter.types.is_switch().then_some(parameter)
            };
            let (parameter, text) = match (self.find(name), value) {
                (Some(parameter), Some(value)) => (parameter, value),
                (Some(parameter), None) if parameter.types.is_switch() => (parameter, "true".to_owned()),
                (Some(parameter), None) => {
                    let missing = || ArgumentError::NoValue { name: name.to_owned() };
                    (parameter, words.next().ok_or_else(missing)?.clone())
                }
                (None, None) => (negated().ok_or_else(|| self.unknown(name))?, "false".to_owned()),
                (None, Some(_)) => return Err(self.unknown(name)),
            };
            given.push(Given {
                name: name.to_owned(),
                is_flag: true,
                parameter: Some(parameter),
                text,
            });
        }
        Ok(given)
    }
}

/// One argument as it was typed.
struct Given<'a> {
    name: String,
    is_flag: bool,
    parameter: Option<&'a Parameter>,
    text: String,
}

enum Typed {
    Whole(Value),
    /// One of a list that may get more.
    Item(Value),
}

impl Parameter {
    fn value(&self, given: &Given<'_>) -> Result<Typed, ArgumentError> {
        let wrong = || ArgumentError::Type {
            name: given.name.clone(),
            expected: self.types_in_words(),
            found: plain_line(&given.text),
        };
        match self.items {
            Some(items) if !given.text.trim_start().starts_with('[') => items.read(&given.text).map(Typed::Item).ok_or_else(wrong),
            _ => self.types.read(&given.text).map(Typed::Whole).ok_or_else(wrong),
        }
    }

    fn types_in_words(&self) -> String {
        match self.items {
            Some(items) if self.types.only_list() => format!("list of {}", items.in_words()),
            _ => self.types.in_words(),
        }
    }
}

impl Types {
    const ANY: Self = Self {
        text: true,
        integer: true,
        number: true,
        boolean: true,
        null: true,
        list: true,
        object: true,
    };

    /// The value of a text, if these types have one. Text is taken for text only if it is nothing else.
    fn read(self, text: &str) -> Option<Value> {
        let json = serde_json::from_str::<Value>(text).ok().filter(|value| match value {
            Value::Null => self.null,
            Value::Bool(_) => self.boolean,
            Value::Number(number) => self.number || (self.integer && !number.is_f64()),
            Value::Array(_) => self.list,
            Value::Object(_) => self.object,
            // Quotes are a part of a text, unless the value could be anything.
            Value::String(_) => self == Self::ANY,
        });
        json.or_else(|| self.text.then(|| text.into()))
    }

    /// Nothing but true and false, or null.
    fn is_switch(self) -> bool {
        let switch = Self {
            boolean: true,
            null: self.null,
            ..Self::default()
        };
        self == switch
    }

    /// Nothing but lists, or null.
    fn only_list(self) -> bool {
        let list = Self {
            list: true,
            null: self.null,
            ..Self::default()
        };
        self == list
    }

    fn in_words(self) -> String {
        if self == Self::ANY {
            return "any JSON".to_owned();
        }
        let words = [
            (self.text, "text"),
            (self.number, "number"),
            (self.integer && !self.number, "integer"),
            (self.boolean, "true or false"),
            (self.list, "list"),
            (self.object, "object"),
        ];
        let words: Vec<&str> = words.iter().filter(|(allowed, _)| *allowed).map(|(_, word)| *word).collect();
        if words.is_empty() {
            "null".to_owned()
        } else {
            words.join(" or ")
        }
    }

    fn add(&mut self, name: &str) {
        match name {
            "string" => self.text = true,
            "integer" => self.integer = true,
            "number" => (self.number, self.integer) = (true, true),
            "boolean" => self.boolean = true,
            "null" => self.null = true,
            "array" => self.list = true,
            "object" => self.object = true,
            _ => {}
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            text: self.text || other.text,
            integer: self.integer || other.integer,
            number: self.number || other.number,
            boolean: self.boolean || other.boolean,
            null: self.null || other.null,
            list: self.list || other.list,
            object: self.object || other.object,
        }
    }

    /// What a schema allows, as far as that is easily seen; anything, where it is not.
    fn of(schema: &Value, root: &Value, depth: usize) -> Self {
        let schema = follow(root, schema);
        let of_values = |values: &[Value]| {
            let mut types = Self::default();
            for value in values {
                types.add(type_of(value));
            }
            types
        };
        let mut types = Self::default();
        match schema.get("type") {
            Some(Value::String(name)) => types.add(name),
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).for_each(|name| types.add(name)),
            _ => {}
        }
        if types == Self::default() {
            if let Some(values) = schema.get("enum").and_then(Value::as_array) {
                types = of_values(values);
            } else if let Some(value) = schema.get("const") {
                types = of_values(std::slice::from_ref(value));
            } else if depth < MAX_DEPTH {
                let choices = ["anyOf", "oneOf", "allOf"]
                    .iter()
                    .filter_map(|key| schema.get(key)?.as_array());
                for choice in choices.flatten() {
                    types = types.or(Self::of(choice, root, depth + 1));
                }
            }
        }
        if types == Self::default() { Self::ANY } else { types }
    }
}

/// The properties of an object; those of objects in it after the object itself.
fn collect(schema: &Value, root: &Value, path: &mut Vec<String>, outer_required: bool, all: &mut Vec<Parameter>) {
    let schema = follow(root, schema);
    // One level of it: that is how a tool with two models for its arguments is written.
    let parts = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
    for part in parts.take(MAX_PARTS).map(|part| follow(root, part)) {
        properties(part, root, path, outer_required, all);
    }
    properties(schema, root, path, outer_required, all);
}

fn properties(schema: &Value, root: &Value, path: &mut Vec<String>, outer_required: bool, all: &mut Vec<Parameter>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (key, property) in properties {
        if all.len() >= MAX_PARAMETERS {
            return;
        }
        let written = property;
        let property = follow(root, property);
        let types = Types::of(property, root, 0);
        let required = outer_required && required.contains(&key.as_str());
        path.push(key.clone());
        let items = items(property, root)
            .filter(|_| types.list)
            .map(|items| Types::of(items, root, 0));
        all.push(Parameter {
            path: path.clone(),
            types,
            items: items.or_else(|| types.only_list().then_some(Types::ANY)),
            about: about(written, property, required),
        });
        if path.len() < MAX_DEPTH {
            collect(property, root, path, required, all);
        }
        path.pop();
    }
}

/// The schema of the items of a list, or of the only list in a choice: `anyOf` a list and null is how a list is made optional.
fn items<'a>(property: &'a Value, root: &'a Value) -> Option<&'a Value> {
    let choices = ["anyOf", "oneOf"]
        .iter()
        .filter_map(|key| property.get(key)?.as_array())
        .flatten();
    let mut lists = choices.filter_map(|choice| follow(root, choice).get("items"));
    let only = lists.next().filter(|_| lists.next().is_none());
    property.get("items").or(only)
}

/// What a person reads about a property: as it is written where it stands, then as it is where that leads to.
fn about(written: &Value, property: &Value, required: bool) -> String {
    let either = |key: &str| written.get(key).or_else(|| property.get(key));
    let text = |key: &str| either(key).and_then(Value::as_str).map(plain_line);
    let short = |value: &Value| match value {
        Value::String(text) => plain_line(text),
        other => plain_line(&other.to_string()),
    };
    let mut parts: Vec<String> = text("description").or_else(|| text("title")).into_iter().collect();
    if let Some(values) = property.get("enum").and_then(Value::as_array) {
        let values: Vec<String> = values.iter().take(20).map(short).collect();
        parts.push(format!("[one of: {}]", values.join(", ")));
    }
    if let Some(default) = either("default").filter(|default| !default.is_null()) {
        parts.push(format!("[default: {}]", short(default)));
    }
    if required {
        parts.push("[required]".to_owned());
    }
    parts.join(" ")
}

/// `maxResults` and `max_results` as `max-results`.
fn kebab(name: &str) -> String {
    let mut kebab = String::with_capacity(name.len() + 4);
    let mut after_lower = false;
    for c in name.chars() {
        if c == '_' {
            kebab.push('-');
            after_lower = false;
            continue;
        }
        if c.is_uppercase() && after_lower {
            kebab.push('-');
        }
        after_lower = c.is_lowercase() || c.is_ascii_digit();
        kebab.extend(c.to_lowercase());
    }
    plain_line(&kebab)
}

fn same(a: &str, b: &str) -> bool {
    let letters = |name: &str| {
        name.chars()
            .filter(|c| !matches!(c, '-' | '_'))
            .flat_map(char::to_lowercase)
            .collect::<String>()
    };
    letters(a) == letters(b)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn typed(schema: Value, words: &[&str]) -> Result<Value, ArgumentError> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let mut arguments = Map::new();
        Parameters::of(&schema, Vec::new()).add(&mut arguments, &words)?;
        Ok(arguments.into())
    }

    fn everything() -> Value {
        json!({
            "type": "object",
            "properties": {
                "text": { "type": "string" },
                "count": { "type": "integer" },
                "ratio": { "type": "number" },
                "dryRun": { "type": "boolean" },
                "tags": { "type": "array", "items": { "type": "string" } },
                "sizes": { "type": "array", "items": { "$ref": "#/$defs/size" } },
                "filter": { "type": "object", "properties": { "max_age": { "type": ["integer", "null"] }, "text": { "type": "string" } } },
                "mode": { "enum": ["fast", "slow", 3] },
                "either": { "anyOf": [{ "type": "string" }, { "type": "boolean" }] },
                "anything": {},
            },
            "$defs": { "size": { "type": "integer" } },
        })
    }

    #[test]
    fn words_become_values_by_the_schema() {
        let cases: &[(&[&str], Value)] = &[
            (&["text=5"], json!({ "text": "5" })),
            (&["--text", "-5"], json!({ "text": "-5" })),
            (&["--text=a=b"], json!({ "text": "a=b" })),
            (&["--text", "\"q\""], json!({ "text": "\"q\"" })),
            (&["--count", "-5", "--ratio=0.5"], json!({ "count": -5, "ratio": 0.5 })),
            (&["--dry-run"], json!({ "dryRun": true })),
            (&["--no-dry-run"], json!({ "dryRun": false })),
            (&["--dryRun=false"], json!({ "dryRun": false })),
            (&["dry_run=true"], json!({ "dryRun": true })),
            (&["--tags", "a", "--tags", "b"], json!({ "tags": ["a", "b"] })),
            (&["tags=[\"a\",\"b\"]"], json!({ "tags": ["a", "b"] })),
            (&["sizes=1", "sizes=2"], json!({ "sizes": [1, 2] })),
            (&["--max-age", "3"], json!({ "filter": { "max_age": 3 } })),
            (&["--filter.max-age=null"], json!({ "filter": { "max_age": null } })),
            (&["filter={\"max_age\":1}"], json!({ "filter": { "max_age": 1 } })),
            (&["filter={}", "filter.text=x"], json!({ "filter": { "text": "x" } })),
            (&["mode=fast"], json!({ "mode": "fast" })),
            (&["mode=3"], json!({ "mode": 3 })),
            (&["either=true"], json!({ "either": true })),
            (&["either=yes"], json!({ "either": "yes" })),
            (&["anything=[1]"], json!({ "anything": [1] })),
            (&["anything=x y"], json!({ "anything": "x y" })),
        ];
        for (words, expected) in cases {
            assert_eq!(typed(everything(), words).as_ref(), Ok(expected), "{words:?}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_said() {
        let cases: &[(&[&str], &str)] = &[
            (&["--cuont", "1"], "there is no argument `cuont`\nhint: did you mean `count`?"),
            (&["--count", "x"], "`x` is no value for `count`, which takes: integer"),
            (&["--count", "1.5"], "`1.5` is no value for `count`, which takes: integer"),
            (
                &["--dry-run=maybe"],
                "`maybe` is no value for `dry-run`, which takes: true or false",
            ),
            (&["--count"], "`count` needs a value"),
            (&["count=1", "--count=2"], "`count` is given twice"),
            (&["word"], "`word` is no argument"),
            (&["sizes=x"], "`x` is no value for `sizes`, which takes: list of integer"),
            (&["--no-count"], "there is no argument `no-count`"),
        ];
        for (words, expected) in cases {
            let error = typed(everything(), words).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{words:?}: {error}");
        }
    }

    #[test]
    fn schemas_that_models_write_are_understood() {
        let schema = json!({
            "allOf": [{ "$ref": "#/$defs/a" }, { "properties": { "b": { "type": "integer" } } }],
            "properties": { "tags": { "anyOf": [{ "type": "array", "items": { "type": "string" } }, { "type": "null" }] } },
            "$defs": {
                "a": { "properties": { "level": { "$ref": "#/$defs/level", "description": "how loud", "default": "low" } } },
                "level": { "enum": ["low", "high"], "title": "Level" },
            },
        });
        let words = ["level=high", "b=1", "tags=5"];
        assert_eq!(
            typed(schema.clone(), &words),
            Ok(json!({ "level": "high", "b": 1, "tags": ["5"] }))
        );
        let help = Parameters::of(&schema, Vec::new()).help();
        assert_eq!(help[0].1, "how loud [one of: low, high] [default: low]");
    }

    #[test]
    fn what_takes_anything_takes_anything() {
        let open = json!({ "type": "object" });
        assert_eq!(typed(open.clone(), &["a=1", "b=x"]), Ok(json!({ "a": 1, "b": "x" })));
        assert!(typed(open, &["--a", "1"]).is_err());
        let closed = json!({ "type": "object", "additionalProperties": false });
        assert!(typed(closed, &["a=1"]).is_err());
    }

    #[test]
    fn help_is_asked_for_and_not_sent() {
        let parameters = Parameters::of(&everything(), Vec::new());
        let asks = |words: &[&str]| parameters.asks_for_help(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert!(asks(&["--text", "a", "--help"]) && asks(&["--dry-run", "-h"]));
        assert!(!asks(&["--text", "-h"]) && !asks(&["--text=--help"]));
    }

    #[test]
    fn help_says_how_each_is_written() {
        let help = Parameters::of(&everything(), vec!["count".to_owned()]).help();
        let written: Vec<&str> = help.iter().map(|(written, _)| written.as_str()).collect();
        assert_eq!(
            written,
            [
                "--text <text>",
                "count=<integer>",
                "--ratio <number>",
                "--dry-run",
                "--tags <list of text>",
                "--sizes <list of integer>",
                "--filter <object>",
                "--max-age <integer>",
                "--filter.text <text>",
                "--mode <text or integer>",
                "--either <text or true or false>",
                "--anything <any JSON>",
            ]
        );
    }
}
