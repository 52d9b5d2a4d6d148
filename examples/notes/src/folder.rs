//! The notes on disk: `/notes/NAME.txt`.

use std::fmt::{self, Display};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub const MIME_TYPE: &str = "text/plain";
const FOLDER: &str = "/notes";
const SCHEME: &str = "note://";

/// The name of a note; safe as a part of a path and of a URI.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

impl FromStr for Name {
    type Err = String;

    fn from_str(name: &str) -> Result<Name, String> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
            return Err(format!(
                "`{name}` is no name of a note: use up to 64 letters, digits, hyphens and underscores"
            ));
        }
        Ok(Name(name.to_owned()))
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Name {
    pub fn uri(&self) -> String {
        format!("{SCHEME}{self}")
    }

    pub fn from_uri(uri: &str) -> Option<Name> {
        uri.strip_prefix(SCHEME)?.parse().ok()
    }

    fn path(&self) -> PathBuf {
        Path::new(FOLDER).join(format!("{self}.txt"))
    }

    fn from_path(path: &Path) -> Option<Name> {
        let is_note = path.extension().is_some_and(|extension| extension == "txt");
        path.file_stem()?.to_str().filter(|_| is_note)?.parse().ok()
    }
}

/// All notes and their sizes in bytes, by name.
pub fn list() -> Result<Vec<(Name, u64)>, String> {
    let failed = |error| format!("the notes cannot be listed: {error}");
    let mut notes = Vec::new();
    for entry in fs::read_dir(FOLDER).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if let Some(name) = Name::from_path(&entry.path()) {
            notes.push((name, entry.metadata().map_err(failed)?.len()));
        }
    }
    notes.sort();
    Ok(notes)
}

/// The note of this name, which must be there.
pub fn find(name: &str) -> Result<Name, String> {
    let name: Name = name.parse()?;
    if !exists(&name) {
        return Err(format!("there is no note `{name}`"));
    }
    Ok(name)
}

pub fn exists(name: &Name) -> bool {
    name.path().is_file()
}

pub fn read(name: &Name) -> Result<String, String> {
    fs::read_to_string(name.path()).map_err(|error| format!("`{name}` cannot be read: {error}"))
}

pub fn add(name: &Name, text: &str) -> Result<(), String> {
    let written = File::create_new(name.path()).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => format!("there is a note `{name}` already"),
        _ => format!("`{name}` cannot be written: {error}"),
    })
}

pub fn delete(name: &Name) -> Result<(), String> {
    fs::remove_file(name.path()).map_err(|error| format!("`{name}` cannot be deleted: {error}"))
}

/// Writes the file with all notes in it, and tells its path.
pub fn write_export(text: &str) -> Result<String, String> {
    let path = format!("{FOLDER}/export.md");
    fs::write(&path, text).map_err(|error| format!("{path} cannot be written: {error}"))?;
    Ok(path)
}
