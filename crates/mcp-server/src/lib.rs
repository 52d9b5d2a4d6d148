//! The Model Context Protocol: the only crate that names rmcp's server side.
//!
//! It answers what clients ask in both eras of the protocol, `initialize` and stateless, from what `lifecycle` knows. It decides
//! what is a protocol error and what is a failed tool, and it never loads, compiles or runs anything itself.

mod admin;
mod handler;
mod stdio;

pub use handler::{Server, protocol_versions};
pub use stdio::{ServeError, serve, serve_stdio};

#[cfg(test)]
mod tests;
