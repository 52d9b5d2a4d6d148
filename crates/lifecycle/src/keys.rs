//! Keys in files: one line of text that nobody but its owner may read, made when it is first needed.

use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::error::shown;

/// What a new key is made of.
const NEW_BYTES: usize = 32;

/// The shortest key that is taken. Somebody who guesses has all the time there is.
const MIN_CHARS: usize = 16;

/// More than this is no key, whatever it is.
const MAX_FILE: u64 = 64 << 10;

/// A key. It is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("the key file `{shown}` could not be read: {error}", shown = shown(path))]
    Read { path: PathBuf, error: io::Error },
    #[error("the key file `{shown}` could not be made: {error}", shown = shown(path))]
    Make { path: PathBuf, error: io::Error },
    #[error("others can read the key file `{shown}`\nhint: `chmod 600 {shown}`, and make a new key if somebody has read it", shown = shown(path))]
    Exposed { path: PathBuf },
    #[error(
        "the first line of the key file `{shown}` has {chars} characters, and a key has at least {MIN_CHARS}\nhint: remove the file, and a key is made", shown = shown(path))]
    Short { path: PathBuf, chars: usize },
    #[error("the key in `{shown}` has characters that cannot stand in a header\nhint: use letters, digits and signs without spaces", shown = shown(path))]
    Unprintable { path: PathBuf },
}

impl Key {
    /// The key in a file. A file that does not exist is made, with a key that nobody can guess.
    pub fn of_file(path: &Path) -> Result<Self, KeyError> {
        let read_error = |error| KeyError::Read {
            path: path.to_owned(),
            error,
        };
        let make_error = |error| KeyError::Make {
            path: path.to_owned(),
            error,
        };
        match fs::File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(path).map_err(make_error)?,
            Err(error) => return Err(read_error(error)),
            Ok(_) => {}
        }
        // Another process may have been faster, and its key is then the one.
        let file = fs::File::open(path).map_err(read_error)?;
        let metadata = file.metadata().map_err(read_error)?;
        if !metadata.is_file() {
            return Err(read_error(io::Error::other("it is no file")));
        }
        if is_exposed(&metadata) {
            return Err(KeyError::Exposed { path: path.to_owned() });
        }
        let mut text = String::new();
        file.take(MAX_FILE).read_to_string(&mut text).map_err(read_error)?;
        Self::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, KeyError> {
        let key = text.lines().next().unwrap_or_default().trim();
        let chars = key.chars().count();
        if chars < MIN_CHARS {
            return Err(KeyError::Short {
                path: path.to_owned(),
                chars,
            });
        }
        if !key.chars().all(|c| c.is_ascii_graphic()) {
            return Err(KeyError::Unprintable { path: path.to_owned() });
        }
        Ok(Self(key.to_owned()))
    }

    /// The text, for whoever has to compare or derive something.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Makes a file with a new key, unless there is one by now. Temporary files are for their owner only.
fn make(path: &Path) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(directory)?;
    let mut random = [0; NEW_BYTES];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let mut file = tempfile::Builder::new().tempfile_in(directory)?;
    writeln!(file, "{}", URL_SAFE_NO_PAD.encode(random))?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
        _ => Ok(()),
    }
}

#[cfg(unix)]
fn is_exposed(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.mode() & 0o077 != 0
}

/// Elsewhere the folder says who may read what is in it.
#[cfg(not(unix))]
fn is_exposed(_: &fs::Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new").join("http.token");
        let key = Key::of_file(&path).unwrap();
        assert_eq!(key.expose().len(), 43);
        assert_eq!(Key::of_file(&path).unwrap(), key);
        assert_ne!(Key::of_file(&folder.path().join("other")).unwrap(), key);
        assert_eq!(
            fs::read_dir(path.parent().unwrap()).unwrap().count(),
            1,
            "nothing is left behind"
        );
        assert_eq!(format!("{key:?}"), "Key(…)");
    }

    #[test]
    fn the_first_line_counts() {
        let parse = |text| Key::parse(Path::new("key"), text);
        let whole = "0123456789abcdef";
        for text in [
            "0123456789abcdef",
            "0123456789abcdef\n",
            "  0123456789abcdef\r\nand a remark\n",
        ] {
            assert_eq!(parse(text).unwrap().expose(), whole);
        }
        assert!(matches!(parse(""), Err(KeyError::Short { chars: 0, .. })));
        assert!(matches!(parse("\n0123456789abcdef"), Err(KeyError::Short { chars: 0, .. })));
        assert!(matches!(parse("0123456789abcde"), Err(KeyError::Short { chars: 15, .. })));
        assert!(matches!(parse("0123456789 abcdef"), Err(KeyError::Unprintable { .. })));
        assert!(matches!(parse("0123456789äöüß-abc"), Err(KeyError::Unprintable { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn what_others_can_read_is_no_key() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        Key::of_file(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        for mode in [0o640, 0o604, 0o620] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(matches!(Key::of_file(&path), Err(KeyError::Exposed { .. })), "{mode:o}");
        }
    }
}
