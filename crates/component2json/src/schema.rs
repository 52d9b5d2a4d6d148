//! Types as JSON Schema, written for the clients that exist: no `type` arrays, no boolean schemas, no combinator at a root, types
//! inlined while that stays small.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value, json};

use crate::names;
use crate::types::{Case, Field, Function, Kind, Label, Type, TypeRef};

/// The largest integer that every JSON reader keeps exactly.
pub(crate) const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// A schema with more nodes than this when written out shares repeated types under `$defs`.
const SHARE_ABOVE_NODES: usize = 1_000;

/// Types that nest deeper than this are shared too, as each level takes two or three of a JSON reader's 128.
const SHARE_ABOVE_DEPTH: usize = 20;

/// A function whose types need more nodes than this, even with everything shared, is refused.
pub(crate) const MAX_NODES: usize = 20_000;

/// Which way a value goes. Results promise more than arguments demand: a 64-bit number beyond 2^53 leaves as a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Input,
    Output,
}

/// The schema of one type, on its own: shared types stand under its `$defs`.
pub fn type_to_json_schema(ty: &TypeRef, direction: Direction) -> Value {
    let mut writer = Writer::for_roots([ty], direction);
    let schema = writer.schema(ty);
    writer.finish(schema)
}

/// The schema of a function's arguments: an object with a property for each parameter.
pub fn input_schema(function: &Function) -> Value {
    let mut writer = Writer::for_roots(function.params.iter().map(|param| &param.ty), Direction::Input);
    let schema = writer.object(&function.params);
    writer.finish(schema)
}

/// The schema of what a function returns, in its envelope; none for a function that returns nothing, or content for a client.
pub fn output_schema(function: &Function) -> Option<Value> {
    let result = function.result.as_ref().filter(|_| !function.answers_content)?;
    Some(structured_output::wrap_schema_in_result(type_to_json_schema(
        result,
        Direction::Output,
    )))
}

/// How many nodes the schemas of a function have.
pub(crate) fn nodes_of(function: &Function) -> usize {
    let census = Census::of(function.params.iter().map(|param| &param.ty).chain(&function.result));
    if census.is_shared() {
        census.distinct_nodes
    } else {
        census.nodes
    }
}

/// The nodes that a type adds to a schema, without those of the types in it. A name that goes on and on counts as several, and so do
/// docs: they are written out wherever the type is.
fn own_nodes(ty: &Type) -> usize {
    let named = |name: &str, docs: &Option<String>| 1 + nodes_of_text(name) + nodes_of_docs(docs);
    let parts: usize = match &ty.kind {
        Kind::Record(fields) => fields.iter().map(|field| 1 + nodes_of_docs(&field.docs)).sum(),
        Kind::Variant(cases) => cases.iter().map(|case| 1 + named(&case.name, &case.docs)).sum(),
        Kind::Enum(labels) | Kind::Flags(labels) => labels.iter().map(|label| named(&label.name, &label.docs)).sum(),
        _ => ty.children().len(),
    };
    1 + parts + nodes_of_docs(&ty.docs)
}

/// What a text counts for: a node is some 60 bytes of JSON.
fn nodes_of_text(text: &str) -> usize {
    text.len() / 64
}

/// What docs count for.
pub(crate) fn nodes_of_docs(docs: &Option<String>) -> usize {
    docs.as_deref().map_or(0, nodes_of_text)
}

struct Writer {
    direction: Direction,
    /// Names under `$defs`, by the address of the type.
    shared: HashMap<usize, String>,
    defs: BTreeMap<String, Value>,
}

