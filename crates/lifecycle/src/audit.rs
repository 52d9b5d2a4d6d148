//! The audit file: one line of JSON for each call, with the shape of its arguments and never their values.
//!
//! Whoever asked for an audit wants no call without a line in it. So when a line cannot be written, that is said loudly, and no further
//! call begins until lines can be written again.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use policy::ByteSize;
use sandbox::{Client, Nobody};
use serde::Serialize;
use serde_json::Value;

/// Files that are kept beside the one that is written to.
const KEPT_FILES: u32 = 5;

/// What is shown of a shape: the rest is told by a number.
const SHOWN_FIELDS: usize = 32;
const SHOWN_DEPTH: usize = 4;

/// How the calls of a host are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditConfig {
    pub file: PathBuf,
    /// When the file has grown to this, it is put aside as `FILE.1`, and a new one begins.
    pub max_size: ByteSize,
}

/// Who called.
#[derive(Clone, Debug)]
pub struct Caller {
    /// What a client says of itself, or the command of this program.
    pub name: String,
    /// Who a guest speaks to.
    pub client: Arc<dyn Client>,
}

impl Caller {
    /// Somebody who can be told nothing, and asked nothing.
    pub fn silent(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            client: Arc::new(Nobody),
        }
    }
}

impl Default for Caller {
    fn default() -> Self {
        Self::silent("")
    }
}

/// Why a call is not made.
#[derive(Debug, thiserror::Error)]
#[error(
    "the audit file `{path}` cannot be written: {error}\nhint: no call is made without a line in it; make room for it, or serve without `--audit`"
)]
pub struct AuditError {
    path: PathBuf,
    error: io::Error,
}

/// One line.
#[derive(Debug, Serialize)]
pub(crate) struct Line<'a> {
    /// When the call ended.
    pub(crate) time: String,
    pub(crate) component: &'a str,
    pub(crate) digest: String,
    pub(crate) tool: &'a str,
    pub(crate) caller: &'a str,
    pub(crate) arguments: Value,
    pub(crate) duration_ms: f64,
    pub(crate) outcome: Outcome,
    /// What was wrong, in the host's own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// What the guest asked for and did not get.
    pub(crate) denied: Vec<String>,
}

impl<'a> Line<'a> {
    /// A call that has not ended yet: until it does, it counts as cancelled.
    pub(crate) fn new(tool: &'a str, caller: &'a Caller, arguments: &Value) -> Self {
        Self {
            time: String::new(),
            component: "",
            digest: String::new(),
            tool,
            caller: &caller.name,
            arguments: shape(arguments),
            duration_ms: 0.0,
            outcome: Outcome::Cancelled,
            error: None,
            denied: vec![],
        }
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    Ok,
    /// The component itself said so: the `err` of a `result`, or an exit code that is not zero.
    ToolError,
    /// The arguments were wrong, so nothing ran.
    BadArguments,
    /// It used up what it may use.
    Limit,
    Busy,
    /// The client is to answer something first; or it cannot be asked.
    Asked,
    /// Anything else that kept it from a result.
    Failed,
    /// Whoever called did not wait for the end.
    Cancelled,
}

/// The file, as long as the process lives.
#[derive(Debug)]
pub(crate) struct Audit {
    config: AuditConfig,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    /// Lines that could not be written yet, of calls that were made.
    unwritten: Vec<Vec<u8>>,
}

impl Audit {
    pub(crate) fn open(config: AuditConfig) -> Result<Self, AuditError> {
        let file = open(&config.file).map_err(|error| AuditError {
            path: config.file.clone(),
            error,
        })?;
        Ok(Self {
            config,
            state: Mutex::new(State {
                file,
                unwritten: Vec::new(),
            }),
        })
    }

    /// Whether a call may begin: after a failure only when what could not be written then is written now.
    pub(crate) fn check(&self) -> Result<(), AuditError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.write_all(&mut state)
    }

    pub(crate) fn write(&self, line: &Line<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // What has a name and numbers in it is always JSON.
        let mut line = serde_json::to_vec(line).unwrap_or_default();
        line.push(b'\n');
        state.unwritten.push(line);
        if let Err(error) = self.write_all(&mut state) {
            tracing::error!("{error}");
        }
    }

    fn write_all(&self, state: &mut State) -> Result<(), AuditError> {
        while let Some(line) = state.unwritten.first() {
            self.append(&mut state.file, line).map_err(|error| AuditError {
                path: self.config.file.clone(),
                error,
            })?;
            state.unwritten.remove(0);
        }
        Ok(())
    }

