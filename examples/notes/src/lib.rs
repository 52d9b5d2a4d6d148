//! Notes in a directory, for a model and its user.
//!
//! This file has the tools; `resources`, `prompts` and `completions` have what else is offered, and `folder` the notes themselves.

mod completions;
mod folder;
mod prompts;
mod resources;

wit_bindgen::generate!({ path: "wit", generate_all });

use folder::Name;
use host::mcp::content::{Block, ResourceLink, TextBlock};
use host::mcp::questions::{Elicited, Error};
use host::mcp::{cancelled, changes, elicit, progress};

/// A form without fields: all that the user can do is agree or not.
const YES_OR_NO: &str = r#"{"type": "object", "properties": {}}"#;

struct Notes;

impl Guest for Notes {
    fn list_notes() -> Result<Vec<Note>, String> {
        let kept = folder::list()?;
        Ok(kept
            .into_iter()
            .map(|(name, size)| Note {
                name: name.to_string(),
                size,
            })
            .collect())
    }

    fn add_note(name: String, text: String) -> Result<Content, String> {
        let name: Name = name.parse()?;
        folder::add(&name, &text)?;
        changes::resources();
        Ok(answer(vec![
            text_block(format!("Kept `{name}`.")),
            Block::Link(ResourceLink {
                uri: name.uri(),
                name: name.to_string(),
                title: None,
                description: None,
                mime_type: Some(folder::MIME_TYPE.to_owned()),
                size: Some(text.len() as u64),
                annotations: None,
            }),
        ]))
    }

    fn delete_note(name: String) -> Result<Content, String> {
        let name = folder::find(&name)?;
        // With the answer this function may begin anew, so nothing is done before it is there.
        match elicit::ask("delete", &format!("Delete the note `{name}`?"), YES_OR_NO) {
            Ok(Elicited::Accepted(_)) => {}
            Ok(Elicited::Declined | Elicited::Dismissed) => return Ok(answer(vec![text_block(format!("`{name}` was kept."))])),
            Err(Error::Unsupported) => return Err("this client cannot ask its user, so nothing is deleted".to_owned()),
            Err(Error::Failed(why)) => return Err(why),
        }
        folder::delete(&name)?;
        changes::resources();
        Ok(answer(vec![text_block(format!("Deleted `{name}`."))]))
    }

    fn export_notes() -> Result<Content, String> {
        let notes = folder::list()?;
        let total = notes.len();
        let mut export = String::new();
        for (done, (name, _)) in notes.iter().enumerate() {
            if cancelled::is_cancelled() {
                return Err("cancelled; nothing was written".to_owned());
            }
            progress::report(done as f64, Some(total as f64), Some(&format!("Reading {name}")));
            export += &format!("# {name}\n\n{}\n\n", folder::read(name)?.trim_end());
        }
        let path = folder::write_export(&export)?;
        progress::report(total as f64, Some(total as f64), None);
        Ok(answer(vec![text_block(format!("{total} notes are in {path}."))]))
    }
}

fn answer(blocks: Vec<Block>) -> Content {
    Content {
        blocks,
        structured: None,
    }
}

fn text_block(text: impl Into<String>) -> Block {
    Block::Text(TextBlock {
        text: text.into(),
        annotations: None,
    })
}

export!(Notes);
