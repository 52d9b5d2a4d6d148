//! The one place that prints. While a server runs, stdout belongs to the protocol and nothing here is called with it.

use std::io::{self, IsTerminal, Write};

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

/// stdout itself, for the protocol.
#[cfg(unix)]
pub(crate) fn stdout() -> io::Stdout {
    io::stdout()
}

/// Prints `error: …` to stderr, without what would steer a terminal: messages repeat what strangers wrote. There is nobody to tell when
/// that fails.
pub(crate) fn error(text: &str) {
    let _ = writeln!(io::stderr().lock(), "error: {}", catalog::plain(text));
}

/// Prints a remark to stderr.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", catalog::plain(text));
}

/// Shows a line on stderr that the next one replaces. For terminals.
pub(crate) fn transient(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "\r\x1b[K{text}");
    let _ = stderr.flush();
}

/// Asks a person for consent. Nobody is there to consent where stdin or stderr is no terminal.
pub(crate) fn confirm(question: &str) -> anyhow::Result<bool> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Ok(false);
    }
    let mut stderr = io::stderr().lock();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// A size as people say it: `70.3 kB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
        None => format!("{bytes} bytes"),
    }
}

/// The widest cell of a table. Some cells are written by strangers.
const MAX_CELL: usize = 200;

/// Rows under headings, each column as wide as it has to be.
pub(crate) fn table<const N: usize>(headings: [&str; N], rows: &[[String; N]]) -> String {
    let cut = |cell: &String| match cell.char_indices().nth(MAX_CELL) {
        Some((end, _)) => format!("{}…", cell.get(..end).unwrap_or_default()),
        None => cell.clone(),
    };
    let rows: Vec<[String; N]> = rows.iter().map(|row| row.each_ref().map(cut)).collect();
    let mut widths = headings.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: [&str; N]| {
        let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        let line = padded.collect::<Vec<_>>().join("  ");
        line.trim_end().to_owned()
    };
    let rows = rows.iter().map(|row| line(row.each_ref().map(String::as_str)));
    std::iter::once(line(headings)).chain(rows).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn no_cell_is_too_wide() {
        let rows = [["a".to_owned(), "x".to_owned()], ["n".repeat(100_000), "y".to_owned()]];
        let table = table(["NAME", "WHAT"], &rows);
        let widths: Vec<usize> = table.lines().map(|line| line.chars().count()).collect();
        assert_eq!(widths, [207, 204, 204]);
    }
}
