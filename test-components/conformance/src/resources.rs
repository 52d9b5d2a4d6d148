//! Resources: a text, an image, one that is watched, and a template.

use serde_json::json;

use crate::Conformance;
use crate::blocks::RED_PIXEL;
use crate::exports::host::mcp::resources::{Error, Guest, Resource, Template};
use crate::host::mcp::content::{ResourceBody, ResourceContents};

pub const WATCHED: &str = "test://watched-resource";
const STATIC_TEXT: &str = "test://static-text";
const STATIC_BINARY: &str = "test://static-binary";

impl Guest for Conformance {
    fn list() -> Vec<Resource> {
        vec![
            resource(STATIC_TEXT, "static-text", "A text that never changes", "text/plain"),
            resource(STATIC_BINARY, "static-binary", "An image that never changes", "image/png"),
            resource(
                WATCHED,
                "watched-resource",
                "A text that `test_trigger_resource_change` says has changed",
                "text/plain",
            ),
        ]
    }

    fn templates() -> Vec<Template> {
        vec![Template {
            uri_template: "test://template/{id}/data".to_owned(),
            name: "template".to_owned(),
            title: None,
            description: Some("The data of any id".to_owned()),
            mime_type: Some("application/json".to_owned()),
            annotations: None,
        }]
    }

    fn read(uri: String) -> Result<Vec<ResourceContents>, Error> {
        let (mime_type, body) = match uri.as_str() {
            STATIC_TEXT => (
                "text/plain",
                ResourceBody::Text("This is the content of the static text resource.".to_owned()),
            ),
            STATIC_BINARY => ("image/png", ResourceBody::Blob(RED_PIXEL.to_vec())),
            WATCHED => ("text/plain", ResourceBody::Text("Watch this.".to_owned())),
            other => {
                let id = id_of(other).ok_or(Error::NotFound)?;
                let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                ("application/json", ResourceBody::Text(data.to_string()))
            }
        };
        Ok(vec![ResourceContents {
            uri,
            mime_type: Some(mime_type.to_owned()),
            body,
        }])
    }
}

fn resource(uri: &str, name: &str, description: &str, mime_type: &str) -> Resource {
    Resource {
        uri: uri.to_owned(),
        name: name.to_owned(),
        title: None,
        description: Some(description.to_owned()),
        mime_type: Some(mime_type.to_owned()),
        size: None,
        annotations: None,
    }
}

/// What stands for `{id}` in a URI of the template.
fn id_of(uri: &str) -> Option<&str> {
    uri.strip_prefix("test://template/")?.strip_suffix("/data")
}
