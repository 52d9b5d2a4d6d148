//! What several of these tests need: components made from nothing but WIT.

use component2json::Docs;
use wit_component::{ComponentEncoder, StringEncoding};
use wit_parser::{LiftLowerAbi, ManglingAndAbi, Resolve};

/// A component that exports what the only world of a WIT does, every function a trap; and the docs of that WIT.
pub(crate) fn component_of(wit: &str) -> Result<(Vec<u8>, Docs), String> {
    let message = |error| format!("{error:#}");
    let mut resolve = Resolve::default();
    let package = resolve.push_str("test.wit", wit).map_err(message)?;
    let world = resolve.select_world(&[package], None).map_err(message)?;
    let abi = ManglingAndAbi::Legacy(LiftLowerAbi::Sync);
    let mut module = wit_component::dummy_module(&resolve, world, abi);
    wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).map_err(message)?;
    let mut encoder = ComponentEncoder::default().module(&module).map_err(message)?.validate(true);
    Ok((encoder.encode().map_err(message)?, Docs::from_wit(&resolve, package)))
}