impl Writer {
    fn for_roots<'a>(roots: impl IntoIterator<Item = &'a TypeRef>, direction: Direction) -> Self {
        Self {
            direction,
            shared: Census::of(roots).shared(),
            defs: BTreeMap::new(),
        }
    }

    fn finish(self, mut schema: Value) -> Value {
        if let (Some(object), false) = (schema.as_object_mut(), self.defs.is_empty()) {
            object.insert("$defs".into(), Value::Object(self.defs.into_iter().collect()));
        }
        schema
    }

    fn schema(&mut self, ty: &TypeRef) -> Value {
        let Some(name) = self.shared.get(&ty.address()).cloned() else {
            return self.inline(ty);
        };
        if !self.defs.contains_key(&name) {
            // Types cannot contain themselves, so the definition is complete before anybody could ask for it again.
            let schema = self.inline(ty);
            self.defs.insert(name.clone(), schema);
        }
        json!({"$ref": format!("#/$defs/{name}")})
    }

    fn inline(&mut self, ty: &Type) -> Value {
        let out = self.direction == Direction::Output;
        let schema = match &ty.kind {
            Kind::Bool => json!({"type": "boolean"}),
            Kind::U8 => integer(u8::MIN, u8::MAX),
            Kind::U16 => integer(u16::MIN, u16::MAX),
            Kind::U32 => integer(u32::MIN, u32::MAX),
            Kind::S8 => integer(i8::MIN, i8::MAX),
            Kind::S16 => integer(i16::MIN, i16::MAX),
            Kind::S32 => integer(i32::MIN, i32::MAX),
            Kind::U64 if out => any_of([integer(0, MAX_SAFE_INTEGER), json!({"type": "string", "pattern": "^[0-9]+$"})]),
            Kind::U64 => integer(u64::MIN, u64::MAX),
            Kind::S64 if out => any_of([
                integer(-(MAX_SAFE_INTEGER as i64), MAX_SAFE_INTEGER as i64),
                json!({"type": "string", "pattern": "^-?[0-9]+$"}),
            ]),
            Kind::S64 => integer(i64::MIN, i64::MAX),
            Kind::F32 | Kind::F64 if out => any_of([
                json!({"type": "number"}),
                json!({"type": "string", "enum": ["NaN", "Infinity", "-Infinity"]}),
            ]),
            Kind::F32 | Kind::F64 => json!({"type": "number"}),
            Kind::Char => json!({"type": "string", "minLength": 1, "maxLength": 1}),
            Kind::String => json!({"type": "string"}),
            Kind::Bytes => json!({"type": "string", "contentEncoding": "base64"}),
            Kind::List(item) => json!({"type": "array", "items": self.schema(item)}),
            Kind::FixedList(item, len) => {
                json!({"type": "array", "items": self.schema(item), "minItems": len, "maxItems": len})
            }
            Kind::StringMap(value) => json!({"type": "object", "additionalProperties": self.schema(value)}),
            Kind::Map(key, value) => {
                let entry = [("key", self.schema(key)), ("value", self.schema(value))];
                json!({"type": "array", "items": closed_object(entry, &["key", "value"])})
            }
            Kind::Record(fields) => self.object(fields),
            Kind::Tuple(items) => {
                let keys: Vec<_> = (0..items.len()).map(tuple_key).collect();
                let required: Vec<&str> = keys.iter().map(AsRef::as_ref).collect();
                let properties: Vec<_> = required
                    .iter()
                    .zip(items)
                    .map(|(key, item)| (*key, self.schema(item)))
                    .collect();
                closed_object(properties, &required)
            }
            Kind::Variant(cases) => json!({"oneOf": cases.iter().map(|case| self.case(case)).collect::<Vec<_>>()}),
            Kind::Enum(labels) => json!({"type": "string", "enum": label_names(labels)}),
            Kind::Flags(labels) => {
                json!({"type": "array", "items": {"type": "string", "enum": label_names(labels)}, "uniqueItems": true})
            }
            Kind::Option(inner) => self.option(inner),
            Kind::Result { ok, err } => json!({"oneOf": [self.arm("ok", ok.as_ref()), self.arm("err", err.as_ref())]}),
        };
        described(schema, [ty.docs.clone(), label_docs(&ty.kind)])
    }

    fn object(&mut self, fields: &[Field<TypeRef>]) -> Value {
        let properties: Vec<_> = fields
            .iter()
            .map(|field| {
                (
                    field.key.as_str(),
                    described(self.schema(&field.ty), [field.docs.clone(), None]),
                )
            })
            .collect();
        let required: Vec<_> = fields
            .iter()
            .filter(|field| !field.ty.is_option())
            .map(|field| field.key.as_str())
            .collect();
        closed_object(properties, &required)
    }

    fn case(&mut self, case: &Case<TypeRef>) -> Value {
        let tag = json!({"type": "string", "const": case.name});
        let schema = match &case.ty {
            None => closed_object([("tag", tag)], &["tag"]),
            Some(ty) => {
                let required: &[&str] = if ty.is_option() { &["tag"] } else { &["tag", "val"] };
                closed_object([("tag", tag), ("val", self.schema(ty))], required)
            }
        };
        described(schema, [case.docs.clone(), None])
    }

    fn arm(&mut self, key: &str, ty: Option<&TypeRef>) -> Value {
        let payload = ty.map_or_else(|| json!({"type": "null"}), |ty| self.schema(ty));
        closed_object([(key, payload)], &[key])
    }

    /// `T` or null. Where `T` may be null itself, it stands in a `some`, so that nothing is lost.
    fn option(&mut self, inner: &TypeRef) -> Value {
        let mut some = self.schema(inner);
        if inner.is_option() {
            some = closed_object([("some", some)], &["some"]);
        }
        let null = json!({"type": "null"});
        // What is said about the value is said about the whole, where clients look for it.
        let description = some.as_object_mut().and_then(|object| object.shift_remove("description"));
        let mut schema = match some.as_object_mut().map(|object| (object.len(), object.get_mut("anyOf"))) {
            Some((1, Some(Value::Array(choices)))) => {
                choices.push(null);
                some
            }
            _ => any_of([some, null]),
        };
        if let (Some(description), Some(object)) = (description, schema.as_object_mut()) {
            object.insert("description".into(), description);
        }
        schema
    }
}

