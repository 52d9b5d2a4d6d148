//! Which files running servers still need, so that `gc` leaves them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use sources::Digest;

/// A list of components that a process may yet have to read. It holds for as long as the process lives, however that ends: the
/// file is locked, and the lock goes with the process.
#[derive(Debug)]
pub(crate) struct Lease {
    path: PathBuf,
    file: File,
}

impl Lease {
    /// A list of these. To be called by one process at a time, or it could be taken for that of a process that has ended.
    pub(super) fn take<'a>(home: &Path, digests: impl Iterator<Item = &'a Digest>) -> io::Result<Self> {
        // Servers are often killed by their clients, and then leave their lists behind.
        leased(home)?;
        let file = tempfile::Builder::new().tempfile_in(home.join("running"))?;
        file.as_file().lock()?;
        let (file, path) = file.keep()?;
        let mut lease = Self { path, file };
        lease.set(digests)?;
        Ok(lease)
    }

    /// Says what is needed from now on.
    pub(crate) fn set<'a>(&mut self, digests: impl Iterator<Item = &'a Digest>) -> io::Result<()> {
        let text: String = digests.map(|digest| format!("{digest}\n")).collect();
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())?;
        self.file.set_len(text.len() as u64)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Whoever comes next deletes it otherwise.
        let _ = fs::remove_file(&self.path);
    }
}

/// What running processes need. The lists of those that have ended are deleted.
pub(super) fn leased(home: &Path) -> io::Result<BTreeSet<Digest>> {
    let mut digests = BTreeSet::new();
    for entry in fs::read_dir(home.join("running"))? {
        let path = entry?.path();
        let Ok(mut file) = File::open(&path) else { continue };
        if file.try_lock().is_ok() {
            // It may just have been deleted by its process, or be on a disk that is read-only.
            let _ = fs::remove_file(&path);
            continue;
        }
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        digests.extend(text.lines().filter_map(|line| line.parse::<Digest>().ok()));
    }
    Ok(digests)
}
