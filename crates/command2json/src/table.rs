//! Tables that programs print: a line of headings, and rows below it.
//!
//! Three kinds are known: columns under each other, as of `kubectl`, `docker` and `ps`; cells between bars, as of `psql` or in
//! Markdown; and cells between tabs.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// Headings multiply with rows, so a hostile table would be far bigger in JSON than as text.
const MAX_COLUMNS: usize = 256;
const MAX_CELLS: usize = 200_000;

/// The rows as objects of strings, with the headings as keys.
pub(crate) fn rows_of(text: &str) -> Result<Value, String> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let lines_without_rules: Vec<&str> = lines.iter().copied().filter(|line| !is_rule(line)).collect();
    let Some(heading) = lines_without_rules.first() else {
        return Ok(Value::Array(Vec::new()));
    };
    let cells = if heading.contains('|') {
        between_bars(&lines_without_rules)
    } else if heading.contains('\t') {
        lines_without_rules.iter().map(|line| line.split('\t').collect()).collect()
    } else {
        in_columns(&lines_without_rules)?
    };
    objects(&cells)
}

/// A line that only draws: `+-----+-----+`, `|:---|---:|`, `=====  =====`.
fn is_rule(line: &str) -> bool {
    line.chars().all(|c| matches!(c, '+' | '-' | '=' | '|' | ':' | ' ')) && (line.contains("--") || line.contains("=="))
}

/// What has no bar is no row: a caption, or `(2 rows)` below.
fn between_bars<'a>(lines: &[&'a str]) -> Vec<Vec<&'a str>> {
    let rows = lines.iter().map(|line| line.trim()).filter(|line| line.contains('|'));
    rows.map(|line| {
        let line = line.strip_prefix('|').unwrap_or(line);
        line.strip_suffix('|').unwrap_or(line).split('|').collect()
    })
    .collect()
}

/// Columns are what no line reaches across. A line that is longer than its column makes two columns one; then cells are what two
/// spaces or more stand between, if that gives as many in each line.
fn in_columns<'a>(lines: &[&'a str]) -> Result<Vec<Vec<&'a str>>, String> {
    let by_place = by_place(lines);
    let run_together = |heading: &&str| heading.contains("  ");
    if !by_place.first().is_some_and(|headings| headings.iter().any(run_together)) {
        return Ok(by_place);
    }
    let by_spaces: Vec<Vec<&str>> = lines
        .iter()
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    let headings = by_spaces.first().map_or(0, Vec::len);
    match by_spaces.iter().all(|cells| cells.len() == headings) {
        true => Ok(by_spaces),
        false => Err("the rows do not stand under the headings".to_owned()),
    }
}

fn by_place<'a>(lines: &[&'a str]) -> Vec<Vec<&'a str>> {
    let ends = column_ends(lines);
    lines.iter().map(|line| cut(line, &ends)).collect()
}

/// What stands at one place of all lines.
#[derive(Clone, Copy, Default)]
struct Place {
    in_heading: bool,
    below: bool,
}

impl Place {
    fn is_blank(self) -> bool {
        !self.in_heading && !self.below
    }
}

/// Where each column ends but the last one, which takes all that is left.
fn column_ends(lines: &[&str]) -> Vec<usize> {
    let width = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let mut places = vec![Place::default(); width];
    for (index, line) in lines.iter().enumerate() {
        for (place, c) in places.iter_mut().zip(line.chars()) {
            place.in_heading |= index == 0 && !c.is_whitespace();
            place.below |= index > 0 && !c.is_whitespace();
        }
    }
    let mut starts = Vec::new();
    let mut at = 0usize;
    for run in places.chunk_by(|a, b| a.is_blank() == b.is_blank()) {
        let is_named = run.iter().any(|place| place.in_heading);
        let is_filled = run.iter().any(|place| place.below);
        // `NOMINATED NODE` over `<none>` is one heading: its second word has nothing below, and is one space from the first.
        let follows_word = at
            .checked_sub(2)
            .and_then(|before| places.get(before))
            .is_some_and(|place| place.in_heading);
        let is_second_word = !is_filled && follows_word && lines.len() > 1;
        if (is_named && !is_second_word) || (is_filled && starts.is_empty()) {
            starts.push(at);
        }
        at += run.len();
    }
    starts.into_iter().skip(1).collect()
}

/// Cuts a line at places that are counted in characters.
fn cut<'a>(line: &'a str, ends: &[usize]) -> Vec<&'a str> {
    let mut cells = Vec::with_capacity(ends.len() + 1);
    let mut rest = line;
    let mut from = 0;
    for end in ends {
        let (cell, after) = match rest.char_indices().nth(end - from) {
            Some((at, _)) => rest.split_at(at),
            None => (rest, ""),
        };
        cells.push(cell.trim());
        rest = after;
        from = *end;
    }
    cells.push(rest.trim());
    cells
}

/// The first line names the members, the others are objects. A row may be short of cells, but not have more than headings.
fn objects(cells: &[Vec<&str>]) -> Result<Value, String> {
    let Some((headings, rows)) = cells.split_first() else {
        return Ok(Value::Array(Vec::new()));
    };
    if headings.len() > MAX_COLUMNS || headings.len().saturating_mul(rows.len()) > MAX_CELLS {
        return Err(format!("the table has more than {MAX_COLUMNS} columns or {MAX_CELLS} cells"));
    }
    let names = unique_names(headings);
    let object = |row: &Vec<&str>| -> Result<Value, String> {
        if row.len() > names.len() {
            return Err(format!("a row has {} cells under {} headings", row.len(), names.len()));
        }
        let cells = row.iter().map(|cell| Value::from(cell.trim()));
        let missing = std::iter::repeat_with(|| Value::from(""));
        Ok(Value::Object(
            names.iter().cloned().zip(cells.chain(missing)).collect::<Map<_, _>>(),
        ))
    };
    rows.iter().map(object).collect()
}

/// Headings as written; one that stands there already gets a number, and one that is empty is called by its place.
fn unique_names(headings: &[&str]) -> Vec<String> {
    let mut taken = HashSet::new();
    let mut unique = |heading: String| {
        let numbered = (2..).map(|number| format!("{heading}_{number}"));
        let name = std::iter::once(heading.clone())
            .chain(numbered)
            .find(|name| taken.insert(name.clone()));
        name.unwrap_or(heading)
    };
    let named = headings.iter().enumerate().map(|(index, heading)| match heading.trim() {
        "" => format!("column_{}", index + 1),
        heading => heading.to_owned(),
    });
    named.map(&mut unique).collect()
}
