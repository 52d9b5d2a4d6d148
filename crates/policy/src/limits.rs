//! What one component may use up.

use std::num::{NonZeroU32, NonZeroU64};

use serde::{Deserialize, Serialize};

use crate::{ByteSize, Timeout};

/// The limits of a component. Each field keeps its own invariant, so any combination is sound.
///
/// In files, what is not set has its default, and an unknown name is an error: a limit that is misspelt must not pass
/// for one that is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Wall-clock time of one call.
    pub timeout: Timeout,
    /// All memories and tables of one instance together.
    pub max_memory: ByteSize,
    /// What one call may give back.
    pub max_output: ByteSize,
    /// Calls that run at the same time.
    pub max_concurrent_calls: NonZeroU32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: Timeout::from_millis(const { NonZeroU64::new(30_000).unwrap() }),
            max_memory: ByteSize::from_mib(512),
            max_output: ByteSize::from_mib(8),
            max_concurrent_calls: const { NonZeroU32::new(64).unwrap() },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_defaults_read_as_documented() {
        let defaults = json!({"timeout": "30s", "max_memory": "512MiB", "max_output": "8MiB", "max_concurrent_calls": 64});
        assert_eq!(serde_json::to_value(Limits::default()).unwrap(), defaults);
        assert_eq!(serde_json::from_value::<Limits>(defaults).unwrap(), Limits::default());
        assert_eq!(serde_json::from_value::<Limits>(json!({})).unwrap(), Limits::default());
    }

    #[test]
    fn one_limit_can_be_set_alone() {
        let limits: Limits = serde_json::from_value(json!({"max_memory": "1GiB"})).unwrap();
        let expected = Limits {
            max_memory: ByteSize::from_bytes(1 << 30),
            ..Limits::default()
        };
        assert_eq!(limits, expected);
    }

    #[test]
    fn what_is_no_limit_is_refused() {
        for (file, error) in [
            (
                json!({"timeout": "0s"}),
                "a timeout of zero would end every call before it starts; the least is `1ms`",
            ),
            (
                json!({"max_output": "8M"}),
                "`M` is no unit of size; use `KiB`, `MiB`, `GiB` or `TiB`, as in `512MiB`, or none for bytes",
            ),
            (
                json!({"max_concurrent_calls": 0}),
                "invalid value: integer `0`, expected a nonzero u32",
            ),
            (
                json!({"max_memroy": "1GiB"}),
                "unknown field `max_memroy`, expected one of `timeout`, `max_memory`, `max_output`, `max_concurrent_calls`",
            ),
        ] {
            assert_eq!(serde_json::from_value::<Limits>(file).unwrap_err().to_string(), error);
        }
    }
}
