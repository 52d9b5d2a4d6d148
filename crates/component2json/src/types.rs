//! The types of a component's exports, as this crate needs them: one graph, built once from the WIT, that schemas, arguments
//! and results are all read from.
//!
//! A type that is used twice is one node with two edges (`Arc`), so the graph is never larger than the component that
//! declared it, however large the same types would be when written out.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::names;

/// One WIT type with its documentation.
///
/// `R` is how a type names another one: `Arc<Type>` in memory, an index on disk (see [`crate::wire`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypeDef<R> {
    /// Its WIT name, for types that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docs: Option<String>,
    pub kind: Kind<R>,
}

/// A type of the in-memory graph.
pub type Type = TypeDef<TypeRef>;

/// A shared edge of the in-memory graph.
#[derive(Clone, Debug)]
pub struct TypeRef(Arc<Type>);

impl PartialEq for TypeRef {
    /// Two edges to one node are equal without looking: a graph that shares much would take forever to compare as a tree.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || *self.0 == *other.0
    }
}

impl TypeRef {
    pub fn new(ty: Type) -> Self {
        Self(Arc::new(ty))
    }

    /// Where this node lives: equal for two edges to one node. For memo tables only.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
}

impl std::ops::Deref for TypeRef {
    type Target = Type;

    fn deref(&self) -> &Type {
        &self.0
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind<R> {
    Bool,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F32,
    F64,
    Char,
    String,
    /// `list<u8>`, which JSON carries as base64.
    Bytes,
    List(R),
    FixedList(R, u32),
    /// `map<string, V>`, which JSON carries as an object.
    StringMap(R),
    Map(R, R),
    Record(Vec<Field<R>>),
    Tuple(Vec<R>),
    Variant(Vec<Case<R>>),
    Enum(Vec<Label>),
    Flags(Vec<Label>),
    Option(R),
    Result {
        ok: Option<R>,
        err: Option<R>,
    },
}

impl<R> Kind<R> {
    /// How many fields, cases, labels or elements the type itself lists.
    pub(crate) fn parts(&self) -> usize {
        match self {
            Self::Record(fields) => fields.len(),
            Self::Tuple(items) => items.len(),
            Self::Variant(cases) => cases.len(),
            Self::Enum(labels) | Self::Flags(labels) => labels.len(),
            _ => 1,
        }
    }
}

/// A record field or a function parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Field<R> {
    /// The name as the WIT spells it.
    pub name: String,
    /// The JSON key that schemas advertise and results use.
    pub key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docs: Option<String>,
    pub ty: R,
}

impl<R> Field<R> {
    pub fn new(name: &str, docs: Option<String>, ty: R) -> Self {
        Self {
            name: name.to_owned(),
            key: names::property_key(name),
            docs,
            ty,
        }
    }
}

/// A case of a variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case<R> {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docs: Option<String>,
    pub ty: Option<R>,
}

/// A case of an enum, or one of the flags.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Label {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docs: Option<String>,
}

impl Type {
    pub(crate) fn is_option(&self) -> bool {
        matches!(self.kind, Kind::Option(_))
    }
}

