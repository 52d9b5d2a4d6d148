//! The command tree: what is known of a program's commands.
//!
//! It is also the form of a description file, `NAME.cli.json`: wire contract, documented in `docs/cli-tools.md`. Everything may be
//! left out, and what is left out is not known.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A description file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Description {
    /// This is all there is to know: the program is not asked for its help, and what is not written here is not offered.
    #[serde(default, skip_serializing_if = "is_false")]
    pub complete: bool,
    pub command: Command,
}

/// Deeper than this no program nests its commands.
pub(crate) const MAX_DEPTH: usize = 16;

/// A command: the program itself, or one of its subcommands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Command {
    /// As it is typed.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// One line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The long text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub hidden: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub deprecated: bool,
    /// Whether it does something itself, or only groups others. Unknown: it does, unless it has subcommands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runnable: Option<bool>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<Flag>,
    /// The positionals in their order. Unknown: any number of any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<Positional>>,
    /// Nothing is known of it: `args` is its whole command line, with any flags among it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub bare: bool,
    /// Whether `--` ends its flags, as usual. Where it does not, no positional may start with a dash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dashes: Option<bool>,
    /// Whether it reads its standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// Whether doing it twice is the same as doing it once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// Whether it deals with things outside of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Command>,
}

/// An option of a command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Flag {
    /// All spellings, as they are typed: `--output`, `-o`. The first long one names the flag.
    pub names: Vec<String>,
    #[serde(rename = "type", default, skip_serializing_if = "is_default")]
    pub ty: ValueType,
    /// What the help calls its value, as in `FILE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The only values that it takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// It can be given several times, once for each element of a list.
    #[serde(default, skip_serializing_if = "is_false")]
    pub repeated: bool,
    /// It can also be given without a value, as in `--color[=WHEN]`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub optional_value: bool,
    /// The spelling that turns it off, as in `--no-color`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub negation: Option<String>,
    /// Subcommands take it too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub inherited: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub hidden: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub deprecated: bool,
    /// How its value is passed. Unknown: `--flag=value`, `-fvalue`, and `-flag value` for long names with one dash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass: Option<Pass>,
    /// The program splits its value at commas, so that elements with a comma need quotes (pflag's slices and maps).
    #[serde(default, skip_serializing_if = "is_false")]
    pub comma_separated: bool,
    /// What the JSON of a `json` flag looks like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jsonschema: Option<Value>,
    /// What giving it does, where that is more than what the command does anyway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
}

/// An argument that has its place instead of a name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Positional {
    pub name: String,
    #[serde(rename = "type", default, skip_serializing_if = "is_default")]
    pub ty: ValueType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
    /// Takes all that is left.
    #[serde(default, skip_serializing_if = "is_false")]
    pub variadic: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The only values that it takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// It is taken only after a `--`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub after_dashes: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jsonschema: Option<Value>,
}

/// What a value is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ValueType {
    /// Given or not given; takes no value.
    Bool,
    /// Takes no value and counts how often it is given, as in `-vvv`.
    Count,
    Integer,
    /// A whole number from zero.
    Unsigned,
    Number,
    #[default]
    String,
    /// As in `1h30m`.
    Duration,
    /// An address, as in `10.0.0.1` or `::1`.
    Ip,
    /// A network, as in `10.0.0.0/8`.
    IpNet,
    /// Bytes in hexadecimal.
    Hex,
    Base64,
    /// `key=value`, given once for each key.
    Map,
    /// A map whose values are whole numbers.
    IntegerMap,
    /// JSON in a string.
    Json,
}

/// How a flag's value is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Pass {
    /// `--flag=value`
    Equals,
    /// `-fvalue`
    Attached,
    /// `--flag value`. A value that starts with a dash is refused then.
    Separate,
}

/// What a command prints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Output {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// What the parsed output looks like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// What is always passed to get that output, as in `--format=json`. A flag that is forced is not offered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub force: Vec<String>,
}

/// The form of what a command prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Format {
    /// Never parsed, even if it looks like JSON.
    Text,
    Json,
    /// One JSON value on each line.
    Jsonl,
    Yaml,
    /// Columns under a line of headings.
    Table,
}

/// What running a command may change, from little to much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    Read,
    Write,
    Destructive,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
