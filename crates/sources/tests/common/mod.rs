//! What the tests share: an authority for certificates, and a server.

#![allow(
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    reason = "for tests, of which each uses a part"
)]

pub(crate) mod server;

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// An authority that nobody knows, in a folder of its own.
pub(crate) struct Authority {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

/// The certificate of a server and its key, in PEM form.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new([]).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = parameters.self_signed(&key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("ca.pem"), certificate.pem().as_bytes());
        let issuer = Issuer::new(parameters, key);
        Self { folder, issuer }
    }

    /// What `--ca-file` would name.
    pub(crate) fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    pub(crate) fn identity(&self, names: &[&str]) -> Identity {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &self.issuer).unwrap();
        Identity {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "files of tests need not be written atomically")]
pub(crate) fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
}
