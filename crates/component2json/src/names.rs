//! Names that cross from WIT to MCP: tool names, JSON keys, titles.
//!
//! Tool names keep to `[a-z0-9_]` and start with a letter, because model APIs refuse more than that, and are short, because
//! clients put a prefix of their own before them and count both.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::types::ExportName;

/// The longest tool name unless the person says otherwise.
pub const DEFAULT_MAX_TOOL_NAME: usize = 48;

/// The shortest limit that still leaves room for a readable stem before the hash.
pub const MIN_MAX_TOOL_NAME: usize = 16;

/// Hexadecimal digits that tell shortened names apart.
const HASH_LEN: usize = 8;

/// The longest JSON key: the strictest model API takes no more.
const MAX_PROPERTY_KEY: usize = 64;

/// The name of an MCP tool: `[a-z][a-z0-9_]*`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolName(String);

impl ToolName {
    /// A name that somebody wrote, if it is one.
    pub fn parse(text: &str) -> Option<Self> {
        let starts_well = text.starts_with(|c: char| c.is_ascii_lowercase());
        let goes_on_well = text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        (starts_well && goes_on_well).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for ToolName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for ToolName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// `file-name` → `file_name`.
pub fn snake_case(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '_'
            }
        })
        .collect()
}

/// `file-name` → `fileName`.
pub fn camel_case(name: &str) -> String {
    let mut upper = false;
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(if upper { c.to_ascii_uppercase() } else { c });
            upper = false;
        } else {
            upper = !out.is_empty();
        }
    }
    out
}

/// The JSON key of a field or parameter.
pub fn property_key(name: &str) -> String {
    shorten(&snake_case(name), name, MAX_PROPERTY_KEY)
}

/// `add-one` → `Add one`; `[static]clock.now` → `Clock now`.
pub(crate) fn title(function: &str) -> String {
    let words = without_mark(function).replace(['-', '_', '.'], " ");
    let mut chars = words.chars();
    let title: String = chars
        .next()
        .map(|first| first.to_ascii_uppercase())
        .into_iter()
        .chain(chars)
        .collect();
    crate::docs::cap(&title, 100)
}

/// The name without what the component model puts before functions that belong to a resource: `[static]clock.now` → `clock.now`.
fn without_mark(function: &str) -> &str {
    function
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
        .map_or(function, |(_, name)| name)
}

/// What a tool's name is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameParts {
    all: Vec<String>,
    /// How many leading ones may go. For functions these are the namespace and the package: what is left still says which interface
    /// it is.
    droppable: usize,
    /// What no other tool of the component has.
    whole: String,
}

impl NameParts {
    /// For a command of a program: `[git, remote, add]` → `git_remote_add`.
    pub fn of_path(path: &[String]) -> Self {
        Self {
            all: path.iter().map(|part| snake_case(part)).collect(),
            droppable: path.len().saturating_sub(1),
            whole: path.join(" "),
        }
    }

    /// For the functions of one component. The version of a package is a part only where a name would not be unique without it.
    pub fn of_exports(exports: &[ExportName]) -> Vec<Self> {
        let mut versions: BTreeMap<(String, &str), usize> = BTreeMap::new();
        let split: Vec<_> = exports.iter().map(|export| (split_interface(export), export)).collect();
        for ((parts, _), export) in &split {
            *versions.entry((parts.join("/"), &export.function)).or_default() += 1;
        }
        split
            .iter()
            .map(|((parts, version), export)| {
                let count = versions.get(&(parts.join("/"), export.function.as_str()));
                let version = version.as_ref().filter(|_| count.is_some_and(|count| *count > 1));
                let function = snake_case(without_mark(&export.function));
                Self {
                    all: parts
                        .iter()
                        .chain(version)
                        .map(|part| snake_case(part))
                        .chain([function])
                        .collect(),
                    droppable: parts.len().saturating_sub(1),
                    whole: export.to_string(),
                }
            })
            .collect()
    }
}

