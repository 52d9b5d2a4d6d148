//! Ids of sessions that carry what the client said in `initialize`, sealed: whoever has the key can take the session up.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lifecycle::Key;
use rmcp::model::{Implementation, InitializeRequestParams, RequestStateCodec, SealOptions};

use super::auth::Principal;

/// Proxies give one header 8 KiB, and some give that to all of them.
const MAX_LENGTH: usize = 4 << 10;

/// How long an id can be used. Clients begin a new session when it ends.
const LIFETIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Issues ids, and opens those that were issued with the same key.
#[derive(Clone, Debug)]
pub(super) struct SessionIds(RequestStateCodec);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum IssueError {
    #[error("what the client says of itself in `initialize` is too long to be kept")]
    TooLong,
    #[error("there is no randomness to be had")]
    NoRandomness,
}

impl SessionIds {
    pub(super) fn new(key: &Key) -> Self {
        let key = blake3::derive_key("host 2026 ids of sessions over HTTP", key.expose().as_bytes());
        Self(RequestStateCodec::new_unchecked(key))
    }

    /// A new id, for one principal.
    pub(super) fn issue(&self, params: InitializeRequestParams, principal: &Principal) -> Result<String, IssueError> {
        let mut kept = params;
        kept.meta = None;
        // Its icons and its website are of no use here.
        kept.client_info = Implementation::new(kept.client_info.name, kept.client_info.version);
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|_| IssueError::NoRandomness)?;
        let number = URL_SAFE_NO_PAD.encode(random);
        let bound = bound(&number, principal);
        let options = SealOptions::new().associated_data(bound.as_bytes()).ttl(LIFETIME);
        let sealed = self.0.seal_json_with(&kept, &options).map_err(|_| IssueError::TooLong)?;
        let id = format!("{number}.{sealed}");
        match id.len() {
            ..=MAX_LENGTH => Ok(id),
            _ => Err(IssueError::TooLong),
        }
    }

    /// What the client said, if this id was issued to this principal.
    pub(super) fn open(&self, id: &str, principal: &Principal) -> Option<InitializeRequestParams> {
        let (number, sealed) = id.split_once('.')?;
        self.0.open_json_with(sealed, bound(number, principal).as_bytes()).ok()
    }
}

/// What an id is good for.
fn bound(number: &str, principal: &Principal) -> String {
    format!("{number} {}", principal.name())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(name: &str) -> (tempfile::TempDir, Key) {
        let folder = tempfile::tempdir().unwrap();
        let key = Key::of_file(&folder.path().join(name)).unwrap();
        (folder, key)
    }

    fn params(capabilities: serde_json::Value) -> InitializeRequestParams {
        let client = json!({"name": "test", "version": "1", "websiteUrl": "https://example.com"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": client});
        serde_json::from_value(params).unwrap()
    }

    #[test]
    fn another_process_opens_what_one_issued() {
        let (_folder, key) = key("key");
        let somebody = Principal::new("somebody");
        let said = params(json!({"elicitation": {}, "roots": {"listChanged": true}}));
        let id = SessionIds::new(&key).issue(said.clone(), &somebody).unwrap();
        assert!(id.bytes().all(|byte| byte.is_ascii_graphic()), "{id}");
        assert!(id.len() < 400, "{id}");
        let opened = SessionIds::new(&key).open(&id, &somebody).unwrap();
        assert_eq!(opened.protocol_version, said.protocol_version);
        assert_eq!(opened.capabilities, said.capabilities);
        assert_eq!(opened.client_info, Implementation::new("test", "1"));
    }

    #[test]
    fn nothing_else_opens() {
        let (_folder, key_file) = key("key");
        let (_other_folder, other_key) = key("key");
        let (somebody, other) = (Principal::new("somebody"), Principal::new("other"));
        let ids = SessionIds::new(&key_file);
        let id = ids.issue(params(json!({})), &somebody).unwrap();
        assert!(ids.open(&id, &somebody).is_some());
        assert!(ids.open(&id, &other).is_none());
        assert!(SessionIds::new(&other_key).open(&id, &somebody).is_none());
        let (_, sealed) = id.split_once('.').unwrap();
        for wrong in [
            String::new(),
            "x".to_owned(),
            sealed.to_owned(),
            format!("x.{sealed}"),
            format!("{id}x"),
        ] {
            assert!(ids.open(&wrong, &somebody).is_none(), "{wrong}");
        }
        assert_ne!(
            ids.issue(params(json!({})), &somebody).unwrap(),
            id,
            "no two sessions have one id"
        );
    }

    #[test]
    fn an_id_stays_short() {
        let (_folder, key) = key("key");
        let much = params(json!({"experimental": {"x": {"text": "x".repeat(10_000)}}}));
        let issued = SessionIds::new(&key).issue(much, &Principal::new("somebody"));
        assert_eq!(issued, Err(IssueError::TooLong));
    }
}
