//! What to tell a person when a program could not get at a file.
//!
//! A program that asks for a file outside of what it was granted finds nothing there: its libc answers before the host is ever asked.
//! What is left to see is a program that failed, with a path among its arguments and a complaint.

use std::path::{Path, PathBuf};

use command2json::Plan;
use policy::{Access, Grants};
use sandbox::Exited;

/// What programs say of a file that they cannot get at, in lower case.
const COMPLAINTS: [&str; 13] = [
    "no such file",
    "does not exist",
    "not permitted",
    "permission denied",
    "capabilities insufficient",
    "not capable",
    "read-only",
    "pre-opened",
    "cannot open",
    "can't open",
    "could not open",
    "failed to open",
    "unable to open",
];

/// What is looked at of a program's complaint.
const MAX_COMPLAINT: usize = 64 << 10;

/// The flag that would help, if the program failed over a file that it has no access to.
pub(crate) fn missing_grant(plan: &Plan, argv: &[String], exited: &Exited, grants: &Grants) -> Option<String> {
    if exited.exit_code == 0 {
        return None;
    }
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes.get(..MAX_COMPLAINT).unwrap_or(bytes)).into_owned();
    let complaint = format!("{}\n{}", said(&exited.stderr.bytes), said(&exited.stdout.bytes));
    let lower = complaint.to_lowercase();
    if !COMPLAINTS.iter().any(|words| lower.contains(words)) {
        return None;
    }
    let values = argv.iter().skip(plan.path.len()).map(|word| match word.split_once('=') {
        Some((flag, value)) if flag.starts_with('-') => value,
        _ => word.as_str(),
    });
    let mut paths = values.filter(|value| is_path(value));
    let named = paths.clone().find(|path| complaint.contains(*path));
    let path = named.or_else(|| paths.find(|path| path.contains('/')))?;
    hint(path, grants)
}

fn is_path(value: &str) -> bool {
    !value.is_empty() && !value.starts_with('-') && value.len() < 4096 && !value.contains(['\n', '\0'])
}

fn hint(path: &str, grants: &Grants) -> Option<String> {
    let asked = normal(path, grants);
    let granted = grants
        .directories
        .iter()
        .filter(|grant| asked.starts_with(lexical(Path::new(&grant.directory.guest_path()))))
        .map(|grant| (grant.access, &grant.directory))
        .max_by_key(|(access, _)| *access);
    match granted {
        Some((Access::Write, _)) => None,
        Some((Access::Read, directory)) => Some(format!(
            "`{path}` is in a directory that was granted for reading only; if it is to be written, `--allow-write={directory}` allows that"
        )),
        None => {
            let folder = match Path::new(path).parent() {
                Some(folder) if folder.as_os_str().is_empty() => ".".to_owned(),
                Some(folder) => folder.display().to_string(),
                None => path.to_owned(),
            };
            Some(format!(
                "the program has no access to `{path}`; `--allow-read={folder}` lets it read there, `--allow-write={folder}` read and write"
            ))
        }
    }
}

/// The path as the guest means it: below its working directory where it is relative.
fn normal(path: &str, grants: &Grants) -> PathBuf {
    let path = Path::new(path);
    match grants.directories.first() {
        Some(first) if path.is_relative() => lexical(&Path::new(&first.directory.guest_path()).join(path)),
        _ => lexical(path),
    }
}

/// Without `.` and `..`, as far as that can be told from the text.
fn lexical(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}
