//! What all types with a text form share: serde and JSON Schema see the text, and nothing in it steers a terminal.

/// Reads and writes a type as the text of its `FromStr` and `Display`, and describes that text to editors.
macro_rules! as_text {
    ($type:ident, $description:literal, $examples:tt) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        $crate::text::schema_of_text!($type, $description, $examples);
    };
}

/// Describes the text of a type to editors.
macro_rules! schema_of_text {
    ($type:ident, $description:literal, $examples:tt $(, $key:literal: $value:literal)*) => {
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "description": $description,
                    $($key: $value,)*
                    "examples": $examples,
                })
            }
        }
    };
}

pub(crate) use {as_text, schema_of_text};

/// Is it a character that nobody sees, or that changes how others are shown?
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}')
}
