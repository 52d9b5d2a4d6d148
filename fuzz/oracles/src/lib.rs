//! What the fuzz targets check.
//!
//! A fuzz target is three lines around one of these functions, and a test calls the same function with every input that is kept in
//! `fuzz/seeds` and `fuzz/regressions`. So what a fuzzer once found is looked at in every test run, with no fuzzer at hand.
//!
//! Each function takes any bytes at all. It returns what does not hold of them; a panic is a finding just as well.

mod component;
mod decision;
mod help;
mod json;
mod schema;
mod types;
mod wit;

use std::fmt;

pub use component::component_to_tools;
pub use decision::policy_decision;
pub use help::help_to_tree;
pub use json::json_round_trip;

/// Something that should hold of every input, and does not hold of this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken(String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Broken {}

/// Returns what is broken, unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::Broken(format!($($message)+)));
        }
    };
}
pub(crate) use ensure;
