//! Names of loaded components.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// A component's id: `[a-z0-9-]`, from the name of its file, never from what is inside it. Fit as a key, never used as a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct ComponentId(String);

/// Longer names are cut: an id becomes part of tool names.
const MAX: usize = 40;

impl ComponentId {
    /// The id of a component in this file: `./My Plugin_v2.wasm` → `my-plugin-v2`.
    pub fn from_file(path: &Path) -> Self {
        let stem = path.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
        Self::from_name(&stem)
    }

    /// What a person calls it, in any spelling that gives the same id.
    fn from_name(name: &str) -> Self {
        let text: String = name
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() {
                    c.to_ascii_lowercase()
                } else {
                    '-'
                }
            })
            .take(MAX)
            .collect();
        let text = text.trim_matches('-');
        Self(if text.is_empty() {
            "component".to_owned()
        } else {
            text.to_owned()
        })
    }

    /// An id that a person chose, which is refused rather than changed.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let id = Self::from_name(text);
        if id.0 == text { Ok(id) } else { Err(IdError(text.to_owned())) }
    }

    /// The same id with a number, for a second component of that name.
    pub(crate) fn numbered(&self, number: usize) -> Self {
        Self(format!("{}-{number}", self.0))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no id: expected up to {MAX} of `a-z`, `0-9` and `-`, with no `-` at its ends")]
pub struct IdError(String);

impl From<String> for ComponentId {
    fn from(name: String) -> Self {
        Self::from_name(&name)
    }
}

impl From<ComponentId> for String {
    fn from(id: ComponentId) -> Self {
        id.0
    }
}

impl std::fmt::Display for ComponentId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_from_file_names() {
        for (path, id) in [
            ("./plugin.wasm", "plugin"),
            ("/a/b/My Plugin_v2.wasm", "my-plugin-v2"),
            ("../../etc/passwd", "passwd"),
            ("…\u{202e}.wasm", "component"),
            ("", "component"),
        ] {
            assert_eq!(ComponentId::from_file(Path::new(path)).as_str(), id, "{path}");
        }
    }
}
