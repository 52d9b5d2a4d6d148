//! What a person lets a guest use.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::is_hidden;
use crate::{Denial, NetworkRule, Permission, Rule, SecretName, Variable};

/// All that is granted. Nothing, unless somebody said so.
///
/// What is denied stays denied, whatever is granted beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Grants {
    /// In the order in which they were given: the first is the working directory.
    pub directories: Vec<DirectoryGrant>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<NetworkRule>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<Variable>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretName>,
    /// All that is not denied.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied_directories: Vec<PathBuf>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied_network: Vec<NetworkRule>,
}

impl Grants {
    /// Does nothing stand here, neither a grant nor a denial?
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The path inside at which others have another directory than these.
    pub fn contradiction(&self, others: &Self) -> Option<String> {
        let contradiction = |other: &DirectoryGrant| self.contradicts(&other.directory);
        others
            .directories
            .iter()
            .find_map(contradiction)
            .map(|contradiction| contradiction.guest)
    }

    fn contradicts(&self, directory: &Directory) -> Option<Contradiction> {
        let guest = directory.guest_path();
        let known = self.directories.iter().find(|known| known.directory.guest_path() == guest)?;
        (known.directory.host != directory.host).then(|| Contradiction {
            guest,
            known: known.directory.host.clone(),
            other: directory.host.clone(),
        })
    }

    /// These, and others where they do not contradict: a path inside keeps the directory that it has here, and a variable its
    /// value.
    #[must_use]
    pub fn and(mut self, others: &Self) -> Self {
        for other in &others.directories {
            if self.contradicts(&other.directory).is_none() {
                self.allow_directory(other.clone());
            }
        }
        for variable in &others.environment {
            if self.environment.iter().all(|known| known.name != variable.name) {
                self.environment.push(variable.clone());
            }
        }
        add_new(&mut self.network, &others.network);
        add_new(&mut self.secrets, &others.secrets);
        add_new(&mut self.denied_directories, &others.denied_directories);
        add_new(&mut self.denied_network, &others.denied_network);
        self.all |= others.all;
        self
    }

    /// Grants something. Of one directory, the higher access counts; of one variable, the latest value.
    pub fn allow(&mut self, permission: Permission) -> Result<(), Contradiction> {
        match permission {
            Permission::Read(directory) => self.allow_access(directory, Access::Read)?,
            Permission::Write(directory) => self.allow_access(directory, Access::Write)?,
            Permission::Net(rule) => add_new(&mut self.network, &[rule]),
            Permission::Env(variable) => match self.environment.iter_mut().find(|known| known.name == variable.name) {
                Some(known) => known.value = variable.value,
                None => self.environment.push(variable),
            },
            Permission::Secret(name) => add_new(&mut self.secrets, &[name]),
            Permission::All => self.all = true,
        }
        Ok(())
    }

    fn allow_access(&mut self, directory: Directory, access: Access) -> Result<(), Contradiction> {
        match self.contradicts(&directory) {
            Some(contradiction) => Err(contradiction),
            None => {
                self.allow_directory(DirectoryGrant { directory, access });
                Ok(())
            }
        }
    }

    /// A directory that contradicts none of those that are here.
    fn allow_directory(&mut self, grant: DirectoryGrant) {
        let guest = grant.directory.guest_path();
        let same_guest = |known: &&mut DirectoryGrant| known.directory.guest_path() == guest;
        match self.directories.iter_mut().find(same_guest) {
            Some(known) => known.access = known.access.max(grant.access),
            None => self.directories.push(grant),
        }
    }

    /// Denies something, whatever is granted.
    pub fn deny(&mut self, denial: Denial) {
        match denial {
            Denial::Read(path) => add_new(&mut self.denied_directories, &[path]),
            Denial::Net(rule) => add_new(&mut self.denied_network, &[rule]),
        }
    }

    /// All of it, as the options that give the same.
    pub fn rules(&self) -> Vec<Rule> {
        let directories = self.directories.iter().map(|grant| match grant.access {
            Access::Read => Permission::Read(grant.directory.clone()),
            Access::Write => Permission::Write(grant.directory.clone()),
        });
        let allowed = directories
            .chain(self.network.iter().cloned().map(Permission::Net))
            .chain(self.environment.iter().cloned().map(Permission::Env))
            .chain(self.secrets.iter().cloned().map(Permission::Secret))
            .chain(self.all.then_some(Permission::All));
        let denied_directories = self.denied_directories.iter().cloned().map(Denial::Read);
        let denied = denied_directories.chain(self.denied_network.iter().cloned().map(Denial::Net));
        allowed.map(Rule::Allow).chain(denied.map(Rule::Deny)).collect()
    }

