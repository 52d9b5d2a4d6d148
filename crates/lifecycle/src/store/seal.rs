//! Seals, which tell what this program wrote from what something else wrote or damaged: a keyed hash, and for large files a MAC.
//!
//! The key is made once, lies in the store and never leaves it. Who can read it can already change everything that it protects;
//! it is there for what comes in from outside: a copied cache, a restored backup, a failing disk.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use aegis::aegis128l::Aegis128LMac;

use crate::files::write_privately;

const KEY_FILE: &str = "key";

/// What is read of a file at a time: so little that it is still in the processor's cache when its seal is computed.
const PIECE: usize = 128 << 10;

/// The key of one store.
#[derive(Clone)]
pub(crate) struct SealKey([u8; blake3::KEY_LEN]);

/// What belongs to some bytes under some name, and to nothing else. Compared in a time that does not depend on what is compared.
#[derive(Clone, Debug)]
pub(crate) struct Seal(blake3::Hash);

impl SealKey {
    /// The key of the store in this directory, if there is one.
    pub(crate) fn load(home: &Path) -> io::Result<Option<Self>> {
        match fs::read(home.join(KEY_FILE)) {
            Ok(text) => Ok(blake3::Hash::from_hex(text.trim_ascii_end())
                .ok()
                .map(|key| Self(*key.as_bytes()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The key, made if there is none. To be called by one process at a time.
    ///
    /// A file that is no key gets a new one in its place: what was sealed by the old one is then no longer believed.
    pub(crate) fn load_or_make(home: &Path) -> io::Result<Self> {
        if let Some(key) = Self::load(home)? {
            return Ok(key);
        }
        let mut key = [0; blake3::KEY_LEN];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        write_privately(
            &home.join(KEY_FILE),
            format!("{}\n", blake3::Hash::from_bytes(key)).as_bytes(),
        )?;
        Ok(Self(key))
    }

    /// The seal of these bytes under this name. The same bytes under another name have another seal.
    pub(crate) fn seal(&self, name: &str, bytes: &[u8]) -> Seal {
        Seal(self.hasher(name).update(bytes).finalize())
    }

    /// What computes the seal of a large file. Each name has a key of its own.
    fn for_file(&self, name: &str) -> FileSealer {
        let mut key = [0; 16];
        let mut output = self.hasher(name).finalize_xof();
        // What comes before would be the seal of nothing under this name, and seals are no secrets.
        output.set_position(blake3::OUT_LEN as u64);
        output.fill(&mut key);
        FileSealer(Aegis128LMac::new(&key))
    }

    /// The seal of what will be in a file of this name.
    pub(crate) fn seal_for_file(&self, name: &str, bytes: &[u8]) -> Seal {
        let mut sealer = self.for_file(name);
        sealer.update(bytes);
        sealer.finish()
    }

    /// The seal of what is in a file of this name. Whoever calls a component for the first time waits for it.
    pub(crate) fn seal_of_file(&self, name: &str, file: &Path) -> io::Result<Seal> {
        let mut sealer = self.for_file(name);
        let mut file = File::open(file)?;
        let mut piece = vec![0; PIECE];
        loop {
            match file.read(&mut piece) {
                Ok(0) => return Ok(sealer.finish()),
                Ok(length) => sealer.update(piece.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn hasher(&self, name: &str) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes());
        hasher
    }
}

/// A MAC and no hash: nobody can make a seal without the key, and that is all that is asked of it. With the AES instructions that
/// processors have it takes a fifth of the time of a hash.
struct FileSealer(Aegis128LMac<{ blake3::OUT_LEN }>);

impl FileSealer {
    fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(self) -> Seal {
        Seal(blake3::Hash::from_bytes(self.0.finalize()))
    }
}

impl Seal {
    /// Whether a text is this seal.
    pub(crate) fn is(&self, text: &str) -> bool {
        blake3::Hash::from_hex(text).is_ok_and(|hash| hash == self.0)
    }
}

impl fmt::Display for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_belongs_to_one_key_one_name_and_the_same_bytes() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let key = SealKey::load_or_make(one.path()).unwrap();
        let seal = key.seal("a", b"bytes").to_string();
        assert!(SealKey::load_or_make(one.path()).unwrap().seal("a", b"bytes").is(&seal));
        assert!(!key.seal("b", b"bytes").is(&seal));
        assert!(!key.seal("a", b"Bytes").is(&seal));
        assert!(!SealKey::load_or_make(other.path()).unwrap().seal("a", b"bytes").is(&seal));
        assert!(!key.seal("a", b"bytes").is(""));
    }

    #[test]
    fn a_file_has_the_seal_of_its_bytes_however_many_there_are() {
        let home = tempfile::tempdir().unwrap();
        let key = SealKey::load_or_make(home.path()).unwrap();
        let file = home.path().join("file");
        for length in [0, 1, 16 << 10, PIECE - 1, PIECE, PIECE + 1, (1 << 20) + 5] {
            let mut bytes: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
            write_privately(&file, &bytes).unwrap();
            let seal = key.seal_for_file("a", &bytes).to_string();
            assert!(key.seal_of_file("a", &file).unwrap().is(&seal), "{length}");
            assert!(!key.seal_of_file("b", &file).unwrap().is(&seal), "{length}");
            bytes.push(0);
            assert!(!key.seal_for_file("a", &bytes).is(&seal), "{length}");
            if length > 0 {
                bytes.truncate(length);
                bytes[length / 2] ^= 1;
                assert!(!key.seal_for_file("a", &bytes).is(&seal), "{length}");
            }
        }
    }
}
