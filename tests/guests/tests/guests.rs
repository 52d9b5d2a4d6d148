//! What tests in all languages rely on: every component is valid, its calls name real tools and cover them, and no
//! checked-in binary is older than its sources.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;
use test_guests::manifest;
use wasmparser::{Parser, Payload};
use wit_component::DecodedWasm;
use wit_parser::{Function, FunctionKind, WorldItem};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "the fields are here to check the form of the file")]
struct Call {
    tool: String,
    arguments: serde_json::Map<String, Value>,
    result: Option<Value>,
    error: Option<String>,
    schema: Option<bool>,
}

/// The tools of a component, named as the host names them while names are short.
fn tools(component: &[u8]) -> Result<BTreeSet<String>> {
    let DecodedWasm::Component(resolve, world) = wit_component::decode(component)? else {
        anyhow::bail!("not a component");
    };
    // Methods need a handle first, so no list of fixed calls can cover them.
    let plain = |function: &Function| {
        matches!(function.kind, FunctionKind::Freestanding | FunctionKind::AsyncFreestanding) && !function.name.starts_with("aaaa")
    };
    let mut tools = BTreeSet::new();
    let world = resolve.worlds.get(world).context("a component has a world")?;
    for (key, item) in &world.exports {
        match item {
            WorldItem::Function(function) if plain(function) => {
                tools.insert(function.name.replace('-', "_"));
            }
            WorldItem::Interface { id, .. } => {
                let name = resolve.name_world_key(key);
                let name = name.split('@').next().unwrap_or_default();
                let interface = resolve.interfaces.get(*id).context("an export has an interface")?;
                for function in interface.functions.values().filter(|function| plain(function)) {
                    tools.insert(format!("{name}.{}", function.name).replace([':', '/', '.', '-'], "_"));
                }
            }
            _ => {}
        }
    }
    Ok(tools)
}

fn module_exports(module: &[u8]) -> Result<BTreeSet<&str>> {
    let mut names = BTreeSet::new();
    for payload in Parser::new(0).parse_all(module) {
        if let Payload::ExportSection(exports) = payload? {
            for export in exports {
                names.insert(export?.name);
            }
        }
    }
    Ok(names)
}

/// How many functions have code, in all core modules of a component.
fn bodies(component: &[u8]) -> Result<usize> {
    let mut count = 0;
    for payload in Parser::new(0).parse_all(component) {
        count += usize::from(matches!(payload?, Payload::CodeSectionEntry(_)));
    }
    Ok(count)
}

/// The binary, which the file that tests load must have or spell out.
fn binary(name: &str) -> Result<Vec<u8>> {
    let bytes = wat::parse_file(test_guests::path(name)?)?;
    ensure!(bytes == test_guests::bytes(name)?, "{name}: the file and the bytes differ");
    Ok(bytes)
}

fn calls(name: &str) -> Result<Option<Vec<Call>>> {
    let Some(path) = test_guests::calls(name) else {
        return Ok(None);
    };
    serde_json::from_slice(&std::fs::read(path)?).context(name.to_owned())
}

#[test]
fn all_are_found() -> Result<()> {
    let names = test_guests::all()?;
    for name in [
        "every-type",
        "every-type-extra",
        "cli-clap",
        "cli-clap-module",
        "cli-getopt",
        "cli-getopt-module",
        "cli-loop",
        "kitchen-c",
        "trap",
        "evil-05-huge-name",
        "evil-06-schema-bomb",
    ] {
        ensure!(names.iter().any(|found| found == name), "{name} is missing in {names:?}");
    }
    ensure!(test_guests::path("no-such-component").is_err());
    Ok(())
}

#[test]
fn each_is_a_component_and_its_calls_cover_its_tools() -> Result<()> {
    for name in test_guests::all()?.into_iter().filter(|name| !test_guests::is_program(name)) {
        let tools = tools(&binary(&name)?).context(name.clone())?;
        let Some(calls) = calls(&name)? else {
            continue;
        };
        // The host shortens the huge name, which is nothing to work out here again.
        let tools_called = calls
            .into_iter()
            .map(|call| call.tool)
            .filter(|tool| !tool.starts_with("aaaa"));
        let called: BTreeSet<String> = tools_called.collect();
        ensure!(
            called.is_subset(&tools),
            "{name}: no such tool: {:?}",
            called.difference(&tools)
        );
        // What takes handles can only be called with what an earlier call returned.
        if name != "needs-resource" {
            ensure!(called == tools, "{name}: never called: {:?}", tools.difference(&called));
        }
    }
    Ok(())
}

/// The tools of a program are its commands, which only its help texts tell, so the host's own tests compare those with the calls.
#[test]
fn each_program_can_be_started() -> Result<()> {
    let programs = test_guests::all()?.into_iter().filter(|name| test_guests::is_program(name));
    for name in programs {
        let bytes = binary(&name)?;
        calls(&name)?;
        if Parser::is_component(&bytes) {
            ensure!(!name.ends_with("-module"), "{name} is a component");
            let tools = tools(&bytes).context(name.clone())?;
            ensure!(tools.iter().eq(["wasi_cli_run_run"]), "{name}: {tools:?}");
        } else {
            let exports = module_exports(&bytes)?;
            ensure!(
                exports.contains("_start") && exports.contains("memory"),
                "{name}: {exports:?}"
            );
        }
    }
    Ok(())
}

#[test]
fn checked_in_components_are_made_of_the_sources_beside_them() -> Result<()> {
    let manifest = manifest::read()?;
    let names: Vec<String> = manifest.keys().cloned().collect();
    ensure!(
        names == manifest::compiled()?,
        "the manifest lists {names:?}: run test-components/rebuild.sh"
    );
    for (name, mut entry) in manifest {
        entry.tools.clear();
        ensure!(
            entry == manifest::current(&name)?,
            "{name} is stale: run test-components/rebuild.sh {name}"
        );
    }
    Ok(())
}

#[test]
fn generators_give_what_they_promise() -> Result<()> {
    let length = test_guests::generate::huge_name(99_000)?.len();
    ensure!(length > 99_000, "{length}");
    let length = test_guests::generate::schema_bomb(18)?.len();
    ensure!(length < 1000, "{length}");
    let bomb = test_guests::generate::compile_bomb(1000);
    ensure!(tools(&bomb)?.iter().eq(["add"]), "{:?}", tools(&bomb)?);
    ensure!(bodies(&bomb)? == 1001, "{}", bodies(&bomb)?);
    ensure!(test_guests::bytes("evil-26-compile-bomb")?.len() > 10_000_000);
    Ok(())
}