    /// Takes a rule back. Was it there? A directory is found by its access too, a variable by its name, and by its value where one is
    /// given.
    pub fn remove(&mut self, rule: &Rule) -> bool {
        match rule {
            Rule::Allow(Permission::Read(directory)) => self.remove_directory(directory, Access::Read),
            Rule::Allow(Permission::Write(directory)) => self.remove_directory(directory, Access::Write),
            Rule::Allow(Permission::Net(rule)) => remove_where(&mut self.network, |known| known == rule),
            Rule::Allow(Permission::Env(variable)) => remove_where(&mut self.environment, |known| {
                known.name == variable.name && (variable.value.is_none() || known.value == variable.value)
            }),
            Rule::Allow(Permission::Secret(name)) => remove_where(&mut self.secrets, |known| known == name),
            Rule::Allow(Permission::All) => std::mem::take(&mut self.all),
            Rule::Deny(Denial::Read(path)) => remove_where(&mut self.denied_directories, |known| known == path),
            Rule::Deny(Denial::Net(rule)) => remove_where(&mut self.denied_network, |known| known == rule),
        }
    }

    fn remove_directory(&mut self, directory: &Directory, access: Access) -> bool {
        remove_where(&mut self.directories, |known| {
            known.access == access
                && known.directory.host == directory.host
                && known.directory.guest_path() == directory.guest_path()
        })
    }
}

fn add_new<T: Clone + PartialEq>(known: &mut Vec<T>, others: &[T]) {
    for other in others {
        if !known.contains(other) {
            known.push(other.clone());
        }
    }
}

fn remove_where<T>(known: &mut Vec<T>, is_meant: impl Fn(&T) -> bool) -> bool {
    let before = known.len();
    known.retain(|entry| !is_meant(entry));
    known.len() < before
}

/// One path inside cannot be two directories.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("two different directories are granted as `{guest}`\nhint: give one of them another path with `DIR:GUEST`")]
pub struct Contradiction {
    /// The path inside.
    pub guest: String,
    /// What stands there now.
    pub known: PathBuf,
    /// What was to stand there, too.
    pub other: PathBuf,
}

/// A directory, and what may be done in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryGrant {
    #[serde(flatten)]
    pub directory: Directory,
    pub access: Access,
}

/// As on the command line.
impl fmt::Display for DirectoryGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let option = match self.access {
            Access::Read => "--allow-read",
            Access::Write => "--allow-write",
        };
        write!(f, "{option}={}", self.directory)
    }
}

/// What may be done in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    Read,
    /// Reading, too.
    Write,
}

/// A directory of this machine, and the path under which a guest finds it.
///
/// The text is `DIR` or `DIR:GUEST`; without `GUEST` the guest finds it under its own path.
///
/// ```
/// let directory: policy::Directory = "/srv/data:/data".parse()?;
/// assert_eq!(directory.guest_path(), "/data");
/// # Ok::<(), policy::DirectoryError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directory {
    pub host: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    guest: Option<String>,
}

impl Directory {
    /// A directory, and the path that it has inside if that is another.
    pub fn new(host: PathBuf, guest: Option<String>) -> Result<Self, DirectoryError> {
        // It is shown to people, so nothing in it may steer a terminal.
        if guest
            .as_deref()
            .is_some_and(|guest| guest.is_empty() || guest.contains(is_hidden))
        {
            return Err(DirectoryError::NoGuest(host.display().to_string()));
        }
        Ok(Self { host, guest })
    }

    /// Where the guest finds it.
    pub fn guest_path(&self) -> String {
        match &self.guest {
            Some(guest) => guest.clone(),
            None => self.host.to_string_lossy().into_owned(),
        }
    }

    /// The same grant with the directory spelled in another way, as an absolute path for example.
    #[must_use]
    pub fn with_host(self, host: PathBuf) -> Self {
        Self { host, ..self }
    }
}

impl FromStr for Directory {
    type Err = DirectoryError;

    fn from_str(text: &str) -> Result<Self, DirectoryError> {
        let (host, guest) = match text.rsplit_once(':') {
            // `C:\data` is a path and no pair.
            Some((drive, rest)) if drive.len() == 1 && rest.starts_with(['\\', '/']) && cfg!(windows) => (text, None),
            Some((host, guest)) => (host, Some(guest)),
            None => (text, None),
        };
        if host.is_empty() {
            return Err(DirectoryError::NoDirectory(text.to_owned()));
        }
        Self::new(host.into(), guest.map(str::to_owned)).map_err(|_| DirectoryError::NoGuest(text.to_owned()))
    }
}

