//! Files of other programs: read with care, and replaced in one step, unless the other program was quicker.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::files::default_home;

/// The largest file that is read. Some clients keep their history in the file with their settings.
const MAX_SIZE: u64 = 128 << 20;
/// Links to follow before they are taken for a circle.
const MAX_LINKS: usize = 16;

/// What became of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Replaced {
    /// What was there before, if anything was, is kept there.
    Done { backup: Option<PathBuf> },
    /// Somebody has written to it meanwhile; nothing was done.
    Changed,
}

/// The bytes of a file, or `None` if there is none.
pub fn read_others(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // A pipe would never end, and a device might not either.
    if !metadata.is_file() {
        return Err(io::Error::other("it is no ordinary file"));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MAX_SIZE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_SIZE {
        return Err(io::Error::other(format!("it is larger than {} MiB", MAX_SIZE >> 20)));
    }
    Ok(Some(bytes))
}

/// Puts new bytes in the place of those that were read. They are kept beside it. A link is followed. The file stays readable for the
/// same people; a new one is for this user alone, if it is `private`.
pub fn replace_others(path: &Path, before: Option<&[u8]>, after: &[u8], private: bool) -> io::Result<Replaced> {
    let path = &followed(path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let like = fs::metadata(path).ok();
    let new = temporary(folder, after, like.as_ref(), private)?;
    let backup = match before {
        Some(before) => Some((temporary(folder, before, like.as_ref(), private)?, backup_of(path))),
        None => None,
    };
    // As late as can be: between this and the renaming there is next to nothing.
    if read_others(path)?.as_deref() != before {
        return Ok(Replaced::Changed);
    }
    let backup = match backup {
        Some((old, place)) => {
            old.persist(&place).map_err(|error| error.error)?;
            Some(place)
        }
        None => None,
    };
    new.persist(path).map_err(|error| error.error)?;
    #[cfg(unix)]
    fs::File::open(folder)?.sync_all()?;
    Ok(Replaced::Done { backup })
}

/// Held while a file of another program is edited, so that two of us do not get in each other's way. Without a home of ours, nobody
/// waits.
pub fn lock_others() -> Option<fs::File> {
    let home = default_home()?;
    fs::create_dir_all(&home).ok()?;
    let mut options = fs::OpenOptions::new();
    let file = options
        .create(true)
        .truncate(false)
        .write(true)
        .open(home.join("clients.lock"))
        .ok()?;
    file.lock().ok()?;
    Some(file)
}

fn backup_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".before-host");
    path.with_file_name(name)
}

/// A file that takes the place of another, with the owner and the permissions of that one.
fn temporary(folder: &Path, contents: &[u8], like: Option<&fs::Metadata>, private: bool) -> io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(contents)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
        if let Some(like) = like {
            // Only who may do anything can give a file away; anybody else owns it already.
            let _ = fchown(file.as_file(), Some(like.uid()), Some(like.gid()));
            file.as_file().set_permissions(like.permissions())?;
        } else if !private {
            file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
        }
    }
    #[cfg(not(unix))]
    let _ = (like, private);
    file.as_file().sync_all()?;
    Ok(file)
}

/// Where a link leads, also if there is nothing yet.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = std::path::absolute(path)?;
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(to) => path = path.parent().unwrap_or(Path::new("/")).join(to),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("its links lead in circles"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::disallowed_methods, reason = "a test's own file")]
    fn write(path: &Path, text: &str) {
        fs::write(path, text).unwrap();
    }

    #[test]
    fn what_changed_meanwhile_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.json");
        write(&file, "theirs");
        let replaced = replace_others(&file, Some(b"old"), b"ours", true).unwrap();
        assert_eq!(replaced, Replaced::Changed);
        assert_eq!(fs::read(&file).unwrap(), b"theirs");
        assert_eq!(replace_others(&file, None, b"ours", true).unwrap(), Replaced::Changed);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_even_to_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link.json");
        std::os::unix::fs::symlink("real/a.json", &link).unwrap();
        replace_others(&link, None, b"ours", true).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(folder.path().join("real/a.json")).unwrap(), b"ours");
        std::os::unix::fs::symlink("circle", folder.path().join("circle")).unwrap();
        assert!(replace_others(&folder.path().join("circle"), None, b"", true).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn permissions_are_kept_whatever_the_umask() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        for wanted in [0o600, 0o664, 0o666] {
            let file = folder.path().join("a.json");
            write(&file, "old");
            fs::set_permissions(&file, fs::Permissions::from_mode(wanted)).unwrap();
            let replaced = replace_others(&file, Some(b"old"), b"new", true).unwrap();
            let Replaced::Done { backup: Some(backup) } = replaced else {
                panic!("{replaced:?}");
            };
            assert_eq!((mode(&file), mode(&backup)), (wanted, wanted));
        }
        for (private, wanted) in [(true, 0o600), (false, 0o644)] {
            let file = folder.path().join(format!("{private}.json"));
            replace_others(&file, None, b"new", private).unwrap();
            assert_eq!(mode(&file), wanted);
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_not_read() {
        assert!(read_others(Path::new("/dev/zero")).is_err());
        assert!(read_others(Path::new("/dev/null")).is_err());
    }
}
