//! Captured output to JSON: what a program printed, and the data in it.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::output_schema::is_declared;
use crate::schema::{Checker, MAX_PROBLEM, one_line};
use crate::table::rows_of;
use crate::tree::{Format, Output};

/// What is shown of a stream; all of it is in the structure, and an answer that has everything twice helps nobody.
const MAX_SHOWN: usize = 256 << 10;

/// What is left of a program that ran.
#[derive(Clone, Debug, Default)]
pub struct Captured<'a> {
    pub stdout: &'a [u8],
    pub stderr: &'a [u8],
    /// How many bytes more there were than are kept.
    pub stdout_dropped: u64,
    pub stderr_dropped: u64,
    pub exit_code: i32,
    /// What would help, if that is known.
    pub hint: Option<String>,
}

/// The captured output as [`crate::output_schema`] describes it.
pub fn output_to_json(captured: &Captured, output: Option<&Output>, checker: Option<&Checker>) -> Value {
    let stdout = Stream::new(captured.stdout, captured.stdout_dropped);
    let stderr = Stream::new(captured.stderr, captured.stderr_dropped);
    let mut object = Map::from_iter([
        ("stdout".to_owned(), Value::from(stdout.encoded())),
        ("stderr".to_owned(), Value::from(stderr.encoded())),
        ("exitCode".to_owned(), Value::from(captured.exit_code)),
    ]);
    for (name, stream) in [("stdout", &stdout), ("stderr", &stderr)] {
        if stream.text.is_none() {
            object.insert(format!("{name}Encoding"), Value::from("base64"));
        }
        if stream.dropped > 0 {
            object.insert(format!("{name}Dropped"), Value::from(stream.dropped));
        }
    }
    match data_in(&stdout, output, checker) {
        // Null is what a client takes for nothing anyway.
        Ok(None | Some(Value::Null)) => {}
        Ok(Some(data)) => {
            object.insert("json".to_owned(), data);
        }
        // A program that failed had something else to say.
        Err(_) if captured.exit_code != 0 => {}
        Err(reason) => {
            object.insert("jsonError".to_owned(), Value::from(one_line(&reason, MAX_PROBLEM)));
        }
    }
    if let Some(hint) = &captured.hint {
        object.insert("hint".to_owned(), Value::from(hint.as_str()));
    }
    Value::Object(object)
}

/// What a person would read.
pub fn output_text(captured: &Captured) -> String {
    let stdout = Stream::new(captured.stdout, captured.stdout_dropped).shown("stdout");
    let stderr = Stream::new(captured.stderr, captured.stderr_dropped).shown("stderr");
    let mut parts = Vec::new();
    match (stdout, stderr) {
        (Some(stdout), Some(stderr)) => parts.extend([stdout, Cow::from("stderr:\n") + stderr]),
        (stdout, stderr) => parts.extend(stdout.or(stderr)),
    }
    if captured.exit_code != 0 {
        parts.push(format!("exit code {}", captured.exit_code).into());
    }
    parts.extend(captured.hint.iter().map(|hint| format!("hint: {hint}").into()));
    match parts.as_slice() {
        [] => "done".to_owned(),
        [only] => only.to_string(),
        parts => parts
            .iter()
            .map(|part| part.trim_end_matches('\n'))
            .collect::<Vec<_>>()
            .join("\n\n"),
    }
}

/// One of the two streams.
struct Stream<'a> {
    bytes: &'a [u8],
    /// Nothing if the bytes are no text.
    text: Option<&'a str>,
    dropped: u64,
}

impl<'a> Stream<'a> {
    /// A character that the limit cut in the middle is dropped as a whole.
    fn new(bytes: &'a [u8], dropped: u64) -> Self {
        let (bytes, dropped) = match std::str::from_utf8(bytes) {
            Err(error) if dropped > 0 && error.error_len().is_none() => {
                let (whole, tail) = bytes.split_at(error.valid_up_to());
                (whole, dropped.saturating_add(tail.len() as u64))
            }
            _ => (bytes, dropped),
        };
        Self {
            bytes,
            text: std::str::from_utf8(bytes).ok(),
            dropped,
        }
    }

