//! JSON that is refused before anything is made of it.
//!
//! Keys that stand twice in one object: JSON parsers keep the last one, some others the first, and whoever checks a message and whoever
//! uses it must not read two different ones. And more values than a message needs: `0,` is two bytes of text and a hundred in memory.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::map::Entry;
use serde_json::{Map, Value};

/// How many values a text may have, all that are inside of others counted.
pub const MAX_VALUES: usize = 1 << 20;

/// Above this many keys a set finds a duplicate faster than a look at all of them.
const FEW: usize = 16;

/// Refuses JSON in which an object has one key twice, or with too many values. The error tells what, and the line and column.
pub fn check_json(json: &[u8]) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    Unique(&Count::default()).deserialize(&mut deserializer)
}

/// How many values were read.
#[derive(Default)]
struct Count(Cell<usize>);

impl Count {
    fn one_more<E: Error>(&self) -> Result<(), E> {
        match self.0.get() {
            MAX_VALUES.. => Err(E::custom(format_args!("there are more than {MAX_VALUES} values"))),
            count => {
                self.0.set(count + 1);
                Ok(())
            }
        }
    }
}

/// An object that [`check_json`] has nothing against: read and checked in one go.
#[derive(Debug, Clone, PartialEq)]
pub struct UniqueObject(pub Map<String, Value>);

impl<'de> Deserialize<'de> for UniqueObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_map(Kept(&Count::default()))? {
            Value::Object(object) => Ok(Self(object)),
            _ => Err(D::Error::custom("no object")),
        }
    }
}

fn twice<E: Error>(key: &str) -> E {
    E::custom(format_args!("the key {key:?} stands twice in one object"))
}

/// Reads a value.
struct Kept<'a>(&'a Count);

impl<'de> DeserializeSeed<'de> for Kept<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.0.one_more()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Kept<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(Kept(self.0))?;
            match object.entry(key) {
                Entry::Vacant(place) => _ = place.insert(value),
                Entry::Occupied(place) => return Err(twice(place.key())),
            }
        }
        Ok(Value::Object(object))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(Kept(self.0))? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

/// Reads a value and keeps nothing of it.
struct Unique<'a>(&'a Count);

impl<'de> DeserializeSeed<'de> for Unique<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.0.one_more()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique<'_> {
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
                return Err(twice(&key.0));
            }
            if few.len() < FEW {
                few.push(key);
            } else {
                many.insert(key);
            }
            map.next_value_seed(Unique(self.0))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Unique(self.0))?.is_some() {}
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
            let error = check_json(json.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("stands twice") && error.contains("column"), "{error}");
            let kept = serde_json::from_str::<UniqueObject>(&format!(r#"{{"x":{json}}}"#));
            assert_eq!(
                kept.unwrap_err().to_string().split(" at ").next(),
                error.split(" at ").next(),
                "{json}"
            );
        }
        for json in [
            r#"{"a":{"a":[1,-2,3.5,null,true,"x"]},"b":{"a":1}}"#,
            "[]",
            "1",
            &format!("{{{many}\"z\":0}}"),
        ] {
            check_json(json.as_bytes()).unwrap();
            let json = format!(r#"{{"x":{json}}}"#);
            let kept: UniqueObject = serde_json::from_str(&json).unwrap();
            assert_eq!(Value::Object(kept.0), serde_json::from_str::<Value>(&json).unwrap());
        }
    }
    #[test]
    fn too_many_values_are_refused_however_they_are_spread() {
        let list = |count: usize| format!(r#"{{"x":[{}0]}}"#, "0,".repeat(count - 1));
        let pairs = format!(r#"{{"x":[{}[[]]]}}"#, "[0],".repeat(MAX_VALUES / 2));
        // The list and the object around it are values as well.
        for (json, is_fine) in [(list(MAX_VALUES - 2), true), (list(MAX_VALUES - 1), false), (pairs, false)] {
            assert_eq!(check_json(json.as_bytes()).is_ok(), is_fine);
            let kept = serde_json::from_str::<UniqueObject>(&json);
            assert!(kept.is_ok() || !is_fine);
        }
        let error = check_json(list(MAX_VALUES).as_bytes()).unwrap_err();
        assert!(error.to_string().contains("more than 1048576 values"), "{error}");
    }
}
