//! Types and JSON, made from bytes.
//!
//! When the bytes are used up every choice is the first one, so the first ones are small.

use std::collections::HashSet;

use arbitrary::{Result, Unstructured};
use component2json::{Case, Field, Kind, Label, Type, TypeRef, camel_case};
use serde_json::{Map, Number, Value, json};

/// Names as WIT has them; some are alike in one spelling or another, some are words of the JSON forms.
pub(crate) const NAMES: [&str; 16] = [
    "a",
    "x1",
    "x-1",
    "file-name",
    "HTTP-get",
    "tag",
    "val",
    "ok",
    "err",
    "some",
    "key",
    "value",
    "val0",
    "b-c",
    "NaN",
    "f-i-le",
];

/// Types nest this deep at most, and consist of so many others.
const MAX_DEPTH: usize = 6;
const MAX_TYPES: usize = 40;

const LEAVES: usize = 15;

/// A type such as a component may use.
pub(crate) fn any_type(source: &mut Unstructured<'_>) -> Result<TypeRef> {
    let mut types = Types { source, made: vec![] };
    types.any(MAX_DEPTH)
}

struct Types<'a, 'b> {
    source: &'a mut Unstructured<'b>,
    /// A type may be used again: then it is shared.
    made: Vec<TypeRef>,
}

impl Types<'_, '_> {
    fn any(&mut self, depth: usize) -> Result<TypeRef> {
        let is_leaf = depth == 0 || self.made.len() > MAX_TYPES;
        let choice = self.source.int_in_range(0..=if is_leaf { LEAVES } else { 25 })?;
        let kind = match choice {
            0..=10 => scalar(choice),
            11 => Kind::F32,
            12 => Kind::F64,
            13 => Kind::Bytes,
            14 => Kind::Enum(self.labels()?),
            15 => Kind::Flags(self.labels()?),
            16 => match self.any(depth - 1)? {
                // What `list<u8>` and `map<string, _>` are called here.
                item if item.kind == Kind::U8 => Kind::Bytes,
                item => Kind::List(item),
            },
            17 => Kind::FixedList(self.any(depth - 1)?, self.source.int_in_range(1..=4)?),
            18 => Kind::StringMap(self.any(depth - 1)?),
            19 => {
                let key = scalar(self.source.int_in_range(0..=9)?);
                Kind::Map(made(key), self.any(depth - 1)?)
            }
            20 => {
                let names = names(self.source)?;
                let field = |name: String| Ok(Field::new(&name, None, self.any(depth - 1)?));
                Kind::Record(names.into_iter().map(field).collect::<Result<_>>()?)
            }
            21 => {
                let count = self.source.int_in_range(1..=5)?;
                Kind::Tuple((0..count).map(|_| self.any(depth - 1)).collect::<Result<_>>()?)
            }
            22 => {
                let names = names(self.source)?;
                let case = |name: String| {
                    let ty = self.maybe(depth - 1)?;
                    Ok(Case { name, docs: None, ty })
                };
                Kind::Variant(names.into_iter().map(case).collect::<Result<_>>()?)
            }
            23 => Kind::Option(self.any(depth - 1)?),
            24 => Kind::Result {
                ok: self.maybe(depth - 1)?,
                err: self.maybe(depth - 1)?,
            },
            _ if self.made.is_empty() => Kind::Bool,
            _ => return Ok(self.source.choose(&self.made)?.clone()),
        };
        let ty = made(kind);
        self.made.push(ty.clone());
        Ok(ty)
    }

    fn maybe(&mut self, depth: usize) -> Result<Option<TypeRef>> {
        if self.source.arbitrary()? {
            self.any(depth).map(Some)
        } else {
            Ok(None)
        }
    }

    fn labels(&mut self) -> Result<Vec<Label>> {
        let label = |name: String| Label { name, docs: None };
        Ok(names(self.source)?.into_iter().map(label).collect())
    }
}

fn made(kind: Kind<TypeRef>) -> TypeRef {
    TypeRef::new(Type {
        name: None,
        docs: None,
        kind,
    })
}

