//! A request that a client of the stateless era may make again, with answers, and what binds those to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::service::RequestContext;
use serde_json::Value;

use crate::http::Principal;

/// A request that may come again, with what the client says then.
pub(crate) struct Retry {
    /// What is asked: of a tool, a prompt or a resource.
    pub(crate) method: &'static str,
    pub(crate) name: String,
    pub(crate) arguments: Arc<Value>,
    pub(crate) state: Option<String>,
    pub(crate) responses: Option<BTreeMap<String, Value>>,
}

impl Retry {
    /// What answers are bound to: the request, and who makes it.
    pub(crate) fn bound_to(&self, context: &RequestContext<RoleServer>) -> Vec<u8> {
        let parts = context.extensions.get::<http::request::Parts>();
        let principal = parts.and_then(|parts| parts.extensions.get::<Principal>());
        let mut hash = blake3::Hasher::new();
        hash.update(format!("{:?} {} {:?} ", principal.map(Principal::name), self.method, self.name).as_bytes());
        hash_value(&mut hash, &self.arguments);
        hash.finalize().as_bytes().to_vec()
    }
}

/// A value that is the same in whatever order its keys come.
fn hash_value(hash: &mut blake3::Hasher, value: &Value) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            hash.update(format!("{{{}", fields.len()).as_bytes());
            for (key, value) in fields {
                hash.update(format!("{key:?}:").as_bytes());
                hash_value(hash, value);
            }
        }
        Value::Array(items) => {
            hash.update(format!("[{}", items.len()).as_bytes());
            for item in items {
                hash_value(hash, item);
            }
        }
        plain => _ = hash.update(format!("{plain},").as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_the_same_in_any_order_and_others_are_not() {
        let hash = |text: &str| {
            let mut hash = blake3::Hasher::new();
            hash_value(&mut hash, &serde_json::from_str(text).unwrap());
            hash.finalize()
        };
        let one = hash(r#"{"a": [1, {"x": null, "y": "2"}], "b": 2}"#);
        assert_eq!(hash(r#"{"b": 2, "a": [1, {"y": "2", "x": null}]}"#), one);
        for other in [
            r#"{"a": [1, {"x": null, "y": 2}], "b": 2}"#,
            r#"{"a": [{"x": null, "y": "2"}, 1], "b": 2}"#,
            r#"{"a": [1, {"x": null}, {"y": "2"}], "b": 2}"#,
            r#"{"a": [1, {"x": null, "y": "2", "b": 2}]}"#,
        ] {
            assert_ne!(hash(other), one, "{other}");
        }
        assert_ne!(hash("[12, 3]"), hash("[1, 23]"));
        assert_ne!(hash("[[1], 2]"), hash("[[1, 2]]"));
    }
}
