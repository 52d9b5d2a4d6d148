//! The index, `components.toml`: what was added, from where, with which bytes, and what it was granted.
//!
//! Its first line carries its seal. People may read it; a change by hand is noticed and has to be accepted with `host verify --repair`.

use std::fmt::Write as _;
use std::path::PathBuf;

use policy::Grants;
use serde::{Deserialize, Serialize};
use sources::{Digest, Source};

use super::StoreError;
use super::seal::SealKey;
use crate::id::ComponentId;

pub(super) const FILE_NAME: &str = "components.toml";

const SEAL: &str = "# seal: ";
const REMARK: &str =
    "# Written by `host add`, `update`, `remove` and the like. A change by hand is refused until `host verify --repair`.\n";

/// The form of the file that this program writes, and the only one that it reads.
const VERSION: u32 = 1;

/// Everything that was added, in that order, which decides who keeps a tool name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    version: u32,
    #[serde(default, rename = "component")]
    pub entries: Vec<Entry>,
}

/// One component that was added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub id: ComponentId,
    pub source: Source,
    /// Of the component's bytes.
    pub digest: Digest,
    pub size: u64,
    /// Of the file with what is known of the component: its tools are those that were accepted.
    pub(crate) metadata: Digest,
    /// Whether files beside the component had a part in that, so that the bytes alone do not tell it all.
    pub(crate) described: bool,
    /// WIT with docs that the person gave with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) wit: Option<PathBuf>,
    /// The manifest that a registry gave, which tells without a download whether there is something new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Digest>,
    /// Whether the person named the digest, so that other bytes are never wanted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    pub added_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// Bound to these bytes: other bytes do not inherit them.
    #[serde(default)]
    pub grants: Grants,
}

/// Why the text of an index cannot be used.
#[derive(Debug)]
pub(super) enum IndexProblem {
    /// Something else than this program wrote it.
    Seal,
    Text(String),
}

impl Default for Index {
    fn default() -> Self {
        Self {
            version: VERSION,
            entries: Vec::new(),
        }
    }
}

impl Index {
    pub fn entry(&self, id: &ComponentId) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.id == *id)
    }

    /// What was added under this id, or an error that says what was.
    pub fn known(&self, id: &ComponentId) -> Result<&Entry, StoreError> {
        self.entry(id).ok_or_else(|| StoreError::Unknown {
            id: id.clone(),
            known_ids: self.entries.iter().map(|entry| entry.id.clone()).collect(),
        })
    }

    pub(crate) fn entry_mut(&mut self, id: &ComponentId) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.id == *id)
    }

    /// The index in a sealed text.
    pub(super) fn read(text: &str, key: &SealKey) -> Result<Self, IndexProblem> {
        let (first, rest) = text.split_once('\n').ok_or(IndexProblem::Seal)?;
        let seal = first.strip_prefix(SEAL).ok_or(IndexProblem::Seal)?;
        if !key.seal(FILE_NAME, rest.as_bytes()).is(seal) {
            return Err(IndexProblem::Seal);
        }
        Self::parse(rest)
    }

    /// The index in a text whoever wrote it.
    pub(super) fn parse(text: &str) -> Result<Self, IndexProblem> {
        let index: Self = toml::from_str(text).map_err(|error| IndexProblem::Text(error.to_string()))?;
        if index.version != VERSION {
            return Err(IndexProblem::Text(format!(
                "it has version {}, and this host knows version {VERSION}",
                index.version
            )));
        }
        Ok(index)
    }

    pub(super) fn sealed(&self, key: &SealKey) -> Result<String, toml::ser::Error> {
        let mut text = REMARK.to_owned();
        // Writing to a string cannot fail.
        let _ = write!(text, "{}", toml::to_string(self)?);
        Ok(format!("{SEAL}{}\n{text}", key.seal(FILE_NAME, text.as_bytes())))
    }
}
