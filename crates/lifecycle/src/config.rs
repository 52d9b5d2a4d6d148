//! The config file, `host.toml`: what a person says of all components, of single ones, and of agents that manage the host.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use command2json::{Offer, Patterns};
use component2json::{ToolAnnotations, nearest_first};
use policy::{Denial, LimitSettings, Permission, SecretName, VariableName};
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use sources::Digest;

use crate::confine::InstanceMode;
use crate::files::real_path;
use crate::id::ComponentId;
use crate::overrides::Overrides;
use crate::scope::SourcePattern;

/// The name of the file in `$HOST_HOME`.
pub(crate) const FILE_NAME: &str = "host.toml";

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "host.toml")]
pub struct ConfigFile {
    /// What holds for every component.
    #[serde(default)]
    pub defaults: Defaults,
    /// By id, which is the file's name without its ending unless it was added under another.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, ComponentConfig>")]
    pub components: BTreeMap<ComponentId, ComponentConfig>,
    /// What an agent may do with the management tools.
    #[serde(default)]
    pub agent: AgentConfig,
    /// Where relative paths begin: the folder of the file.
    #[serde(skip)]
    folder: PathBuf,
}

/// How far an agent may go that manages the host. Nowhere, unless it is said here.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentConfig {
    /// What it may load. It can remove and grant only what comes from there.
    #[schemars(with = "Vec<String>")]
    pub sources: Vec<SourcePattern>,
    /// The directories that it may grant, and all below them.
    pub directories: Vec<PathBuf>,
}

/// What is allowed and denied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    pub(crate) allow: &'a [Permission],
    pub(crate) deny: &'a [Denial],
    pub(crate) env: &'a BTreeMap<VariableName, String>,
    pub(crate) secrets: &'a [SecretName],
}

/// What holds for every component.
// The four lists of rules stand in `ComponentConfig` again: serde cannot tell an unknown key where one struct is flattened into another.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Defaults {
    /// What it may use, as after `--allow-`: `read=DIR`, `net=HOST` and so on. Directories are below the folder of this file.
    allow: Vec<Permission>,
    /// What it may not use, whatever else allows it: `read=DIR`, `net=HOST`.
    deny: Vec<Denial>,
    /// Variables with their values.
    env: BTreeMap<VariableName, String>,
    /// The names of secrets that it gets. `host secret set` gives them values.
    secrets: Vec<SecretName>,
    /// What a component may use up.
    pub limits: LimitSettings,
    /// Whether calls share what a component remembers.
    pub instance: Option<InstanceMode>,
}

/// What it says of one component.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ComponentConfig {
    /// Where it is: a file, below the folder of this file, `https://…` or `oci://…`. It is served then, and added first where it is
    /// elsewhere.
    pub source: Option<String>,
    /// The SHA-256 of its bytes: others are not served.
    #[schemars(with = "Option<String>")]
    pub sha256: Option<Sha256>,
    /// Which of its tools are offered, as `get_*` and `!delete_*`.
    #[schemars(with = "Vec<String>")]
    pub tools: Patterns,
    /// What it may use, as after `--allow-`: `read=DIR`, `net=HOST` and so on. Directories are below the folder of this file.
    allow: Vec<Permission>,
    /// What it may not use, whatever else allows it: `read=DIR`, `net=HOST`.
    deny: Vec<Denial>,
    /// Variables with their values.
    env: BTreeMap<VariableName, String>,
    /// The names of secrets that it gets. `host secret set` gives them values.
    secrets: Vec<SecretName>,
    /// What it may use up.
    pub limits: LimitSettings,
    /// Whether its calls share what it remembers.
    pub instance: Option<InstanceMode>,
    /// Which commands of a program are offered, as `get *` and `!delete *`.
    #[schemars(with = "Vec<String>")]
    commands: Patterns,
    /// Which flags of a program are offered, as `!token`.
    #[schemars(with = "Vec<String>")]
    flags: Patterns,
    /// One tool for the whole program.
    bundle: bool,
    /// Flags and positionals of a program side by side.
    flat: bool,
    /// Pass the program's own flag for JSON output where it has one.
    json: bool,
    /// By pattern of commands.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    annotations: BTreeMap<String, ToolAnnotations>,
    /// What its tools are called and look like, by the name that they have by themselves.
    pub(crate) tool: Overrides,
}

/// A digest as a person writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Sha256(pub Digest);

