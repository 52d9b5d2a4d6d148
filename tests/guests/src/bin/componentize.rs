//! `componentize [--program] CORE OUT` makes a component of a core module: the last step for guests in C. The module either
//! carries its WIT or is a program for WASI 0.1.

use std::path::Path;

use anyhow::{Context, Result};

fn main() -> Result<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_program = arguments.first().is_some_and(|argument| argument == "--program");
    if is_program {
        arguments.remove(0);
    }
    let [core, out] = arguments.as_slice() else {
        anyhow::bail!("usage: componentize [--program] CORE OUT");
    };
    let module = std::fs::read(core).context(core.clone())?;
    let component = if is_program {
        test_guests::componentize_program(&module)?
    } else {
        test_guests::componentize(&module)?
    };
    test_guests::write(Path::new(out), &component)
}
