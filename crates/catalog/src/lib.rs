//! What any MCP server offers, as one list of items in one shape: the client side of the protocol.
//!
//! Connects to a server, pages through its lists, and composes a [`Catalog`]; calls tools; and makes other things of a catalog: a page for
//! people, an OpenAPI description, the difference between two. Everything from a server is hostile here: it is bounded in size and time,
//! and its text never reaches a terminal as it is. This crate never serves, never reads a component, and never writes a file.

mod arguments;
mod catalog;
mod compose;
mod connection;
mod diff;
mod document;
mod error;
mod markdown;
mod openapi;
mod references;
mod target;
mod text;
mod uri_template;
mod validate;

pub use arguments::{ArgumentError, Parameters};
pub use catalog::{Catalog, ReadError};
pub use compose::Payloads;
pub use connection::{CallResult, ConnectOptions, Connection, Era};
pub use diff::{Change, ChangedItem, Diff, diff};
pub use document::{
    Detail, Document, Item, Meta, Problem, Prompt, Protocol, Resource, ResourceTemplate, SCHEMA_VERSION, ServerInfo, Tool,
};
pub use error::{CallError, ConnectError};
pub use markdown::markdown;
pub use openapi::openapi;
pub use target::{Endpoint, ServerCommand, Target, TargetError};
pub use text::{plain, plain_json, plain_line, steers};
pub use validate::ValidationError;
