//! What is loaded, where it came from, and what it offers.
//!
//! [`LifecycleManager`] takes files, reads what they export (once: the answer is kept on disk), names the tools, and runs calls. It
//! is the only crate that reads components and writes files. It starts no protocol and creates no store: guests run in `sandbox`.

mod cache;
mod commands;
mod config;
mod docs;
mod error;
mod files;
mod hints;
mod id;
mod manager;
mod metadata;
mod registry;

pub use cache::{CacheError, default_home};
pub use commands::{ProgramMetadata, Source, embed_description};
pub use config::{ComponentConfig, ConfigError, ConfigFile};
pub use docs::{EmbedError, embed_docs};
pub use error::{ExecuteError, LoadError};
pub use files::{expand, write_atomically};
pub use id::ComponentId;
pub use manager::{CallOutcome, ComponentSummary, Config, LifecycleManager};
pub use metadata::{Digest, Inspection, Interface, Metadata};
pub use registry::{Plan, RESERVED_NAMES, Tool};
