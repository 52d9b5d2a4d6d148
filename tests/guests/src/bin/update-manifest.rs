//! `update-manifest NAME TOOL…` records that this component was just compiled, with these versions of the tools.

use anyhow::{Context, Result};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().context("usage: update-manifest NAME TOOL…")?;
    test_guests::manifest::update(&name, arguments.collect())
}