/// Names for all tools of one component, in order, unique among themselves and unlike any that is `taken`.
///
/// A name is its parts joined (`example:math/calculator.add-one` → `example_math_calculator_add_one`). One that is too long
/// loses its leading parts, where what is left is still unique; then it is cut and marked with a hash of the whole. Given a `prefix`
/// every name starts with it.
pub fn tool_names(tools: &[NameParts], prefix: Option<&str>, max: usize, taken: &HashSet<ToolName>) -> Vec<ToolName> {
    tool_names_unlike(tools, prefix, max, |name| taken.contains(name))
}

/// Like [`tool_names`], where nobody has all names that are taken in one set.
pub fn tool_names_unlike(tools: &[NameParts], prefix: Option<&str>, max: usize, is_taken: impl Fn(&str) -> bool) -> Vec<ToolName> {
    let full: Vec<String> = tools.iter().map(|parts| join(prefix, &parts.all)).collect();
    let all_full: HashSet<&String> = full.iter().collect();
    let mut given: HashSet<ToolName> = HashSet::with_capacity(tools.len());
    let mut names = Vec::with_capacity(tools.len());
    for (
        NameParts {
            all: parts,
            droppable,
            whole,
        },
        full,
    ) in tools.iter().zip(&full)
    {
        let is_used = |name: &str| given.contains(name) || is_taken(name);
        let free = |name: &String| name.len() <= max && !is_used(name);
        let shorter = || {
            (1..=*droppable)
                .filter_map(|dropped| parts.get(dropped..))
                .map(|rest| join(prefix, rest))
                .find(|name| free(name) && !all_full.contains(name))
        };
        let name = if free(full) {
            full.clone()
        } else if full.len() > max {
            shorter().unwrap_or_else(|| marked(&stem(prefix, parts, *droppable, max), whole, max, is_used))
        } else {
            marked(full, whole, max, is_used)
        };
        let name = ToolName(name);
        given.insert(name.clone());
        names.push(name);
    }
    names
}

/// `example:math/calculator@0.1.0` → `[example, math, calculator]` and `0.1.0`.
fn split_interface(export: &ExportName) -> (Vec<String>, Option<String>) {
    let Some(interface) = &export.interface else {
        return (vec![], None);
    };
    let (name, version) = match interface.split_once('@') {
        Some((name, version)) => (name, Some(version.to_owned())),
        None => (interface.as_str(), None),
    };
    (name.split([':', '/']).map(str::to_owned).collect(), version)
}

fn join(prefix: Option<&str>, parts: &[String]) -> String {
    let name = prefix
        .into_iter()
        .chain(parts.iter().map(String::as_str))
        .collect::<Vec<_>>()
        .join("_");
    let name = snake_case(&name);
    if name.starts_with(|c: char| c.is_ascii_lowercase()) {
        name
    } else {
        format!("t_{name}")
    }
}

/// What to cut when no name fits: the function's own name where that leaves room for the hash, as it says the most.
fn stem(prefix: Option<&str>, parts: &[String], droppable: usize, max: usize) -> String {
    let own = join(prefix, parts.last().map(std::slice::from_ref).unwrap_or_default());
    let fits = own.len() + 1 + HASH_LEN <= max;
    if fits {
        own
    } else {
        join(prefix, parts.get(droppable..).unwrap_or_default())
    }
}

/// A name cut to `max` with a hash of `whole`; hashed again while somebody else has it.
fn marked(name: &str, whole: &str, max: usize, is_used: impl Fn(&str) -> bool) -> String {
    let mut salt = whole.to_owned();
    loop {
        let candidate = with_hash(name, &salt, max);
        if !is_used(&candidate) {
            return candidate;
        }
        salt.push('+');
    }
}

fn shorten(name: &str, whole: &str, max: usize) -> String {
    if name.len() <= max {
        name.to_owned()
    } else {
        with_hash(name, whole, max)
    }
}

