//! Where the MCP clients that people use keep their list of servers, and how an entry is put in or taken out of such a file
//! without touching anything else.
//!
//! Text in, text out, paths as values. This crate reads and writes no file, looks at no environment variable, and starts
//! nothing: the commands in `src/` do that with what is computed here. An edit is always a splice: bytes are added or removed at
//! places that a parser found, and everything else stays what it was, comments, line endings and mistakes of style included.
//! Before a text is handed out, it is read again and compared with what it should say; if in doubt, nothing is edited.

mod check;
mod client;
mod edit;
mod entry;
mod error;
mod format;
mod json;
mod paths;
mod shape;
mod snippet;
mod text;
mod toml;
mod value;
mod yaml;

pub use client::{Client, UnknownClient};
pub use edit::{Change, Edit};
pub use entry::{Configured, Endpoint, Entry, ServerName, ServerNameError, Transport};
pub use error::EditError;
pub use format::Format;
pub use paths::{Environment, Platform, Scope};
pub use snippet::SnippetFormat;
