//! JSON arguments → component values, by the plan of the function.
//!
//! Validation is the conversion: what comes out is right for the function, and what is wrong is reported with its JSON path, all
//! of it at once, so that a model can mend its call in one go.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};
use wasmtime::component::Val;

use crate::names::{camel_case, property_key};
use crate::schema::tuple_key;
use crate::types::{Case, Field, Function, Kind, Label, Type, TypeRef};

/// More mistakes than this are counted, not listed.
const MAX_LISTED: usize = 20;

const BYTES_IN_WORDS: &str = "bytes as a base64 string";

/// Padding is optional on the way in: models forget it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// One argument for a guest. Bytes stay bytes as long as possible: as a list of [`Val`] they would take forty times the room.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    Bytes(Vec<u8>),
    Val(Val),
}

impl Argument {
    pub fn into_val(self) -> Val {
        match self {
            Self::Bytes(bytes) => Val::List(bytes.into_iter().map(Val::U8).collect()),
            Self::Val(val) => val,
        }
    }
}

/// All that is wrong with a call's arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentErrors {
    listed: Vec<ArgumentError>,
    more: usize,
}

/// One mistake, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentError {
    /// `$.options.retries`
    pub path: String,
    pub problem: String,
}

impl ArgumentErrors {
    /// All mistakes that were found; those beyond what anybody would read are counted.
    pub fn new(mut found: Vec<ArgumentError>) -> Self {
        let more = found.len().saturating_sub(MAX_LISTED);
        found.truncate(MAX_LISTED);
        Self { listed: found, more }
    }

    pub fn listed(&self) -> &[ArgumentError] {
        &self.listed
    }
}

