//! The ways to a guest, each of which makes the same call.

use anyhow::{Result, ensure};

pub(crate) trait Road {
    /// What stands in the table.
    fn name(&self) -> &'static str;

    /// One call, from the question to the whole answer.
    fn call(&mut self) -> Result<()>;

    /// So many calls, of which so many are under way at any time.
    fn calls(&mut self, count: usize, in_flight: usize) -> Result<()>;
}

/// Whether this is an answer with the expected text in it. Only what is right is worth measuring.
pub(crate) fn check(name: &str, answer: &[u8], expected: &str) -> Result<()> {
    let text = String::from_utf8_lossy(answer);
    let shown: String = text.chars().take(500).collect();
    ensure!(
        text.contains(expected) && !text.contains(r#""isError":true"#),
        "{name}: no `{:.100}` in {shown}",
        expected
    );
    Ok(())
}
