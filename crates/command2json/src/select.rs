//! Which commands and flags are offered: patterns that a person writes.

use serde::{Deserialize, Serialize};
use wildmatch::WildMatch;

/// Patterns such as `get *` and `!delete *`. What one with a `!` matches is out; of the rest, what any other matches is in, or all of
/// it where there are no others.
///
/// Patterns of several places (the command line, the config file) choose one after the other: each can only take away.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct Patterns(Vec<Vec<Pattern>>);

#[derive(Clone, Debug, PartialEq)]
struct Pattern {
    text: String,
    excludes: bool,
    glob: WildMatch,
}

impl From<Vec<String>> for Patterns {
    fn from(texts: Vec<String>) -> Self {
        if texts.is_empty() {
            return Self::default();
        }
        Self(vec![texts.into_iter().map(Pattern::new).collect()])
    }
}

impl From<Patterns> for Vec<String> {
    fn from(patterns: Patterns) -> Self {
        patterns.0.into_iter().flatten().map(|pattern| pattern.text).collect()
    }
}

impl Patterns {
    /// What both admit.
    #[must_use]
    pub fn and(mut self, others: &Self) -> Self {
        self.0.extend(others.0.iter().cloned());
        self
    }

    /// Whether anything is taken away by name.
    pub(crate) fn excludes(&self) -> bool {
        self.0.iter().flatten().any(|pattern| pattern.excludes)
    }

    fn admit(&self, is_matched_by: impl Fn(&Pattern) -> bool) -> bool {
        self.0.iter().all(|group| {
            let (out, in_): (Vec<&Pattern>, Vec<&Pattern>) = group.iter().partition(|pattern| pattern.excludes);
            let is_in = in_.is_empty() || in_.into_iter().any(&is_matched_by);
            is_in && !out.into_iter().any(&is_matched_by)
        })
    }

    /// `path` starts with the program's own name, which patterns may leave out.
    pub fn admit_command(&self, path: &[&str]) -> bool {
        self.admit(|pattern| pattern.matches_command(path))
    }

    /// Whether a tool of this name is among those that are wanted.
    pub fn admit_tool(&self, name: &str) -> bool {
        self.admit(|pattern| pattern.glob.matches(name))
    }

    /// `names` are all spellings of one flag; patterns leave the dashes out.
    pub fn admit_flag(&self, names: &[String]) -> bool {
        self.admit(|pattern| pattern.matches_flag(names))
    }

    /// The patterns that match none of these commands: most likely they are misspelt.
    pub fn without_a_command<'a>(&'a self, paths: &'a [Vec<&str>]) -> impl Iterator<Item = &'a str> {
        let idle = |pattern: &&Pattern| !paths.iter().any(|path| pattern.matches_command(path));
        self.0.iter().flatten().filter(idle).map(|pattern| pattern.text.as_str())
    }

    /// The patterns that match none of these flags.
    pub fn without_a_flag<'a>(&'a self, flags: &'a [&[String]]) -> impl Iterator<Item = &'a str> {
        let idle = |pattern: &&Pattern| !flags.iter().any(|names| pattern.matches_flag(names));
        self.0.iter().flatten().filter(idle).map(|pattern| pattern.text.as_str())
    }
}

impl Pattern {
    fn new(text: String) -> Self {
        let (excludes, glob) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text.as_str()),
        };
        Self {
            excludes,
            glob: WildMatch::new(glob.trim()),
            text,
        }
    }

    /// `delete *` stands for `delete` itself, too.
    fn matches_command(&self, path: &[&str]) -> bool {
        let whole = path.join(" ");
        let below = path.get(1..).unwrap_or_default().join(" ");
        let group = self
            .text
            .trim_start_matches('!')
            .trim()
            .strip_suffix(" *")
            .map(WildMatch::new);
        let matches = |text: &str| self.glob.matches(text) || group.as_ref().is_some_and(|group| group.matches(text));
        matches(&whole) || (!below.is_empty() && matches(&below))
    }

    fn matches_flag(&self, names: &[String]) -> bool {
        let matches = |name: &String| self.glob.matches(name.trim_start_matches('-')) || self.glob.matches(name);
        names.iter().any(matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(texts: &[&str]) -> Patterns {
        Patterns::from(texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn commands_are_chosen_by_their_path() {
        for (texts, path, admitted) in [
            (&[][..], "app get pods", true),
            (&["get *"], "app get pods", true),
            (&["get *"], "app get", true),
            (&["get *"], "app getter", false),
            (&["get *"], "app delete pods", false),
            (&["app get pods"], "app get pods", true),
            (&["app"], "app", true),
            (&["app"], "app get", false),
            (&["!delete *"], "app get pods", true),
            (&["!delete *"], "app delete pods", false),
            (&["!delete *"], "app delete", false),
            (&["*", "!delete *"], "app delete pods", false),
            (&["!delete *", "delete one"], "app delete one", false),
            (&["get p?ds"], "app get pods", true),
            (&["?????"], "app echo", false),
            (&["ec*"], "app echo", true),
        ] {
            let path: Vec<&str> = path.split(' ').collect();
            assert_eq!(patterns(texts).admit_command(&path), admitted, "{texts:?} {path:?}");
        }
    }

    #[test]
    fn flags_are_chosen_by_any_spelling() {
        let names = ["--api-token".to_owned(), "-t".to_owned()];
        for (texts, admitted) in [
            (&[][..], true),
            (&["!*token"], false),
            (&["!t"], false),
            (&["!--api-token"], false),
            (&["verbose"], false),
            (&["api-*"], true),
        ] {
            assert_eq!(patterns(texts).admit_flag(&names), admitted, "{texts:?}");
        }
    }

    #[test]
    fn idle_patterns_are_found() {
        let patterns = patterns(&["get *", "!delte *"]);
        let paths = [vec!["app", "get"], vec!["app", "delete"]];
        assert_eq!(patterns.without_a_command(&paths).collect::<Vec<_>>(), ["!delte *"]);
    }
}