/// How often each type is named, and how large everything would be when written out.
struct Census {
    references: HashMap<usize, usize>,
    /// Composite types in the order they were met, with their WIT name.
    composites: Vec<(usize, Option<String>)>,
    /// With every type written out wherever it is named.
    nodes: usize,
    /// With every type written once.
    distinct_nodes: usize,
    depth: usize,
}

impl Census {
    fn of<'a>(roots: impl IntoIterator<Item = &'a TypeRef>) -> Self {
        let mut census = Self {
            references: HashMap::new(),
            composites: Vec::new(),
            nodes: 0,
            distinct_nodes: 0,
            depth: 0,
        };
        let mut written_out = HashMap::new();
        for root in roots {
            let (nodes, depth) = census.visit(root, &mut written_out);
            census.nodes = census.nodes.saturating_add(nodes);
            census.depth = census.depth.max(depth);
        }
        census
    }

    fn visit(&mut self, ty: &TypeRef, written_out: &mut HashMap<usize, (usize, usize)>) -> (usize, usize) {
        *self.references.entry(ty.address()).or_default() += 1;
        if let Some(known) = written_out.get(&ty.address()) {
            return *known;
        }
        let is_composite = !ty.children().is_empty() || matches!(ty.kind, Kind::Enum(_) | Kind::Flags(_));
        if is_composite {
            self.composites.push((ty.address(), ty.name.clone()));
        }
        let (mut nodes, mut depth) = (own_nodes(ty), 0);
        self.distinct_nodes = self.distinct_nodes.saturating_add(nodes);
        for child in ty.children() {
            let (child_nodes, child_depth) = self.visit(child, written_out);
            nodes = nodes.saturating_add(child_nodes);
            depth = depth.max(child_depth + 1);
        }
        written_out.insert(ty.address(), (nodes, depth));
        (nodes, depth)
    }

    fn is_too_deep(&self) -> bool {
        self.depth > SHARE_ABOVE_DEPTH
    }

    fn is_shared(&self) -> bool {
        self.is_too_deep() || self.nodes > SHARE_ABOVE_NODES
    }

    /// The types to put under `$defs`, with the names they get there.
    fn shared(&self) -> HashMap<usize, String> {
        if !self.is_shared() {
            return HashMap::new();
        }
        let repeated = |address: &usize| self.references.get(address).is_some_and(|count| *count > 1);
        let mut names = HashSet::new();
        self.composites
            .iter()
            .filter(|(address, _)| self.is_too_deep() || repeated(address))
            .map(|(address, name)| {
                let stem = name.as_deref().map_or_else(|| "type".to_owned(), names::property_key);
                let name = (1..)
                    .map(|n| if n == 1 { stem.clone() } else { format!("{stem}_{n}") })
                    .find(|name| names.insert(name.clone()))
                    .unwrap_or(stem);
                (*address, name)
            })
            .collect()
    }
}

fn integer(minimum: impl Into<Value>, maximum: impl Into<Value>) -> Value {
    json!({"type": "integer", "minimum": minimum.into(), "maximum": maximum.into()})
}

fn any_of(choices: impl Into<Vec<Value>>) -> Value {
    json!({"anyOf": choices.into()})
}

fn closed_object<'a>(properties: impl IntoIterator<Item = (&'a str, Value)>, required: &[&str]) -> Value {
    let properties: Map<String, Value> = properties.into_iter().map(|(key, schema)| (key.to_owned(), schema)).collect();
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".into(), json!(required));
    }
    schema.insert("additionalProperties".into(), Value::Bool(false));
    Value::Object(schema)
}

/// The key of a tuple's element.
pub(crate) fn tuple_key(index: usize) -> Cow<'static, str> {
    const USUAL: [&str; 8] = ["val0", "val1", "val2", "val3", "val4", "val5", "val6", "val7"];
    USUAL
        .get(index)
        .map_or_else(|| format!("val{index}").into(), |key| (*key).into())
}

fn label_names(labels: &[Label]) -> Vec<&str> {
    labels.iter().map(|label| label.name.as_str()).collect()
}

/// Enum cases and flags have no schema of their own to describe, so the type's description lists them.
fn label_docs<R>(kind: &Kind<R>) -> Option<String> {
    let (Kind::Enum(labels) | Kind::Flags(labels)) = kind else {
        return None;
    };
    let lines: Vec<_> = labels
        .iter()
        .filter_map(|label| Some(format!("- {}: {}", label.name, label.docs.as_ref()?)))
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Puts texts before the description that a schema has already.
fn described(mut schema: Value, texts: [Option<String>; 2]) -> Value {
    if let Some(object) = schema.as_object_mut() {
        let own = object.get("description").and_then(Value::as_str).map(str::to_owned);
        let description: Vec<String> = texts.into_iter().flatten().chain(own).collect();
        if !description.is_empty() {
            object.insert("description".into(), description.join("\n\n").into());
        }
    }
    schema
}
