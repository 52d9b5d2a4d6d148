//! Grants and limits as parsed types, and their decisions.
//!
//! Text is parsed here, once; who holds one of these types has nothing left to check. This crate enforces nothing and
//! does no I/O: `sandbox` turns what is decided here into what a guest can do. Nothing here comes from a component.

mod bytes;
mod grants;
mod limits;
mod quantity;
mod timeout;

pub use bytes::{ByteSize, ByteSizeError};
pub use grants::{Access, Directory, DirectoryError, DirectoryGrant, Grants};
pub use limits::Limits;
pub use timeout::{Timeout, TimeoutError};
