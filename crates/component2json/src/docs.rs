//! Documentation of a component's exports, from wherever it can be had.
//!
//! Today's toolchains drop the `///` comments of a WIT when they build a component. So docs are collected apart from the types,
//! keyed by the names of what they describe, and laid over them: from WIT text, from our own custom section, or from a
//! `package-docs` section. Docs are data from a stranger: control and bidirectional characters are removed and the length is
//! bounded before anybody sees them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wit_parser::{PackageId, Resolve, TypeDefKind, TypeId, WorldId, WorldItem, WorldKey};

use crate::component::Exports;

/// What a description may be long. Longer docs are cut at this many characters.
const MAX_DOC_CHARS: usize = 1024;

/// The custom section that `host embed-docs` writes: [`Docs`] as JSON.
pub const SECTION_NAME: &str = "host:docs";

/// The custom section that wit-parser defines.
pub(crate) const PACKAGE_DOCS_SECTION: &str = "package-docs";

/// The version of our section's format.
const FORMAT: u32 = 1;

/// Docs by the name of what they describe.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Docs {
    format: u32,
    /// What the world itself exports, and its own docs.
    #[serde(skip_serializing_if = "Scope::is_empty")]
    world: Scope,
    /// By interface, with the version where it is known: `example:math/calculator@0.1.0`. A `package-docs` section has
    /// the plain name only: `calculator`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    interfaces: BTreeMap<String, Scope>,
    /// Interfaces and functions of worlds that the WIT declares, documented or not: is it the right WIT for a component?
    #[serde(skip)]
    declared: BTreeSet<String>,
}

/// The docs of one interface or world.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Scope {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) docs: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) functions: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) types: BTreeMap<String, TypeDocs>,
}

/// The docs of one type, and of its fields, cases or flags.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TypeDocs {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) docs: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) items: BTreeMap<String, String>,
}

#[derive(Debug, thiserror::Error)]
pub enum DocsError {
    #[error("the section is not JSON of the expected shape: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the section has format {0}, which is newer than this host")]
    Format(u32),
    #[error("the section has version {0:?}, which is not known")]
    PackageDocsVersion(Option<u8>),
}

impl Docs {
    pub fn is_empty(&self) -> bool {
        self.world.is_empty() && self.interfaces.is_empty()
    }

    /// Docs of every interface in a parsed WIT, and of what the worlds of its main package export themselves. A component does
    /// not say which world it was built for, so the functions of all of them count, and the docs of the only one.
    pub fn from_wit(resolve: &Resolve, main: PackageId) -> Self {
        let mut docs = Self {
            format: FORMAT,
            ..Self::default()
        };
        for (id, interface) in resolve.interfaces.iter() {
            let Some(name) = interface.name.as_ref().and(resolve.id_of(id)) else {
                continue;
            };
            docs.declared.insert(unversioned(&name).to_owned());
            docs.interfaces.insert(name, interface_scope(resolve, id));
        }
        let worlds: Vec<_> = resolve
            .worlds
            .iter()
            .filter(|(_, world)| world.package == Some(main))
            .collect();
        for (id, _) in &worlds {
            docs.add_world(resolve, *id);
        }
        if let [(_, world)] = worlds.as_slice() {
            docs.world.docs = world.docs.contents.as_deref().and_then(clean);
        }
        docs.interfaces.retain(|_, scope| !scope.is_empty());
        docs
    }

    /// Drops the docs of interfaces other than these: what a component does not use, it need not carry.
    pub fn retain_interfaces(&mut self, names: &[String]) {
        self.interfaces
            .retain(|interface, _| names.iter().any(|name| unversioned(name) == unversioned(interface)));
    }

    fn add_world(&mut self, resolve: &Resolve, id: WorldId) {
        let Some(world) = resolve.worlds.get(id) else { return };
        for (key, item) in &world.exports {
            if let WorldKey::Name(name) = key {
                self.declared.insert(name.clone());
            }
            match (key, item) {
                (WorldKey::Name(name), WorldItem::Function(function)) => {
                    if let Some(text) = function.docs.contents.as_deref().and_then(clean) {
                        self.world.functions.entry(name.clone()).or_insert(text);
                    }
                }
                // An interface written inside the world is known by its plain name.
                (WorldKey::Name(name), WorldItem::Interface { id, .. }) => {
                    self.interfaces.insert(name.clone(), interface_scope(resolve, *id));
                }
                _ => {}
            }
        }
        for (key, item) in world.imports.iter().chain(&world.exports) {
            if let (WorldKey::Name(name), WorldItem::Type { id, .. }) = (key, item) {
                self.world.add_type(resolve, name, *id);
            }
        }
    }