impl TryFrom<String> for Sha256 {
    type Error = sources::DigestError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Digest::from_person(&text).map(Self)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("the config file `{path}` could not be read: {error}")]
    Read { path: PathBuf, error: std::io::Error },
    #[error("the config file `{path}` is wrong: {error}{}", nearest_key(error))]
    Wrong { path: PathBuf, error: toml::de::Error },
    #[error(
        "the config file `{path}` allows `all`, which is for trying things out, on the command line\n\
         hint: allow what is needed, one by one"
    )]
    All { path: PathBuf },
    #[error("the config file `{path}` is wrong: what it says of the tool `{tool}`: {problem}")]
    Tool { path: PathBuf, tool: String, problem: String },
    #[error("the config file `{path}` is wrong: {error}")]
    Contradiction { path: PathBuf, error: policy::Contradiction },
}

/// Gives every directory its real path, once: what the file meant when it was read does not change with a link later.
fn resolve(allow: &mut [Permission], deny: &mut [Denial], folder: &Path) {
    for permission in allow {
        if let Permission::Read(directory) | Permission::Write(directory) = permission {
            *directory = directory.clone().with_host(real_path(&folder.join(&directory.host)));
        }
    }
    for denial in deny {
        if let Denial::Read(path) = denial {
            *path = real_path(&folder.join(&path));
        }
    }
}

/// The key that was probably meant, where one is unknown.
fn nearest_key(error: &toml::de::Error) -> String {
    // What serde says of a key: "unknown field `a`, expected one of `b`, `c`".
    let mut words = error.message().split('`').skip(1).step_by(2);
    let is_key = error.message().starts_with("unknown field");
    let Some(unknown) = words.next().filter(|_| is_key) else {
        return String::new();
    };
    match nearest_first(unknown, words).first() {
        Some(nearest) if is_similar(unknown, nearest) => format!("hint: did you mean `{nearest}`?"),
        _ => String::new(),
    }
}

/// Whether one name is probably the other, misspelt.
pub(crate) fn is_similar(a: &str, b: &str) -> bool {
    strsim::jaro_winkler(a, b) > 0.75
}

/// The JSON Schema of the file.
pub fn config_schema() -> Schema {
    schemars::schema_for!(ConfigFile)
}

impl ConfigFile {
    /// The file that was named, else the one in the home directory, if there is one.
    pub fn load(named: Option<&Path>, home: Option<&Path>) -> Result<Self, ConfigError> {
        // A link that leads nowhere is there, too, and must not pass for no file.
        let usual = home
            .map(|home| home.join(FILE_NAME))
            .filter(|file| file.is_symlink() || file.is_file());
        let Some(path) = named.map(Path::to_owned).or(usual) else {
            return Ok(Self::default());
        };
        let text = std::fs::read_to_string(&path).map_err(|error| ConfigError::Read {
            path: path.clone(),
            error,
        })?;
        let file: Self = toml::from_str(&text).map_err(|error| ConfigError::Wrong {
            path: path.clone(),
            error,
        })?;
        let path = std::path::absolute(&path).unwrap_or(path);
        let mut file = Self {
            folder: path.parent().map(Path::to_owned).unwrap_or_default(),
            ..file
        };
        let Self {
            defaults,
            components,
            folder,
            ..
        } = &mut file;
        resolve(&mut defaults.allow, &mut defaults.deny, folder);
        for component in components.values_mut() {
            resolve(&mut component.allow, &mut component.deny, folder);
        }
        for (tool, given) in file.components.values().flat_map(|component| &component.tool) {
            if let Err(problem) = given.check() {
                let tool = tool.clone();
                return Err(ConfigError::Tool { path, tool, problem });
            }
        }
        for rules in file.all_rules() {
            if rules.allow.contains(&Permission::All) {
                return Err(ConfigError::All { path });
            }
            if let Err(error) = rules.grants() {
                return Err(ConfigError::Contradiction { path, error });
            }
        }
        Ok(file)
    }

    fn all_rules(&self) -> impl Iterator<Item = Rules<'_>> {
        let components = self.components.values().map(ComponentConfig::rules);
        components.chain(std::iter::once(self.defaults.rules()))
    }

    /// Where relative paths in the file begin.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Defaults {
    pub(crate) fn rules(&self) -> Rules<'_> {
        Rules {
            allow: &self.allow,
            deny: &self.deny,
            env: &self.env,
            secrets: &self.secrets,
        }
    }
}

impl ComponentConfig {
    pub(crate) fn rules(&self) -> Rules<'_> {
        Rules {
            allow: &self.allow,
            deny: &self.deny,
            env: &self.env,
            secrets: &self.secrets,
        }
    }

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
            tools: offer.tools.and(&self.tools),
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
