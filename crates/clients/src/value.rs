//! What a config file says, whatever it is written in.

/// Keys in the order of the file.
pub(crate) type Map = Vec<(String, Value)>;

/// A value of a config file. What is neither text nor a truth value is kept as it was written: nobody here computes with it.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Bool(bool),
    /// Numbers, dates, `null`, and the aliases of YAML.
    Other(String),
    List(Vec<Value>),
    Map(Map),
}

impl Value {
    pub(crate) const NULL: &'static str = "null";

    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn texts(texts: &[String]) -> Self {
        Self::List(texts.iter().map(Self::text).collect())
    }

    pub(crate) fn pairs(pairs: &[(String, String)]) -> Self {
        Self::Map(pairs.iter().map(|(key, value)| (key.clone(), Self::text(value))).collect())
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Other(text) if text == Self::NULL)
    }

    /// For messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Bool(_) => "a truth value",
            Self::Other(_) if self.is_null() => "empty",
            Self::Other(_) => "a number or the like",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }
}

/// The order of keys says nothing.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        fn sorted(map: &Map) -> Vec<&(String, Value)> {
            let mut pairs: Vec<_> = map.iter().collect();
            pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
            pairs
        }
        match (self, other) {
            (Self::Text(a), Self::Text(b)) | (Self::Other(a), Self::Other(b)) => a == b,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::List(a), Self::List(b)) => a == b,
            (Self::Map(a), Self::Map(b)) => sorted(a) == sorted(b),
            _ => false,
        }
    }
}

/// The first value of this key.
pub(crate) fn get<'a>(map: &'a Map, key: &str) -> Option<&'a Value> {
    map.iter().find(|(known, _)| known == key).map(|(_, value)| value)
}

/// A key that stands there twice, so that it depends on the reader which one counts.
pub(crate) fn duplicate(map: &Map) -> Option<&str> {
    let mut keys: Vec<&str> = map.iter().map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    keys.windows(2)
        .find_map(|pair| matches!(pair, [a, b] if a == b).then(|| pair.first().copied()).flatten())
}
