//! The beginnings of downloads that broke off, so that the next attempt goes on from there.

use std::fs;
use std::path::PathBuf;

use sources::{Digest, HttpsUrl, Partial};

use super::{Store, StoreError, io_error};
use crate::files::write_privately;

impl Store {
    /// What came of a download before it broke off.
    pub(crate) fn download(&self, url: &HttpsUrl) -> Partial {
        let read = || {
            let (name, path) = self.download_file(url);
            let kept = fs::read(path).ok()?;
            let mut parts = kept.splitn(3, |byte| *byte == b'\n');
            let seal = std::str::from_utf8(parts.next()?).ok()?;
            let sealed = kept.get(seal.len() + 1..)?;
            if !self.key.seal(&name, sealed).is(seal) {
                return None;
            }
            let validator = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
            Some(Partial {
                validator: Some(validator),
                bytes: parts.next()?.to_vec(),
            })
        };
        read().unwrap_or_default()
    }

    /// Keeps what came of a download, if it can be continued.
    pub(crate) fn keep_download(&self, url: &HttpsUrl, partial: &Partial) -> Result<(), StoreError> {
        let Some(validator) = &partial.validator else { return Ok(()) };
        let (name, path) = self.download_file(url);
        let mut sealed = format!("{validator}\n").into_bytes();
        sealed.extend_from_slice(&partial.bytes);
        let mut text = format!("{}\n", self.key.seal(&name, &sealed)).into_bytes();
        text.append(&mut sealed);
        write_privately(&path, &text).map_err(|error| io_error(&path, error))
    }

    /// Forgets it: the download came to its end.
    pub(crate) fn forget_download(&self, url: &HttpsUrl) {
        // What stays is taken away by `gc`.
        let _ = fs::remove_file(self.download_file(url).1);
    }

    /// The name under which it is sealed, and its file.
    fn download_file(&self, url: &HttpsUrl) -> (String, PathBuf) {
        let name = Digest::of(url.to_string().as_bytes()).hex();
        let path = self.home.join("downloads").join(&name);
        (name, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_is_continued_from_what_was_kept_or_from_nothing() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let url: HttpsUrl = "https://example.com/a.wasm".parse().unwrap();
        let partial = Partial {
            validator: Some("\"v1\"".parse().unwrap()),
            bytes: b"the beginning".to_vec(),
        };
        store.keep_download(&url, &partial).unwrap();
        assert_eq!(store.download(&url), partial);
        let (_, path) = store.download_file(&url);
        let kept = fs::read(&path).unwrap();
        for position in 0..kept.len() {
            for bit in 0..8 {
                let mut damaged = kept.clone();
                damaged[position] ^= 1 << bit;
                write_privately(&path, &damaged).unwrap();
                let found = store.download(&url);
                // A seal may be in capital letters as well.
                assert!(
                    found == Partial::default() || found == partial,
                    "bit {bit} of byte {position}"
                );
            }
            write_privately(&path, &kept[..position]).unwrap();
            assert_eq!(store.download(&url), Partial::default(), "{position} bytes");
        }
    }
}