/// The types that a map may have for its keys come first, `string` last.
fn scalar(choice: usize) -> Kind<TypeRef> {
    match choice {
        1 => Kind::U8,
        2 => Kind::U16,
        3 => Kind::U32,
        4 => Kind::U64,
        5 => Kind::S8,
        6 => Kind::S16,
        7 => Kind::S32,
        8 => Kind::S64,
        9 => Kind::Char,
        10 => Kind::String,
        _ => Kind::Bool,
    }
}

/// At least one name, and none twice: to WIT `a-B` and `a-b` are one.
pub(crate) fn names(source: &mut Unstructured<'_>) -> Result<Vec<String>> {
    let count = source.int_in_range(1..=6)?;
    let mut seen = HashSet::new();
    let mut names = Vec::new();
    for _ in 0..count {
        let name = name(source)?;
        if seen.insert(name.to_ascii_lowercase()) {
            names.push(name);
        }
    }
    Ok(names)
}

fn name(source: &mut Unstructured<'_>) -> Result<String> {
    let stem = *source.choose(&NAMES)?;
    Ok(match source.int_in_range(0..=31u8)? {
        0..=29 => stem.to_owned(),
        30 => format!("{stem}-{}", source.int_in_range(0..=9u8)?),
        // Longer than a key may be, by little or by much.
        _ => format!("{stem}{}", "-long".repeat(source.int_in_range(10..=600)?)),
    })
}

/// JSON for a type: mostly such as its schema admits, in one form or another.
pub(crate) fn any_json_for(ty: &Type, source: &mut Unstructured<'_>) -> Result<Value> {
    if source.ratio(1, 24)? {
        return any_json(source, 3);
    }
    Ok(match &ty.kind {
        Kind::Bool => source.arbitrary::<bool>()?.into(),
        Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 | Kind::S8 | Kind::S16 | Kind::S32 | Kind::S64 => integer(source)?,
        Kind::F32 | Kind::F64 => match source.int_in_range(0..=4u8)? {
            0 => integer(source)?,
            1 => (*source.choose(&["NaN", "Infinity", "-Infinity"])?).into(),
            _ => float(source)?,
        },
        Kind::Char => any_char(source)?.to_string().into(),
        Kind::String => text(source)?.into(),
        Kind::Bytes => match source.int_in_range(0..=2u8)? {
            0 => (*source.choose(&["", "aGk=", "aGk", "AAAA", "/+8=", "aGl=", "====", "a"])?).into(),
            1 => text(source)?.into(),
            _ => several(source, |source| source.arbitrary::<u8>())?.into(),
        },
        Kind::List(item) => several(source, |source| any_json_for(item, source))?.into(),
        Kind::FixedList(item, len) => (0..*len)
            .map(|_| any_json_for(item, source))
            .collect::<Result<Vec<_>>>()?
            .into(),
        Kind::StringMap(of) => {
            let entries = several(source, |source| Ok((text(source)?, any_json_for(of, source)?)))?;
            Value::Object(entries.into_iter().collect())
        }
        Kind::Map(key, of) => several(source, |source| {
            Ok(json!({"key": any_json_for(key, source)?, "value": any_json_for(of, source)?}))
        })?
        .into(),
        Kind::Record(fields) => {
            let mut object = Map::new();
            for field in fields {
                let key = match source.int_in_range(0..=7u8)? {
                    5 => field.name.clone(),
                    6 => camel_case(&field.name),
                    7 => continue,
                    _ => field.key.clone(),
                };
                object.insert(key, any_json_for(&field.ty, source)?);
            }
            with_stray(object, source)?
        }
        Kind::Tuple(items) => {
            let values = items
                .iter()
                .map(|item| any_json_for(item, source))
                .collect::<Result<Vec<_>>>()?;
            if source.ratio(1, 4)? {
                values.into()
            } else {
                let entries = values
                    .into_iter()
                    .enumerate()
                    .map(|(index, value)| (format!("val{index}"), value));
                with_stray(entries.collect(), source)?
            }
        }
        Kind::Variant(cases) => {
            let case = source.choose(cases)?;
            let mut object = Map::from_iter([("tag".to_owned(), case.name.as_str().into())]);
            if let Some(ty) = &case.ty {
                object.insert("val".to_owned(), any_json_for(ty, source)?);
            }
            with_stray(object, source)?
        }
        Kind::Enum(labels) => source.choose(labels)?.name.as_str().into(),
        Kind::Flags(labels) => {
            let set = several(source, |source| Ok(source.choose(labels)?.name.clone()))?;
            if source.ratio(1, 4)? {
                let entries = set.into_iter().map(|name| Ok((name, source.arbitrary::<bool>()?.into())));
                Value::Object(entries.collect::<Result<_>>()?)
            } else {
                set.into()
            }
        }
        Kind::Option(_) if source.ratio(1, 4)? => Value::Null,
        Kind::Option(inner) if matches!(inner.kind, Kind::Option(_)) => json!({"some": any_json_for(inner, source)?}),
        Kind::Option(inner) => any_json_for(inner, source)?,
        Kind::Result { ok, err } => {
            let (key, ty) = if source.arbitrary()? { ("err", err) } else { ("ok", ok) };
            let payload = ty.as_ref().map_or(Ok(Value::Null), |ty| any_json_for(ty, source))?;
            json!({ key: payload })
        }
    })
}