impl fmt::Display for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.host.display())?;
        match &self.guest {
            Some(guest) => write!(f, ":{guest}"),
            None => Ok(()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DirectoryError {
    #[error("`{}` names no directory; write `DIR`, or `DIR:GUEST` to give it another path inside", .0.escape_debug())]
    NoDirectory(String),
    #[error("`{}` has no path after its `:` that can be shown; write `DIR`, or `DIR:GUEST` to give it another path inside", .0.escape_debug())]
    NoGuest(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_read_and_printed() {
        for (text, host, guest) in [
            ("/srv/data", "/srv/data", "/srv/data"),
            ("/srv/data:/data", "/srv/data", "/data"),
            (".:/work", ".", "/work"),
            ("./a:b:c", "./a:b", "c"),
        ] {
            let directory: Directory = text.parse().unwrap();
            assert_eq!(
                (directory.host.to_str().unwrap(), directory.guest_path().as_str()),
                (host, guest)
            );
            assert_eq!(directory.to_string(), text);
        }
    }

    #[test]
    fn what_names_no_directory_is_refused() {
        for text in ["", ":/data", "/srv:"] {
            assert!(text.parse::<Directory>().is_err(), "{text}");
        }
    }

    fn grants(rules: &[&str]) -> Grants {
        let mut grants = Grants::default();
        for rule in rules {
            match rule.parse().unwrap() {
                Rule::Allow(permission) => grants.allow(permission).unwrap(),
                Rule::Deny(denial) => grants.deny(denial),
            }
        }
        grants
    }

    fn printed(grants: &Grants) -> Vec<String> {
        grants.rules().iter().map(Rule::to_string).collect()
    }

    #[test]
    fn what_is_allowed_again_is_not_there_twice() {
        let grants = grants(&[
            "--allow-env=A=1",
            "--allow-read=/srv:/data",
            "--allow-net=example.com",
            "--allow-write=/srv:/data",
            "--allow-read=/srv:/data",
            "--allow-read=/srv:/other",
            "--allow-net=EXAMPLE.com",
            "--allow-env=B",
            "--allow-env=A=2",
            "--allow-secret=TOKEN",
            "--allow-secret=TOKEN",
            "--deny-read=/srv/private",
            "--deny-read=/srv/private",
            "--deny-net=evil.example",
            "--deny-net=evil.example",
            "--allow-all",
        ]);
        let expected = [
            "--allow-write=/srv:/data",
            "--allow-read=/srv:/other",
            "--allow-net=example.com",
            "--allow-env=A=2",
            "--allow-env=B",
            "--allow-secret=TOKEN",
            "--allow-all",
            "--deny-read=/srv/private",
            "--deny-net=evil.example",
        ];
        assert_eq!(printed(&grants), expected);
    }

    #[test]
    fn one_path_inside_is_one_directory() {
        let mut known = grants(&["--allow-read=/srv:/data"]);
        let contradiction = known.allow("write=/other:/data".parse().unwrap()).unwrap_err();
        assert_eq!(
            contradiction.to_string(),
            "two different directories are granted as `/data`\nhint: give one of them another path with `DIR:GUEST`"
        );
        assert_eq!(printed(&known), ["--allow-read=/srv:/data"]);

        let others = grants(&["--allow-write=/other:/data", "--allow-write=/more"]);
        assert_eq!(known.contradiction(&others).as_deref(), Some("/data"));
        assert_eq!(
            printed(&known.and(&others)),
            ["--allow-read=/srv:/data", "--allow-write=/more"]
        );
    }

    #[test]
    fn the_first_value_of_a_variable_stays_in_a_union() {
        let both = grants(&["--allow-env=A=1"]).and(&grants(&["--allow-env=A=2", "--allow-env=B"]));
        assert_eq!(printed(&both), ["--allow-env=A=1", "--allow-env=B"]);
    }

    #[test]
    fn what_is_taken_back_was_there() {
        let mut known = grants(&[
            "--allow-read=/srv",
            "--allow-write=/more",
            "--allow-env=A=1",
            "--allow-net=example.com",
            "--allow-all",
        ]);
        for (rule, was_there) in [
            ("--allow-write=/srv", false),
            ("--allow-read=/srv:/data", false),
            ("--allow-read=/srv:/srv", true),
            ("--allow-read=/srv", false),
            ("--allow-read=/more", false),
            ("--allow-write=/more", true),
            ("--allow-env=A", true),
            ("--allow-net=https://example.com", false),
            ("--deny-net=example.com", false),
            ("--allow-net=example.com:*", true),
            ("--allow-all", true),
            ("--allow-all", false),
        ] {
            assert_eq!(known.remove(&rule.parse().unwrap()), was_there, "{rule}");
        }
        assert!(known.is_empty());
    }

    /// Files of before have directories only, and they stay as they are.
    #[test]
    fn files_look_as_before() {
        for (rules, file) in [
            (&[] as &[&str], "directories = []\n"),
            (
                &["--allow-read=/srv:/data"],
                "[[directories]]\nhost = \"/srv\"\nguest = \"/data\"\naccess = \"read\"\n",
            ),
            (
                &[
                    "--allow-read=/srv",
                    "--allow-net=https://example.com",
                    "--allow-all",
                    "--deny-read=/srv/private",
                ],
                "network = [\"https://example.com\"]\nall = true\ndenied_directories = [\"/srv/private\"]\n\n\
                 [[directories]]\nhost = \"/srv\"\naccess = \"read\"\n",
            ),
        ] {
            let grants = grants(rules);
            assert_eq!(toml::to_string(&grants).unwrap(), file);
            assert_eq!(toml::from_str::<Grants>(file).unwrap(), grants);
        }
        assert_eq!(toml::from_str::<Grants>("").unwrap(), Grants::default());
        assert!(toml::from_str::<Grants>("netwrok = []").is_err());
    }
}