impl<R> TypeDef<R> {
    /// The same type with every reference replaced: how the graph goes to disk and comes back.
    pub(crate) fn try_map<S, E>(&self, mut f: impl FnMut(&R) -> Result<S, E>) -> Result<TypeDef<S>, E> {
        let kind = match &self.kind {
            Kind::Bool => Kind::Bool,
            Kind::U8 => Kind::U8,
            Kind::U16 => Kind::U16,
            Kind::U32 => Kind::U32,
            Kind::U64 => Kind::U64,
            Kind::S8 => Kind::S8,
            Kind::S16 => Kind::S16,
            Kind::S32 => Kind::S32,
            Kind::S64 => Kind::S64,
            Kind::F32 => Kind::F32,
            Kind::F64 => Kind::F64,
            Kind::Char => Kind::Char,
            Kind::String => Kind::String,
            Kind::Bytes => Kind::Bytes,
            Kind::List(r) => Kind::List(f(r)?),
            Kind::FixedList(r, n) => Kind::FixedList(f(r)?, *n),
            Kind::StringMap(v) => Kind::StringMap(f(v)?),
            Kind::Map(k, v) => Kind::Map(f(k)?, f(v)?),
            Kind::Record(fields) => Kind::Record(fields.iter().map(|x| x.try_map(&mut f)).collect::<Result<_, _>>()?),
            Kind::Tuple(items) => Kind::Tuple(items.iter().map(&mut f).collect::<Result<_, _>>()?),
            Kind::Variant(cases) => {
                let case = |case: &Case<R>| {
                    Ok(Case {
                        name: case.name.clone(),
                        docs: case.docs.clone(),
                        ty: case.ty.as_ref().map(&mut f).transpose()?,
                    })
                };
                Kind::Variant(cases.iter().map(case).collect::<Result<_, _>>()?)
            }
            Kind::Enum(labels) => Kind::Enum(labels.clone()),
            Kind::Flags(labels) => Kind::Flags(labels.clone()),
            Kind::Option(r) => Kind::Option(f(r)?),
            Kind::Result { ok, err } => Kind::Result {
                ok: ok.as_ref().map(&mut f).transpose()?,
                err: err.as_ref().map(&mut f).transpose()?,
            },
        };
        Ok(TypeDef {
            name: self.name.clone(),
            docs: self.docs.clone(),
            kind,
        })
    }

    /// Every type that this one is made of, in order.
    pub fn children(&self) -> Vec<&R> {
        match &self.kind {
            Kind::List(r) | Kind::FixedList(r, _) | Kind::StringMap(r) | Kind::Option(r) => vec![r],
            Kind::Map(k, v) => vec![k, v],
            Kind::Record(fields) => fields.iter().map(|field| &field.ty).collect(),
            Kind::Tuple(items) => items.iter().collect(),
            Kind::Variant(cases) => cases.iter().filter_map(|case| case.ty.as_ref()).collect(),
            Kind::Result { ok, err } => ok.iter().chain(err).collect(),
            Kind::Bool
            | Kind::U8
            | Kind::U16
            | Kind::U32
            | Kind::U64
            | Kind::S8
            | Kind::S16
            | Kind::S32
            | Kind::S64
            | Kind::F32
            | Kind::F64
            | Kind::Char
            | Kind::String
            | Kind::Bytes
            | Kind::Enum(_)
            | Kind::Flags(_) => vec![],
        }
    }
}

impl<R> Field<R> {
    pub(crate) fn try_map<S, E>(&self, mut f: impl FnMut(&R) -> Result<S, E>) -> Result<Field<S>, E> {
        Ok(Field {
            name: self.name.clone(),
            key: self.key.clone(),
            docs: self.docs.clone(),
            ty: f(&self.ty)?,
        })
    }
}

/// Where wasmtime finds a function: the exact names of the exported instance and of the function in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ExportName {
    /// `example:math/calculator@0.1.0`; absent for a function that the world itself exports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    pub function: String,
}

impl std::fmt::Display for ExportName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.interface {
            Some(interface) => write!(f, "{interface}.{}", self.function),
            None => f.write_str(&self.function),
        }
    }
}

/// An exported function: all that a call needs to know, so that no call looks at the WIT again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionDef<R> {
    pub export: ExportName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docs: Option<String>,
    pub params: Vec<Field<R>>,
    pub result: Option<R>,
    /// `async func`: it needs the engine with component-model concurrency.
    pub is_async: bool,
    /// It returns the `content` of `host:mcp`, or a `result` with that as its `ok`: blocks for a client, and no value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answers_content: bool,
}

/// The conversion plan of one function.
pub type Function = FunctionDef<TypeRef>;

impl<R> FunctionDef<R> {
    pub(crate) fn try_map<S, E>(&self, mut f: impl FnMut(&R) -> Result<S, E>) -> Result<FunctionDef<S>, E> {
        Ok(FunctionDef {
            export: self.export.clone(),
            docs: self.docs.clone(),
            params: self.params.iter().map(|p| p.try_map(&mut f)).collect::<Result<_, _>>()?,
            result: self.result.as_ref().map(&mut f).transpose()?,
            is_async: self.is_async,
            answers_content: self.answers_content,
        })
    }
}

