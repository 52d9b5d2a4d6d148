//! (type, JSON) → value → JSON.

use arbitrary::Unstructured;
use component2json::{
    Argument, ArgumentErrors, Direction, ExportName, Field, Function, Kind, ResultError, TypeRef, input_schema, json_to_arguments,
    json_to_vals, type_to_json_schema, vals_to_json,
};
use serde_json::{Value, json};
use wasmtime::component::Val;

use crate::{Broken, ensure, schema, types};

/// More mistakes than this are counted, not listed.
const MAX_LISTED: usize = 20;

/// What a model should have to read of one mistake, in bytes. A dozen names can be part of it.
const MAX_PROBLEM: usize = 6 << 10;

/// The bytes stand for a type and for some JSON, which is more often right for the type than not.
pub fn json_round_trip(bytes: &[u8]) -> Result<(), Broken> {
    let mut source = Unstructured::new(bytes);
    let (Ok(ty), Ok(wrapped)) = (types::any_type(&mut source), source.ratio(15, 16)) else {
        return Ok(());
    };
    let Ok(json) = types::any_json_for(&ty, &mut source) else {
        return Ok(());
    };
    let function = echo(&ty);
    let arguments = if wrapped { json!({"value": json}) } else { json };
    match json_to_arguments(&function, &arguments) {
        Ok(found) => {
            let vals: Vec<Val> = found.into_iter().map(Argument::into_val).collect();
            check_value(&function, &ty, vals)
        }
        Err(errors) => {
            check_errors(&errors)?;
            let schema = input_schema(&function);
            ensure!(
                has_bytes(&ty) || has_rounded(&arguments) || !schema::checked(&schema)?.is_valid(&arguments),
                "the schema admits it, and it is refused: {arguments}: {errors}: {schema}"
            );
            Ok(())
        }
    }
}

/// A function that takes a value and returns it.
fn echo(ty: &TypeRef) -> Function {
    Function {
        export: ExportName {
            interface: None,
            function: "echo".into(),
        },
        docs: None,
        params: vec![Field::new("value", None, ty.clone())],
        result: Some(ty.clone()),
        is_async: false,
        answers_content: false,
    }
}

/// What went in comes out as the schema says, and goes in again as it was.
fn check_value(function: &Function, ty: &TypeRef, vals: Vec<Val>) -> Result<(), Broken> {
    let failed = |error: ResultError| Broken(format!("no JSON for {vals:?}: {error}"));
    let out = vals_to_json(function, &vals, usize::MAX).map_err(failed)?;
    let out = out.ok_or_else(|| Broken(format!("no result for {vals:?}")))?;
    let text = out.to_string();
    let read: Value = serde_json::from_str(&text).map_err(|error| Broken(format!("unreadable JSON: {error}: {text}")))?;
    let output_schema = type_to_json_schema(ty, Direction::Output);
    ensure!(
        schema::compiled(&output_schema)?.is_valid(&read),
        "the output schema does not admit {text}: {output_schema}"
    );
    let again = json_to_vals(function, &json!({"value": read}));
    ensure!(again.as_ref() == Ok(&vals), "{vals:?} came back from {text} as {again:?}");
    // A limit below the size of the result is kept; one above it changes nothing.
    for limit in [text.len() / 16, 4 * text.len() + 16] {
        match vals_to_json(function, &vals, limit) {
            Ok(within) => ensure!(within == Some(out.clone()), "a limit of {limit} changes the result {text}"),
            Err(error) => ensure!(
                error == ResultError::TooLarge { limit } && limit < text.len(),
                "a limit of {limit} for {text}: {error}"
            ),
        }
    }
    Ok(())
}

/// Whether a text may be admitted that is no base64: JSON Schema has no way to say so.
fn has_bytes(ty: &TypeRef) -> bool {
    matches!(ty.kind, Kind::Bytes) || ty.children().into_iter().any(has_bytes)
}

/// Whether there is the float that an integer below all of 64 bits becomes when it is read: it is refused, and within the bounds of a
/// schema.
fn has_rounded(json: &Value) -> bool {
    match json {
        Value::Number(number) => number.is_f64() && number.as_f64() == Some(i64::MIN as f64),
        Value::Array(items) => items.iter().any(has_rounded),
        Value::Object(object) => object.values().any(has_rounded),
        _ => false,
    }
}

/// Every mistake is told with its place, in a few words.
pub(crate) fn check_errors(errors: &ArgumentErrors) -> Result<(), Broken> {
    let listed = errors.listed();
    ensure!(
        (1..=MAX_LISTED).contains(&listed.len()),
        "{} mistakes are listed",
        listed.len()
    );
    for error in listed {
        ensure!(
            error.path.starts_with('$') && !error.path.contains('\n'),
            "no path: {error:?}"
        );
        ensure!(!error.problem.is_empty(), "no problem: {error:?}");
        let size = error.path.len() + error.problem.len();
        ensure!(size <= MAX_PROBLEM, "{size} bytes for one mistake at {}", error.path);
    }
    Ok(())
}
