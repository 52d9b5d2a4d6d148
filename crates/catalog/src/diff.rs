//! What changed between two catalogs, and what of it breaks a program that calls the tools.
//!
//! The viewpoint is that of somebody who wrote down how a tool is called, and reads what it gives: what is taken may grow, what is given
//! may shrink. A change that cannot be judged counts as one that breaks, and says so.

mod schema;

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::hash::Hash;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::document::{Detail, Document, Item, Problem, Prompt, Resource, ResourceTemplate, ServerInfo, Tool};
use crate::references::brief;
use crate::text::plain_line;
use schema::Side;

/// Of one item; more help nobody.
const MAX_CHANGES: usize = 200;
/// Of a value within a sentence.
const MAX_VALUE: usize = 60;

/// The changes from one catalog to another. None if the two are alike.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Diff {
    /// By item: the server, then the items in the order of the catalogs.
    pub changes: Vec<Change>,
}

/// One change of one item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// May what worked before fail now?
    pub breaking: bool,
    pub item: ChangedItem,
    /// The place, as in `input.properties.path`. Empty for the item as a whole.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// In a sentence. Text of the server is in it as it is.
    pub what: String,
}

/// What changed: the server, or an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangedItem {
    /// `server`, or the type of the item.
    pub r#type: &'static str,
    pub name: String,
    /// Of a resource or a template, whose names need not be unique.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub address: String,
}

/// What changed from `old` to `new`.
pub fn diff(old: &Document, new: &Document) -> Diff {
    let mut diff = Diff::default();
    let name = new
        .server
        .info
        .get("name")
        .or_else(|| old.server.info.get("name"))
        .and_then(Value::as_str);
    let mut changes = Changes::of(ChangedItem {
        r#type: "server",
        name: name.unwrap_or_default().to_owned(),
        address: String::new(),
    });
    server(&mut changes, &old.server, &new.server);
    problems(&mut changes, &old.problems, &new.problems);
    diff.changes.append(&mut changes.list);
    for (old, new) in pairs(&old.items, &new.items) {
        let mut changes = match (old, new) {
            (Some(old), Some(new)) if old == new => continue,
            (_, Some(item)) | (Some(item), None) => Changes::of(ChangedItem::of(item)),
            (None, None) => continue,
        };
        match (old, new) {
            (Some(old), Some(new)) => item(&mut changes, old, new),
            (Some(_), None) => changes.add(true, "", "it is gone"),
            _ => changes.add(false, "", "it is new"),
        }
        diff.changes.append(&mut changes.list);
    }
    diff
}

impl Diff {
    /// May a program that used the old server fail with the new one?
    pub fn is_breaking(&self) -> bool {
        self.changes.iter().any(|change| change.breaking)
    }

    /// For a terminal.
    pub fn to_text(&self) -> String {
        if self.changes.is_empty() {
            return "nothing changed\n".to_owned();
        }
        let mut text = String::new();
        let mut shown: Option<&ChangedItem> = None;
        for change in &self.changes {
            if shown != Some(&change.item) {
                text.push_str(&format!("{}\n", plain_line(&change.item.to_string())));
                shown = Some(&change.item);
            }
            let mark = if change.breaking { "BREAKING" } else { "        " };
            let place = if change.path.is_empty() {
                String::new()
            } else {
                format!("{}: ", change.path)
            };
            text.push_str(&format!("  {mark}  {}\n", plain_line(&format!("{place}{}", change.what))));
        }
        let count = self.changes.len();
        let changes = if count == 1 { "change" } else { "changes" };
        let breaking = match self.changes.iter().filter(|change| change.breaking).count() {
            0 => "none of them breaking".to_owned(),
            breaking => format!("{breaking} of them breaking"),
        };
        text.push_str(&format!("\n{count} {changes}, {breaking}\n"));
        text
    }
}

impl fmt::Display for ChangedItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.r#type.replace('-', " "), self.name)?;
        if !self.address.is_empty() && self.address != self.name {
            write!(f, " ({})", self.address)?;
        }
        Ok(())
    }
}