impl Function {
    /// The signature in WIT, for people and for descriptions of functions that have no docs.
    pub fn signature(&self) -> String {
        let params: Vec<_> = self
            .params
            .iter()
            .map(|p| format!("{}: {}", wit_name(&p.name), wit_text(&p.ty)))
            .collect();
        let keyword = if self.is_async { "async func" } else { "func" };
        let result = self
            .result
            .as_ref()
            .map(|ty| format!(" -> {}", wit_text(ty)))
            .unwrap_or_default();
        let name = wit_name(&self.export.function);
        format!("{name}: {keyword}({}){result}", params.join(", "))
    }
}

/// Words that WIT takes for something else, unless they are marked.
const KEYWORDS: [&str; 46] = [
    "as",
    "async",
    "bool",
    "borrow",
    "char",
    "constructor",
    "enum",
    "error-context",
    "export",
    "f32",
    "f64",
    "flags",
    "from",
    "func",
    "future",
    "import",
    "include",
    "interface",
    "list",
    "map",
    "option",
    "own",
    "package",
    "record",
    "resource",
    "result",
    "s16",
    "s32",
    "s64",
    "s8",
    "static",
    "stream",
    "string",
    "tuple",
    "type",
    "u16",
    "u32",
    "u64",
    "u8",
    "use",
    "variant",
    "with",
    "world",
    "float32",
    "float64",
    "wasm",
];

/// A name as WIT spells it.
pub(crate) fn wit_name(name: &str) -> std::borrow::Cow<'_, str> {
    match KEYWORDS.contains(&name) {
        true => format!("%{name}").into(),
        false => name.into(),
    }
}

/// The longest spelling of a type. A type that uses another one twice at every level would otherwise take forever to spell.
const MAX_WIT_TEXT: usize = 1_000;

/// A type as WIT spells it; named types by their name.
pub fn wit_text(ty: &Type) -> String {
    let mut text = String::new();
    spell(ty, &mut text);
    text
}

fn spell(ty: &Type, text: &mut String) {
    if text.len() > MAX_WIT_TEXT {
        if !text.ends_with('…') {
            text.push('…');
        }
        return;
    }
    if let Some(name) = &ty.name {
        text.push_str(&wit_name(name));
        return;
    }
    match &ty.kind {
        Kind::Bool => text.push_str("bool"),
        Kind::U8 => text.push_str("u8"),
        Kind::U16 => text.push_str("u16"),
        Kind::U32 => text.push_str("u32"),
        Kind::U64 => text.push_str("u64"),
        Kind::S8 => text.push_str("s8"),
        Kind::S16 => text.push_str("s16"),
        Kind::S32 => text.push_str("s32"),
        Kind::S64 => text.push_str("s64"),
        Kind::F32 => text.push_str("f32"),
        Kind::F64 => text.push_str("f64"),
        Kind::Char => text.push_str("char"),
        Kind::String => text.push_str("string"),
        Kind::Bytes => text.push_str("list<u8>"),
        Kind::Record(_) => text.push_str("record"),
        Kind::Variant(_) => text.push_str("variant"),
        Kind::Enum(_) => text.push_str("enum"),
        Kind::Flags(_) => text.push_str("flags"),
        Kind::List(ty) => spell_generic("list", [Some(ty)], text),
        Kind::FixedList(ty, len) => {
            text.push_str("list<");
            spell(ty, text);
            text.push_str(&format!(", {len}>"));
        }
        Kind::StringMap(ty) => {
            text.push_str("map<string, ");
            spell(ty, text);
            text.push('>');
        }
        Kind::Map(key, value) => spell_generic("map", [Some(key), Some(value)], text),
        Kind::Tuple(items) => spell_generic("tuple", items.iter().map(Some), text),
        Kind::Option(ty) => spell_generic("option", [Some(ty)], text),
        Kind::Result { ok: None, err: None } => text.push_str("result"),
        Kind::Result { ok, err: None } => spell_generic("result", [ok.as_ref()], text),
        Kind::Result { ok, err } => spell_generic("result", [ok.as_ref(), err.as_ref()], text),
    }
}

fn spell_generic<'a>(name: &str, arguments: impl IntoIterator<Item = Option<&'a TypeRef>>, text: &mut String) {
    text.push_str(name);
    text.push('<');
    for (index, argument) in arguments.into_iter().enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        match argument {
            Some(ty) => spell(ty, text),
            None => text.push('_'),
        }
        if text.ends_with('…') {
            break;
        }
    }
    text.push('>');
}
