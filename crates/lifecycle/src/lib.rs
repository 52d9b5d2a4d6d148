//! What is loaded, where it came from, and what it offers.
//!
//! [`LifecycleManager`] takes components from sources, reads what they export (once: the answer is kept on disk), names the tools, and
//! runs calls. [`Store`] keeps what was added. This is the only crate that reads components and writes files. It starts no protocol
//! and creates no wasmtime store: guests run in `sandbox`.

mod add;
mod agent;
mod audit;
mod cache;
mod commands;
mod compile;
mod config;
mod confine;
mod content;
mod definitions;
mod docs;
mod error;
mod files;
mod grant;
mod hints;
mod id;
mod keys;
mod loaded;
mod manager;
mod metadata;
mod offers;
mod others;
mod overrides;
mod parameter_headers;
mod progress;
mod read;
mod registry;
mod report;
mod scope;
mod served;
mod store;
mod watch;

pub use add::{AddError, Added, Candidate, NewRevision, Update, Wanted};
pub use agent::AdminError;
pub use audit::{AuditConfig, AuditError, Caller};
pub use command2json::Checker;
pub use commands::{CommandSource, ProgramMetadata, embed_description};
pub use compile::{CompileWorker, compile_in_worker};
pub use config::{AgentConfig, ComponentConfig, ConfigError, ConfigFile, config_schema};
pub use confine::{InstanceMode, RuleSource};
pub use content::{
    Annotations, Block, Completion, Content, Filled, MediaBlock, Prompt, PromptArgument, PromptMessage, Resource, ResourceBlock,
    ResourceBody, ResourceContents, Speaker, Template, TextBlock,
};
pub use definitions::DefinitionChange;
pub use docs::{EmbedError, embed_docs};
pub use error::{ExecuteError, Interruption, LoadError};
pub use files::{default_home, real_path, write_atomically};
pub use grant::{Configured, GrantError};
pub use id::{ComponentId, IdError};
pub use keys::{Key, KeyError};
pub use manager::{CallOutcome, Config, LifecycleManager, News, NotReady, StartError};
pub use metadata::{Inspection, Interface, Metadata};
pub use offers::Subject;
pub use others::{Replaced, lock_others, read_others, replace_others};
pub use overrides::{ToolOverride, check_tools, embed_tools};
pub use progress::{Event, Progress};
pub use read::Place;
pub use registry::{Plan, RESERVED_NAMES, Tool};
pub use report::{
    ComponentList, ComponentReport, DirectoryPermission, GrantReport, LimitsReport, LoadOutcome, LoadReport, MissingReport,
    PolicyReport, RuleReport, Status, UnloadOutcome, UnloadReport,
};
pub use sandbox::{
    Answer, Call, Capabilities, Change, Client, Elicitation, Elicited, Later, Level, MAX_URI, Nobody, Question, Report, Role, Root,
    Sampled, Sampling, SamplingMessage, Unanswered,
};
pub use scope::{SourcePattern, SourcePatternError};
pub use served::Selection;
pub use store::{Collected, Entry, Finding, Index, Store, StoreError, Verified};
pub use watch::{Follow, Watch, WatchError};
