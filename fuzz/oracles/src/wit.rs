//! WIT, made from bytes, and the component that exports it. What a mutated binary hardly ever has: valid types of all kinds that use
//! each other, with docs.

use std::panic::catch_unwind;

use arbitrary::{Result, Unstructured};
use component2json::{Docs, embed_docs};
use wit_component::{ComponentEncoder, StringEncoding};
use wit_parser::{LiftLowerAbi, ManglingAndAbi, Resolve};

use crate::types;

const MAX_INTERFACES: u8 = 3;
const MAX_TYPES: u8 = 10;
const MAX_FUNCTIONS: u8 = 6;
const MAX_DEPTH: u8 = 4;

/// Words for docs. A line of WIT docs has no control characters, so none are here.
const DOCS: [&str; 6] = [
    "Does it.",
    "",
    "`code` and \"quotes\"",
    "Ünïcödé 日本",
    "- a list",
    "@param x",
];

/// The component of a WIT, with its docs. None where the tools that make components refuse it: they are not what is looked at.
pub(crate) fn component(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut source = Unstructured::new(bytes);
    let wit = Package::default().text(&mut source).ok()?;
    catch_unwind(|| encoded(&wit)).ok().flatten()
}

fn encoded(wit: &str) -> Option<Vec<u8>> {
    let mut resolve = Resolve::default();
    let package = resolve.push_str("fuzz.wit", wit).ok()?;
    let world = resolve.select_world(&[package], Some("w")).ok()?;
    let abi = ManglingAndAbi::Legacy(LiftLowerAbi::Sync);
    let mut module = wit_component::dummy_module(&resolve, world, abi);
    wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).ok()?;
    let component = ComponentEncoder::default().module(&module).ok()?.encode().ok()?;
    embed_docs(&component, &Docs::from_wit(&resolve, package)).ok()
}

/// A package as it is written.
#[derive(Default)]
struct Package {
    text: String,
    /// The types of the current interface that others may use.
    named: Vec<String>,
    resources: Vec<String>,
}

impl Package {
    fn text(mut self, source: &mut Unstructured<'_>) -> Result<String> {
        let version = *source.choose(&["", "@0.1.0", "@1.2.3-rc.1"])?;
        self.text = format!("package fuzz:made{version};\n");
        let interfaces = source.int_in_range(1..=MAX_INTERFACES)?;
        for index in 0..interfaces {
            self.docs(source)?;
            self.text += &format!("interface i{index} {{\n");
            self.items(source)?;
            self.text += "}\n";
        }
        self.docs(source)?;
        self.text += "world w {\n";
        for index in 0..interfaces {
            if source.ratio(1, 8)? {
                self.text += &format!("import i{index};\n");
            }
            self.text += &format!("export i{index};\n");
        }
        if source.ratio(1, 4)? {
            self.text += "export inline: interface {\n";
            self.items(source)?;
            self.text += "}\n";
        }
        (self.named, self.resources) = (vec![], vec![]);
        for name in types::names(source)? {
            self.docs(source)?;
            self.text += &format!("export %{name}: ");
            self.signature(source)?;
        }
        self.text += "}\n";
        Ok(self.text)
    }

    fn docs(&mut self, source: &mut Unstructured<'_>) -> Result<()> {
        if source.ratio(1, 3)? {
            let count = source.int_in_range(1..=3)?;
            for _ in 0..count {
                let words = source.choose(&DOCS)?.repeat(source.int_in_range(1..=200)?);
                self.text += &format!("/// {words}\n");
            }
        }
        Ok(())
    }

    /// The types and functions of an interface. Types have names of their own kind, so that functions can have any.
    fn items(&mut self, source: &mut Unstructured<'_>) -> Result<()> {
        (self.named, self.resources) = (vec![], vec![]);
        let types = source.int_in_range(0..=MAX_TYPES)?;
        for index in 0..types {
            self.docs(source)?;
            self.definition(format!("t{index}"), source)?;
        }
        let functions = source.int_in_range(1..=MAX_FUNCTIONS)?;
        for index in 0..functions {
            self.docs(source)?;
            let stem = types::names(source)?.pop().unwrap_or_default();
            self.text += &format!("%{stem}-f{index}: ");
            self.signature(source)?;
        }
        Ok(())
    }