impl ChangedItem {
    fn of(item: &Item) -> Self {
        Self {
            r#type: item.detail.type_name(),
            name: item.name.clone(),
            address: item.detail.address().to_owned(),
        }
    }
}

/// The changes of one item, as many as are kept.
struct Changes {
    item: ChangedItem,
    list: Vec<Change>,
    is_full: bool,
}

impl Changes {
    fn of(item: ChangedItem) -> Self {
        Self {
            item,
            list: Vec::new(),
            is_full: false,
        }
    }

    fn add(&mut self, breaking: bool, path: &str, what: impl Into<String>) {
        if self.is_full {
            return;
        }
        let mut change = Change {
            breaking,
            item: self.item.clone(),
            path: path.to_owned(),
            what: what.into(),
        };
        if self.list.len() >= MAX_CHANGES {
            self.is_full = true;
            change.breaking = true;
            change.path = String::new();
            change.what = "there are more changes, which are not listed and count as breaking".to_owned();
        }
        if !self.list.contains(&change) {
            self.list.push(change);
        }
    }

    /// A change of something that nobody's calls depend on.
    fn note<T: PartialEq>(&mut self, path: &str, old: Option<&T>, new: Option<&T>) {
        match (old, new) {
            (Some(old), Some(new)) if old != new => self.add(false, path, "it changed"),
            (Some(_), None) => self.add(false, path, "it is gone"),
            (None, Some(_)) => self.add(false, path, "it is new"),
            _ => {}
        }
    }

    /// The same of every field of an object.
    fn note_fields(&mut self, path: &str, old: &Map<String, Value>, new: &Map<String, Value>, known: &[&str]) {
        for key in keys(old, new).filter(|key| !known.contains(&key.as_str())) {
            self.note(&at(path, key), old.get(key), new.get(key));
        }
    }
}

/// The keys of both, each once, in their order.
fn keys<'a>(old: &'a Map<String, Value>, new: &'a Map<String, Value>) -> impl Iterator<Item = &'a String> {
    old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)))
}

/// `path.key`, or `path["a key"]` where that could be misread.
fn at(path: &str, key: &str) -> String {
    let cut: String;
    let key = match key.char_indices().nth(MAX_VALUE) {
        Some((end, _)) => {
            cut = format!("{}…", key.get(..end).unwrap_or_default());
            &cut
        }
        None => key,
    };
    let is_word = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$'));
    match (is_word, path) {
        (true, "") => key.to_owned(),
        (true, _) => format!("{path}.{key}"),
        (false, _) => format!("{path}[{}]", Value::from(key)),
    }
}

/// A value within a sentence.
fn shown(value: &Value) -> String {
    format!("`{}`", brief(value, MAX_VALUE))
}

fn server(changes: &mut Changes, old: &ServerInfo, new: &ServerInfo) {
    for key in ["name", "version"] {
        let value = |info: &ServerInfo| info.info.get(key).cloned().unwrap_or(Value::Null);
        let (old, new) = (value(old), value(new));
        if old != new {
            changes.add(false, key, format!("it was {} and is {}", shown(&old), shown(&new)));
        }
    }
    changes.note_fields("", &old.info, &new.info, &["name", "version"]);
    changes.note("instructions", old.instructions.as_ref(), new.instructions.as_ref());
    if old.protocol.version != new.protocol.version {
        let version = |version: &Option<String>| {
            version
                .clone()
                .map_or_else(|| "none".to_owned(), |version| shown(&version.into()))
        };
        let (old, new) = (version(&old.protocol.version), version(&new.protocol.version));
        changes.add(false, "protocol.version", format!("it was {old} and is {new}"));
    }
    // A server of before 2026-07-28 does not say what it speaks.
    match (old.protocol.supported.as_slice(), new.protocol.supported.as_slice()) {
        ([_, ..], []) => changes.add(false, "protocol.supported", "it is no longer said"),
        (old, new) => {
            for version in missing(old, new) {
                changes.add(
                    true,
                    "protocol.supported",
                    format!("{} is no longer spoken", shown(&version.as_str().into())),
                );
            }
            for version in missing(new, old) {
                changes.add(
                    false,
                    "protocol.supported",
                    format!("{} is spoken now", shown(&version.as_str().into())),
                );
            }
        }
    }
    for key in keys(&old.capabilities, &new.capabilities) {
        capability(
            changes,
            &at("capabilities", key),
            old.capabilities.get(key),
            new.capabilities.get(key),
            0,
        );
    }
}