    fn encoded(&self) -> String {
        self.text.map_or_else(|| STANDARD.encode(self.bytes), str::to_owned)
    }

    /// Nothing if there is nothing to show.
    fn shown(&self, name: &str) -> Option<Cow<'a, str>> {
        let text: Cow<'a, str> = match self.text {
            Some(text) if text.len() > MAX_SHOWN => {
                let shown = text.get(..text.floor_char_boundary(MAX_SHOWN)).unwrap_or_default();
                let more = text.len() - shown.len();
                format!("{shown}… [{more} more bytes, in structuredContent.result.{name}]").into()
            }
            Some(text) => text.into(),
            None => format!(
                "({} bytes that are not text, in structuredContent.result.{name} as base64)",
                self.bytes.len()
            )
            .into(),
        };
        match self.dropped {
            0 if text.is_empty() => None,
            0 => Some(text),
            dropped => Some(format!("{text}… [{dropped} more bytes]").into()),
        }
    }
}

/// The data that was printed. Nothing where none is found that nobody promised; a reason where it was promised.
fn data_in(stdout: &Stream, output: Option<&Output>, checker: Option<&Checker>) -> Result<Option<Value>, String> {
    let format = output.and_then(|output| output.format);
    if format == Some(Format::Text) {
        return Ok(None);
    }
    let parsed = match stdout.text {
        None => Err("stdout is no text".to_owned()),
        Some(_) if stdout.dropped > 0 => Err(format!("{} bytes of stdout are missing", stdout.dropped)),
        Some(text) => parse(text, format, checker.is_some()),
    };
    let valid = parsed.and_then(|data| match checker.map(|checker| checker.check(&data)) {
        Some(Err(problem)) => Err(format!("stdout is not as the schema says {problem}")),
        _ => Ok(data),
    });
    match valid {
        Ok(data) => Ok(Some(data)),
        Err(reason) if output.is_some_and(is_declared) => Err(reason),
        Err(_) => Ok(None),
    }
}

fn parse(text: &str, format: Option<Format>, any_value: bool) -> Result<Value, String> {
    match format {
        Some(Format::Json) => json(text.trim()),
        Some(Format::Jsonl) => lines(text),
        Some(Format::Yaml) => yaml(text),
        Some(Format::Table) => rows_of(text),
        Some(Format::Text) => Err("stdout is text".to_owned()),
        None => guess(text.trim(), any_value),
    }
}

fn json(text: &str) -> Result<Value, String> {
    match text {
        "" => Err("stdout is empty, not JSON".to_owned()),
        text => serde_json::from_str(text).map_err(|error| format!("stdout is no JSON: {error}")),
    }
}

fn lines(text: &str) -> Result<Value, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            serde_json::from_str::<Value>(line).map_err(|error| format!("line {} of stdout is no JSON: {error}", index + 1))
        })
        .collect()
}

/// Aliases are refused: a few of them can stand for gigabytes.
fn yaml(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Err("stdout is empty, not YAML".to_owned());
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_aliases: 0, max_anchors: 1000, max_depth: 64 },
        // Else the word `no` would be false, and so would Norway.
        strict_booleans: true,
        with_snippet: false,
    };
    let documents: Result<Vec<Value>, _> = serde_saphyr::from_multiple_with_options(text, options);
    let mut documents = documents.map_err(|error| format!("stdout is no YAML: {error}"))?;
    match documents.len() {
        0 | 1 => Ok(documents.pop().unwrap_or_default()),
        _ => Ok(Value::Array(documents)),
    }
}

/// Nobody said what is printed. A lone number or word is more likely text than JSON, unless a schema says otherwise.
fn guess(text: &str, any_value: bool) -> Result<Value, String> {
    if !any_value && !text.starts_with(['{', '[']) {
        return Err("stdout is no JSON".to_owned());
    }
    let is_data = |value: &Value| any_value || value.is_object() || value.is_array();
    json(text).or_else(|reason| match lines(text) {
        Ok(Value::Array(rows)) if rows.len() > 1 && rows.iter().all(is_data) => Ok(Value::Array(rows)),
        _ => Err(reason),
    })
}
