//! The client: all that can be asked for, each within one deadline.

use std::fmt;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;

use policy::{ByteSize, Timeout};

use crate::http::Http;
use crate::registry::{Access, Session};
use crate::{Digest, FetchError, HttpsUrl, Logins, Network, OciReference, Partial, Published, Pulled, Pushed, SystemNetwork};

/// How a [`Client`] behaves.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Certificates in PEM form, of authorities that are trusted besides those of the system.
    pub ca_files: Vec<PathBuf>,
    /// Where credentials for registries come from. Downloads have none.
    pub logins: Logins,
    /// Are HTTPS_PROXY, ALL_PROXY and NO_PROXY heeded? A proxy looks up names itself, so that a redirect to the name of a private
    /// address is its to refuse. Addresses of this machine are never asked for through one.
    pub proxies: bool,
    pub connect_timeout: Timeout,
    /// How long a server may send nothing.
    pub stall_timeout: Timeout,
    /// How long a download, a pull or a push may take as a whole.
    pub total_timeout: Timeout,
    /// The most that is fetched.
    pub max_size: ByteSize,
    /// How often a download that broke off is taken up again.
    pub max_retries: u32,
}

impl Default for ClientOptions {
    fn default() -> Self {
        const HALF_A_MINUTE: Timeout = Timeout::from_millis(NonZeroU64::new(30_000).unwrap());
        Self {
            ca_files: Vec::new(),
            logins: Logins::of_this_user(),
            proxies: true,
            connect_timeout: HALF_A_MINUTE,
            stall_timeout: HALF_A_MINUTE,
            total_timeout: Timeout::from_millis(const { NonZeroU64::new(600_000).unwrap() }),
            max_size: ByteSize::from_mib(512),
            max_retries: 2,
        }
    }
}

/// How far a transfer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub received: u64,
    /// As the server says, where it does.
    pub total: Option<u64>,
}

/// Fetches. One client can serve any number of requests at the same time.
pub struct Client {
    http: Http,
    options: ClientOptions,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Client {
    pub fn new(options: ClientOptions) -> Result<Self, FetchError> {
        Self::with_network(options, Arc::new(SystemNetwork))
    }

    /// A client with its own way to look up names.
    pub fn with_network(options: ClientOptions, network: Arc<dyn Network>) -> Result<Self, FetchError> {
        let http = Http::new(&options, network)?;
        Ok(Self { http, options })
    }

    /// Downloads a file. Whatever ends this, an error or nobody waiting for it any more, `partial` holds what had arrived, and the next
    /// call goes on from there. At the end it is empty.
    pub async fn download(
        &self,
        url: &HttpsUrl,
        partial: &mut Partial,
        progress: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<Vec<u8>, FetchError> {
        let download = crate::download::download(&self.http, &self.options, url, partial, progress);
        self.in_time(url.shown(), download).await
    }

    /// Fetches the WebAssembly of an artifact, and the short texts beside it.
    pub async fn pull(&self, reference: &OciReference, progress: &(dyn Fn(Progress) + Send + Sync)) -> Result<Pulled, FetchError> {
        let pull = async { self.session(reference, Access::Pull).await?.pull(progress).await };
        self.in_time(reference.to_string(), pull).await
    }

    /// What the reference names now: the same digest as [`Pulled::digest`], for the price of one small request.
    pub async fn resolve(&self, reference: &OciReference) -> Result<Digest, FetchError> {
        let resolve = async { self.session(reference, Access::Pull).await?.resolve().await };
        self.in_time(reference.to_string(), resolve).await
    }

    /// Stores WebAssembly in a registry, in the form that `wkg` writes. A tag that exists is moved.
    pub async fn push(&self, reference: &OciReference, wasm: Vec<u8>, about: &Published) -> Result<Pushed, FetchError> {
        if reference.digest().is_some() {
            return Err(FetchError::PushByDigest(reference.to_string()));
        }
        let push = async { self.session(reference, Access::Push).await?.push(wasm, about).await };
        self.in_time(reference.to_string(), push).await
    }

    async fn session<'a>(&'a self, reference: &'a OciReference, access: Access) -> Result<Session<'a>, FetchError> {
        Session::open(&self.http, &self.options, reference, access).await
    }

    async fn in_time<T>(&self, what: String, work: impl Future<Output = Result<T, FetchError>>) -> Result<T, FetchError> {
        let limit = self.options.total_timeout;
        match tokio::time::timeout(limit.duration(), work).await {
            Ok(result) => result,
            Err(_) => Err(FetchError::Deadline { what, limit }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_can_be_tasks() {
        fn is_task(_: impl Send) {}
        let client = Client::new(ClientOptions::default()).unwrap();
        let (url, reference) = ("https://localhost/".parse().unwrap(), "localhost/x".parse().unwrap());
        is_task(client.download(&url, &mut Partial::default(), &|_| {}));
        is_task(client.pull(&reference, &|_| {}));
        is_task(client.resolve(&reference));
        let about = Published {
            component: None,
            author: None,
            created: std::time::SystemTime::UNIX_EPOCH,
            title: "x.wasm".to_owned(),
            annotations: std::collections::BTreeMap::new(),
        };
        is_task(client.push(&reference, Vec::new(), &about));
    }
}
