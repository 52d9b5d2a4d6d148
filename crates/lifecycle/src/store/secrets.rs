//! Secrets, `secrets.toml`: values that a person gave for a component, apart from everything else and for this user's eyes only.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use policy::{SecretName, SecretValue, Secrets};

use super::{Store, StoreError, io_error, lock};
use crate::files::write_privately;
use crate::id::ComponentId;

const FILE_NAME: &str = "secrets.toml";
const REMARK: &str = "# Written by `host secret`. Whoever can read this file knows the secrets in it.\n";

/// By component, by name.
type Contents = BTreeMap<ComponentId, BTreeMap<SecretName, String>>;

impl Store {
    /// The names of the secrets of a component, sorted.
    pub fn secret_names(&self, id: &ComponentId) -> Result<Vec<SecretName>, StoreError> {
        let names = self.secrets()?.remove(id).unwrap_or_default().into_keys();
        Ok(names.collect())
    }

    /// Keeps a secret for a component, in place of the one that has its name. `true` if there was one.
    pub fn set_secret(&self, id: &ComponentId, name: SecretName, value: &SecretValue) -> Result<bool, StoreError> {
        self.change_secrets(|secrets| {
            let own = secrets.entry(id.clone()).or_default();
            own.insert(name, value.expose().to_owned()).is_some()
        })
    }

    /// Forgets a secret. `false` if there was none of that name.
    pub fn delete_secret(&self, id: &ComponentId, name: &SecretName) -> Result<bool, StoreError> {
        self.change_secrets(|secrets| {
            let Some(own) = secrets.get_mut(id) else { return false };
            let was_there = own.remove(name).is_some();
            if own.is_empty() {
                secrets.remove(id);
            }
            was_there
        })
    }

    /// Forgets all secrets of components. Which had some?
    pub fn forget_secrets(&self, ids: &[ComponentId]) -> Result<Vec<ComponentId>, StoreError> {
        if self.secrets()?.keys().all(|id| !ids.contains(id)) {
            return Ok(Vec::new());
        }
        self.change_secrets(|secrets| {
            let had = ids.iter().filter(|id| secrets.remove(id).is_some());
            had.cloned().collect()
        })
    }

    /// Those secrets of a component that it was granted.
    pub(crate) fn granted_secrets(&self, id: &ComponentId, granted: impl Fn(&SecretName) -> bool) -> Result<Secrets, StoreError> {
        let own = self.secrets()?.remove(id).unwrap_or_default().into_iter();
        let values = own.filter(|(name, _)| granted(name));
        let values = values.filter_map(|(name, value)| Some((name, SecretValue::new(value).ok()?)));
        Ok(values.collect())
    }

    pub(crate) fn secrets_file(&self) -> PathBuf {
        self.home.join(FILE_NAME)
    }

    fn secrets(&self) -> Result<Contents, StoreError> {
        let path = self.secrets_file();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Contents::new()),
            Err(error) => return Err(io_error(&path, error)),
        };
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(&path)
                .map_err(|error| io_error(&path, error))?
                .permissions()
                .mode();
            if mode & 0o077 != 0 {
                return Err(StoreError::SecretsExposed { path });
            }
        }
        // What is wrong with it is told without its text.
        toml::from_str(&text).map_err(|_| StoreError::Secrets { path })
    }

    fn change_secrets<T>(&self, change: impl FnOnce(&mut Contents) -> T) -> Result<T, StoreError> {
        let _lock = lock(&self.home).map_err(|error| io_error(&self.home, error))?;
        let path = self.secrets_file();
        let mut secrets = self.secrets()?;
        let done = change(&mut secrets);
        let text = toml::to_string(&secrets).map_err(|_| StoreError::Secrets { path: path.clone() })?;
        write_privately(&path, format!("{REMARK}{text}").as_bytes()).map_err(|error| io_error(&path, error))?;
        Ok(done)
    }
}