    /// What [`to_section`](Self::to_section) wrote.
    pub fn from_section(data: &[u8]) -> Result<Self, DocsError> {
        let mut docs: Self = serde_json::from_slice(data)?;
        if docs.format != FORMAT {
            return Err(DocsError::Format(docs.format));
        }
        // The section may come from anywhere; only what this program cleans itself is clean.
        docs.world.clean();
        docs.interfaces.values_mut().for_each(Scope::clean);
        Ok(docs)
    }

    pub fn to_section(&self) -> Result<Vec<u8>, DocsError> {
        Ok(serde_json::to_vec(self)?)
    }

    /// A `package-docs` section: a version byte and JSON. wit-parser itself gives up on the whole component when the section
    /// names something that is not there; here the rest of it still counts.
    pub fn from_package_docs(data: &[u8]) -> Result<Self, DocsError> {
        let json = match data.split_first() {
            Some((0 | 1, json)) => json,
            other => return Err(DocsError::PackageDocsVersion(other.map(|(version, _)| *version))),
        };
        let package: PackageDocs = serde_json::from_slice(json)?;
        let mut docs = Self {
            format: FORMAT,
            ..Self::default()
        };
        for world in package.worlds.into_values() {
            for (name, interface) in world.interface_exports.into_iter().chain(world.interfaces) {
                docs.interfaces.insert(name, interface.into_scope());
            }
            let scope = PackageDocsInterface {
                docs: world.docs,
                funcs: world.func_exports.into_iter().chain(world.funcs).collect(),
                types: world.types,
            }
            .into_scope();
            docs.world.merge(&scope);
        }
        for (name, interface) in package.interfaces {
            docs.interfaces.insert(name, interface.into_scope());
        }
        docs.interfaces.retain(|_, scope| !scope.is_empty());
        Ok(docs)
    }

    /// The docs of an exported interface (`example:math/calculator@0.1.0`), or of the world where there is none.
    fn scope(&self, interface: Option<&str>) -> Option<&Scope> {
        match interface {
            None => Some(&self.world),
            Some(exact) => {
                // Docs of another version are better than none, and the latest are the best of those.
                let name = unversioned(exact);
                let versions = || {
                    self.interfaces
                        .range(name.to_owned()..)
                        .take_while(|(key, _)| key.starts_with(name))
                };
                let other_version = || {
                    versions()
                        .filter(|(key, _)| unversioned(key) == name)
                        .map(|(_, scope)| scope)
                        .last()
                };
                let bare = || self.interfaces.get(name.rsplit_once('/')?.1);
                self.interfaces.get(exact).or_else(other_version).or_else(bare)
            }
        }
    }

    /// Whether the WIT that these docs come from declares any of a component's exports.
    pub fn describes(&self, exports: &Exports) -> bool {
        let interfaces = exports
            .functions
            .iter()
            .filter_map(|function| function.export.interface.as_deref())
            .map(unversioned);
        let functions = exports
            .functions
            .iter()
            .filter(|function| function.export.interface.is_none());
        interfaces
            .chain(functions.map(|function| function.export.function.as_str()))
            .any(|name| self.declared.contains(name))
    }
}

/// Docs from several places, the best first: each fills the gaps that those before it left.
pub(crate) struct Layers<'a>(pub(crate) Vec<&'a Docs>);

impl Layers<'_> {
    /// What is known of an exported interface, or of the world where there is none.
    pub(crate) fn scope(&self, interface: Option<&str>) -> Scope {
        let mut merged = Scope::default();
        for scope in self.0.iter().filter_map(|docs| docs.scope(interface)) {
            merged.merge(scope);
        }
        merged
    }
}

impl Scope {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn add_type(&mut self, resolve: &Resolve, name: &str, id: TypeId) {
        let docs = type_docs(resolve, id);
        if docs != TypeDocs::default() {
            self.types.insert(name.to_owned(), docs);
        }
    }

