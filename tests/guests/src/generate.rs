//! Components that are computed: their text is long, and its length is the point.

use std::fmt::Write;

use anyhow::Result;

/// The components of this module at the sizes that the attack table names.
pub const NAMES: [&str; 2] = ["evil-05-huge-name", "evil-06-schema-bomb"];

pub(crate) fn by_name(name: &str) -> Option<Result<Vec<u8>>> {
    match name {
        "evil-05-huge-name" => Some(huge_name(99_000)),
        "evil-06-schema-bomb" => Some(schema_bomb(18)),
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
