//! Every note is a resource: those that are there are listed, and a template says how they are named.

use crate::Notes;
use crate::exports::host::mcp::resources::{Error, Guest, Resource, Template};
use crate::folder::{self, MIME_TYPE, Name};
use crate::host::mcp::content::{ResourceBody, ResourceContents};

pub const TEMPLATE: &str = "note://{name}";

impl Guest for Notes {
    fn list() -> Vec<Resource> {
        // Without its directory this component has no notes; its tools say why.
        let notes = folder::list().unwrap_or_default();
        notes
            .into_iter()
            .map(|(name, size)| Resource {
                uri: name.uri(),
                name: name.to_string(),
                title: None,
                description: None,
                mime_type: Some(MIME_TYPE.to_owned()),
                size: Some(size),
                annotations: None,
            })
            .collect()
    }

    fn templates() -> Vec<Template> {
        vec![Template {
            uri_template: TEMPLATE.to_owned(),
            name: "note".to_owned(),
            title: Some("A note".to_owned()),
            description: Some("What is in the note of this name".to_owned()),
            mime_type: Some(MIME_TYPE.to_owned()),
            annotations: None,
        }]
    }

    fn read(uri: String) -> Result<Vec<ResourceContents>, Error> {
        let name = Name::from_uri(&uri).filter(folder::exists).ok_or(Error::NotFound)?;
        Ok(vec![contents(&name).map_err(Error::Failed)?])
    }
}

/// A note as a resource with what is in it.
pub fn contents(name: &Name) -> Result<ResourceContents, String> {
    Ok(ResourceContents {
        uri: name.uri(),
        mime_type: Some(MIME_TYPE.to_owned()),
        body: ResourceBody::Text(folder::read(name)?),
    })
}