impl fmt::Display for ArgumentErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.listed.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{}: {}", error.path, error.problem)?;
        }
        if self.more > 0 {
            write!(f, "\n… and {} more", self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for ArgumentErrors {}

/// The arguments of a call, in the order of the parameters, as wasmtime takes them.
pub fn json_to_vals(function: &Function, arguments: &Value) -> Result<Vec<Val>, ArgumentErrors> {
    let arguments = json_to_arguments(function, arguments)?;
    Ok(arguments.into_iter().map(Argument::into_val).collect())
}

/// Like [`json_to_vals`], with parameters of type `list<u8>` kept as bytes.
pub fn json_to_arguments(function: &Function, arguments: &Value) -> Result<Vec<Argument>, ArgumentErrors> {
    let mut reader = Reader::default();
    let arguments = reader.arguments(function, arguments);
    match (arguments, reader.errors.is_empty()) {
        (Some(arguments), true) => Ok(arguments),
        _ => Err(ArgumentErrors {
            listed: reader.errors,
            more: reader.more,
        }),
    }
}

/// Where in the arguments we are. Only an error pays for spelling it out.
#[derive(Clone, Copy)]
enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("$"),
            Self::Key(parent, key) if is_plain_key(key) => write!(f, "{parent}.{key}"),
            Self::Key(parent, key) => write!(f, "{parent}[{}]", shown(&Value::from(*key))),
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

fn is_plain_key(key: &str) -> bool {
    key.len() <= 64 && !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// A value that an object has under a key: a record's field, a parameter, an element of a tuple.
#[derive(Clone)]
struct Slot<'a> {
    /// As the schema spells it.
    key: Cow<'a, str>,
    /// As the WIT spells it, where that is another way.
    name: Option<&'a str>,
    ty: &'a Type,
}

impl<'a> Slot<'a> {
    fn new(key: &'static str, ty: &'a Type) -> Self {
        Self {
            key: key.into(),
            name: None,
            ty,
        }
    }

    fn element((index, ty): (usize, &'a TypeRef)) -> Self {
        Self {
            key: tuple_key(index),
            name: None,
            ty,
        }
    }
}

impl<'a> From<&'a Field<TypeRef>> for Slot<'a> {
    fn from(field: &'a Field<TypeRef>) -> Self {
        let name = (field.name != field.key).then_some(field.name.as_str());
        Self {
            key: field.key.as_str().into(),
            name,
            ty: &field.ty,
        }
    }
}

#[derive(Default)]
struct Reader {
    errors: Vec<ArgumentError>,
    more: usize,
}

/// `None` means: an error has been noted, and there is no value.
type Read<T> = Option<T>;

impl Reader {
    /// Notes a mistake. Only one that will be listed is put into words.
    fn note(&mut self, path: &Path<'_>, problem: impl FnOnce() -> String) {
        if self.errors.len() < MAX_LISTED {
            self.errors.push(ArgumentError {
                path: path.to_string(),
                problem: problem(),
            });
        } else {
            self.more += 1;
        }
    }

    fn wrong<T>(&mut self, path: &Path<'_>, expected: impl FnOnce() -> String, got: &Value) -> Read<T> {
        self.note(path, || format!("expected {}, got {}", expected(), shown(got)));
        None
    }

    fn arguments(&mut self, function: &Function, arguments: &Value) -> Read<Vec<Argument>> {
        let empty = Map::new();
        let object = match arguments {
            Value::Object(object) => object,
            // A call without arguments may leave them out altogether.
            Value::Null => &empty,
            other => return self.wrong(&Path::Root, || "an object with the arguments".into(), other),
        };
        let slots = function.params.iter().map(Slot::from);
        let values = self.fields(&Path::Root, slots, object, |reader, path, ty, value| match &ty.kind {
            Kind::Bytes => reader.bytes(path, value).map(Argument::Bytes),
            _ => reader.value(path, ty, value).map(Argument::Val),
        });
        collect(values)
    }

    /// The values of an object, in the order of `slots`. Keys may be spelled as the schema does, as the WIT does, or in camelCase.
    fn fields<'a, T>(
        &mut self,
        path: &Path<'_>,
        slots: impl Iterator<Item = Slot<'a>> + Clone,
        object: &Map<String, Value>,
        mut read: impl FnMut(&mut Self, &Path<'_>, &Type, &Value) -> Read<T>,
    ) -> Vec<Read<T>> {
        let mut found = 0;
        let mut values = Vec::with_capacity(slots.size_hint().0);
        for slot in slots.clone() {
            let given = lookup(object, &slot, &slots);
            found += usize::from(given.is_some());
            let value = match given {
                Some((key, value)) => read(self, &Path::Key(path, key), slot.ty, value),
                None if slot.ty.is_option() => read(self, &Path::Key(path, &slot.key), slot.ty, &Value::Null),
                None => {
                    self.note(&Path::Key(path, &slot.key), || {
                        format!("missing; expected {}", expected(slot.ty))
                    });
                    None
                }
            };
            values.push(value);
        }
        if found < object.len() {
            self.note_unknown(path, slots, object);
        }
        values
    }

    fn note_unknown<'a>(&mut self, path: &Path<'_>, slots: impl Iterator<Item = Slot<'a>> + Clone, object: &Map<String, Value>) {
        let taken: HashSet<&str> = slots
            .clone()
            .filter_map(|slot| lookup(object, &slot, &slots))
            .map(|(key, _)| key)
            .collect();
        for key in object.keys().filter(|key| !taken.contains(key.as_str())) {
            self.note(&Path::Key(path, key), || match meant(key, slots.clone()) {
                Some(slot) => format!("given twice; `{}` is enough", slot.key),
                None => {
                    let keys: Vec<_> = slots.clone().map(|slot| slot.key).collect();
                    format!(
                        "unknown field{}",
                        suggest(key, keys.iter().map(AsRef::as_ref), "it has no fields")
                    )
                }
            });
        }
    }

    fn value(&mut self, path: &Path<'_>, ty: &Type, value: &Value) -> Read<Val> {
        match &ty.kind {
            Kind::Bool => match value {
                Value::Bool(value) => Some(Val::Bool(*value)),
                other => self.wrong(path, || expected(ty), other),
            },
            Kind::U8 => self.integer(path, ty, value).map(Val::U8),
            Kind::U16 => self.integer(path, ty, value).map(Val::U16),
            Kind::U32 => self.integer(path, ty, value).map(Val::U32),
            Kind::S8 => self.integer(path, ty, value).map(Val::S8),
            Kind::S16 => self.integer(path, ty, value).map(Val::S16),
            Kind::S32 => self.integer(path, ty, value).map(Val::S32),
            Kind::U64 => self.integer(path, ty, value).map(Val::U64),
            Kind::S64 => self.integer(path, ty, value).map(Val::S64),
            Kind::F32 => match float(value) {
                // Rounded to the nearest, as any assignment of a number to this width is.
                Some(value) => Some(Val::Float32(value as f32)),
                None => self.wrong(path, || expected(ty), value),
            },
            Kind::F64 => match float(value) {
                Some(value) => Some(Val::Float64(value)),
                None => self.wrong(path, || expected(ty), value),
            },
            Kind::Char => match value.as_str().map(|text| (text.chars().next(), text.chars().nth(1))) {
                Some((Some(c), None)) => Some(Val::Char(c)),
                _ => self.wrong(path, || expected(ty), value),
            },
            Kind::String => match value {
                Value::String(text) => Some(Val::String(text.clone())),
                other => self.wrong(path, || expected(ty), other),
            },
            Kind::Bytes => self.bytes(path, value).map(|bytes| Argument::Bytes(bytes).into_val()),
            Kind::List(item) => self.items(path, ty, item, value).map(Val::List),
            Kind::FixedList(item, len) => {
                let items = self.items(path, ty, item, value)?;
                if items.len() != *len as usize {
                    self.note(path, || format!("expected exactly {len} items, got {}", items.len()));
                    return None;
                }
                Some(Val::FixedLengthList(items))
            }
            Kind::StringMap(of) => self.string_map(path, ty, of, value),
            Kind::Map(key, of) => self.map(path, ty, key, of, value),
            Kind::Record(fields) => {
                let Value::Object(object) = value else {
                    return self.wrong(path, || expected(ty), value);
                };
                let values = self.fields(path, fields.iter().map(Slot::from), object, Self::value);
                let values = collect(values)?;
                Some(Val::Record(
                    fields.iter().map(|field| field.name.clone()).zip(values).collect(),
                ))
            }
            Kind::Tuple(items) => self.tuple(path, ty, items, value),
            Kind::Variant(cases) => self.variant(path, ty, cases, value),
            Kind::Enum(labels) => match value {
                Value::String(name) => Some(Val::Enum(self.label(path, labels, name)?.to_owned())),
                other => self.wrong(path, || expected(ty), other),
            },
            Kind::Flags(labels) => self.flags(path, ty, labels, value),
            Kind::Option(inner) => self.option(path, ty, inner, value),
            Kind::Result { ok, err } => self.result(path, ty, ok.as_ref(), err.as_ref(), value),
        }
    }

    fn integer<T: TryFrom<i128>>(&mut self, path: &Path<'_>, ty: &Type, value: &Value) -> Read<T> {
        let wide = matches!(ty.kind, Kind::U64 | Kind::S64);
        match integral(value, wide).and_then(|value| T::try_from(value).ok()) {
            Some(value) => Some(value),
            None => self.wrong(path, || expected(ty), value),
        }
    }

    fn bytes(&mut self, path: &Path<'_>, value: &Value) -> Read<Vec<u8>> {
        let in_words = || BYTES_IN_WORDS.into();
        match value {
            Value::String(text) => match BASE64.decode(text) {
                Ok(bytes) => Some(bytes),
                Err(_) => self.wrong(path, in_words, value),
            },
            Value::Array(items) => {
                let u8 = Type {
                    name: None,
                    docs: None,
                    kind: Kind::U8,
                };
                let items = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| self.integer(&Path::Index(path, index), &u8, item));
                collect(items.collect())
            }
            other => self.wrong(path, in_words, other),
        }
    }

    fn items(&mut self, path: &Path<'_>, ty: &Type, item: &Type, value: &Value) -> Read<Vec<Val>> {
        let Value::Array(items) = value else {
            return self.wrong(path, || expected(ty), value);
        };
        let items = items
            .iter()
            .enumerate()
            .map(|(index, value)| self.value(&Path::Index(path, index), item, value));
        collect(items.collect())
    }

    fn string_map(&mut self, path: &Path<'_>, ty: &Type, of: &Type, value: &Value) -> Read<Val> {
        let Value::Object(object) = value else {
            return self.wrong(path, || expected(ty), value);
        };
        let entries = object
            .iter()
            .map(|(key, value)| Some((Val::String(key.clone()), self.value(&Path::Key(path, key), of, value)?)));
        Some(Val::Map(collect(entries.collect())?))
    }

    fn map(&mut self, path: &Path<'_>, ty: &Type, key: &TypeRef, of: &TypeRef, value: &Value) -> Read<Val> {
        let Value::Array(entries) = value else {
            return self.wrong(path, || expected(ty), value);
        };
        let slots = [Slot::new("key", key), Slot::new("value", of)];
        let entries = entries.iter().enumerate().map(|(index, entry)| {
            let path = Path::Index(path, index);
            let Value::Object(object) = entry else {
                return self.wrong(&path, || "an object with `key` and `value`".into(), entry);
            };
            let mut values = collect(self.fields(&path, slots.iter().cloned(), object, Self::value))?.into_iter();
            Some((values.next()?, values.next()?))
        });
        Some(Val::Map(collect(entries.collect())?))
    }

    fn tuple(&mut self, path: &Path<'_>, ty: &Type, items: &[TypeRef], value: &Value) -> Read<Val> {
        match value {
            Value::Object(object) => {
                let slots = items.iter().enumerate().map(Slot::element);
                Some(Val::Tuple(collect(self.fields(path, slots, object, Self::value))?))
            }
            Value::Array(values) if values.len() == items.len() => {
                let values = items.iter().zip(values).enumerate();
                let values = values.map(|(index, (ty, value))| self.value(&Path::Index(path, index), ty, value));
                Some(Val::Tuple(collect(values.collect())?))
            }
            Value::Array(values) => {
                self.note(path, || format!("expected {} items, got {}", items.len(), values.len()));
                None
            }
            other => self.wrong(path, || expected(ty), other),
        }
    }

    fn variant(&mut self, path: &Path<'_>, ty: &Type, cases: &[Case<TypeRef>], value: &Value) -> Read<Val> {
        let Value::Object(object) = value else {
            return self.wrong(path, || expected(ty), value);
        };
        let tag_path = Path::Key(path, "tag");
        let names = || cases.iter().map(|case| case.name.as_str());
        let tag = match object.get("tag") {
            Some(Value::String(tag)) => tag,
            Some(other) => return self.wrong(&tag_path, || one_of(names()), other),
            None => {
                self.note(&tag_path, || format!("missing; expected {}", one_of(names())));
                return None;
            }
        };
        let Some(case) = cases.iter().find(|case| case.name == *tag) else {
            return self.wrong(&tag_path, || one_of(nearest_first(tag, names())), &Value::from(tag.as_str()));
        };
        for key in object.keys().filter(|key| *key != "tag" && *key != "val") {
            self.note(&Path::Key(path, key), || {
                format!("unknown field{}", suggest(key, ["tag", "val"].into_iter(), ""))
            });
        }
        let val_path = Path::Key(path, "val");
        let payload = match (&case.ty, object.get("val")) {
            (None, None | Some(Value::Null)) => None,
            (None, Some(other)) => {
                self.note(&val_path, || format!("{} has no payload, got {}", quoted(tag), shown(other)));
                return None;
            }
            (Some(ty), Some(value)) => Some(Box::new(self.value(&val_path, ty, value)?)),
            (Some(ty), None) if ty.is_option() => Some(Box::new(self.value(&val_path, ty, &Value::Null)?)),
            (Some(ty), None) => {
                self.note(&val_path, || format!("missing; {} needs {}", quoted(tag), expected(ty)));
                return None;
            }
        };
        Some(Val::Variant(case.name.clone(), payload))
    }

    fn label<'a>(&mut self, path: &Path<'_>, labels: &'a [Label], name: &str) -> Read<&'a str> {
        let names = || labels.iter().map(|label| label.name.as_str());
        match names().find(|known| *known == name) {
            Some(known) => Some(known),
            None => self.wrong(path, || one_of(nearest_first(name, names())), &Value::from(name)),
        }
    }

    /// A list of the flags that are set, or an object that says of each whether it is. Either way the order is the WIT's.
    fn flags(&mut self, path: &Path<'_>, ty: &Type, labels: &[Label], value: &Value) -> Read<Val> {
        let mut set: Vec<&str> = Vec::new();
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let path = Path::Index(path, index);
                    let name = match item {
                        Value::String(name) => self.label(&path, labels, name),
                        other => self.wrong(&path, || "the name of a flag".into(), other),
                    };
                    match name {
                        Some(name) if set.contains(&name) => {
                            self.note(&path, || format!("the flag {} is given twice", quoted(name)))
                        }
                        Some(name) => set.push(name),
                        None => {}
                    }
                }
            }
            // Flags are keys here, and keys may come in the spelling of keys.
            Value::Object(object) => {
                let mut given: Vec<&str> = Vec::new();
                for (key, item) in object {
                    let path = Path::Key(path, key);
                    match (meant_label(key, labels), item) {
                        (Some(name), _) if given.contains(&name) => {
                            self.note(&path, || format!("given twice; {} is enough", quoted(name)));
                        }
                        (Some(name), Value::Bool(on)) => {
                            given.push(name);
                            set.extend(on.then_some(name));
                        }
                        (Some(_), other) => {
                            self.wrong::<()>(&path, || "true or false".into(), other);
                        }
                        (None, _) => self.note(&path, || {
                            let names = labels.iter().map(|label| label.name.as_str());
                            format!("unknown flag{}", suggest(key, names, "there are none"))
                        }),
                    }
                }
            }
            other => return self.wrong(path, || expected(ty), other),
        }
        let in_order = labels
            .iter()
            .filter(|label| set.contains(&label.name.as_str()))
            .map(|label| label.name.clone());
        Some(Val::Flags(in_order.collect()))
    }

    fn option(&mut self, path: &Path<'_>, ty: &Type, inner: &TypeRef, value: &Value) -> Read<Val> {
        let some = match value {
            Value::Null => return Some(Val::Option(None)),
            Value::Object(object) if inner.is_option() => {
                if !object.contains_key("some") {
                    return self.wrong(path, || expected(ty), value);
                }
                collect(self.fields(path, [Slot::new("some", inner)].into_iter(), object, Self::value))?.pop()?
            }
            other if inner.is_option() => return self.wrong(path, || expected(ty), other),
            other => self.value(path, inner, other)?,
        };
        Some(Val::Option(Some(Box::new(some))))
    }

    fn result(&mut self, path: &Path<'_>, ty: &Type, ok: Option<&TypeRef>, err: Option<&TypeRef>, value: &Value) -> Read<Val> {
        let Value::Object(object) = value else {
            return self.wrong(path, || expected(ty), value);
        };
        let mut entries = object.iter();
        let (Some((key, payload)), None) = (entries.next(), entries.next()) else {
            self.note(path, || "expected an object with exactly one of `ok` and `err`".into());
            return None;
        };
        let path = Path::Key(path, key);
        match key.as_str() {
            "ok" => Some(Val::Result(Ok(self.payload(&path, ok, payload)?))),
            "err" => Some(Val::Result(Err(self.payload(&path, err, payload)?))),
            _ => {
                self.note(&path, || "unknown field; expected `ok` or `err`".into());
                None
            }
        }
    }

    fn payload(&mut self, path: &Path<'_>, ty: Option<&TypeRef>, value: &Value) -> Read<Option<Box<Val>>> {
        match (ty, value) {
            (Some(ty), value) => Some(Some(Box::new(self.value(path, ty, value)?))),
            (None, Value::Null) => Some(None),
            (None, other) => self.wrong(path, || "null".into(), other),
        }
    }
}

