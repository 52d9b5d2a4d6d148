//! Files: reading components in, and the one way in which this program writes a file.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use component2json::{FileKind, file_kind};
use etcetera::BaseStrategy;
use policy::ByteSize;

use crate::error::{LoadError, shown};

/// Where everything is kept unless told otherwise: `$HOST_HOME`, else the platform's data directory.
pub fn default_home() -> Option<PathBuf> {
    match std::env::var_os("HOST_HOME") {
        Some(home) if !home.is_empty() => Some(home.into()),
        _ => Some(etcetera::choose_base_strategy().ok()?.data_dir().join("host")),
    }
}

/// Where a path leads, as far as it exists: what does not exist yet is below where the rest leads.
pub fn real_path(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let existing = path
        .ancestors()
        .find_map(|ancestor| Some((ancestor, ancestor.canonicalize().ok()?)));
    match existing {
        Some((ancestor, real)) => match path.strip_prefix(ancestor) {
            Ok(rest) if rest.as_os_str().is_empty() => real,
            Ok(rest) => real.join(rest),
            Err(_) => path,
        },
        None => path,
    }
}

/// The largest component that is loaded.
const MAX_COMPONENT: ByteSize = ByteSize::from_mib(512);

/// The components that a path stands for: itself, or those in it when it is a directory, in the order of their names.
pub(crate) fn expand(path: &Path) -> Result<Vec<PathBuf>, LoadError> {
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

/// The bytes of the component in a file, or of the core module if that is a program; text is assembled.
pub(crate) fn read_component(path: &Path) -> Result<Vec<u8>, LoadError> {
    component(path, assembled(path, read(path)?)?)
}

/// The bytes of an ordinary file as they are. A pipe might never end.
pub(crate) fn read_regular(path: &Path) -> Result<Vec<u8>, LoadError> {
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
        return Err(LoadError::NotAFile { path: path.to_owned() });
    }
    read(path)
}

/// The bytes of a file as they are, up to the most that is loaded.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    let read_error = |error| LoadError::Read {
        path: path.to_owned(),
        error,
    };
    let file = fs::File::open(path).map_err(read_error)?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(LoadError::Directory { path: path.to_owned() });
    }
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
    Ok(bytes)
}

/// Bytes that are known under a name; WebAssembly text in its binary form.
pub(crate) fn assembled(path: &Path, bytes: Vec<u8>) -> Result<Vec<u8>, LoadError> {
    if file_kind(&bytes) != FileKind::NotWasm || !looks_like_wat(path, &bytes) {
        return Ok(bytes);
    }
    let text = String::from_utf8_lossy(&bytes);
    let assembled = wat::Parser::new().parse_str(Some(Path::new(&shown(path))), &text);
    assembled.map_err(|error| LoadError::Text {
        path: path.to_owned(),
        error: error.to_string(),
    })
}

/// Bytes that are known under a name, if they are a component or a program.
pub(crate) fn component(path: &Path, bytes: Vec<u8>) -> Result<Vec<u8>, LoadError> {
    if bytes.is_empty() {
        return Err(LoadError::Empty { path: path.to_owned() });
    }
    match file_kind(&bytes) {
        FileKind::Component => Ok(bytes),
        FileKind::CoreModule if exports_start(&bytes) => Ok(bytes),
        FileKind::CoreModule => Err(LoadError::CoreModule { path: path.to_owned() }),
        FileKind::NotWasm => Err(LoadError::NotWasm {
            path: path.to_owned(),
            start: start_of(&bytes),
        }),
    }
}

/// Refuses WebAssembly text, in whose place nobody wants to find a binary.
pub(crate) fn check_binary(path: &Path) -> Result<(), LoadError> {
    let mut start = [0; 4];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    // Whatever else is wrong with the file, who reads it will say so.
    if read.is_ok() && start != *b"\0asm" {
        return Err(LoadError::IsText { path: path.to_owned() });
    }
    Ok(())
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
///
/// A link is followed. What is no ordinary file (a pipe, `/dev/stdout`) cannot be replaced and is written to instead.
pub fn write_atomically(path: &Path, contents: &[u8]) -> io::Result<()> {
    let path = match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => fs::canonicalize(path)?,
        Ok(_) => return fs::OpenOptions::new().write(true).open(path)?.write_all(contents),
        Err(_) => path.to_owned(),
    };
    replace(&path, &temporary(&path), contents)
}

/// Likewise, for the store: nobody but this user may read it, and a link is replaced and not followed.
pub(crate) fn write_privately(path: &Path, contents: &[u8]) -> io::Result<()> {
    replace(path, &tempfile::Builder::new(), contents)
}

fn replace(path: &Path, temporary: &tempfile::Builder<'_, '_>, contents: &[u8]) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut file = temporary.tempfile_in(directory)?;
    file.write_all(contents)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    // A rename is on disk when its directory is.
    #[cfg(unix)]
    fs::File::open(directory)?.sync_all()?;
    Ok(())
}

/// A temporary file with the permissions of the one it replaces, or else those that any new file has.
fn temporary(replaced: &Path) -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let permissions = fs::metadata(replaced).map_or(fs::Permissions::from_mode(0o666), |metadata| metadata.permissions());
        builder.permissions(permissions);
    }
    #[cfg(not(unix))]
    let _ = replaced;
    builder
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_permissions_and_through_links() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        write_atomically(&file, b"one").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        write_atomically(&link, b"two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left behind");
    }

    #[test]
    fn what_is_no_file_is_written_to() {
        use std::os::unix::fs::FileTypeExt;
        write_atomically(Path::new("/dev/null"), b"gone").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }
}