    fn definition(&mut self, name: String, source: &mut Unstructured<'_>) -> Result<()> {
        match source.int_in_range(0..=5u8)? {
            0 => self.members(source, &format!("record {name}"), |package, source| {
                Ok(format!(": {}", package.ty(MAX_DEPTH, source)?))
            })?,
            1 => self.members(source, &format!("variant {name}"), |package, source| {
                if source.arbitrary()? {
                    Ok(format!("({})", package.ty(MAX_DEPTH, source)?))
                } else {
                    Ok(String::new())
                }
            })?,
            2 => self.members(source, &format!("enum {name}"), |_, _| Ok(String::new()))?,
            3 => self.members(source, &format!("flags {name}"), |_, _| Ok(String::new()))?,
            4 => {
                let ty = self.ty(MAX_DEPTH, source)?;
                self.text += &format!("type {name} = {ty};\n");
            }
            _ => {
                self.text += &format!("resource {name} {{ constructor(a: u32); m: func() -> u32; s: static func(); }}\n");
                self.resources.push(name);
                return Ok(());
            }
        }
        self.named.push(name);
        Ok(())
    }

    fn members(
        &mut self,
        source: &mut Unstructured<'_>,
        head: &str,
        rest: impl Fn(&Self, &mut Unstructured<'_>) -> Result<String>,
    ) -> Result<()> {
        self.text += &format!("{head} {{\n");
        for name in types::names(source)? {
            self.docs(source)?;
            let rest = rest(self, source)?;
            self.text += &format!("%{name}{rest},\n");
        }
        self.text += "}\n";
        Ok(())
    }

    fn signature(&mut self, source: &mut Unstructured<'_>) -> Result<()> {
        let keyword = if source.ratio(1, 8)? { "async func" } else { "func" };
        let mut params = Vec::new();
        if source.ratio(7, 8)? {
            for name in types::names(source)? {
                params.push(format!("%{name}: {}", self.ty(MAX_DEPTH, source)?));
            }
        }
        let result = if source.arbitrary()? {
            format!(" -> {}", self.ty(MAX_DEPTH, source)?)
        } else {
            String::new()
        };
        self.text += &format!("{keyword}({}){result};\n", params.join(", "));
        Ok(())
    }

    fn ty(&self, depth: u8, source: &mut Unstructured<'_>) -> Result<String> {
        const PLAIN: [&str; 15] = [
            "bool", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "char", "string", "f32", "f64", "list<u8>", "result",
        ];
        let choice = source.int_in_range(0..=if depth == 0 { 1 } else { 13u8 })?;
        let mut inner = || self.ty(depth.saturating_sub(1), source);
        Ok(match choice {
            0 => (*source.choose(&PLAIN)?).to_owned(),
            1 if self.named.is_empty() => "u32".to_owned(),
            1 => source.choose(&self.named)?.clone(),
            2 => format!("list<{}>", inner()?),
            3 => format!("option<{}>", inner()?),
            4 => format!("result<{}>", inner()?),
            5 => format!("result<_, {}>", inner()?),
            6 => format!("result<{}, {}>", inner()?, inner()?),
            7 => format!("tuple<{}>", inner()?),
            8 => format!("tuple<{}, {}>", inner()?, inner()?),
            9 => {
                let item = inner()?;
                format!("list<{item}, {}>", source.int_in_range(1..=6u32)?)
            }
            10 => {
                let value = inner()?;
                format!(
                    "map<{}, {value}>",
                    PLAIN.iter().take(11).nth(source.int_in_range(0..=10)?).unwrap_or(&"bool")
                )
            }
            11 if !self.resources.is_empty() => {
                let resource = source.choose(&self.resources)?;
                (if source.arbitrary()? {
                    format!("borrow<{resource}>")
                } else {
                    resource.clone()
                })
                .clone()
            }
            12 if source.ratio(1, 4)? => format!("stream<{}>", self.ty(depth.saturating_sub(1), source)?),
            13 if source.ratio(1, 4)? => format!("future<{}>", self.ty(depth.saturating_sub(1), source)?),
            _ => "u32".to_owned(),
        })
    }
}
