//! The three formats of config files, and what each of them can do.

use std::fmt;

use crate::EditError;
use crate::value::{Map, Value};
use crate::{json, toml, yaml};

/// What a config file is written in. All JSON here may have comments and trailing commas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    Json,
    Toml,
    Yaml,
}

/// One change of an entry that stands there already.
pub(crate) enum Patch<'a> {
    Set(&'a str, &'a Value),
    Unset(&'a str),
}

impl Format {
    /// What the file says. A file that says nothing at all is an empty map.
    pub(crate) fn read(self, text: &str) -> Result<Map, EditError> {
        match self {
            Self::Json => json::read(text),
            Self::Toml => toml::read(text),
            Self::Yaml => yaml::read(text),
        }
    }

    /// A file that has one server and nothing else.
    pub(crate) fn fresh(self, container: &str, name: &str, entry: &Map) -> String {
        match self {
            Self::Json => json::fresh(container, name, entry, "\n"),
            Self::Toml => toml::fresh(container, name, entry, "\n"),
            Self::Yaml => yaml::fresh(container, name, entry, "\n"),
        }
    }

    /// Puts a new entry after the others. If there is no list of servers, it is made.
    pub(crate) fn add(self, text: &str, container: &str, name: &str, entry: &Map) -> Result<String, EditError> {
        match self {
            Self::Json => json::add(text, container, name, entry),
            Self::Toml => toml::add(text, container, name, entry),
            Self::Yaml => yaml::add(text, container, name, entry),
        }
    }

    /// Changes an entry that is there and is a map.
    pub(crate) fn patch(self, text: &str, container: &str, name: &str, patches: &[Patch<'_>]) -> Result<String, EditError> {
        let mut text = text.to_owned();
        for patch in patches {
            text = match self {
                Self::Json => json::patch(&text, container, name, patch),
                Self::Toml => toml::patch(&text, container, name, patch),
                Self::Yaml => yaml::patch(&text, container, name, patch),
            }?;
        }
        Ok(text)
    }

    /// Takes out an entry that is there. If it was the last, the list goes as well, unless somebody wrote a comment into it.
    pub(crate) fn remove(self, text: &str, container: &str, name: &str) -> Result<String, EditError> {
        match self {
            Self::Json => json::remove(text, container, name),
            Self::Toml => toml::remove(text, container, name),
            Self::Yaml => yaml::remove(text, container, name),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json => "JSON",
            Self::Toml => "TOML",
            Self::Yaml => "YAML",
        })
    }
}
