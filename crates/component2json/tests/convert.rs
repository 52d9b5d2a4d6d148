//! `convert/*.json`: what becomes of a value on its way in and out again, or what is wrong with it, word for word.
//!
//! A case has a `type`, and `in` is the value of the parameter `value`; or it has `params`, and `in` is all the arguments. With
//! `out` it is accepted and comes out like that; with `errors` it is refused in these lines.

mod support;

use std::fs;
use std::path::Path;

use component2json::{Function, json_to_vals, read_exports, vals_to_json};
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Types that the cases name.
    #[serde(default)]
    wit: Vec<String>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    r#type: Option<String>,
    params: Option<String>,
    r#in: Value,
    /// `null` is a value that may come out.
    #[serde(default, deserialize_with = "present")]
    out: Option<Value>,
    errors: Option<Vec<String>>,
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[test]
fn values_become_what_the_cases_say() {
    let folder = Path::new("tests/convert");
    let mut failures = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file: File = match serde_json::from_str(&fs::read_to_string(&path).unwrap()) {
            Ok(file) => file,
            Err(error) => panic!("{name}: {error}"),
        };
        let functions = match functions_of(&file) {
            Ok(functions) => functions,
            Err(error) => panic!("{name}: {error}"),
        };
        assert_eq!(functions.len(), file.cases.len(), "{name}: a type of it is not callable");
        for (case, function) in file.cases.iter().zip(&functions) {
            count += 1;
            if let Err(failure) = check(case, function) {
                failures.push(format!(
                    "{name}: {} {}\n{failure}",
                    case.r#type.as_deref().unwrap_or_default(),
                    case.r#in
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(count > 200, "only {count} cases were found");
}

/// A function for each case.
fn functions_of(file: &File) -> Result<Vec<Function>, String> {
    let params = |case: &Case| match (&case.r#type, &case.params) {
        (Some(ty), None) => Ok(format!("value: {ty}")),
        (None, Some(params)) => Ok(params.clone()),
        _ => Err(format!("the case with {} needs `type` or `params`", case.r#in)),
    };
    let mut wit = format!(
        "package test:convert; world w {{ export cases; }} interface cases {{ {} ",
        file.wit.join(" ")
    );
    for (index, case) in file.cases.iter().enumerate() {
        wit.push_str(&format!("case{index}: func({});\n", params(case)?));
    }
    wit.push('}');
    let (component, _) = support::component_of(&wit)?;
    let (exports, _) = read_exports(&component, None).map_err(|error| error.to_string())?;
    Ok(exports.functions)
}

fn check(case: &Case, function: &Function) -> Result<(), String> {
    let arguments = match case.r#type {
        Some(_) => json!({"value": case.r#in}),
        None => case.r#in.clone(),
    };
    let expected = (case.out.clone(), case.errors.clone().unwrap_or_default());
    let got = match json_to_vals(function, &arguments) {
        Err(errors) => (None, errors.to_string().lines().map(str::to_owned).collect()),
        Ok(vals) => {
            let mut out = Map::new();
            for (param, val) in function.params.iter().zip(vals) {
                let echo = Function {
                    result: Some(param.ty.clone()),
                    ..function.clone()
                };
                let json = vals_to_json(&echo, &[val], 1 << 20).map_err(|error| error.to_string())?;
                out.insert(param.key.clone(), json.unwrap_or_default());
            }
            let value = case.r#type.as_ref().and_then(|_| out.get("value").cloned());
            (Some(value.unwrap_or(Value::Object(out))), vec![])
        }
    };
    // As text, so that 5 is not 5.0.
    let text = |(out, errors): &(Option<Value>, Vec<String>)| match out {
        Some(out) => format!("  {out}"),
        None => format!("  {}", json!(errors)),
    };
    if text(&got) == text(&expected) {
        Ok(())
    } else {
        Err(format!("expected\n{}\ngot\n{}", text(&expected), text(&got)))
    }
}
