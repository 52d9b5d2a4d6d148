//! What a component exports, written as WIT, with all docs that are known of it. For people and models to read.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::component::Exports;
use crate::types::{Case, Field, Function, Kind, Type, TypeRef, wit_name, wit_text};

/// The text ends here, however much more there is.
const MAX_TEXT: usize = 1 << 20;

/// The exports as WIT: a world that exports them, and a package for each interface of another one.
pub fn exports_to_wit(exports: &Exports) -> String {
    let mut by_interface: Vec<(Option<&str>, Vec<&Function>)> = Vec::new();
    for function in &exports.functions {
        let interface = function.export.interface.as_deref();
        match by_interface.iter_mut().find(|(name, _)| *name == interface) {
            Some((_, functions)) => functions.push(function),
            None => by_interface.push((interface, vec![function])),
        }
    }
    let mut world = String::new();
    let mut packages: BTreeMap<String, String> = BTreeMap::new();
    for (interface, functions) in &by_interface {
        match interface {
            None => items(&mut world, 4, "export ", functions),
            Some(name) => match package(name) {
                Some((package, interface)) => {
                    let _ = writeln!(world, "    export {name};");
                    let text = packages.entry(package).or_default();
                    docs(text, 4, exports.scope_docs(Some(name)));
                    let _ = writeln!(text, "    interface {} {{", wit_name(interface));
                    items(text, 8, "", functions);
                    text.push_str("    }\n");
                }
                None => {
                    docs(&mut world, 4, exports.scope_docs(Some(name)));
                    let _ = writeln!(world, "    export {}: interface {{", wit_name(name));
                    items(&mut world, 8, "", functions);
                    world.push_str("    }\n");
                }
            },
        }
        if world.len() + packages.values().map(String::len).sum::<usize>() > MAX_TEXT {
            world.push_str("    // … and more\n");
            break;
        }
    }
    let mut text = "package root:component;\n\n".to_owned();
    docs(&mut text, 0, exports.scope_docs(None));
    let _ = writeln!(text, "world root {{\n{world}}}");
    for (name, interfaces) in packages {
        let _ = writeln!(text, "\npackage {name} {{\n{interfaces}}}");
    }
    text
}

/// The package and the interface of a name like `example:math/calculator@0.1.0`.
fn package(name: &str) -> Option<(String, &str)> {
    let (package, interface) = name.split_once('/')?;
    match interface.split_once('@') {
        Some((interface, version)) => Some((format!("{package}@{version}"), interface)),
        None => Some((package.to_owned(), interface)),
    }
}

/// Functions, after the types that have names.
fn items(text: &mut String, indent: usize, keyword: &str, functions: &[&Function]) {
    let mut named = BTreeMap::new();
    for function in functions {
        for ty in function.params.iter().map(|param| &param.ty).chain(&function.result) {
            collect(ty, &mut named);
        }
    }
    for ty in named.values() {
        definition(text, indent, ty);
    }
    for function in functions {
        docs(text, indent, function.docs.as_deref());
        let _ = writeln!(text, "{:indent$}{keyword}{};", "", function.signature());
        if text.len() > MAX_TEXT {
            let _ = writeln!(text, "{:indent$}// … and more", "");
            return;
        }
    }
}

fn docs(text: &mut String, indent: usize, docs: Option<&str>) {
    for line in docs.unwrap_or_default().lines() {
        let _ = writeln!(text, "{:indent$}{}", "", format!("/// {line}").trim_end());
    }
}

/// The types with names that a type is made of. The first of a name stands for all.
fn collect<'a>(ty: &'a TypeRef, named: &mut BTreeMap<&'a str, &'a Type>) {
    if let Some(name) = &ty.name
        && named.insert(name, ty).is_some()
    {
        return;
    }
    for child in ty.children() {
        collect(child, named);
    }
}

fn definition(text: &mut String, indent: usize, ty: &Type) {
    let Some(name) = ty.name.as_deref().map(wit_name) else {
        return;
    };
    docs(text, indent, ty.docs.as_deref());
    let field = |field: &Field<TypeRef>| format!("{}: {}", wit_name(&field.name), wit_text(&field.ty));
    let case = |case: &Case<TypeRef>| match &case.ty {
        Some(ty) => format!("{}({})", wit_name(&case.name), wit_text(ty)),
        None => wit_name(&case.name).into_owned(),
    };
    let (keyword, lines): (_, Vec<(Option<&str>, String)>) = match &ty.kind {
        Kind::Record(fields) => ("record", fields.iter().map(|one| (one.docs.as_deref(), field(one))).collect()),
        Kind::Variant(cases) => ("variant", cases.iter().map(|one| (one.docs.as_deref(), case(one))).collect()),
        Kind::Enum(labels) | Kind::Flags(labels) => {
            let keyword = if matches!(ty.kind, Kind::Enum(_)) { "enum" } else { "flags" };
            let line = |name: &str| wit_name(name).into_owned();
            (
                keyword,
                labels.iter().map(|one| (one.docs.as_deref(), line(&one.name))).collect(),
            )
        }
        _ => {
            let unnamed = Type {
                name: None,
                ..ty.clone()
            };
            let _ = writeln!(text, "{:indent$}type {name} = {};", "", wit_text(&unnamed));
            return;
        }
    };
    let _ = writeln!(text, "{:indent$}{keyword} {name} {{", "");
    let inner = indent + 4;
    for (about, line) in lines {
        docs(text, inner, about);
        let _ = writeln!(text, "{:inner$}{line},", "");
    }
    let _ = writeln!(text, "{:indent$}}}", "");
}
