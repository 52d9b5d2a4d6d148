//! Where bytes come from: parsed names of sources, and fetching them.
//!
//! This is the only crate that opens network connections as a client. Whatever a server sends is hostile here: every answer is
//! bounded in size and time while it arrives, every hop of a redirect is checked, and what has a digest is compared with it. This
//! crate never writes a file, never interprets what it fetched, and never looks at policy.

mod address;
mod client;
mod credentials;
mod digest;
mod download;
mod error;
mod http;
mod manifest;
mod reference;
mod registry;
mod source;

pub use address::{Network, Resolving, SystemNetwork, is_public};
pub use client::{Client, ClientOptions, Progress};
pub use credentials::{Credential, Logins, Secret};
pub use digest::{Digest, DigestError};
pub use download::{Partial, Validator};
pub use error::FetchError;
pub use http::tls;
pub use manifest::{Interfaces, Layer, Published};
pub use reference::{OciReference, OciReferenceError};
pub use registry::{Pulled, Pushed};
pub use source::{HttpsUrl, Source, SourceError};
