//! Grants and limits as parsed types, and their decisions.
//!
//! Text is parsed here, once; who holds one of these types has nothing left to check. This crate enforces nothing and
//! does no I/O: `sandbox` turns what is decided here into what a guest can do. Nothing here comes from a component.

mod bytes;
mod decision;
mod grants;
mod limits;
mod name;
mod network;
mod quantity;
mod rule;
mod secret;
mod special;
mod text;
mod timeout;
mod variable;
mod wassette;
mod yaml;

pub use bytes::{ByteSize, ByteSizeError};
pub use decision::{Asked, Reason, Refusal};
pub use grants::{Access, Contradiction, Directory, DirectoryError, DirectoryGrant, Grants};
pub use limits::{LimitSettings, Limits};
pub use name::{DnsName, DnsNameError};
pub use network::{
    Destination, Host, HostError, HostPattern, HostPatternError, NetworkRule, NetworkRuleError, Ports, PortsError, Scheme,
    SchemeError,
};
pub use rule::{Denial, Permission, Rule, RuleError};
pub use secret::{SecretError, SecretValue, Secrets};
pub use special::{Special, special};
pub use timeout::{Timeout, TimeoutError};
pub use variable::{SecretName, SecretNameError, Variable, VariableError, VariableName};
pub use wassette::{WassetteError, WassettePolicy, read_wassette};
