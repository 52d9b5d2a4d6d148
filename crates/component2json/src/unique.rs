//! Keys that stand twice in one object. JSON parsers keep the last one, some others the first: whoever checks a message and whoever
//! uses it must not read two different ones.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};

/// Above this many keys a set finds a duplicate faster than a look at all of them.
const FEW: usize = 16;

/// Refuses JSON in which an object has one key twice. The error tells the key, and the line and column where it stands again.
pub fn refuse_duplicate_keys(json: &[u8]) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    Unique.deserialize(&mut deserializer)
}

struct Unique;

impl<'de> DeserializeSeed<'de> for Unique {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut few: Vec<Key<'de>> = Vec::new();
        let mut many: HashSet<Key<'de>> = HashSet::new();
        while let Some(key) = map.next_key::<Key<'de>>()? {
            let is_new = match few.len() {
                ..FEW => !few.contains(&key),
                _ => !few.contains(&key) && !many.contains(&key),
            };
            if !is_new {
                return Err(A::Error::custom(format_args!(
                    "the key {:?} stands twice in one object",
                    key.0
                )));
            }
            if few.len() < FEW {
                few.push(key);
            } else {
                many.insert(key);
            }
            map.next_value_seed(Unique)?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Unique)?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// A key, borrowed from the text where it stands there as it is.
#[derive(PartialEq, Eq, Hash)]
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_are_found_at_any_depth_and_in_any_spelling() {
        let many: String = (0..40).map(|n| format!("\"k{n}\":{n},")).collect();
        for json in [
            r#"{"a":1,"a":2}"#.to_owned(),
            r#"[{"b":{"a":1,"\u0061":2}}]"#.to_owned(),
            format!("{{{many}\"k3\":0}}"),
            format!("{{{many}\"k39\":0}}"),
        ] {
            let error = refuse_duplicate_keys(json.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("stands twice") && error.contains("column"), "{error}");
        }
        for json in [
            r#"{"a":{"a":[1,-2,3.5,null,true,"x"]},"b":{"a":1}}"#,
            "[]",
            "1",
            &format!("{{{many}\"z\":0}}"),
        ] {
            refuse_duplicate_keys(json.as_bytes()).unwrap();
        }
    }
}
