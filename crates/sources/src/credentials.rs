//! Credentials for registries: from the environment, or from the files that `docker login` and `podman login` write.
//!
//! They are looked for only when a registry asks, are sent to that registry and to the place that it names for tokens, and are never
//! printed.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use docker_credential::{CredentialRetrievalError, DockerCredential};

use crate::FetchError;

/// Where to look for credentials.
///
/// | variable                                           | means                                              |
/// |----------------------------------------------------|----------------------------------------------------|
/// | `HOST_REGISTRY_USERNAME`, `HOST_REGISTRY_PASSWORD` | these, before all files                            |
/// | `HOST_REGISTRY_TOKEN`                              | a bearer token, instead of the two                 |
/// | `HOST_REGISTRY`                                    | the registry that the above are for, as `ghcr.io`: required |
/// | `REGISTRY_AUTH_FILE`                               | a file of `podman login`, before the others        |
/// | `DOCKER_CONFIG`                                    | the folder of `config.json`, instead of `~/.docker` |
/// | `XDG_RUNTIME_DIR`                                  | has `containers/auth.json`, of `podman login`      |
#[derive(Clone, Debug, Default)]
pub struct Logins {
    /// For every registry, or for the one that is named.
    pub given: Option<(Credential, Option<String>)>,
    /// Files in Docker's form, from the first to the last to be asked.
    pub files: Vec<PathBuf>,
}

#[derive(Clone, Debug)]
pub enum Credential {
    Password {
        user: String,
        password: Secret,
    },
    /// Sent to the registry as it is.
    Bearer(Secret),
    /// Exchanged for a token, as `docker login` of some registries wants it.
    Identity(Secret),
}

/// A text that is not printed.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// A credential, and the words that say whose it is.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    pub(crate) credential: Credential,
    pub(crate) origin: String,
}

impl Logins {
    /// As the environment of this process says.
    pub fn of_this_user() -> Self {
        Self::from_variables(|name| std::env::var_os(name), std::env::home_dir())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>, home: Option<PathBuf>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let text = |name: &str| set(name)?.into_string().ok();
        let password = || {
            Some(Credential::Password {
                user: text("HOST_REGISTRY_USERNAME")?,
                password: Secret(text("HOST_REGISTRY_PASSWORD")?),
            })
        };
        let token = || text("HOST_REGISTRY_TOKEN").map(|token| Credential::Bearer(Secret(token)));
        let docker = set("DOCKER_CONFIG")
            .map(PathBuf::from)
            .or_else(|| Some(home?.join(".docker")));
        let files = [
            set("REGISTRY_AUTH_FILE").map(PathBuf::from),
            docker.map(|folder| folder.join("config.json")),
            set("XDG_RUNTIME_DIR").map(|folder| Path::new(&folder).join("containers/auth.json")),
        ];
        Self {
            // A secret that is for everybody would go to the first registry that asks for one.
            given: password()
                .or_else(token)
                .zip(text("HOST_REGISTRY"))
                .map(|(credential, registry)| (credential, Some(registry))),
            files: files.into_iter().flatten().collect(),
        }
    }

    /// The credential for a registry. This may run a credential helper, and wait for it.
    pub(crate) fn find(&self, registry: &str) -> Result<Option<Login>, FetchError> {
        if let Some((credential, only)) = &self.given
            && only.as_deref().is_none_or(|only| only.eq_ignore_ascii_case(registry))
        {
            return Ok(Some(Login {
                credential: credential.clone(),
                origin: "HOST_REGISTRY_…".to_owned(),
            }));
        }
        for path in &self.files {
            if let Some(credential) = from_file(path, registry)? {
                let origin = format!("`{}`", path.display());
                return Ok(Some(Login { credential, origin }));
            }
        }
        Ok(None)
    }
}

