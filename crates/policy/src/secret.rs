//! Values that nobody is shown, and how they are taken out of what a guest gives back.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use crate::SecretName;

const SHORTEST: usize = 6;
const LONGEST: usize = 64 * 1024;

/// A secret. It is shown nowhere unless somebody asks for it by `expose`.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue {
    plain: String,
    /// As it stands in JSON, if that differs.
    escaped: Option<String>,
}

impl SecretValue {
    pub fn new(value: String) -> Result<Self, SecretError> {
        if value.len() < SHORTEST {
            return Err(SecretError::Short);
        }
        if value.len() > LONGEST {
            return Err(SecretError::Long(value.len()));
        }
        if value.contains('\0') {
            return Err(SecretError::Nul);
        }
        let quoted = serde_json::Value::from(value.as_str()).to_string();
        let escaped = quoted
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'))
            .unwrap_or_default();
        Ok(Self {
            escaped: (escaped != value).then(|| escaped.to_owned()),
            plain: value,
        })
    }

    /// The secret itself, for the one that it is meant for.
    pub fn expose(&self) -> &str {
        &self.plain
    }

    /// All the texts that give it away.
    fn spellings(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.plain.as_str()).chain(self.escaped.as_deref())
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(…)")
    }
}

impl fmt::Display for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    #[error(
        "a secret of less than {SHORTEST} bytes could not be told from ordinary text when it is taken out of results\n\
         hint: use a longer one, or `--allow-env=NAME=VALUE` for what is no secret"
    )]
    Short,
    #[error(
        "a secret of {0} bytes is too long; the most is {LONGEST}\n\
         hint: put it in a file, and grant its directory with `--allow-read`"
    )]
    Long(usize),
    #[error("a secret with a NUL character cannot be given to a component\nhint: take it out, or encode the secret as text")]
    Nul,
}

/// The secrets that a component was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets(Vec<(SecretName, SecretValue)>);

impl FromIterator<(SecretName, SecretValue)> for Secrets {
    fn from_iter<I: IntoIterator<Item = (SecretName, SecretValue)>>(secrets: I) -> Self {
        Self(secrets.into_iter().collect())
    }
}

impl Secrets {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&SecretName, &SecretValue)> {
        self.0.iter().map(|(name, value)| (name, value))
    }

    /// A text with `[secret NAME]` in place of every secret, as it is or as JSON has it.
    ///
    /// Where secrets overlap, all of it goes: the rest of one would give part of it away. The longest gives its name.
    pub fn redact<'text>(&self, text: &'text str) -> Cow<'text, str> {
        let found = self.find(text.as_bytes());
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut redacted = String::with_capacity(text.len());
        let mut end = 0;
        for place in found {
            // Both ends are ends of characters: in UTF-8, no character is found inside another.
            redacted.push_str(text.get(end..place.span.start).unwrap_or_default());
            redacted.push_str(&place.mark());
            end = place.span.end;
        }
        redacted.push_str(text.get(end..).unwrap_or_default());
        Cow::Owned(redacted)
    }

    /// The same, where capital letters were made small: for names of hosts.
    pub fn without_case<'text>(&self, text: &'text str) -> Cow<'text, str> {
        let small = |(name, value): &(SecretName, SecretValue)| {
            let small = SecretValue {
                plain: value.plain.to_ascii_lowercase(),
                escaped: None,
            };
            (name.clone(), small)
        };
        let small: Self = self.0.iter().map(small).collect();
        match self.redact(text) {
            Cow::Borrowed(text) => small.redact(text),
            Cow::Owned(redacted) => Cow::Owned(small.redact(&redacted).into_owned()),
        }
    }

    /// How many bytes at the end of something that was cut off may be the beginning of a secret.
    pub fn cut_at_the_end(&self, bytes: &[u8]) -> usize {
        let begins = |value: &SecretValue| {
            let secret = value.expose().as_bytes();
            let lengths = (1..secret.len().min(bytes.len() + 1)).rev();
            let mut lengths = lengths.filter(|length| secret.get(..*length).is_some_and(|start| bytes.ends_with(start)));
            lengths.next().unwrap_or_default()
        };
        self.0.iter().map(|(_, value)| begins(value)).max().unwrap_or_default()
    }

    /// The same for what need not be text.
    pub fn redact_bytes<'bytes>(&self, bytes: &'bytes [u8]) -> Cow<'bytes, [u8]> {
        let found = self.find(bytes);
        if found.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut redacted = Vec::with_capacity(bytes.len());
        let mut end = 0;
        for place in found {
            redacted.extend_from_slice(bytes.get(end..place.span.start).unwrap_or_default());
            redacted.extend_from_slice(place.mark().as_bytes());
            end = place.span.end;
        }
        redacted.extend_from_slice(bytes.get(end..).unwrap_or_default());
        Cow::Owned(redacted)
    }

    /// Where secrets are, from the first to the last; no two places overlap.
    fn find(&self, bytes: &[u8]) -> Vec<Place<'_>> {
        let mut places = Vec::new();
        for (name, value) in &self.0 {
            for spelling in value.spellings() {
                let mut of_one: Vec<Place<'_>> = Vec::new();
                for start in occurrences(bytes, spelling.as_bytes()) {
                    Place::add(&mut of_one, Place::new(start, spelling, name));
                }
                places.append(&mut of_one);
            }
        }
        places.sort_by_key(|place| place.span.start);
        let mut apart = Vec::new();
        for place in places {
            Place::add(&mut apart, place);
        }
        apart
    }
}

