//! What one component may use up.

use std::num::{NonZeroU32, NonZeroU64};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ByteSize, Timeout};

/// Writes down each limit once: its meaning, its type and its default.
macro_rules! limits {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty = $default:expr,)+) => {
        /// The limits of a component. Each field keeps its own invariant, so any combination is sound.
        ///
        /// In files, what is not set has its default, and an unknown name is an error: a limit that is misspelt must not pass
        /// for one that is set.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Limits {
            $($(#[doc = $doc])+ pub $name: $type,)+
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        /// The limits that somebody has set; the others stay what they are.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct LimitSettings {
            $($(#[doc = $doc])+ pub $name: Option<$type>,)+
        }

        impl LimitSettings {
            /// Limits with what is set here, and for the rest those of before.
            #[must_use]
            pub fn over(&self, before: &Limits) -> Limits {
                Limits { $($name: self.$name.unwrap_or(before.$name),)+ }
            }

            /// These, and others where nothing is set here.
            #[must_use]
            pub fn and(&self, others: &Self) -> Self {
                Self { $($name: self.$name.or(others.$name),)+ }
            }
        }
    };
}

limits! {
    /// Wall-clock time of one call.
    timeout: Timeout = seconds(30),
    /// Time that one call computes, without waiting.
    max_cpu: Timeout = seconds(30),
    /// All memories and tables of one instance together.
    max_memory: ByteSize = ByteSize::from_mib(512),
    /// Tables of one instance.
    max_tables: NonZeroU32 = count(40),
    /// Elements of one table.
    max_table_elements: u32 = 100_000,
    /// Core instances that one instance is made of.
    max_instances: NonZeroU32 = count(200),
    /// Memories of one instance.
    max_memories: NonZeroU32 = count(16),
    /// What one call may give back.
    max_output: ByteSize = ByteSize::from_mib(8),
    /// What is kept of what it prints to each stream.
    max_stdio: ByteSize = ByteSize::from_mib(1),
    /// Files, sockets and other things of the host that one call may hold at the same time.
    max_handles: NonZeroU32 = count(1_000),
    /// Calls that run at the same time.
    max_concurrent_calls: NonZeroU32 = count(64),
    /// Calls that wait for others to end; with more of them, a call is refused.
    max_waiting_calls: u32 = 512,
    /// How long a connection may take to be made.
    connect_timeout: Timeout = seconds(10),
    /// All HTTP responses of one call together.
    max_received: ByteSize = ByteSize::from_mib(64),
    /// How long a component may take to be compiled.
    compile_timeout: Timeout = seconds(120),
}

/// Zero is no number of seconds here, and none of the defaults.
const fn seconds(seconds: u32) -> Timeout {
    match NonZeroU64::new(seconds as u64 * 1_000) {
        Some(millis) => Timeout::from_millis(millis),
        None => Timeout::from_millis(NonZeroU64::MIN),
    }
}

const fn count(count: u32) -> NonZeroU32 {
    match NonZeroU32::new(count) {
        Some(count) => count,
        None => NonZeroU32::MIN,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_defaults_read_as_documented() {
        let defaults = json!({
            "timeout": "30s",
            "max_cpu": "30s",
            "max_memory": "512MiB",
            "max_tables": 40,
            "max_table_elements": 100_000,
            "max_instances": 200,
            "max_memories": 16,
            "max_output": "8MiB",
            "max_stdio": "1MiB",
            "max_handles": 1_000,
            "max_concurrent_calls": 64,
            "max_waiting_calls": 512,
            "connect_timeout": "10s",
            "max_received": "64MiB",
            "compile_timeout": "2m",
        });
        assert_eq!(serde_json::to_value(Limits::default()).unwrap(), defaults);
        assert_eq!(serde_json::from_value::<Limits>(defaults.clone()).unwrap(), Limits::default());
        assert_eq!(serde_json::from_value::<Limits>(json!({})).unwrap(), Limits::default());
        let all: LimitSettings = serde_json::from_value(defaults).unwrap();
        assert_eq!(all.over(&Limits::default()), Limits::default());
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
    fn settings_go_over_what_was_before() {
        let before: Limits = serde_json::from_value(json!({"max_memory": "1GiB", "timeout": "5s"})).unwrap();
        let settings: LimitSettings = serde_json::from_value(json!({"timeout": "1m", "max_waiting_calls": 0})).unwrap();
        let expected: Limits =
            serde_json::from_value(json!({"max_memory": "1GiB", "timeout": "1m", "max_waiting_calls": 0})).unwrap();
        assert_eq!(settings.over(&before), expected);
        assert_eq!(LimitSettings::default().over(&before), before);
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
            (json!({"max_memroy": "1GiB"}), "unknown field `max_memroy`, expected one of "),
        ] {
            for found in [
                serde_json::from_value::<Limits>(file.clone()).unwrap_err(),
                serde_json::from_value::<LimitSettings>(file.clone()).unwrap_err(),
            ] {
                assert!(found.to_string().starts_with(error), "{found}");
            }
        }
    }

    #[test]
    fn editors_are_told_of_every_limit() {
        let schema = json!(schemars::schema_for!(LimitSettings));
        let known = serde_json::to_value(Limits::default()).unwrap();
        for name in known.as_object().unwrap().keys() {
            assert!(schema["properties"][name]["description"].is_string(), "{name}");
        }
        assert_eq!(schema["additionalProperties"], json!(false));
    }
}
