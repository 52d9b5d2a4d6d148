//! A prompt that hands notes to the model, so that nobody has to paste them.

use crate::exports::host::mcp::prompts::{Argument, Error, Filled, Guest, Message, Prompt};
use crate::folder::{self, Name};
use crate::host::mcp::content::{Block, ResourceBlock, Role};
use crate::{Notes, resources, text_block};

pub const SUMMARIZE: &str = "summarize_notes";
pub const NAME: &str = "name";

impl Guest for Notes {
    fn list() -> Vec<Prompt> {
        vec![Prompt {
            name: SUMMARIZE.to_owned(),
            title: Some("Summarize notes".to_owned()),
            description: Some("A short summary of one note, or of all of them".to_owned()),
            arguments: vec![Argument {
                name: NAME.to_owned(),
                title: None,
                description: Some("The note; all, if this is left out".to_owned()),
                required: false,
            }],
        }]
    }

    fn get(name: String, arguments: Vec<(String, String)>) -> Result<Filled, Error> {
        if name != SUMMARIZE {
            return Err(Error::NotFound);
        }
        let wanted = arguments.into_iter().find(|(argument, _)| argument == NAME);
        let names = match wanted {
            Some((_, name)) => vec![folder::find(&name).map_err(Error::Invalid)?],
            None => all_names().map_err(Error::Failed)?,
        };
        let mut messages = vec![from_user(text_block("Summarize these notes in a few sentences:"))];
        for name in &names {
            messages.push(from_user(embedded(name).map_err(Error::Failed)?));
        }
        Ok(Filled {
            description: None,
            messages,
        })
    }
}

fn all_names() -> Result<Vec<Name>, String> {
    Ok(folder::list()?.into_iter().map(|(name, _)| name).collect())
}

fn embedded(name: &Name) -> Result<Block, String> {
    Ok(Block::Embedded(ResourceBlock {
        resource: resources::contents(name)?,
        annotations: None,
    }))
}

fn from_user(content: Block) -> Message {
    Message {
        role: Role::User,
        content,
    }
}