fn from_file(path: &Path, registry: &str) -> Result<Option<Credential>, FetchError> {
    let refused = |problem: String| FetchError::Credentials {
        registry: registry.to_owned(),
        path: path.to_owned(),
        problem,
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refused(error.to_string())),
    };
    // Docker Hub has kept the name of its first version in these files.
    let server = match registry {
        "docker.io" | "index.docker.io" => "https://index.docker.io/v1/",
        other => other,
    };
    match docker_credential::get_credential_from_reader(BufReader::new(file), server) {
        Ok(DockerCredential::UsernamePassword(user, password)) => Ok(Some(Credential::Password {
            user,
            password: Secret(password),
        })),
        Ok(DockerCredential::IdentityToken(token)) => Ok(Some(Credential::Identity(Secret(token)))),
        Err(CredentialRetrievalError::NoCredentialConfigured) => Ok(None),
        // A store that knows nothing of this registry fails like one that is broken, and much can be had without credentials. What the
        // helper says is not shown: it may be a secret.
        Err(CredentialRetrievalError::HelperFailure { .. } | CredentialRetrievalError::HelperCommunicationError) => {
            tracing::warn!(registry, file = %path.display(), "the credential helper gave nothing");
            Ok(None)
        }
        Err(error) => Err(refused(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn logins(variables: &[(&str, &str)]) -> Logins {
        let variables: BTreeMap<&str, &str> = variables.iter().copied().collect();
        Logins::from_variables(|name| variables.get(name).map(OsString::from), Some("/h".into()))
    }

    #[test]
    fn the_environment_says_where_to_look() {
        let paths = |variables| logins(variables).files;
        assert_eq!(paths(&[]), [Path::new("/h/.docker/config.json")]);
        assert_eq!(
            paths(&[
                ("DOCKER_CONFIG", "/d"),
                ("REGISTRY_AUTH_FILE", "/a"),
                ("XDG_RUNTIME_DIR", "/x")
            ]),
            ["/a", "/d/config.json", "/x/containers/auth.json"].map(PathBuf::from)
        );
    }

    #[test]
    fn what_is_given_is_for_one_registry() {
        let (user, password) = (("HOST_REGISTRY_USERNAME", "me"), ("HOST_REGISTRY_PASSWORD", "secret"));
        let (token, only) = (("HOST_REGISTRY_TOKEN", "secret"), ("HOST_REGISTRY", "ghcr.io"));
        let found = |variables: &[_], registry| logins(variables).find(registry).unwrap().is_some();
        assert!(found(&[user, password, only], "ghcr.io") && !found(&[user, password, only], "example.com"));
        assert!(found(&[token, only], "ghcr.io"));
        assert!(!found(&[user, only], "ghcr.io"), "a name alone is nothing");
        assert!(!found(&[user, password], "ghcr.io"), "nor is a secret that is for everybody");
    }

    #[test]
    fn files_of_docker_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        #[expect(clippy::disallowed_methods, reason = "a file of a test")]
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        let logins = Logins {
            given: None,
            files: vec![folder.path().join("none.json"), path.clone()],
        };
        let find = |registry: &str| format!("{:?}", logins.find(registry).unwrap().map(|login| login.credential));

        // `bWU6c2VjcmV0` is `me:secret`.
        write(
            r#"{"auths": {"ghcr.io": {"auth": "bWU6c2VjcmV0"}, "https://index.docker.io/v1/": {"identitytoken": "t"}, "empty.io": {}}}"#,
        );
        assert_eq!(find("ghcr.io"), r#"Some(Password { user: "me", password: … })"#);
        assert_eq!(find("docker.io"), "Some(Identity(…))");
        assert_eq!(find("empty.io"), "None");
        assert_eq!(find("example.com"), "None");

        write(r#"{"auths": {"ghcr.io": {"auth": "?"}}}"#);
        assert!(
            logins
                .find("ghcr.io")
                .unwrap_err()
                .to_string()
                .contains("hint: `docker login ghcr.io`")
        );
        write("not JSON");
        assert!(logins.find("ghcr.io").is_err());
    }
}
