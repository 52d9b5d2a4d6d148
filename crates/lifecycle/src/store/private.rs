//! Directories that only this user can use.

use std::path::Path;

use super::{StoreError, io_error};

/// Makes a directory that only this user can use, or checks that it is one.
#[cfg(unix)]
pub(super) fn make(path: &Path) -> Result<(), StoreError> {
    use std::fs;
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};

    // A link could be made to point elsewhere after this look at it.
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(_) => {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(|error| io_error(path, error))?;
            }
            match fs::DirBuilder::new().mode(0o700).create(path) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(io_error(path, error)),
                _ => fs::symlink_metadata(path).map_err(|error| io_error(path, error))?,
            }
        }
    };
    if !metadata.is_dir() {
        return Err(StoreError::NotADirectory { path: path.to_owned() });
    }
    let ours = metadata.uid() == rustix::process::geteuid().as_raw();
    if !ours || metadata.mode() & 0o022 != 0 {
        return Err(StoreError::Exposed { path: path.to_owned() });
    }
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn make(path: &Path) -> Result<(), StoreError> {
    std::fs::create_dir_all(path).map_err(|error| io_error(path, error))
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_directory_that_others_can_write_to_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("cache");
        make(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(make(&folder), Err(StoreError::Exposed { .. })));
    }

    #[test]
    fn a_link_in_place_of_the_directory_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let folder = home.path().join("cache");
        std::os::unix::fs::symlink(elsewhere.path(), &folder).unwrap();
        assert!(matches!(make(&folder), Err(StoreError::NotADirectory { .. })));
    }
}
