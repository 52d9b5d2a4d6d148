//! Arguments as a person types them: `name=value`, read by the type of the parameter.

use serde_json::Value;

use crate::arguments::nearest_first;
use crate::names::camel_case;
use crate::types::{Field, Function, Kind, Type, TypeRef};

/// A parameter that the function does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no argument `{name}`{}", known(parameters))]
pub struct UnknownParameter {
    pub name: String,
    /// The parameters there are, the most similar first.
    pub parameters: Vec<String>,
}

fn known(parameters: &[String]) -> String {
    match parameters {
        [] => "; the tool takes none".to_owned(),
        names => format!(
            "; there is {}",
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        ),
    }
}

/// One argument as JSON, with the key it goes under. Where the parameter is a text, the words are taken as they are; elsewhere
/// they are JSON, and words that are not are left for the conversion to complain about.
pub fn argument_from_text(function: &Function, name: &str, text: &str) -> Result<(String, Value), UnknownParameter> {
    let is_spelled = |field: &&Field<TypeRef>| field.key == name || field.name == name;
    let is_camel = |field: &&Field<TypeRef>| camel_case(&field.name) == name;
    let Some(field) = function
        .params
        .iter()
        .find(is_spelled)
        .or_else(|| function.params.iter().find(is_camel))
    else {
        let names = function.params.iter().map(|field| field.key.as_str());
        return Err(UnknownParameter {
            name: name.to_owned(),
            parameters: nearest_first(name, names).into_iter().map(str::to_owned).collect(),
        });
    };
    let value = if is_text(&field.ty) {
        text.into()
    } else {
        serde_json::from_str(text).unwrap_or_else(|_| text.into())
    };
    Ok((field.key.clone(), value))
}

fn is_text(ty: &Type) -> bool {
    match &ty.kind {
        Kind::String | Kind::Char | Kind::Enum(_) => true,
        // Bytes are base64, unless somebody writes out a list of them.
        Kind::Bytes => false,
        Kind::Option(inner) => is_text(inner),
        _ => false,
    }
}