    /// Takes from `other` what is missing here.
    fn merge(&mut self, other: &Self) {
        if self.docs.is_none() {
            self.docs.clone_from(&other.docs);
        }
        for (name, docs) in &other.functions {
            self.functions.entry(name.clone()).or_insert_with(|| docs.clone());
        }
        for (name, docs) in &other.types {
            let own = self.types.entry(name.clone()).or_default();
            if own.docs.is_none() {
                own.docs.clone_from(&docs.docs);
            }
            for (name, docs) in &docs.items {
                own.items.entry(name.clone()).or_insert_with(|| docs.clone());
            }
        }
    }

    fn clean(&mut self) {
        self.docs = self.docs.as_deref().and_then(clean);
        clean_values(&mut self.functions);
        for docs in self.types.values_mut() {
            docs.docs = docs.docs.as_deref().and_then(clean);
            clean_values(&mut docs.items);
        }
    }
}

fn clean_values(map: &mut BTreeMap<String, String>) {
    map.retain(|_, text| match clean(text) {
        Some(cleaned) => {
            *text = cleaned;
            true
        }
        None => false,
    });
}

fn interface_scope(resolve: &Resolve, id: wit_parser::InterfaceId) -> Scope {
    let mut scope = Scope::default();
    let Some(interface) = resolve.interfaces.get(id) else {
        return scope;
    };
    scope.docs = interface.docs.contents.as_deref().and_then(clean);
    for (name, function) in &interface.functions {
        if let Some(text) = function.docs.contents.as_deref().and_then(clean) {
            scope.functions.insert(name.clone(), text);
        }
    }
    for (name, id) in &interface.types {
        scope.add_type(resolve, name, *id);
    }
    scope
}

fn type_docs(resolve: &Resolve, id: TypeId) -> TypeDocs {
    let mut out = TypeDocs::default();
    let Some(def) = resolve.types.get(id) else {
        return out;
    };
    out.docs = def.docs.contents.as_deref().and_then(clean);
    let mut item = |name: &String, docs: &wit_parser::Docs| {
        if let Some(text) = docs.contents.as_deref().and_then(clean) {
            out.items.insert(name.clone(), text);
        }
    };
    match &def.kind {
        TypeDefKind::Record(record) => record.fields.iter().for_each(|f| item(&f.name, &f.docs)),
        TypeDefKind::Variant(variant) => variant.cases.iter().for_each(|c| item(&c.name, &c.docs)),
        TypeDefKind::Enum(cases) => cases.cases.iter().for_each(|c| item(&c.name, &c.docs)),
        TypeDefKind::Flags(flags) => flags.flags.iter().for_each(|f| item(&f.name, &f.docs)),
        _ => {}
    }
    out
}