fn with_hash(name: &str, whole: &str, max: usize) -> String {
    let hash: String = Sha256::digest(whole)
        .iter()
        .take(HASH_LEN / 2)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let stem: String = name.chars().take(max.saturating_sub(HASH_LEN + 1)).collect();
    format!("{}_{hash}", stem.trim_end_matches('_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export(text: &str) -> ExportName {
        let split = text
            .split_once(".[")
            .map(|(left, _)| text.split_at(left.len()))
            .map(|(left, right)| (left, &right[1..]));
        match split
            .or_else(|| text.rsplit_once('.'))
            .filter(|(left, _)| left.contains('/') || !left.contains('@'))
        {
            Some((interface, function)) => ExportName {
                interface: Some(interface.into()),
                function: function.into(),
            },
            None => ExportName {
                interface: None,
                function: text.into(),
            },
        }
    }

    fn names(exports: &[&str], prefix: Option<&str>, max: usize) -> Vec<String> {
        let exports: Vec<_> = exports.iter().map(|text| export(text)).collect();
        tool_names(&NameParts::of_exports(&exports), prefix, max, &HashSet::new())
            .into_iter()
            .map(|name| name.0)
            .collect()
    }

    #[test]
    fn names_join_the_parts_of_the_export() {
        for (from, to) in [
            ("example:math/calculator.add-one", "example_math_calculator_add_one"),
            ("example:math/calculator@0.1.0.add-one", "example_math_calculator_add_one"),
            ("fetch", "fetch"),
            ("tools.HTTP-get", "tools_http_get"),
            ("a:b/c.[static]clock.now", "a_b_c_clock_now"),
        ] {
            assert_eq!(names(&[from], None, 48), [to], "{from}");
        }
    }

    #[test]
    fn long_names_lose_leading_parts_and_are_then_cut() {
        assert_eq!(
            names(&["example:math/calculator.add-one"], None, 30),
            ["math_calculator_add_one"]
        );
        assert_eq!(names(&["example:math/calculator.add-one"], None, 20), ["calculator_add_one"]);
        let cut = names(&["example:math/calculator.add-one"], None, 16);
        assert_eq!(cut, names(&["example:math/calculator.add-one"], None, 16), "stable");
        assert!(cut[0].len() <= 16 && cut[0].starts_with("add_one_"), "{cut:?}");
        let cut = names(&["example:math/calculator.add-one-to-each"], None, 20);
        assert!(cut[0].len() <= 20 && cut[0].starts_with("calculator_"), "{cut:?}");
    }

    #[test]
    fn what_a_shorter_name_would_shadow_stays_apart() {
        let both = names(&["a:math/calculator.add-one", "b:math/calculator.add-one"], None, 24);
        assert_eq!(both.len(), 2);
        assert_ne!(both[0], both[1]);
    }

    #[test]
    fn two_versions_keep_their_version() {
        assert_eq!(
            names(&["a:b/c@0.1.0.f", "a:b/c@0.2.0.f", "a:b/c@0.2.0.g"], None, 48),
            ["a_b_c_0_1_0_f", "a_b_c_0_2_0_f", "a_b_c_g"]
        );
        assert_eq!(
            names(
                &["example:math/calculator@0.1.0.add", "example:math/calculator@0.2.0.add"],
                None,
                24
            ),
            ["calculator_0_1_0_add", "calculator_0_2_0_add"],
            "the interface stays, however short the name has to be"
        );
    }

    #[test]
    fn names_that_fold_into_one_stay_callable() {
        let both = names(&["x:a-b/c.d", "x:a/b-c.d"], None, 48);
        assert_ne!(both[0], both[1]);
        assert!(both.iter().all(|name| name.starts_with("x_a_b_c_d")));
    }

    #[test]
    fn a_prefix_counts_against_the_limit() {
        assert_eq!(names(&["fetch"], Some("my-tool"), 48), ["my_tool_fetch"]);
        assert!(names(&["fetch"], Some(&"x".repeat(60)), 48)[0].len() <= 48);
        assert_eq!(names(&["fetch"], Some("7zip"), 48), ["t_7zip_fetch"]);
    }

    #[test]
    fn keys_and_titles() {
        assert_eq!(property_key("file-name"), "file_name");
        assert_eq!(camel_case("file-name"), "fileName");
        assert_eq!(title("add-one"), "Add one");
        assert_eq!(title("[static]wall-clock.now"), "Wall clock now");
        assert!(property_key(&"a".repeat(99_000)).len() <= 64);
    }
}
