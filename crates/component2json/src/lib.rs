//! WIT → JSON Schema, and JSON ↔ component values.
//!
//! Bytes of a component go in; out come the functions it exports, with the schemas that MCP clients read and a conversion plan
//! ([`Function`]) for each. The plan turns a call's JSON into [`Val`](wasmtime::component::Val)s and the results back, and it
//! validates on the way, so that a call never looks at the WIT again.
//!
//! This crate does no I/O, starts no engine and knows nothing of MCP. Everything in a component is hostile here: names, docs and
//! types are bounded before anybody sees them.

mod arguments;
mod component;
mod docs;
mod names;
mod results;
mod schema;
mod sections;
mod text;
mod tools;
mod types;
mod unique;
mod wire;
mod wit;

pub use arguments::{Argument, ArgumentError, ArgumentErrors, json_to_arguments, json_to_vals, nearest_first};
pub use component::{Exports, LeftOut, ScopeDocs, Warnings, interface_names, read_exports};
pub use docs::{
    Docs, DocsError, SECTION_NAME as DOCS_SECTION, clean as clean_text, clean_within as clean_text_within, without_hidden,
};
pub use names::{
    DEFAULT_MAX_TOOL_NAME, MIN_MAX_TOOL_NAME, NameParts, ToolName, camel_case, property_key, snake_case, tool_names,
    tool_names_unlike,
};
pub use results::{ResultError, Returned, create_placeholder_results, returned_to_json, vals_to_json};
pub use schema::{Direction, input_schema, output_schema, type_to_json_schema};
pub use sections::{FileKind, core_exports, core_imports, count_functions, custom_section, file_kind, with_custom_section};
pub use text::{UnknownParameter, argument_from_text};
pub use tools::{
    Icon, Theme, ToolAnnotations, ToolMetadata, component_exports_to_json_schema, component_exports_to_tools, describe,
};
pub use types::{Case, ExportName, Field, Function, FunctionDef, Kind, Label, Type, TypeDef, TypeRef, wit_text};
pub use unique::{MAX_VALUES, UniqueObject, check_json};
pub use wasmtime::component::Val;
pub use wit::exports_to_wit;

/// Why bytes are no component that can be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("not a valid WebAssembly component: {0}")]
    Malformed(String),
    #[error("this is a WIT package encoded as WebAssembly: it describes functions but has none")]
    WitPackage,
    #[error("the docs could not be written: {0}")]
    Docs(#[from] DocsError),
}

/// Checks every byte of a component, the code of its functions too. Costs about as much as reading it a few times over.
pub fn validate(component: &[u8]) -> Result<(), Error> {
    let mut validator = wasmparser::Validator::new_with_features(wasmparser::WasmFeatures::all());
    validator
        .validate_all(component)
        .map_err(|error| Error::Malformed(error.to_string()))?;
    Ok(())
}

/// The component with these docs in it, so that it carries them wherever it goes.
pub fn embed_docs(component: &[u8], docs: &Docs) -> Result<Vec<u8>, Error> {
    sections::with_custom_section(component, docs::SECTION_NAME, &docs.to_section()?)
}