/// Now and then with a key that does not belong there.
fn with_stray(mut object: Map<String, Value>, source: &mut Unstructured<'_>) -> Result<Value> {
    if source.ratio(1, 24)? {
        object.insert(key(source)?, any_json(source, 1)?);
    }
    Ok(Value::Object(object))
}

/// Any JSON at all.
fn any_json(source: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    Ok(match source.int_in_range(0..=if depth == 0 { 5 } else { 7 })? {
        0 => Value::Null,
        1 => source.arbitrary::<bool>()?.into(),
        2 => integer(source)?,
        3 => float(source)?,
        4 => text(source)?.into(),
        5 => key(source)?.into(),
        6 => several(source, |source| any_json(source, depth - 1))?.into(),
        _ => {
            let entries = several(source, |source| Ok((key(source)?, any_json(source, depth - 1)?)))?;
            Value::Object(entries.into_iter().collect())
        }
    })
}

fn several<T>(source: &mut Unstructured<'_>, one: impl Fn(&mut Unstructured<'_>) -> Result<T>) -> Result<Vec<T>> {
    let count = source.int_in_range(0..=4)?;
    (0..count).map(|_| one(source)).collect()
}

/// Numbers near the limits of the types, in the forms that numbers have.
fn integer(source: &mut Unstructured<'_>) -> Result<Value> {
    const EDGES: [i128; 12] = [
        0,
        1 << 7,
        1 << 8,
        1 << 15,
        1 << 16,
        1 << 31,
        1 << 32,
        1 << 53,
        1 << 63,
        1 << 64,
        -(1 << 63),
        -(1 << 31),
    ];
    let number = if source.arbitrary()? {
        source.choose(&EDGES)? + i128::from(source.int_in_range(-2..=2i8)?)
    } else {
        i128::from(source.arbitrary::<i64>()?)
    };
    Ok(match source.int_in_range(0..=7u8)? {
        6 => (number as f64).into(),
        7 => number.to_string().into(),
        _ => match (u64::try_from(number), i64::try_from(number)) {
            (Ok(number), _) => number.into(),
            (_, Ok(number)) => number.into(),
            _ => (number as f64).into(),
        },
    })
}

fn float(source: &mut Unstructured<'_>) -> Result<Value> {
    let float = if source.arbitrary()? {
        f64::from(source.arbitrary::<f32>()?)
    } else {
        source.arbitrary::<f64>()?
    };
    // JSON has no number for the others.
    Ok(Number::from_f64(float).map_or(Value::Null, Value::Number))
}

fn key(source: &mut Unstructured<'_>) -> Result<String> {
    if source.arbitrary()? { text(source) } else { name(source) }
}

fn text(source: &mut Unstructured<'_>) -> Result<String> {
    Ok(several(source, any_char)?.into_iter().collect())
}

fn any_char(source: &mut Unstructured<'_>) -> Result<char> {
    const ODD: [char; 8] = ['a', '\0', '"', '\\', '\n', '\u{7f}', '\u{202e}', '𝄞'];
    if source.arbitrary()? {
        source.arbitrary()
    } else {
        source.choose(&ODD).copied()
    }
}