/// Those that the others do not have, as many as are told.
fn missing<'a, T: Eq + Hash>(these: &'a [T], others: &[T]) -> Vec<&'a T> {
    let others: HashSet<&T> = others.iter().collect();
    these
        .iter()
        .filter(|this| !others.contains(this))
        .take(MAX_CHANGES + 1)
        .collect()
}

/// Capabilities are objects, and flags in them.
fn capability(changes: &mut Changes, path: &str, old: Option<&Value>, new: Option<&Value>, depth: usize) {
    let is_off = |value: &Value| matches!(value, Value::Null | Value::Bool(false));
    let (old_on, new_on) = (old.filter(|value| !is_off(value)), new.filter(|value| !is_off(value)));
    match (old_on, new_on) {
        (Some(_), None) => changes.add(true, path, "the server no longer has it"),
        (None, Some(_)) => changes.add(false, path, "the server has it now"),
        (Some(Value::Object(old)), Some(Value::Object(new))) if depth < 4 => {
            for key in keys(old, new) {
                capability(changes, &at(path, key), old.get(key), new.get(key), depth + 1);
            }
        }
        (Some(_), Some(_)) | (None, None) => changes.note(path, old, new),
    }
}

fn problems(changes: &mut Changes, old: &[Problem], new: &[Problem]) {
    let told = |problems: &'_ [Problem]| -> Vec<(String, String)> {
        problems
            .iter()
            .map(|problem| (problem.list.clone(), problem.message.clone()))
            .collect()
    };
    let (old, new) = (told(old), told(new));
    for (list, message) in missing(&new, &old) {
        changes.add(
            true,
            list,
            format!("it was not read fully, so that items may be missing here: {message}"),
        );
    }
    for (list, message) in missing(&old, &new) {
        changes.add(false, list, format!("this is over: {message}"));
    }
}

type Pair<'a> = (Option<&'a Item>, Option<&'a Item>);

/// Which item became which. Tools and prompts are known by their names; resources by their addresses, then by their names.
fn pairs<'a>(old: &'a [Item], new: &'a [Item]) -> Vec<Pair<'a>> {
    type Key<'a> = (&'static str, &'a str);
    let by_address = |item: &'a Item| -> Key<'a> {
        let address = item.detail.address();
        (item.detail.type_name(), if address.is_empty() { &item.name } else { address })
    };
    let by_name = |item: &'a Item| -> Key<'a> { (item.detail.type_name(), &item.name) };
    let mut partners: Vec<Option<usize>> = vec![None; new.len()];
    let mut left: Vec<usize> = (0..old.len()).collect();
    // By a name that several have, nobody is known.
    let mut counts: HashMap<Key<'a>, [usize; 2]> = HashMap::new();
    for (place, items) in [old, new].into_iter().enumerate() {
        for item in items {
            if let Some(count) = counts.entry(by_name(item)).or_default().get_mut(place) {
                *count += 1;
            }
        }
    }
    let is_single = |key: Key<'a>| counts.get(&key) == Some(&[1, 1]);
    type By<'f, 'a> = (&'f dyn Fn(&'a Item) -> Key<'a>, &'f dyn Fn(Key<'a>) -> bool);
    let ways: [By<'_, 'a>; 2] = [(&by_address, &|_| true), (&by_name, &is_single)];
    for (key, is_known) in ways {
        let mut waiting: HashMap<Key<'a>, VecDeque<usize>> = HashMap::new();
        for place in left.drain(..) {
            if let Some(item) = old.get(place) {
                waiting.entry(key(item)).or_default().push_back(place);
            }
        }
        for (item, partner) in new.iter().zip(&mut partners).filter(|(_, partner)| partner.is_none()) {
            if is_known(key(item)) {
                *partner = waiting.get_mut(&key(item)).and_then(VecDeque::pop_front);
            }
        }
        left.extend(waiting.into_values().flatten());
        left.sort_unstable();
    }
    let mut pairs: Vec<Pair<'a>> = left.into_iter().map(|place| (old.get(place), None)).collect();
    pairs.extend(
        new.iter()
            .zip(partners)
            .map(|(item, partner)| (partner.and_then(|place| old.get(place)), Some(item))),
    );
    let order = |pair: &Pair<'a>| {
        let item = pair.1.or(pair.0);
        let kind = item.map(|item| item.detail.type_name());
        let kind = Detail::TYPES.iter().position(|known| Some(*known) == kind);
        (kind, item.map(|item| (item.name.as_str(), item.detail.address())))
    };
    pairs.sort_by(|a, b| order(a).cmp(&order(b)));
    pairs
}

