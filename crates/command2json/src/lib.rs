//! Command-line programs as tools: the twin of `component2json`.
//!
//! Help text or a description → command tree → JSON Schema; JSON arguments → argv; captured output → JSON.
//!
//! Pure: it runs nothing, reads no file, and knows neither a runtime nor a protocol. Whatever a program prints is hostile here; names
//! and texts are bounded before anybody sees them.

mod tree;

pub use tree::{Command, Description, Effect, Flag, Format, Output, Pass, Positional, ValueType};
