//! YAML as a tree that knows the line of everything in it.
//!
//! Only what means what it shows: anchors, aliases and tags are refused, and so are keys that stand twice.

use std::collections::HashSet;

use granit_parser::{Event, Parser, ScalarStyle};

/// Far deeper than what is read here.
const MAX_DEPTH: usize = 32;

#[derive(Debug)]
pub(crate) struct Node {
    /// From 1.
    pub(crate) line: usize,
    pub(crate) content: Content,
}

#[derive(Debug)]
pub(crate) enum Content {
    Scalar {
        text: String,
        /// Without quotes, so that `null` is nothing and `512` a number.
        is_plain: bool,
    },
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) line: usize,
    pub(crate) name: String,
}

impl Node {
    pub(crate) fn is_null(&self) -> bool {
        match &self.content {
            Content::Scalar { text, is_plain: true } => matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"),
            _ => false,
        }
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self.content {
            Content::Scalar { .. } if self.is_null() => "nothing",
            Content::Scalar { .. } => "a text",
            Content::List(_) => "a list",
            Content::Map(_) => "a map",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum YamlProblem {
    #[error("this is no YAML: {0}")]
    Syntax(String),
    #[error("{0} make a file say more than it shows; write out what they stand for")]
    Indirect(&'static str),
    #[error("a file has one document; take out what comes after the first")]
    Documents,
    #[error("`{}` stands twice; leave one of them", .0.escape_debug())]
    Twice(String),
    #[error("a key is a text, and here is something else")]
    Key,
    #[error("this is nested more than {MAX_DEPTH} times")]
    Depth,
}

/// A list or a map whose end has not come yet.
struct Open {
    node: Node,
    /// The key whose value comes next.
    key: Option<Key>,
    /// All keys so far.
    names: HashSet<String>,
}

impl Open {
    fn new(line: usize, content: Content) -> Self {
        Self {
            node: Node { line, content },
            key: None,
            names: HashSet::new(),
        }
    }

    fn put(&mut self, node: Node) -> Result<(), (usize, YamlProblem)> {
        match (&mut self.node.content, self.key.take()) {
            (Content::Map(pairs), Some(key)) => pairs.push((key, node)),
            (Content::Map(_), None) => {
                let line = node.line;
                let Content::Scalar { text: name, .. } = node.content else {
                    return Err((line, YamlProblem::Key));
                };
                if !self.names.insert(name.clone()) {
                    return Err((line, YamlProblem::Twice(name)));
                }
                self.key = Some(Key { line, name });
            }
            (Content::List(nodes), _) => nodes.push(node),
            // Nothing stands inside a text, and none is ever open.
            (Content::Scalar { .. }, _) => {}
        }
        Ok(())
    }
}

/// The one document of a text. `None` where there is none. A problem comes with its line.
pub(crate) fn parse(text: &str) -> Result<Option<Node>, (usize, YamlProblem)> {
    let mut root = None;
    let mut open: Vec<Open> = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| (error.marker().line(), YamlProblem::Syntax(error.kind().to_string())))?;
        let line = span.start.line();
        let (anchor, tag) = match &event {
            Event::Scalar(_, _, anchor, tag) | Event::SequenceStart(_, anchor, tag) | Event::MappingStart(_, anchor, tag) => {
                (*anchor, tag.is_some())
            }
            _ => (0, false),
        };
        if anchor != 0 || matches!(event, Event::Alias(_)) {
            return Err((line, YamlProblem::Indirect("anchors and aliases")));
        }
        if tag {
            return Err((line, YamlProblem::Indirect("tags")));
        }
        let complete = match event {
            Event::Scalar(text, style, ..) => Node {
                line,
                content: Content::Scalar {
                    text: text.into_owned(),
                    is_plain: style == ScalarStyle::Plain,
                },
            },
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() >= MAX_DEPTH => {
                return Err((line, YamlProblem::Depth));
            }
            Event::SequenceStart(..) => {
                open.push(Open::new(line, Content::List(Vec::new())));
                continue;
            }
            Event::MappingStart(..) => {
                open.push(Open::new(line, Content::Map(Vec::new())));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(open) => open.node,
                None => continue,
            },
            Event::DocumentStart(..) if root.is_some() => return Err((line, YamlProblem::Documents)),
            _ => continue,
        };
        match open.last_mut() {
            Some(open) => open.put(complete)?,
            None => root = Some(complete),
        }
    }
    Ok(root)
}
