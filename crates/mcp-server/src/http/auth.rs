//! Who asks.
//!
//! There is one token for all today. Whoever comes to verify what an authorization server issued adds a variant here: the rest knows
//! only the [`Principal`] that a request came from, which stands in the extensions of the request.

use std::sync::Arc;

use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use lifecycle::Key;

/// Who asks, as this server knows them. What one principal was given, another cannot use.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    pub(super) fn new(name: &str) -> Self {
        Self(name.into())
    }

    pub fn name(&self) -> &str {
        &self.0
    }
}

/// How requests prove from whom they come.
#[derive(Clone, Debug)]
pub enum Authentication {
    /// Not at all: everybody who can reach the address is the same person.
    Open,
    /// By a token that all clients share.
    Token(Token),
}

/// A token, as something to compare with.
#[derive(Clone, Debug)]
pub struct Token(blake3::Hash);

impl From<&Key> for Token {
    fn from(key: &Key) -> Self {
        Self(blake3::hash(key.expose().as_bytes()))
    }
}

/// The value of `WWW-Authenticate` for a request that proves nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Challenge(pub(super) HeaderValue);

impl Authentication {
    pub(super) async fn principal(&self, headers: &HeaderMap) -> Result<Principal, Challenge> {
        match self {
            Self::Open => Ok(Principal::new("anyone")),
            Self::Token(token) => {
                let given = bearer(headers).ok_or(Challenge(HeaderValue::from_static("Bearer")))?;
                // Hashes are compared in constant time, whatever the length of what was given.
                match blake3::hash(given) == token.0 {
                    true => Ok(Principal::new("token")),
                    false => Err(Challenge(HeaderValue::from_static("Bearer error=\"invalid_token\""))),
                }
            }
        }
    }
}

/// The token that a request carries, if it is one.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    let (scheme, token) = value.as_bytes().split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_token_opens() {
        let folder = tempfile::tempdir().unwrap();
        let key = Key::of_file(&folder.path().join("token")).unwrap();
        let authentication = Authentication::Token(Token::from(&key));
        let token = key.expose();
        let principal = async |values: &[String]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            }
            authentication.principal(&headers).await.map_err(|challenge| challenge.0)
        };
        for value in [format!("Bearer {token}"), format!("bearer   {token} ")] {
            assert_eq!(principal(&[value]).await.unwrap().name(), "token");
        }
        let wrong = "Bearer error=\"invalid_token\"";
        for (values, challenge) in [
            (vec![], "Bearer"),
            (vec![token.to_owned()], "Bearer"),
            (vec![format!("Basic {token}")], "Bearer"),
            (vec![format!("Bearer {token}"), format!("Bearer {token}")], "Bearer"),
            (vec!["Bearer ".to_owned()], wrong),
            (vec![format!("Bearer {token}x")], wrong),
            (vec![format!("Bearer {}", &token[1..])], wrong),
        ] {
            assert_eq!(
                principal(&values).await,
                Err(HeaderValue::from_static(challenge)),
                "{values:?}"
            );
        }
    }
}
