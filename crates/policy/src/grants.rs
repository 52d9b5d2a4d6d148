//! What a person lets a guest use.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// All that is granted. Nothing, unless somebody said so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Grants {
    /// In the order in which they were given: the first is the working directory.
    pub directories: Vec<DirectoryGrant>,
}

impl Grants {
    pub fn is_empty(&self) -> bool {
        self.directories.is_empty()
    }

    /// The path inside at which others have another directory than these.
    pub fn contradiction(&self, others: &Self) -> Option<String> {
        let contradicts = |other: &&DirectoryGrant| {
            let guest = other.directory.guest_path();
            let same_guest = |known: &&DirectoryGrant| known.directory.guest_path() == guest;
            self.directories
                .iter()
                .find(same_guest)
                .is_some_and(|known| known.directory.host != other.directory.host)
        };
        others
            .directories
            .iter()
            .find(contradicts)
            .map(|other| other.directory.guest_path())
    }

    /// These, and others where they do not contradict: a path inside keeps the directory that it has here.
    #[must_use]
    pub fn and(mut self, others: &Self) -> Self {
        for other in &others.directories {
            let guest = other.directory.guest_path();
            match self
                .directories
                .iter_mut()
                .find(|known| known.directory.guest_path() == guest)
            {
                Some(known) if known.directory.host == other.directory.host => known.access = known.access.max(other.access),
                Some(_) => {}
                None => self.directories.push(other.clone()),
            }
        }
        self
    }
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
        let is_hidden =
            |c: char| c.is_control() || matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}');
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
    #[error("`{0}` names no directory; write `DIR`, or `DIR:GUEST` to give it another path inside")]
    NoDirectory(String),
    #[error("`{0}` has no path after its `:` that can be shown; write `DIR`, or `DIR:GUEST` to give it another path inside")]
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
}