/// All or nothing, after every element was looked at.
fn collect<T>(values: Vec<Read<T>>) -> Read<Vec<T>> {
    values.into_iter().collect()
}

/// What an object has for a slot, with the key it has it under.
fn lookup<'a, 'b>(
    object: &'a Map<String, Value>,
    slot: &Slot<'_>,
    slots: &(impl Iterator<Item = Slot<'b>> + Clone),
) -> Option<(&'a str, &'a Value)> {
    let by = |key: &str| object.get_key_value(key).map(|(key, value)| (key.as_str(), value));
    by(&slot.key).or_else(|| {
        let name = slot.name?;
        by(name).or_else(|| {
            let camel = camel_case(name);
            let found = by(&camel)?;
            (meant(&camel, slots.clone())?.key == slot.key).then_some(found)
        })
    })
}

/// The slot that a key stands for. What one is really called counts before what another may be called: `x1` is not `x-1` where
/// there is an `x1`.
fn meant<'a>(key: &str, slots: impl Iterator<Item = Slot<'a>> + Clone) -> Option<Slot<'a>> {
    let exact = |slot: &Slot<'_>| slot.key == key || slot.name == Some(key);
    let alike = |slot: &Slot<'_>| slot.name.is_some_and(|name| camel_case(name) == key);
    slots.clone().find(exact).or_else(|| slots.clone().find(alike))
}

