//! The one place that prints. While a server runs, stdout belongs to the protocol and nothing here is called with it.

use std::io::{self, Write};

/// Prints a line to stdout.
pub(crate) fn line(text: &str) -> anyhow::Result<()> {
    bytes(format!("{text}\n").as_bytes())
}

/// Prints bytes to stdout as they are. A reader that has gone away (`host tools x | head -1`) is no error.
pub(crate) fn bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}

/// Prints `error: …` to stderr. There is nobody to tell when that fails.
pub(crate) fn error(text: &str) {
    let _ = writeln!(io::stderr().lock(), "error: {text}");
}

/// Prints a remark to stderr.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