/// `package-docs` as wit-parser writes it, read leniently.
#[derive(Default, Deserialize)]
#[serde(default)]
struct PackageDocs {
    worlds: BTreeMap<String, PackageDocsWorld>,
    interfaces: BTreeMap<String, PackageDocsInterface>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PackageDocsWorld {
    docs: Option<String>,
    interfaces: BTreeMap<String, PackageDocsInterface>,
    interface_exports: BTreeMap<String, PackageDocsInterface>,
    types: BTreeMap<String, PackageDocsType>,
    funcs: BTreeMap<String, PackageDocsFunction>,
    func_exports: BTreeMap<String, PackageDocsFunction>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PackageDocsInterface {
    docs: Option<String>,
    funcs: BTreeMap<String, PackageDocsFunction>,
    types: BTreeMap<String, PackageDocsType>,
}

/// Version 0 of the format has the docs alone; version 1 has an object.
#[derive(Deserialize)]
#[serde(untagged)]
enum PackageDocsFunction {
    Docs(String),
    Object {
        #[serde(default)]
        docs: Option<String>,
    },
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PackageDocsType {
    docs: Option<String>,
    items: BTreeMap<String, String>,
}

impl PackageDocsInterface {
    fn into_scope(self) -> Scope {
        let mut scope = Scope {
            docs: self.docs,
            functions: self
                .funcs
                .into_iter()
                .filter_map(|(name, function)| {
                    let docs = match function {
                        PackageDocsFunction::Docs(docs) => Some(docs),
                        PackageDocsFunction::Object { docs } => docs,
                    };
                    Some((name, docs?))
                })
                .collect(),
            types: self
                .types
                .into_iter()
                .map(|(name, ty)| {
                    (
                        name,
                        TypeDocs {
                            docs: ty.docs,
                            items: ty.items,
                        },
                    )
                })
                .collect(),
        };
        scope.clean();
        scope
    }
}

/// `example:math/calculator@0.1.0` → `example:math/calculator`.
fn unversioned(interface: &str) -> &str {
    interface.split_once('@').map_or(interface, |(name, _)| name)
}

/// Text from a stranger, fit to be shown: nothing that steers a terminal or hides what it says, and not too much of it.
/// `None` when nothing is left.
pub fn clean(text: &str) -> Option<String> {
    clean_within(text, MAX_DOC_CHARS)
}

/// The same, with this many characters at most.
pub fn clean_within(text: &str, max: usize) -> Option<String> {
    let kept = without_hidden(text);
    let kept = kept.trim();
    (!kept.is_empty()).then(|| cap(kept, max))
}

/// The text without what steers a terminal or hides what it says.
pub fn without_hidden(text: &str) -> String {
    text.chars().filter(|c| !is_hidden(*c)).collect()
}

/// Whether the JSON in a section of docs has hidden characters in one of its texts.
pub(crate) fn hides_something(section: &[u8]) -> bool {
    fn hides(value: &Value) -> bool {
        match value {
            Value::String(text) => text.contains(is_hidden),
            Value::Array(items) => items.iter().any(hides),
            Value::Object(fields) => fields.values().any(hides),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    let start = section.iter().position(|byte| *byte == b'{').unwrap_or_default();
    let json = section.get(start..).unwrap_or_default();
    serde_json::from_slice(json).is_ok_and(|value| hides(&value))
}

/// Control characters except line feed and tab, and the format characters that reorder text or take no space.
fn is_hidden(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c,
            '\u{00AD}' | '\u{061C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}'
            | '\u{E0000}'..='\u{E0FFF}')
}

pub(crate) fn cap(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some(_) => text.chars().take(max.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_strangers_is_cleaned() {
        for (from, to) in [
            ("plain", Some("plain")),
            ("  two\nlines\t ", Some("two\nlines")),
            ("\u{1b}[31mred\u{7}", Some("[31mred")),
            ("abc\u{202e}def\u{200b}", Some("abcdef")),
            ("\u{feff}\u{200d}", None),
            ("é ✓ 日本", Some("é ✓ 日本")),
        ] {
            assert_eq!(clean(from).as_deref(), to, "{from:?}");
        }
        assert_eq!(clean(&"é".repeat(5000)).unwrap().chars().count(), MAX_DOC_CHARS);
    }

    #[test]
    fn our_section_comes_back_as_it_was_written() {
        let mut resolve = Resolve::default();
        let package = resolve
            .push_str("a.wit", "package a:b;\n/// An interface\ninterface i {\n/// A function\nf: func();\n}\n/// The world\nworld w { export i; }")
            .unwrap();
        let docs = Docs::from_wit(&resolve, package);
        assert!(!docs.is_empty());
        assert!(docs.declared.contains("a:b/i"));
        let read = Docs::from_section(&docs.to_section().unwrap()).unwrap();
        assert_eq!((read.world, read.interfaces), (docs.world, docs.interfaces));
    }

    #[test]
    fn a_newer_format_is_refused() {
        assert!(matches!(Docs::from_section(br#"{"format": 2}"#), Err(DocsError::Format(2))));
    }

    #[test]
    fn package_docs_of_either_version_are_read() {
        let v0 = b"\x00{\"worlds\":{\"root\":{\"funcs\":{\"f\":\"zero\"}}}}";
        let v1 = b"\x01{\"worlds\":{\"root\":{\"func_exports\":{\"f\":{\"docs\":\"one\"}}},\"gone\":{}}}";
        assert_eq!(Docs::from_package_docs(v0).unwrap().world.functions["f"], "zero");
        assert_eq!(Docs::from_package_docs(v1).unwrap().world.functions["f"], "one");
        assert!(Docs::from_package_docs(b"\x07{}").is_err());
    }
}
