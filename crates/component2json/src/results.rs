//! Component values → JSON, by the plan of the function.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Number, Value};
use wasmtime::component::Val;

use crate::schema::{MAX_SAFE_INTEGER, tuple_key};
use crate::types::{Field, Function, Kind, Type, TypeRef};

/// What a function returned. Bytes that a typed call lifted stay bytes: see [`crate::Argument`].
#[derive(Debug, Clone, PartialEq)]
pub enum Returned {
    Val(Val),
    Bytes(Vec<u8>),
    SomeBytes(Vec<u8>),
    OkBytes(Vec<u8>),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResultError {
    #[error("the result is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the function returned {got}, where its type says {expected}")]
    Mismatch { expected: String, got: String },
}

/// Room for the results of a call, as wasmtime wants it.
pub fn create_placeholder_results(function: &Function) -> Vec<Val> {
    function.result.iter().map(|_| Val::Bool(false)).collect()
}

/// The results of a call as JSON, without the envelope; `None` for a function that returns nothing.
///
/// `limit` bounds what the guest may return, in bytes: strings and byte lists count by their length before encoding, everything else
/// by about what it takes in JSON.
pub fn vals_to_json(function: &Function, results: &[Val], limit: usize) -> Result<Option<Value>, ResultError> {
    match (&function.result, results) {
        (Some(ty), [val]) => Writer::new(limit).value(ty, val).map(Some),
        (None, []) => Ok(None),
        (_, results) => Err(ResultError::Mismatch {
            expected: format!("{} results", function.result.iter().count()),
            got: format!("{} results", results.len()),
        }),
    }
}

/// Like [`vals_to_json`], for the single result of a call that may have kept its bytes as bytes.
pub fn returned_to_json(function: &Function, returned: &Returned, limit: usize) -> Result<Option<Value>, ResultError> {
    let mut writer = Writer::new(limit);
    match returned {
        Returned::Val(val) => vals_to_json(function, std::slice::from_ref(val), limit),
        Returned::Bytes(bytes) | Returned::SomeBytes(bytes) => writer.bytes(bytes).map(Some),
        Returned::OkBytes(bytes) => Ok(Some(object([("ok".to_owned(), writer.bytes(bytes)?)]))),
    }
}

struct Writer {
    limit: usize,
    left: usize,
}

impl Writer {
    fn new(limit: usize) -> Self {
        Self { limit, left: limit }
    }

    fn spend(&mut self, bytes: usize) -> Result<(), ResultError> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(ResultError::TooLarge { limit: self.limit }),
        }
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<Value, ResultError> {
        self.spend(bytes.len())?;
        Ok(BASE64.encode(bytes).into())
    }

    fn text(&mut self, text: &str) -> Result<Value, ResultError> {
        self.spend(text.len())?;
        Ok(text.into())
    }

