//! Entries to be pasted by people, for clients that are not known here.

use crate::shape::Shape;
use crate::{Client, EditError, Entry, Transport};

/// What to print an entry as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SnippetFormat {
    /// `{"mcpServers": {…}}`, which most clients read.
    Json,
    /// `[mcp_servers.NAME]`, as Codex reads it.
    Toml,
}

impl SnippetFormat {
    /// A whole file with this entry.
    pub fn snippet(self, entry: &Entry) -> Result<String, EditError> {
        let like = match (self, &entry.transport) {
            (Self::Toml, _) => Client::Codex,
            (Self::Json, Transport::Stdio { .. }) => Client::Cursor,
            // Of those that need a type, all agree on this one.
            (Self::Json, Transport::Http { .. }) => Client::ClaudeCode,
        };
        like.snippet(entry)
    }
}

impl Client {
    /// A whole config file of this client with this entry and nothing else.
    pub fn snippet(self, entry: &Entry) -> Result<String, EditError> {
        let shape = Shape::of(self);
        let fields = shape.fields(entry)?;
        Ok(shape.format.fresh(shape.container, &shape.key(entry.name.as_str()), &fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(transport: Transport) -> Entry {
        Entry {
            name: "text-tools".parse().unwrap(),
            transport,
        }
    }

    #[test]
    fn a_command() {
        let entry = entry(Transport::Stdio {
            command: r"C:\opt\host\host.exe".to_owned(),
            args: vec!["serve".to_owned(), "it's".to_owned()],
            env: vec![("A B".to_owned(), "1".to_owned())],
        });
        assert_eq!(
            SnippetFormat::Json.snippet(&entry).unwrap(),
            r#"{
  "mcpServers": {
    "text-tools": {
      "command": "C:\\opt\\host\\host.exe",
      "args": ["serve", "it's"],
      "env": {
        "A B": "1"
      }
    }
  }
}
"#
        );
        assert_eq!(
            SnippetFormat::Toml.snippet(&entry).unwrap(),
            r#"[mcp_servers.text-tools]
command = 'C:\opt\host\host.exe'
args = ["serve", "it's"]
env = { "A B" = "1" }
"#
        );
    }

    #[test]
    fn a_url() {
        let entry = entry(Transport::Http {
            url: "http://127.0.0.1:8080/mcp".to_owned(),
            headers: vec![("Authorization".to_owned(), "Bearer x".to_owned())],
        });
        assert_eq!(
            SnippetFormat::Json.snippet(&entry).unwrap(),
            r#"{
  "mcpServers": {
    "text-tools": {
      "type": "http",
      "url": "http://127.0.0.1:8080/mcp",
      "headers": {
        "Authorization": "Bearer x"
      }
    }
  }
}
"#
        );
        assert_eq!(
            SnippetFormat::Toml.snippet(&entry).unwrap(),
            r#"[mcp_servers.text-tools]
url = "http://127.0.0.1:8080/mcp"
http_headers = { Authorization = "Bearer x" }
"#
        );
        assert!(Client::ClaudeDesktop.snippet(&entry).is_err());
    }
}
