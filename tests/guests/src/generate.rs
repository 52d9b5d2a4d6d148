//! Components that are computed: their text is long, and its length is the point.

use std::fmt::Write;

use anyhow::Result;
use wasm_encoder::{
    BlockType, CodeSection, ComponentBuilder, ComponentExportKind, ExportKind, ExportSection, Function, FunctionSection, Module,
    ModuleArg, PrimitiveValType, TypeSection, ValType,
};

/// The components of this module at the sizes that the attack table names, but for those that hold up whoever just loads them.
pub const NAMES: [&str; 2] = ["evil-05-huge-name", "evil-06-schema-bomb"];

pub(crate) fn by_name(name: &str) -> Option<Result<Vec<u8>>> {
    match name {
        "evil-05-huge-name" => Some(huge_name(99_000)),
        "evil-06-schema-bomb" => Some(schema_bomb(18)),
        "evil-26-compile-bomb" => Some(Ok(compile_bomb(50_000))),
        _ => None,
    }
}

/// A component with an export `add` and the same function again under a name of that many letters.
///
/// Validators accept close to 100 000.
pub fn huge_name(length: usize) -> Result<Vec<u8>> {
    let name = "a".repeat(length);
    Ok(wat::parse_str(format!(
        r#"(component
            (core module $code
                (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))
            (core instance $guest (instantiate $code))
            (func $add (param "a" s32) (param "b" s32) (result s32) (canon lift (core func $guest "add")))
            (export "add" (func $add))
            (export "{name}" (func $add)))"#
    ))?)
}

/// A component whose `bomb` takes a pair of pairs of pairs: a few hundred bytes that, spelled out, have two to the power
/// of `doublings` leaves. `add` is beside it.
pub fn schema_bomb(doublings: u32) -> Result<Vec<u8>> {
    let mut types = String::from("(type $t0 u8)");
    for level in 1..=doublings {
        let inner = level - 1;
        write!(types, "(type $t{level} (tuple $t{inner} $t{inner}))")?;
    }
    Ok(wat::parse_str(format!(
        r#"(component
            (core module $code
                (memory (export "memory") 16)
                (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 0))
                (func (export "bomb") (param i32))
                (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))
            (core instance $guest (instantiate $code))
            (alias core export $guest "memory" (core memory $memory))
            (alias core export $guest "realloc" (core func $realloc))
            {types}
            (func (export "bomb") (param "value" $t{doublings})
                (canon lift (core func $guest "bomb") (memory $memory) (realloc $realloc)))
            (func (export "add") (param "a" s32) (param "b" s32) (result s32)
                (canon lift (core func $guest "add"))))"#
    ))?)
}

/// A component with one export, `add`, and that many functions more, which nobody calls and a compiler takes long for.
pub fn compile_bomb(functions: u32) -> Vec<u8> {
    let slow = slow_to_compile();
    let mut types = TypeSection::new();
    types.ty().function([ValType::I32; 2], [ValType::I32]);
    let mut signatures = FunctionSection::new();
    let mut code = CodeSection::new();
    let mut add = Function::new([]);
    add.instructions().local_get(0).local_get(1).i32_add().end();
    signatures.function(0);
    code.function(&add);
    for _ in 0..functions {
        signatures.function(0);
        code.function(&slow);
    }
    let mut exports = ExportSection::new();
    exports.export("add", ExportKind::Func, 0);
    let mut module = Module::new();
    module.section(&types).section(&signatures).section(&exports).section(&code);

    let mut component = ComponentBuilder::default();
    let module = component.core_module(None, &module);
    let guest = component.core_instantiate(None, module, [] as [(&str, ModuleArg); 0]);
    let core_add = component.core_alias_export(None, guest, "add", ExportKind::Func);
    let (signature, mut encoder) = component.type_function(None);
    encoder
        .params([("a", PrimitiveValType::S32), ("b", PrimitiveValType::S32)])
        .result(Some(PrimitiveValType::S32.into()));
    let add = component.lift_func(None, core_add, signature, []);
    component.export("add", ComponentExportKind::Func, add, None);
    component.finish()
}

/// Loops inside of loops that all change every local, so that a compiler has to find a register for each at every turn.
fn slow_to_compile() -> Function {
    const LOCALS: u32 = 12;
    const LOOPS: u32 = 4;
    let mut function = Function::new([(LOCALS - 2, ValType::I32)]);
    let mut code = function.instructions();
    for _ in 0..LOOPS {
        code.loop_(BlockType::Empty);
        for local in 0..LOCALS {
            code.local_get(local).local_get((local + 1) % LOCALS).i32_mul();
            code.local_get((local + 5) % LOCALS).i32_add().local_set(local);
        }
    }
    for depth in 0..LOOPS {
        code.local_get(depth).br_if(0).end();
    }
    code.local_get(0).end();
    function
}
