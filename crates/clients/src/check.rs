//! The safety net: what an edit did is read again, and compared with what it should have done.
//!
//! The editors of the three formats find places in a text and put bytes there. Should one of them ever be wrong about a place,
//! the text that it made says something else than it should, and is thrown away here.

use crate::EditError;
use crate::format::Format;
use crate::value::{Map, Value};

/// Does `after` say what `before` said, but for the server `name`, which is now `expected` or gone?
pub(crate) fn check(
    format: Format,
    before: &Map,
    after: &str,
    (container, name): (&str, &str),
    expected: Option<Value>,
) -> Result<(), EditError> {
    let refused = || EditError::Unsafe { name: name.to_owned() };
    let after = format.read(after).map_err(|_| refused())?;
    let mut wanted = before.clone();
    change(&mut wanted, container, name, expected);
    if Value::Map(without_empty(wanted, container)) == Value::Map(without_empty(after, container)) {
        Ok(())
    } else {
        Err(refused())
    }
}

fn change(root: &mut Map, container: &str, name: &str, expected: Option<Value>) {
    let mut servers = match root.iter_mut().find(|(key, _)| key == container) {
        Some((_, Value::Map(servers))) => std::mem::take(servers),
        _ => Map::new(),
    };
    servers.retain(|(key, _)| key != name);
    servers.extend(expected.map(|value| (name.to_owned(), value)));
    root.retain(|(key, _)| key != container);
    root.push((container.to_owned(), Value::Map(servers)));
}

/// A list of servers that is empty is as good as none: the last one takes the list with it.
fn without_empty(mut root: Map, container: &str) -> Map {
    root.retain(|(key, value)| key != container || !(value.is_null() || value.as_map().is_some_and(Vec::is_empty)));
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = r#"{"a": 1, "servers": {"other": {"x": [1, 2]}}}"#;

    fn verdict(after: &str, expected: Option<Value>) -> Result<(), EditError> {
        let before = Format::Json.read(BEFORE).unwrap();
        check(Format::Json, &before, after, ("servers", "ours"), expected)
    }

    #[test]
    fn only_what_was_meant_passes() {
        let ours = || Some(Value::Map(vec![("command".to_owned(), Value::text("host"))]));
        let good = r#"{"a": 1, "servers": {"other": {"x": [1, 2]}, "ours": {"command": "host"}}}"#;
        assert_eq!(verdict(good, ours()), Ok(()));
        assert_eq!(verdict(BEFORE, None), Ok(()));
        for bad in [
            BEFORE,
            "",
            "{",
            r#"{"servers": {"other": {"x": [1, 2]}, "ours": {"command": "host"}}}"#,
            r#"{"a": 1, "servers": {"ours": {"command": "host"}}}"#,
            r#"{"a": 1, "servers": {"other": {"x": [2, 1]}, "ours": {"command": "host"}}}"#,
            r#"{"a": 1, "servers": {"other": {"x": [1, 2]}, "ours": {"command": "host", "b": 1}}}"#,
            r#"{"a": 1, "servers": {"other": {"x": [1, 2]}, "ours": {"command": "host"}}, "b": 1}"#,
            r#"{"a": 1, "servers": {"other": {"x": [1, 2]}, "ours": {"command": "host"}, "ours": {"command": "host"}}}"#,
        ] {
            assert!(verdict(bad, ours()).is_err(), "{bad}");
        }
        assert!(verdict(good, None).is_err());
    }

    #[test]
    fn the_last_server_may_take_the_list_with_it() {
        let before = Format::Json.read(r#"{"servers": {"ours": {}}}"#).unwrap();
        for after in ["{}", r#"{"servers": {}}"#] {
            assert_eq!(
                check(Format::Json, &before, after, ("servers", "ours"), None),
                Ok(()),
                "{after}"
            );
        }
    }
}
