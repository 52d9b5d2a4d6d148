//! Completions of the first argument of a prompt.

use crate::Conformance;
use crate::exports::host::mcp::completions::{Completion, Guest, Subject};
use crate::prompts::WITH_ARGUMENTS;

const WORDS: [&str; 5] = ["paris", "park", "party", "test", "testValue1"];

impl Guest for Conformance {
    fn complete(subject: Subject, argument: String, value: String, _known: Vec<(String, String)>) -> Completion {
        let known_argument = matches!(&subject, Subject::Prompt(name) if name == WITH_ARGUMENTS) && argument == "arg1";
        let fitting = WORDS.iter().filter(|word| known_argument && word.starts_with(&value));
        let values: Vec<String> = fitting.map(|word| (*word).to_owned()).collect();
        Completion {
            total: Some(values.len() as u32),
            values,
        }
    }
}
