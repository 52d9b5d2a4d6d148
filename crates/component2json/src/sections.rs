//! Custom sections at the top level of a component: finding them, leaving them out, appending one.

use std::borrow::Cow;
use std::ops::Range;

use wasm_encoder::{ComponentSection, CustomSection};
use wasmparser::{Parser, Payload};

use crate::Error;

/// What the first bytes of a file say it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Component,
    CoreModule,
    NotWasm,
}

/// Looks at the eight bytes of the preamble only.
pub fn file_kind(bytes: &[u8]) -> FileKind {
    match bytes.get(..8) {
        Some([0, b'a', b's', b'm', _, _, layer, 0]) if *layer == 1 => FileKind::Component,
        Some([0, b'a', b's', b'm', _, _, 0, 0]) => FileKind::CoreModule,
        _ => FileKind::NotWasm,
    }
}

/// The names that a core module exports; as far as they can be read.
pub fn core_exports(bytes: &[u8]) -> Vec<String> {
    Parser::new(0)
        .parse_all(bytes)
        .map_while(Result::ok)
        .filter_map(|payload| match payload {
            Payload::ExportSection(exports) => Some(exports.into_iter().map_while(Result::ok).map(|export| export.name.to_owned())),
            _ => None,
        })
        .flatten()
        .collect()
}

/// What a core module imports, as `module.name`; as far as that can be read.
pub fn core_imports(bytes: &[u8]) -> Vec<String> {
    Parser::new(0)
        .parse_all(bytes)
        .map_while(Result::ok)
        .filter_map(|payload| match payload {
            Payload::ImportSection(imports) => {
                let imports = imports.into_imports().map_while(Result::ok);
                Some(imports.map(|import| format!("{}.{}", import.module, import.name)))
            }
            _ => None,
        })
        .flatten()
        .collect()
}

/// How many functions there are to be compiled, in the file and in all that is nested in it; as far as that can be read.
pub fn count_functions(bytes: &[u8]) -> u32 {
    Parser::new(0)
        .parse_all(bytes)
        .map_while(Result::ok)
        .map(|payload| match payload {
            Payload::FunctionSection(functions) => functions.count(),
            _ => 0,
        })
        .fold(0, u32::saturating_add)
}

/// Whether something in a component runs as soon as there is an instance of it.
pub(crate) fn has_start(bytes: &[u8]) -> bool {
    let mut payloads = Parser::new(0).parse_all(bytes).map_while(Result::ok);
    payloads.any(|payload| matches!(payload, Payload::StartSection { .. } | Payload::ComponentStartSection { .. }))
}

/// The data of the first custom section whose name is this, or ends with a dot and this.
pub fn custom_section<'a>(bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let is_named =
        |section: &Section<'_>| section.name == name || section.name.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
    custom_sections(bytes)
        .ok()?
        .into_iter()
        .find(is_named)
        .map(|section| section.data)
}

/// A custom section of a component.
pub(crate) struct Section<'a> {
    pub(crate) name: &'a str,
    pub(crate) data: &'a [u8],
    /// Where the whole of it lies, with its header.
    range: Range<usize>,
}

/// The custom sections of the component itself, not of what is nested in it.
pub(crate) fn custom_sections(bytes: &[u8]) -> Result<Vec<Section<'_>>, Error> {
    let mut sections = Vec::new();
    let mut depth = 0usize;
    // A section's header is not part of the range that wasmparser reports, so remember where the previous payload ended.
    let mut end = 8;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(|error| Error::Malformed(error.to_string()))? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(offset) => {
                depth = depth.saturating_sub(1);
                end = offset;
            }
            Payload::CustomSection(section) if depth == 0 => {
                let range = end..section.range().end;
                end = range.end;
                sections.push(Section {
                    name: section.name(),
                    data: section.data(),
                    range,
                });
            }
            other => {
                if let Some((_, range)) = other.as_section() {
                    end = range.end;
                }
            }
        }
    }
    Ok(sections)
}

/// The component without the named top-level custom sections.
pub(crate) fn without<'a>(bytes: &'a [u8], names: &[&str]) -> Result<Cow<'a, [u8]>, Error> {
    let cut: Vec<_> = custom_sections(bytes)?
        .into_iter()
        .filter(|section| names.contains(&section.name))
        .map(|section| section.range)
        .collect();
    if cut.is_empty() {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut kept = Vec::with_capacity(bytes.len());
    let mut position = 0;
    for range in cut {
        kept.extend_from_slice(bytes.get(position..range.start).unwrap_or_default());
        position = range.end;
    }
    kept.extend_from_slice(bytes.get(position..).unwrap_or_default());
    Ok(Cow::Owned(kept))
}

/// The component with a custom section of that name at its end, in place of one it may have had.
pub fn with_custom_section(bytes: &[u8], name: &str, data: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = without(bytes, &[name])?.into_owned();
    CustomSection {
        name: name.into(),
        data: data.into(),
    }
    .append_to_component(&mut out);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPONENT: &str = r#"(component
        (@custom "first" "1")
        (core module (@custom "inner" "x") (func))
        (@custom "second" "2")
        (component (@custom "inner" "y")))"#;

    #[test]
    fn only_the_top_level_counts() {
        let bytes = wat::parse_str(COMPONENT).unwrap();
        let names: Vec<_> = custom_sections(&bytes)
            .unwrap()
            .into_iter()
            .map(|section| section.name)
            .collect();
        assert_eq!(names, ["first", "second"]);
    }

    #[test]
    fn sections_are_left_out_and_replaced() {
        let bytes = wat::parse_str(COMPONENT).unwrap();
        for name in ["first", "second"] {
            let cut = without(&bytes, &[name]).unwrap();
            wasmparser::Validator::new_with_features(wasmparser::WasmFeatures::all())
                .validate_all(&cut)
                .unwrap();
            assert!(custom_sections(&cut).unwrap().iter().all(|section| section.name != name));
        }
        let once = with_custom_section(&bytes, "ours", b"a").unwrap();
        let twice = with_custom_section(&once, "ours", b"b").unwrap();
        assert_eq!(once.len(), twice.len());
        assert!(
            custom_sections(&twice)
                .unwrap()
                .iter()
                .any(|section| section.name == "ours" && section.data == b"b")
        );
        assert_eq!(without(&twice, &["ours"]).unwrap(), bytes);
    }

    #[test]
    fn kinds_of_files() {
        assert_eq!(file_kind(&wat::parse_str("(component)").unwrap()), FileKind::Component);
        assert_eq!(file_kind(&wat::parse_str("(module)").unwrap()), FileKind::CoreModule);
        assert_eq!(file_kind(b""), FileKind::NotWasm);
        assert_eq!(file_kind(b"hello, world"), FileKind::NotWasm);
    }
}
