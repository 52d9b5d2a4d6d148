//! Names of notes, while somebody types one.

use crate::exports::host::mcp::completions::{Completion, Guest, Subject};
use crate::prompts::{NAME, SUMMARIZE};
use crate::resources::TEMPLATE;
use crate::{Notes, folder};

impl Guest for Notes {
    fn complete(subject: Subject, argument: String, value: String, _known: Vec<(String, String)>) -> Completion {
        let takes_a_note = match &subject {
            Subject::Prompt(name) => name == SUMMARIZE,
            Subject::Template(template) => template == TEMPLATE,
        };
        let mut values = Vec::new();
        if takes_a_note && argument == NAME {
            let names = folder::list()
                .unwrap_or_default()
                .into_iter()
                .map(|(name, _)| name.to_string());
            values.extend(names.filter(|name| name.starts_with(&value)));
        }
        Completion {
            total: Some(values.len() as u32),
            values,
        }
    }
}
