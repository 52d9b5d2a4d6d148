//! The result envelope: every tool's output has the shape `{"result": …}`, in its schema and in its value.
//!
//! This crate knows JSON and JSON Schema only. It does no I/O, knows nothing of WIT, WebAssembly or MCP, and is no
//! validator: a value that fits nowhere passes through in its envelope, for the caller to judge.
//!
//! Everything here is idempotent: what is canonical already comes back byte for byte.
//!
//! ```
//! use serde_json::json;
//! use structured_output::{canonicalize_output_schema, ensure_structured_result};
//!
//! let pair = json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]});
//! let schema = canonicalize_output_schema(Some(pair));
//! assert_eq!(
//!     ensure_structured_result(schema.as_ref(), json!([1, "a"])),
//!     Some(json!({"result": {"val0": 1, "val1": "a"}})),
//! );
//! ```

mod schema;
mod value;

pub use schema::{canonicalize_output_schema, wrap_schema_in_result};
pub use value::ensure_structured_result;

/// The one member of the envelope.
const RESULT: &str = "result";

/// The member that holds the element `index` of a tuple.
fn slot_name(index: usize) -> String {
    format!("val{index}")
}