    /// Appends a line to the file of that name, alone among all processes that do so: another may have put the file aside meanwhile.
    fn append(&self, file: &mut File, line: &[u8]) -> io::Result<()> {
        let path = &self.config.file;
        loop {
            file.lock()?;
            if is_at(file, path) {
                break;
            }
            *file = open(path)?;
        }
        let size = file.metadata()?.len();
        let written = if size > 0 && size.saturating_add(line.len() as u64) > self.config.max_size.bytes() {
            rotate(path).and_then(|()| {
                let new = open(path)?;
                new.lock()?;
                *file = new;
                file.write_all(line)
            })
        } else {
            // In one write, which is whole or fails.
            file.write_all(line)
        };
        file.unlock()?;
        written
    }
}

/// Opens the file to append to it. Only this user can read a new one: names of tools and hosts may be nobody else's business.
fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Whether an open file is still the one of that name.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => identity(open) == identity(named),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

/// Puts the file aside: `FILE` becomes `FILE.1`, that becomes `FILE.2`, and the last one goes.
fn rotate(file: &Path) -> io::Result<()> {
    let numbered = |number: u32| {
        let mut name = file.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    for number in (1..KEPT_FILES).rev() {
        match fs::rename(numbered(number), numbered(number + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    match fs::rename(file, numbered(1)) {
        // Another process did it just now.
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// What arguments look like, without what is in them.
pub(crate) fn shape(value: &Value) -> Value {
    shape_at(value, 0)
}

fn shape_at(value: &Value, depth: usize) -> Value {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "boolean".into(),
        Value::Number(_) => "number".into(),
        Value::String(text) => format!("string({})", text.chars().count()).into(),
        Value::Array(items) => format!("array({})", items.len()).into(),
        Value::Object(fields) if depth >= SHOWN_DEPTH => format!("object({})", fields.len()).into(),
        Value::Object(fields) => {
            let name = |name: &String| {
                component2json::clean_text(name)
                    .unwrap_or_default()
                    .chars()
                    .take(64)
                    .collect()
            };
            let mut shown: serde_json::Map<String, Value> = fields
                .iter()
                .take(SHOWN_FIELDS)
                .map(|(key, value)| (name(key), shape_at(value, depth + 1)))
                .collect();
            if fields.len() > SHOWN_FIELDS {
                shown.insert("…".to_owned(), (fields.len() - SHOWN_FIELDS).into());
            }
            Value::Object(shown)
        }
    }
}

/// Now, as it stands in a line.
pub(crate) fn now() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}

/// A duration in milliseconds, to the microsecond.
pub(crate) fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(tool: &str) -> Line<'_> {
        Line {
            time: now(),
            component: "depot",
            digest: String::new(),
            tool,
            caller: "test",
            arguments: json!({}),
            duration_ms: 0.5,
            outcome: Outcome::Ok,
            error: None,
            denied: vec![],
        }
    }

    #[test]
    fn shapes_show_no_values() {
        let arguments = json!({"name": "geheim", "count": 3, "list": [1, 2], "deep": {"a": {"b": {"c": {"d": 1}}}}, "none": null});
        assert_eq!(
            shape(&arguments),
            json!({"name": "string(6)", "count": "number", "list": "array(2)", "deep": {"a": {"b": {"c": "object(1)"}}}, "none": "null"})
        );
    }

    #[test]
    fn a_file_that_is_full_is_put_aside_and_no_line_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.jsonl");
        let audit = Audit::open(AuditConfig {
            file: file.clone(),
            max_size: ByteSize::from_bytes(1000),
        })
        .unwrap();
        let tools: Vec<String> = (0..20).map(|number| format!("tool-{number}")).collect();
        for tool in &tools {
            audit.write(&line(tool));
        }
        let mut found = Vec::new();
        for entry in fs::read_dir(folder.path()).unwrap() {
            let text = fs::read_to_string(entry.unwrap().path()).unwrap();
            assert!(text.len() <= 1000);
            for line in text.lines() {
                let line: Value = serde_json::from_str(line).unwrap();
                found.push(line["tool"].as_str().unwrap().to_owned());
            }
        }
        found.sort();
        let mut expected = tools.clone();
        expected.sort();
        assert_eq!(found, expected);
        assert!(folder.path().join("audit.jsonl.1").exists());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_write_that_fails_stops_further_calls() {
        let audit = Audit::open(AuditConfig {
            file: "/dev/full".into(),
            max_size: ByteSize::from_mib(1),
        })
        .unwrap();
        audit.check().unwrap();
        audit.write(&line("add"));
        let error = audit.check().unwrap_err().to_string();
        assert!(error.contains("/dev/full") && error.contains("--audit"), "{error}");
    }
}
