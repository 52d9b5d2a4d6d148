//! Command-line programs as tools: the twin of `component2json`.
//!
//! Help text or a description → command tree → JSON Schema; JSON arguments → argv; captured output → JSON.
//!
//! Pure: it runs nothing, reads no file, and knows neither a runtime nor a protocol. Whatever a program prints is hostile here; names
//! and texts are bounded before anybody sees them.

mod argv;
mod description;
mod discover;
mod help;
mod input_schema;
mod kdl;
mod output;
mod output_schema;
mod plan;
mod schema;
mod select;
mod table;
mod text;
mod tools;
mod tree;
mod usage;
mod values;

pub use argv::{CommandLine, json_to_argv};
pub use description::{DescriptionError, Given, read_cli_json};
pub use discover::{Answer, Discovered, discover};
pub use help::{Family, Help, parse_help};
pub use input_schema::input_schema;
pub use output::{Captured, output_text, output_to_json};
pub use output_schema::output_schema;
pub use plan::{Plan, PlannedFlag, PlannedPositional};
pub use schema::Checker;
pub use select::Patterns;
pub use text::add_argument;
pub use tools::{CommandTool, Offer, Target, tools};
pub use tree::{Command, Description, Effect, Flag, Format, Output, Pass, Positional, ValueType};
pub use usage::read_usage_kdl;
