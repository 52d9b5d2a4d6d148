//! Files: reading components in, and the one way in which this program writes a file.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use component2json::{FileKind, file_kind};
use policy::ByteSize;

use crate::error::LoadError;

/// The largest component that is loaded.
const MAX_COMPONENT: ByteSize = ByteSize::from_mib(512);

/// The components that a path stands for: itself, or those in it when it is a directory, in the order of their names.
pub fn expand(path: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let read_error = |error| LoadError::Read {
        path: path.to_owned(),
        error,
    };
    if !fs::metadata(path).map_err(read_error)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(read_error)? {
        let file = entry.map_err(read_error)?.path();
        let is_wasm = file
            .extension()
            .is_some_and(|extension| extension == "wasm" || extension == "wat");
        if is_wasm && file.is_file() {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Err(LoadError::NothingInDirectory { path: path.to_owned() });
    }
    files.sort();
    Ok(files)
}

/// The bytes of the component in a file; text is assembled.
pub(crate) fn read_component(path: &Path) -> Result<Vec<u8>, LoadError> {
    let read_error = |error| LoadError::Read {
        path: path.to_owned(),
        error,
    };
    let file = fs::File::open(path).map_err(read_error)?;
    let mut bytes = Vec::new();
    file.take(MAX_COMPONENT.bytes() + 1)
        .read_to_end(&mut bytes)
        .map_err(read_error)?;
    if bytes.len() as u64 > MAX_COMPONENT.bytes() {
        return Err(LoadError::TooLarge {
            path: path.to_owned(),
            limit: MAX_COMPONENT,
        });
    }
    if bytes.is_empty() {
        return Err(LoadError::Empty { path: path.to_owned() });
    }
    if file_kind(&bytes) == FileKind::NotWasm && looks_like_wat(path, &bytes) {
        let text = String::from_utf8_lossy(&bytes);
        let assembled = wat::Parser::new().parse_str(Some(path), &text);
        bytes = assembled.map_err(|error| LoadError::Text {
            path: path.to_owned(),
            error: error.to_string(),
        })?;
    }
    match file_kind(&bytes) {
        FileKind::Component => Ok(bytes),
        FileKind::CoreModule if exports_start(&bytes) => Err(LoadError::CommandModule { path: path.to_owned() }),
        FileKind::CoreModule => Err(LoadError::CoreModule { path: path.to_owned() }),
        FileKind::NotWasm => Err(LoadError::NotWasm {
            path: path.to_owned(),
            start: start_of(&bytes),
        }),
    }
}

fn looks_like_wat(path: &Path, bytes: &[u8]) -> bool {
    path.extension().is_some_and(|extension| extension == "wat")
        || bytes.trim_ascii_start().starts_with(b"(component")
        || bytes.trim_ascii_start().starts_with(b"(module")
}

/// Whether a core module is a program with a `main`. A module that cannot be read to its exports is none.
fn exports_start(bytes: &[u8]) -> bool {
    component2json::core_exports(bytes).iter().any(|name| name == "_start")
}

fn start_of(bytes: &[u8]) -> String {
    let start: String = String::from_utf8_lossy(bytes.get(..24).unwrap_or(bytes)).into_owned();
    format!("{start:?}")
}

/// Writes a file so that a reader sees the old or the new contents and never a part, and so that it survives a crash.
pub fn write_atomically(path: &Path, contents: &[u8]) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(contents)?;
    file.as_file().sync_all()?;
    // A temporary file is private; a file that replaces another keeps the other's permissions.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(path).map_or(0o644, |metadata| metadata.permissions().mode());
        file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    }
    file.persist(path).map_err(|error| error.error)?;
    fs::File::open(directory)?.sync_all()
}
