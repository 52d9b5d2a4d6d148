//! The Model Context Protocol: the only crate that names rmcp's server side.
//!
//! It answers what clients ask in both eras of the protocol, `initialize` and stateless, from what `lifecycle` knows. It decides
//! what is a protocol error and what is a failed tool, and it never loads, compiles or runs anything itself.

mod admin;
mod conversation;
mod direct;
mod handler;
mod http;
mod lane;
mod lull;
mod message;
mod metrics;
mod news;
mod questions;
mod retry;
mod stdio;
mod wire;

pub use handler::{Server, protocol_versions};
pub use http::{
    Authentication, DEFAULT_MAX_BODY, DEFAULT_MAX_CONNECTIONS, HostName, HttpOptions, NameError, Origin, Principal, Token, listen,
    serve_http,
};
pub use stdio::{ServeError, serve, serve_stdio};
pub use wire::content_json;

#[cfg(test)]
mod tests;
