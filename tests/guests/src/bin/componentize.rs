//! `componentize CORE OUT` makes a component of a core module that carries its WIT: the last step for guests in C.

use std::path::Path;

use anyhow::{Context, Result};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [core, out] = arguments.as_slice() else {
        anyhow::bail!("usage: componentize CORE OUT");
    };
    let component = test_guests::componentize(&std::fs::read(core).context(core.clone())?)?;
    test_guests::write(Path::new(out), &component)
}
