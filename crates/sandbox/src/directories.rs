//! Granted directories as handles: opened once, so that what is swapped under their paths later changes nothing for guests.

use std::path::{Path, PathBuf};

use policy::{Access, DirectoryGrant, Grants};
use wasmtime_wasi::{FsPerms, WasiCtxBuilder};

use crate::error::CallError;

/// The directories of a component.
#[derive(Debug, Default)]
pub(crate) struct Directories {
    /// In the order in which they were given: the first is the working directory.
    granted: Vec<Granted>,
    pub(crate) denied: Vec<Denied>,
}

#[derive(Debug)]
struct Granted {
    grant: DirectoryGrant,
    /// Or why there is none. It may come to be, so every call tries again.
    handle: Result<Handle, String>,
}

/// A file or directory that stays out of reach, also inside a granted directory.
#[derive(Debug)]
pub(crate) struct Denied {
    path: PathBuf,
    /// What was there, which is denied wherever it is moved.
    handle: Option<Handle>,
}

impl Denied {
    /// Where it is now, and where it was said to be.
    pub(crate) fn places(&self) -> impl Iterator<Item = PathBuf> {
        let moved = self.handle.as_ref().and_then(Handle::real_path);
        std::iter::once(self.path.clone()).chain(moved.filter(|moved| *moved != self.path))
    }
}

impl Directories {
    pub(crate) fn open(grants: &Grants) -> Self {
        let denied: Vec<Denied> = grants
            .denied_directories
            .iter()
            .map(|path| Denied {
                path: path.clone(),
                handle: Handle::open(path).ok(),
            })
            .collect();
        let is_denied = |grant: &&DirectoryGrant| {
            let is_below = |denied: &Denied| grant.directory.host.starts_with(&denied.path);
            denied.iter().any(is_below)
        };
        let all = grants.all.then(everything).into_iter().flatten();
        let granted: Vec<DirectoryGrant> = grants.directories.iter().cloned().chain(all).collect();
        let granted = granted
            .iter()
            .filter(|grant| !is_denied(grant))
            .map(|grant| Granted {
                grant: grant.clone(),
                handle: Handle::of_grant(&grant.directory.host),
            })
            .collect();
        Self { granted, denied }
    }

    /// Whether none is granted.
    pub(crate) fn are_none(&self) -> bool {
        self.granted.is_empty()
    }

    /// Whether something is denied inside of what is granted, so that single files have to be looked at.
    pub(crate) fn have_holes(&self) -> bool {
        let is_inside = |denied: &Denied| {
            let mut granted = self.granted.iter();
            granted.any(|granted| denied.path.starts_with(&granted.grant.directory.host))
        };
        self.denied.iter().any(is_inside)
    }

    /// Gives them to a guest.
    pub(crate) fn preopen(&self, wasi: &mut WasiCtxBuilder) -> Result<(), CallError> {
        // WASI has no working directory, but libcs take relative paths to be below what is called `.`, or another relative name.
        let working_directory = self.granted.first().map(|granted| granted.grant.directory.guest_path());
        for (index, Granted { grant, handle }) in self.granted.iter().enumerate() {
            let DirectoryGrant { directory, access } = grant;
            let cannot = |error: String| CallError::Directory {
                path: directory.host.clone(),
                error,
            };
            let opened_now;
            let handle = match handle {
                Ok(handle) => handle,
                Err(_) => {
                    opened_now = Handle::of_grant(&directory.host).map_err(cannot)?;
                    &opened_now
                }
            };
            let perms = match access {
                Access::Read => FsPerms::ReadOnly,
                Access::Write => FsPerms::ReadWrite,
            };
            let guest = directory.guest_path();
            if index == 0 {
                wasi.initial_cwd(&guest).env("PWD", &guest);
            }
            let relative = working_directory.as_ref().and_then(|cwd| below(&guest, cwd));
            for path in [guest.as_str()].into_iter().chain(relative) {
                wasi.preopened_dir(handle.path(), path, perms)
                    .map_err(|error| cannot(format!("{error:#}")))?;
            }
        }
        Ok(())
    }
}

/// What `--allow-all` gives: the current directory to work in, and the rest of the machine.
fn everything() -> Vec<DirectoryGrant> {
    let current = std::env::current_dir().ok();
    let root = current.as_deref().and_then(|current| current.ancestors().last());
    let grant = |path: &Path| {
        Some(DirectoryGrant {
            directory: policy::Directory::new(path.to_owned(), None).ok()?,
            access: Access::Write,
        })
    };
    let both = [current.as_deref(), root];
    both.into_iter().flatten().filter_map(grant).collect()
}

/// The path relative to the working directory, where it is below that: `.` for itself.
fn below<'a>(path: &'a str, cwd: &str) -> Option<&'a str> {
    if path == "." {
        return None;
    }
    match path.strip_prefix(cwd)? {
        "" => Some("."),
        rest => rest.strip_prefix('/').filter(|rest| !rest.is_empty()),
    }
}

/// A file or directory that is held open.
#[derive(Debug)]
struct Handle {
    #[cfg(target_os = "linux")]
    file: std::fs::File,
    #[cfg(not(target_os = "linux"))]
    path: PathBuf,
}

#[cfg(target_os = "linux")]
impl Handle {
    fn open(path: &Path) -> std::io::Result<Self> {
        use rustix::fs::{Mode, OFlags};
        // Without the right to read it: what is denied may well be unreadable for us, too.
        let file = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { file: file.into() })
    }

    /// A path that leads to what was opened, whatever has its name now.
    fn path(&self) -> PathBuf {
        use std::os::fd::AsRawFd as _;
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }

    fn real_path(&self) -> Option<PathBuf> {
        real_path(&self.file)
    }
}

/// Where an open file is now.
#[cfg(target_os = "linux")]
pub(crate) fn real_path(file: &std::fs::File) -> Option<PathBuf> {
    use std::os::fd::AsRawFd as _;
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
}

/// Elsewhere nothing tells where an open file is.
#[cfg(not(target_os = "linux"))]
pub(crate) fn real_path(_: &std::fs::File) -> Option<PathBuf> {
    None
}

#[cfg(not(target_os = "linux"))]
impl Handle {
    fn open(path: &Path) -> std::io::Result<Self> {
        std::fs::metadata(path)?;
        Ok(Self { path: path.to_owned() })
    }

    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    fn real_path(&self) -> Option<PathBuf> {
        self.path.canonicalize().ok()
    }
}

impl Handle {
    /// A directory that was granted under its real path. If something else is there now, that was never granted.
    fn of_grant(host: &Path) -> Result<Self, String> {
        let handle = Self::open(host).map_err(|error| error.to_string())?;
        match handle.real_path() {
            Some(real) if real == host => Ok(handle),
            Some(real) => Err(format!("it leads to `{}` now, which was not granted", real.display())),
            None => Err("where it leads to cannot be told".to_owned()),
        }
    }
}
