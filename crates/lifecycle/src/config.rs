//! The config file, `host.toml`: what a person says of single components, and of agents that manage the host.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use command2json::{Offer, Patterns};
use component2json::ToolAnnotations;
use serde::Deserialize;

use crate::id::ComponentId;
use crate::scope::SourcePattern;

/// The name of the file in `$HOST_HOME`.
pub(crate) const FILE_NAME: &str = "host.toml";

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    /// By id, which is the file's name without its ending.
    #[serde(default)]
    pub components: BTreeMap<ComponentId, ComponentConfig>,
    /// What an agent may do with the management tools.
    #[serde(default)]
    pub agent: AgentConfig,
}

/// How far an agent may go that manages the host. Nowhere, unless it is said here.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentConfig {
    /// What it may load. It can remove and grant only what comes from there.
    pub sources: Vec<SourcePattern>,
    /// The directories that it may grant, and all below them.
    pub directories: Vec<PathBuf>,
}

/// What it says of one component. All of it is about the commands of programs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ComponentConfig {
    /// Which commands are offered, as `get *` and `!delete *`.
    commands: Patterns,
    /// Which flags are offered, as `!token`.
    flags: Patterns,
    /// One tool for the whole program.
    bundle: bool,
    /// Flags and positionals side by side.
    flat: bool,
    /// Pass the program's own flag for JSON output where it has one.
    json: bool,
    /// By pattern of commands.
    annotations: BTreeMap<String, ToolAnnotations>,
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("the config file `{path}` could not be read: {error}")]
    Read { path: PathBuf, error: std::io::Error },
    #[error("the config file `{path}` is wrong: {error}")]
    Wrong { path: PathBuf, error: toml::de::Error },
}

impl ConfigFile {
    /// The file that was named, else the one in the home directory, if there is one.
    pub fn load(named: Option<&Path>, home: Option<&Path>) -> Result<Self, ConfigError> {
        let usual = home.map(|home| home.join(FILE_NAME)).filter(|file| file.is_file());
        let Some(path) = named.map(Path::to_owned).or(usual) else {
            return Ok(Self::default());
        };
        let text = std::fs::read_to_string(&path).map_err(|error| ConfigError::Read {
            path: path.clone(),
            error,
        })?;
        toml::from_str(&text).map_err(|error| ConfigError::Wrong { path, error })
    }
}

impl ComponentConfig {
    /// What the command line says, and this.
    pub(crate) fn extend(&self, offer: Offer) -> Offer {
        let mut annotations = offer.annotations;
        annotations.extend(
            self.annotations
                .iter()
                .map(|(pattern, annotations)| (Patterns::from(vec![pattern.clone()]), annotations.clone())),
        );
        Offer {
            commands: offer.commands.and(&self.commands),
            flags: offer.flags.and(&self.flags),
            bundle: offer.bundle || self.bundle,
            flat: offer.flat || self.flat,
            json: offer.json || self.json,
            annotations,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_and_a_wrong_key_is_refused_with_its_place() {
        let text = "[components.depot]\ncommands = ['get *', '!delete *']\nflags = ['!token']\njson = true\n\
                    [components.depot.annotations.'get *']\nreadOnlyHint = true\n";
        let file: ConfigFile = toml::from_str(text).unwrap();
        let offer = file.components.values().next().unwrap().extend(Offer::default());
        assert!(offer.json && !offer.bundle);
        assert_eq!(offer.annotations.len(), 1);
        assert!(!offer.commands.admit_command(&["depot", "delete", "x"]));
        let error = toml::from_str::<ConfigFile>("[components.depot]\ncomands = []\n").unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains("line 2") && message.contains("`comands`") && message.contains("`commands`"),
            "{message}"
        );
    }
}
