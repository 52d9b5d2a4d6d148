//! The commands, one file each.

pub(crate) mod add;
pub(crate) mod call;
pub(crate) mod catalog;
pub(crate) mod clients;
pub(crate) mod compile_worker;
pub(crate) mod completions;
pub(crate) mod describe;
pub(crate) mod diff;
pub(crate) mod embed_docs;
pub(crate) mod gc;
pub(crate) mod grant;
pub(crate) mod info;
pub(crate) mod inspect;
pub(crate) mod install;
pub(crate) mod list;
pub(crate) mod push;
pub(crate) mod remove;
pub(crate) mod secret;
pub(crate) mod serve;
pub(crate) mod tools;
pub(crate) mod update;
pub(crate) mod verify;