/// The flag that a key stands for: the same for labels.
fn meant_label<'a>(key: &str, labels: &'a [Label]) -> Option<&'a str> {
    let exact = |label: &&Label| label.name == key || property_key(&label.name) == key;
    let alike = |label: &&Label| camel_case(&label.name) == key;
    let label = labels.iter().find(exact).or_else(|| labels.iter().find(alike))?;
    Some(&label.name)
}

/// The lowest integer of 64 bits. Written as an integer it is read as one; as a float it may have been a lower one.
const LOWEST: f64 = -9_223_372_036_854_775_808.0;

/// An integer written as one, as a float without a fraction, or (64 bits only) as digits in a string.
fn integral(value: &Value, wide: bool) -> Option<i128> {
    match value {
        Value::Number(number) => number
            .as_u64()
            .map(i128::from)
            .or_else(|| number.as_i64().map(i128::from))
            .or_else(|| {
                // An integer below all of 64 bits was rounded before it came here, perhaps to the lowest of them.
                let is_exact = |float: &f64| float.fract() == 0.0 && *float > LOWEST && *float < 1e30;
                number.as_f64().filter(is_exact).map(|float| float as i128)
            }),
        Value::String(text) if wide => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
                .then(|| text.parse().ok())
                .flatten()
        }
        _ => None,
    }
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// What a value of this type looks like, in words.
fn expected(ty: &Type) -> String {
    fn range(min: impl fmt::Display, max: impl fmt::Display) -> String {
        format!("an integer from {min} to {max}")
    }
    match &ty.kind {
        Kind::Bool => "true or false".into(),
        Kind::U8 => range(u8::MIN, u8::MAX),
        Kind::U16 => range(u16::MIN, u16::MAX),
        Kind::U32 => range(u32::MIN, u32::MAX),
        Kind::U64 => range(u64::MIN, u64::MAX),
        Kind::S8 => range(i8::MIN, i8::MAX),
        Kind::S16 => range(i16::MIN, i16::MAX),
        Kind::S32 => range(i32::MIN, i32::MAX),
        Kind::S64 => range(i64::MIN, i64::MAX),
        Kind::F32 | Kind::F64 => "a number, \"NaN\", \"Infinity\" or \"-Infinity\"".into(),
        Kind::Char => "a string of one character".into(),
        Kind::String => "a string".into(),
        Kind::Bytes => BYTES_IN_WORDS.into(),
        Kind::List(_) => "an array".into(),
        Kind::FixedList(_, len) => format!("an array of {len} items"),
        Kind::StringMap(_) => "an object".into(),
        Kind::Map(..) => "an array of objects with `key` and `value`".into(),
        Kind::Record(fields) => format!("an object with {}", listed(fields.iter().map(|field| field.key.as_str()))),
        Kind::Tuple(items) if items.is_empty() => "an empty object".into(),
        Kind::Tuple(items) => format!("an object with `val0` to `val{}`", items.len().saturating_sub(1)),
        Kind::Variant(cases) => {
            format!(
                "an object with `tag`, {}",
                one_of(cases.iter().map(|case| case.name.as_str()))
            )
        }
        Kind::Enum(labels) => one_of(labels.iter().map(|label| label.name.as_str())),
        Kind::Flags(labels) => format!("an array of {}", listed(labels.iter().map(|label| label.name.as_str()))),
        Kind::Option(inner) if inner.is_option() => "an object with `some`, or null".into(),
        Kind::Option(inner) => format!("{}, or null", expected(inner)),
        Kind::Result { .. } => "an object with `ok` or `err`".into(),
    }
}

