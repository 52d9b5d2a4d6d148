//! `build-guests OUT_DIR` writes every test component as `OUT_DIR/NAME.wasm`, and its calls as `OUT_DIR/NAME.calls.json`,
//! for tests in other languages.

use std::path::PathBuf;

use anyhow::{Context, Result};

fn main() -> Result<()> {
    let out = PathBuf::from(std::env::args_os().nth(1).context("usage: build-guests OUT_DIR")?);
    for name in test_guests::all()? {
        test_guests::write(&out.join(format!("{name}.wasm")), &test_guests::bytes(&name)?)?;
        if let Some(calls) = test_guests::calls(&name) {
            test_guests::write(&out.join(format!("{name}.calls.json")), &std::fs::read(calls)?)?;
        }
    }
    Ok(())
}