/// Where one secret is, or several that overlap.
struct Place<'secrets> {
    span: Range<usize>,
    name: &'secrets SecretName,
    longest: usize,
}

impl<'secrets> Place<'secrets> {
    fn new(start: usize, spelling: &str, name: &'secrets SecretName) -> Self {
        Self {
            span: start..start.saturating_add(spelling.len()),
            name,
            longest: spelling.len(),
        }
    }

    fn mark(&self) -> String {
        format!("[secret {}]", self.name)
    }

    /// Adds a place that starts no earlier than the others.
    fn add(places: &mut Vec<Self>, next: Self) {
        match places.last_mut() {
            Some(last) if next.span.start < last.span.end => {
                last.span.end = last.span.end.max(next.span.end);
                if next.longest > last.longest {
                    last.name = next.name;
                    last.longest = next.longest;
                }
            }
            _ => places.push(next),
        }
    }
}

/// Every place at which a text starts, also inside another.
fn occurrences(bytes: &[u8], wanted: &[u8]) -> impl Iterator<Item = usize> {
    let places = bytes.windows(wanted.len().max(1)).enumerate();
    let first = wanted.first();
    places.filter_map(move |(start, window)| (window.first() == first && window == wanted).then_some(start))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secrets(pairs: &[(&str, &str)]) -> Secrets {
        let secret = |(name, value): &(&str, &str)| (name.parse().unwrap(), SecretValue::new((*value).to_owned()).unwrap());
        pairs.iter().map(secret).collect()
    }

    #[test]
    fn nobody_is_shown_a_secret() {
        let secrets = secrets(&[("TOKEN", "hunter2-hunter2")]);
        for (_, value) in secrets.iter() {
            assert_eq!((value.to_string().as_str(), value.expose()), ("[secret]", "hunter2-hunter2"));
        }
        assert!(!format!("{secrets:?}").contains("hunter2"));
    }

    #[test]
    fn what_is_no_secret_is_refused() {
        for (value, error) in [
            (
                "short".to_owned(),
                "a secret of less than 6 bytes could not be told from ordinary text when it is taken out of results\n\
                 hint: use a longer one, or `--allow-env=NAME=VALUE` for what is no secret",
            ),
            (
                "a".repeat(LONGEST + 1),
                "a secret of 65537 bytes is too long; the most is 65536\n\
                 hint: put it in a file, and grant its directory with `--allow-read`",
            ),
            (
                "secret\0".to_owned(),
                "a secret with a NUL character cannot be given to a component\nhint: take it out, or encode the secret as text",
            ),
        ] {
            assert_eq!(SecretValue::new(value).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn secrets_are_taken_out() {
        let secrets = secrets(&[
            ("A", "aaaaaa"),
            ("LONG", "password-and-more"),
            ("SHORT", "password"),
            ("LINES", "line \"1\"\nline 2"),
            ("TAIL", "moreover"),
            ("WORD", "secret"),
            ("QUOTE", "\"quoted"),
        ]);
        for (text, redacted) in [
            ("", ""),
            ("nothing", "nothing"),
            ("a password.", "a [secret SHORT]."),
            ("password-and-more", "[secret LONG]"),
            ("passwordpassword", "[secret SHORT][secret SHORT]"),
            // The end of the one is the start of the other.
            ("password-and-moreover", "[secret LONG]"),
            ("aaaaaaaa", "[secret A]"),
            ("aaaaa", "aaaaa"),
            ("line \"1\"\nline 2", "[secret LINES]"),
            ("{\"x\":\"line \\\"1\\\"\\nline 2\"}", "{\"x\":\"[secret LINES]\"}"),
            ("\\\"quoted", "[secret QUOTE]"),
            // What is put in is not searched again.
            ("secret", "[secret WORD]"),
            ("é password é", "é [secret SHORT] é"),
        ] {
            assert_eq!(secrets.redact(text), redacted);
            assert_eq!(secrets.redact_bytes(text.as_bytes()), redacted.as_bytes());
        }
        assert!(matches!(secrets.redact("nothing"), Cow::Borrowed(_)));
        assert_eq!(*secrets.redact_bytes(b"\xffpassword\xff"), *b"\xff[secret SHORT]\xff");
    }

    proptest! {
        #[test]
        fn no_secret_is_left(
            values in proptest::collection::vec("[ab\"\n\u{e9}]{6,9}", 1..4),
            parts in proptest::collection::vec("[ab\"\n\u{e9}]{0,12}", 0..5),
        ) {
            let secret = |value: &String| ("X".parse().unwrap(), SecretValue::new(value.clone()).unwrap());
            let secrets: Secrets = values.iter().map(secret).collect();
            let text = parts.join(&values[0]);
            let redacted = secrets.redact(&text);
            for value in &values {
                prop_assert!(!redacted.contains(value));
            }
            prop_assert_eq!(secrets.redact_bytes(text.as_bytes()), redacted.as_bytes());
            let json = serde_json::Value::from(text.as_str()).to_string();
            let redacted = secrets.redact(&json);
            for value in &values {
                let quoted = serde_json::Value::from(value.as_str()).to_string();
                prop_assert!(!redacted.contains(&quoted[1..quoted.len() - 1]));
            }
        }
    }
}
