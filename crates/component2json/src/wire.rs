//! The type graph on disk: a table in which a type names earlier rows by index, so that what is shared in memory is written
//! once. Reading checks every index; a damaged table is an error, never a wrong type.

use std::collections::HashMap;
use std::convert::Infallible;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::types::{Function, FunctionDef, TypeDef, TypeRef};

#[derive(Serialize, Deserialize)]
struct Table {
    types: Vec<TypeDef<u32>>,
    functions: Vec<FunctionDef<u32>>,
}

/// For `#[serde(serialize_with)]` on a list of functions.
pub(crate) fn serialize<S: Serializer>(functions: &[Function], serializer: S) -> Result<S::Ok, S::Error> {
    let mut writer = Writer::default();
    let functions = functions
        .iter()
        .map(|function| {
            let Ok(row) = function.try_map(|ty| Ok::<_, Infallible>(writer.row(ty)));
            row
        })
        .collect();
    let types = writer.types;
    Table { types, functions }.serialize(serializer)
}

/// For `#[serde(deserialize_with)]` on a list of functions.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Function>, D::Error> {
    let table = Table::deserialize(deserializer)?;
    let mut types: Vec<TypeRef> = Vec::with_capacity(table.types.len());
    let lookup = |types: &[TypeRef], index: &u32| {
        types
            .get(*index as usize)
            .cloned()
            .ok_or_else(|| D::Error::custom(format!("type {index} is used before it is defined")))
    };
    for row in &table.types {
        types.push(TypeRef::new(row.try_map(|index| lookup(&types, index))?));
    }
    table
        .functions
        .iter()
        .map(|row| row.try_map(|index| lookup(&types, index)))
        .collect()
}

#[derive(Default)]
struct Writer {
    types: Vec<TypeDef<u32>>,
    rows: HashMap<usize, u32>,
}

impl Writer {
    fn row(&mut self, ty: &TypeRef) -> u32 {
        if let Some(row) = self.rows.get(&ty.address()) {
            return *row;
        }
        let Ok(def) = ty.try_map(|child| Ok::<_, Infallible>(self.row(child)));
        let row = self.types.len() as u32;
        self.types.push(def);
        self.rows.insert(ty.address(), row);
        row
    }
}
