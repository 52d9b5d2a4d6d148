//! The commands, one file each.

pub(crate) mod call;
pub(crate) mod describe;
pub(crate) mod embed_docs;
pub(crate) mod inspect;
pub(crate) mod serve;
pub(crate) mod tools;