fn item(changes: &mut Changes, old: &Item, new: &Item) {
    if old.name != new.name {
        changes.add(
            false,
            "name",
            format!(
                "it was {} and is {}",
                shown(&old.name.as_str().into()),
                shown(&new.name.as_str().into())
            ),
        );
    }
    match (&old.error, &new.error) {
        (old, Some(new)) if old.as_ref() != Some(new) => {
            changes.add(true, "error", format!("it cannot be used, or not fully: {new}"))
        }
        (Some(_), None) => changes.add(false, "error", "what was wrong with it is not any more"),
        _ => {}
    }
    changes.note("title", old.title.as_ref(), new.title.as_ref());
    changes.note("description", old.description.as_ref(), new.description.as_ref());
    match (&old.detail, &new.detail) {
        (Detail::Tool(before), Detail::Tool(after)) => {
            hints(changes, old.meta.annotations.as_ref(), new.meta.annotations.as_ref());
            tool(changes, before, after);
        }
        (Detail::Resource(before), Detail::Resource(after)) => resource(changes, before, after),
        (Detail::ResourceTemplate(before), Detail::ResourceTemplate(after)) => template(changes, before, after),
        (Detail::Prompt(before), Detail::Prompt(after)) => prompt(changes, before, after),
        // Only items of one type are paired.
        _ => {}
    }
    if !matches!(old.detail, Detail::Tool(_)) {
        changes.note("annotations", old.meta.annotations.as_ref(), new.meta.annotations.as_ref());
    }
    changes.note("icons", old.meta.icons.as_ref(), new.meta.icons.as_ref());
    changes.note("_meta", old.meta.meta.as_ref(), new.meta.meta.as_ref());
    changes.note_fields("", &old.meta.extensions, &new.meta.extensions, &[]);
}

/// The hints about what a tool does: what an absent one means, and the value that is safe.
const HINTS: [(&str, bool, bool); 3] = [
    ("readOnlyHint", false, true),
    ("destructiveHint", true, false),
    ("idempotentHint", false, true),
];

/// A tool that has become less safe is one that nobody allowed.
fn hints(changes: &mut Changes, old: Option<&Value>, new: Option<&Value>) {
    let value = |annotations: Option<&Value>, key: &str| annotations.and_then(|fields| fields.get(key)).cloned();
    let reads_only = |annotations| value(annotations, "readOnlyHint") == Some(Value::Bool(true));
    for (key, default, safe) in HINTS {
        let (before, after) = (value(old, key), value(new, key));
        if before == after {
            continue;
        }
        let meant = |value: &Option<Value>| value.as_ref().and_then(Value::as_bool).unwrap_or(default);
        let (before, after) = (meant(&before), meant(&after));
        // What only reads destroys nothing, and can be repeated.
        let matters = key == "readOnlyHint" || !reads_only(new);
        let less_safe = before == safe && after != safe && matters;
        let what = if before == after {
            "it says the same in another way".to_owned()
        } else {
            format!("it was `{before}` and is `{after}`")
        };
        changes.add(less_safe, &at("annotations", key), what);
    }
    let empty = Map::new();
    let fields = |annotations: Option<&Value>| annotations.and_then(Value::as_object).cloned();
    let (before, after) = (fields(old), fields(new));
    if before.is_none() && after.is_none() {
        changes.note("annotations", old, new);
        return;
    }
    let known = HINTS.map(|(key, ..)| key);
    changes.note_fields(
        "annotations",
        before.as_ref().unwrap_or(&empty),
        after.as_ref().unwrap_or(&empty),
        &known,
    );
}