    fn value(&mut self, ty: &Type, val: &Val) -> Result<Value, ResultError> {
        // A bool, a small number, the braces of an object: whatever it is, it takes a few bytes. A single text or list of bytes
        // counts by its length alone, so that a limit of 8 MiB admits 8 MiB.
        if !matches!(ty.kind, Kind::String | Kind::Bytes) {
            self.spend(2)?;
        }
        let value = match (&ty.kind, val) {
            (Kind::Bool, Val::Bool(value)) => Value::Bool(*value),
            (Kind::U8, Val::U8(value)) => (*value).into(),
            (Kind::U16, Val::U16(value)) => (*value).into(),
            (Kind::U32, Val::U32(value)) => (*value).into(),
            (Kind::S8, Val::S8(value)) => (*value).into(),
            (Kind::S16, Val::S16(value)) => (*value).into(),
            (Kind::S32, Val::S32(value)) => (*value).into(),
            (Kind::U64, Val::U64(value)) if *value <= MAX_SAFE_INTEGER => (*value).into(),
            (Kind::U64, Val::U64(value)) => value.to_string().into(),
            (Kind::S64, Val::S64(value)) if value.unsigned_abs() <= MAX_SAFE_INTEGER => (*value).into(),
            (Kind::S64, Val::S64(value)) => value.to_string().into(),
            (Kind::F32, Val::Float32(value)) => float(shortest(*value)),
            (Kind::F64, Val::Float64(value)) => float(*value),
            (Kind::Char, Val::Char(value)) => value.to_string().into(),
            (Kind::String, Val::String(text)) => self.text(text)?,
            (Kind::Bytes, Val::List(items)) => {
                let bytes: Option<Vec<u8>> = items
                    .iter()
                    .map(|item| if let Val::U8(byte) = item { Some(*byte) } else { None })
                    .collect();
                self.bytes(&bytes.ok_or_else(|| mismatch(ty, val))?)?
            }
            (Kind::FixedList(_, len), Val::FixedLengthList(items)) if items.len() != *len as usize => {
                return Err(mismatch(ty, val));
            }
            (Kind::List(item), Val::List(items)) | (Kind::FixedList(item, _), Val::FixedLengthList(items)) => {
                items.iter().map(|val| self.value(item, val)).collect::<Result<_, _>>()?
            }
            (Kind::StringMap(of), Val::Map(entries)) => {
                let mut object = Map::new();
                for (key, val) in entries {
                    let Val::String(key) = key else {
                        return Err(mismatch(ty, val));
                    };
                    self.spend(key.len())?;
                    // Of two entries with one key the last counts: that is what the component model says of maps.
                    object.insert(key.clone(), self.value(of, val)?);
                }
                Value::Object(object)
            }
            (Kind::Map(key_type, of), Val::Map(entries)) => {
                let entry = |(key, val): &(Val, Val)| {
                    Ok(object([
                        ("key".to_owned(), self.value(key_type, key)?),
                        ("value".to_owned(), self.value(of, val)?),
                    ]))
                };
                entries.iter().map(entry).collect::<Result<_, ResultError>>()?
            }
            (Kind::Record(fields), Val::Record(values)) if fields.len() == values.len() => self.record(fields, values)?,
            (Kind::Tuple(items), Val::Tuple(values)) if items.len() == values.len() => {
                let entry =
                    |(index, (ty, val)): (usize, (&TypeRef, &Val))| Ok((tuple_key(index).into_owned(), self.value(ty, val)?));
                Value::Object(
                    items
                        .iter()
                        .zip(values)
                        .enumerate()
                        .map(entry)
                        .collect::<Result<_, ResultError>>()?,
                )
            }
            (Kind::Variant(cases), Val::Variant(tag, payload)) => {
                let case = cases.iter().find(|case| case.name == *tag).ok_or_else(|| mismatch(ty, val))?;
                let tag = ("tag".to_owned(), self.text(tag)?);
                match (&case.ty, payload) {
                    (Some(ty), Some(val)) => object([tag, ("val".to_owned(), self.value(ty, val)?)]),
                    (None, None) => object([tag]),
                    _ => return Err(mismatch(ty, val)),
                }
            }
            (Kind::Enum(_), Val::Enum(name)) => self.text(name)?,
            (Kind::Flags(labels), Val::Flags(set)) => {
                let set = labels.iter().filter(|label| set.contains(&label.name));
                set.map(|label| self.text(&label.name)).collect::<Result<_, _>>()?
            }
            (Kind::Option(_), Val::Option(None)) => Value::Null,
            (Kind::Option(inner), Val::Option(Some(val))) => {
                let some = self.value(inner, val)?;
                if inner.is_option() {
                    object([("some".to_owned(), some)])
                } else {
                    some
                }
            }
            (Kind::Result { ok, err }, outcome @ Val::Result(result)) => {
                let whole = ty;
                let (key, ty, val) = match result {
                    Ok(val) => ("ok", ok, val),
                    Err(val) => ("err", err, val),
                };
                let payload = match (ty, val) {
                    (Some(ty), Some(val)) => self.value(ty, val)?,
                    (None, None) => Value::Null,
                    _ => return Err(mismatch(whole, outcome)),
                };
                object([(key.to_owned(), payload)])
            }
            _ => return Err(mismatch(ty, val)),
        };
        Ok(value)
    }

    fn record(&mut self, fields: &[Field<TypeRef>], values: &[(String, Val)]) -> Result<Value, ResultError> {
        let mut object = Map::with_capacity(fields.len());
        for (field, (_, val)) in fields.iter().zip(values) {
            self.spend(field.key.len())?;
            object.insert(field.key.clone(), self.value(&field.ty, val)?);
        }
        Ok(Value::Object(object))
    }
}

fn object<const N: usize>(entries: [(String, Value); N]) -> Value {
    Value::Object(entries.into_iter().collect())
}

/// The f64 whose shortest decimal form is that of the f32: 0.1 stays 0.1 and does not become 0.10000000149.
fn shortest(value: f32) -> f64 {
    let exact = f64::from(value);
    let is_small_integer = exact.fract() == 0.0 && exact.abs() < 16_777_216.0;
    if is_small_integer {
        exact
    } else {
        format!("{value:e}").parse().unwrap_or(exact)
    }
}

fn float(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value.is_nan() => "NaN".into(),
        None if value > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}

fn mismatch(ty: &Type, val: &Val) -> ResultError {
    let got = match val {
        Val::List(items) => format!("a list of {}", items.len()),
        Val::String(_) => "a string".into(),
        other => crate::docs::cap(&format!("{other:?}"), 60),
    };
    ResultError::Mismatch {
        expected: crate::types::wit_text(ty),
        got,
    }
}