/// A name of the WIT in backticks, and no more of it than somebody would read: names may have 100 000 characters.
fn quoted(name: &str) -> String {
    format!("`{}`", crate::docs::cap(name, 100))
}

/// At most a dozen names.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    let mut text = names.iter().take(12).map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    if names.len() > 12 {
        text.push_str(&format!(" and {} more", names.len() - 12));
    }
    text
}

fn one_of<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    format!("one of {}", listed(names.into_iter()))
}

/// Names ordered by how like `wanted` they are.
pub fn nearest_first<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<_> = names.into_iter().map(|name| (likeness(name, wanted), name)).collect();
    names.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    names.into_iter().map(|(_, name)| name).collect()
}

/// From 0 to 1. Of long names the beginnings are compared: the time this takes grows with the square of their length.
fn likeness(a: &str, b: &str) -> f64 {
    strsim::jaro_winkler(&crate::docs::cap(a, 64), &crate::docs::cap(b, 64))
}

/// `; did you mean …?`, or what there is.
fn suggest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>, none: &str) -> String {
    let names = nearest_first(wanted, names);
    match names.first() {
        None => format!("; {none}"),
        Some(best) if likeness(best, wanted) > 0.8 => format!("; did you mean {}?", quoted(best)),
        Some(_) => format!("; there is {}", listed(names.into_iter())),
    }
}

/// A value in an error message: enough to recognize it by.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("an array of {} items", items.len()),
        Value::Object(object) => format!("an object with {} fields", object.len()),
        Value::String(text) => Value::from(crate::docs::cap(text, 60)).to_string(),
        other => other.to_string(),
    }
}