fn tool(changes: &mut Changes, old: &Tool, new: &Tool) {
    schema::compare(changes, Side::Input, &old.input, &new.input);
    match (&old.output, &new.output) {
        (Some(old), Some(new)) => schema::compare(changes, Side::Output, old, new),
        (Some(_), None) => changes.add(true, "output", "the result has no schema any more"),
        (None, Some(_)) => changes.add(false, "output", "the result has a schema now"),
        (None, None) => {}
    }
    let tasks = |tool: &Tool| {
        let support = tool.execution.as_ref().and_then(|execution| execution.get("taskSupport"));
        support.and_then(Value::as_str).unwrap_or("forbidden").to_owned()
    };
    let (before, after) = (tasks(old), tasks(new));
    if before != after {
        // Whoever called it with a task, or without one, still can where both are allowed.
        changes.add(
            after != "optional",
            "execution.taskSupport",
            format!("it was `{before}` and is `{after}`"),
        );
    } else {
        changes.note("execution", old.execution.as_ref(), new.execution.as_ref());
    }
    changes.note("ui", old.ui.as_ref(), new.ui.as_ref());
}

fn resource(changes: &mut Changes, old: &Resource, new: &Resource) {
    address(changes, "uri", &old.uri, &new.uri);
    mime_type(changes, old.mime_type.as_deref(), new.mime_type.as_deref());
    changes.note("size", old.size.as_ref(), new.size.as_ref());
    changes.note("annotations", old.annotations.as_ref(), new.annotations.as_ref());
    changes.note("ui", old.ui.as_ref(), new.ui.as_ref());
}

fn template(changes: &mut Changes, old: &ResourceTemplate, new: &ResourceTemplate) {
    for variable in missing(&old.variables, &new.variables) {
        changes.add(true, "variables", format!("{} is gone", shown(&variable.as_str().into())));
    }
    for variable in missing(&new.variables, &old.variables) {
        changes.add(true, "variables", format!("{} is new", shown(&variable.as_str().into())));
    }
    address(changes, "uriTemplate", &old.uri_template, &new.uri_template);
    mime_type(changes, old.mime_type.as_deref(), new.mime_type.as_deref());
}

/// Whoever kept an address finds nothing there.
fn address(changes: &mut Changes, path: &str, old: &str, new: &str) {
    if old != new {
        changes.add(
            true,
            path,
            format!("it was {} and is {}", shown(&old.into()), shown(&new.into())),
        );
    }
}

fn mime_type(changes: &mut Changes, old: Option<&str>, new: Option<&str>) {
    match (old, new) {
        (Some(old), Some(new)) if old != new => {
            changes.add(
                true,
                "mimeType",
                format!("it was {} and is {}", shown(&old.into()), shown(&new.into())),
            );
        }
        (Some(old), None) => changes.add(
            true,
            "mimeType",
            format!("it was {} and is not said any more", shown(&old.into())),
        ),
        _ => changes.note("mimeType", old.as_ref(), new.as_ref()),
    }
}

fn prompt(changes: &mut Changes, old: &Prompt, new: &Prompt) {
    let before = changes.list.len();
    schema::compare(changes, Side::Input, &old.input, &new.input);
    // What the schema does not have: fields that the protocol does not know, or the order.
    if changes.list.len() == before && old.arguments != new.arguments {
        changes.add(false, "arguments", "they changed");
    }
}
