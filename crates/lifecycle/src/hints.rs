//! What to tell a person when a guest could not get at a file.
//!
//! A guest that asks for a file outside of what it was granted finds nothing there: its libc answers before the host is ever asked.
//! What is left to see is a guest that failed, with a path among its arguments and a complaint.

use std::path::{Path, PathBuf};

use command2json::Plan;
use policy::{Access, Grants};
use sandbox::Exited;
use serde_json::Value;

/// What programs say of a file that they cannot get at, in lower case.
const COMPLAINTS: [&str; 15] = [
    "no such file",
    "not-permitted",
    "no-entry",
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
    let values = argv.iter().skip(plan.path.len()).map(|word| value_in(word));
    hint_for(values, &complaint, grants)
}

/// The same for a function that was called with these arguments.
pub(crate) fn missing_grant_of_function(arguments: &Value, complaint: &str, grants: &Grants) -> Option<String> {
    let values = arguments.as_object().into_iter().flat_map(|fields| fields.values());
    hint_for(values.filter_map(Value::as_str), complaint, grants)
}

fn hint_for<'a>(values: impl Iterator<Item = &'a str>, complaint: &str, grants: &Grants) -> Option<String> {
    let lower = complaint.to_lowercase();
    if !COMPLAINTS.iter().any(|words| lower.contains(words)) {
        return None;
    }
    let paths: Vec<&str> = values.filter(|value| could_be_a_path(value)).collect();
    let named = paths.iter().find(|path| complaint.contains(**path));
    let path = named.or_else(|| paths.iter().find(|path| looks_like_a_path(path)))?;
    // What is not there is not there for lack of a grant only where there is none.
    let is_missing = ["no such file", "does not exist", "no-entry"]
        .iter()
        .any(|words| lower.contains(words));
    hint(path, is_missing, grants)
}

/// The value that a word passes: all of a positional, what follows the `=` of `--flag=value`, or the letter of `-fvalue`.
fn value_in(word: &str) -> &str {
    match (word.strip_prefix('-'), word.split_once('=')) {
        (None, _) => word,
        (Some(_), Some((_, value))) => value,
        (Some(short), None) if !short.starts_with('-') => {
            let mut letters = short.chars();
            letters.next();
            letters.as_str()
        }
        (Some(_), None) => "",
    }
}

fn could_be_a_path(value: &str) -> bool {
    !value.is_empty() && !value.starts_with('-') && value.len() < 4096 && !value.contains(['\n', '\0'])
}

/// `a/b`, `b.txt`; but not `1.5`.
fn looks_like_a_path(value: &str) -> bool {
    let ending = value.rsplit_once('.').map_or("", |(_, ending)| ending);
    value.contains('/') || ending.starts_with(|c: char| c.is_ascii_alphabetic())
}

fn hint(path: &str, is_missing: bool, grants: &Grants) -> Option<String> {
    let asked = normal(path, grants);
    let granted = grants
        .directories
        .iter()
        .filter(|grant| asked.starts_with(lexical(Path::new(&grant.directory.guest_path()))))
        .map(|grant| (grant.access, &grant.directory))
        .max_by_key(|(access, _)| *access);
    match granted {
        Some((Access::Write, _)) => None,
        Some((Access::Read, _)) if is_missing => None,
        Some((Access::Read, directory)) => Some(format!(
            "`{path}` is in a directory that was granted for reading only; if it is to be written, `--allow-write={directory}` allows that"
        )),
        // A path that leads out of what is granted is no mistake of the person's, and all of the disk is no remedy.
        None if path.split(['/', '\\']).any(|part| part == "..") => None,
        None if asked.parent().is_some_and(|folder| folder == Path::new("/")) => None,
        None => {
            // What is granted first becomes the working directory, so a relative path needs the one that it starts from; where there
            // is one already, only an absolute path leads elsewhere.
            let folder = match asked.parent() {
                Some(folder) if asked.is_absolute() => folder.display().to_string(),
                Some(_) => ".".to_owned(),
                None => path.to_owned(),
            };
            let path = if asked.is_absolute() {
                asked.display().to_string()
            } else {
                path.to_owned()
            };
            Some(format!(
                "the guest has no access to `{path}`; `--allow-read={folder}` lets it read there, `--allow-write={folder}` read and write"
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

#[cfg(test)]
mod tests {
    use policy::{Directory, DirectoryGrant};
    use sandbox::Captured;

    use super::*;

    fn told(words: &[&str], stderr: &str, granted: &[(&str, Access)]) -> Option<String> {
        let grants = Grants {
            directories: granted
                .iter()
                .map(|(text, access)| DirectoryGrant {
                    directory: text.parse::<Directory>().unwrap(),
                    access: *access,
                })
                .collect(),
            ..Grants::default()
        };
        let command = command2json::Command {
            name: "app".to_owned(),
            ..command2json::Command::default()
        };
        let (tools, _) = command2json::tools(&command, &command2json::Offer::default());
        let argv: Vec<String> = ["app"].iter().chain(words).map(|word| (*word).to_owned()).collect();
        let exited = Exited {
            exit_code: 1,
            stdout: Captured::default(),
            stderr: Captured {
                bytes: stderr.as_bytes().to_vec(),
                dropped: 0,
            },
        };
        missing_grant(&tools[0].target.plans()[0], &argv, &exited, &grants)
    }

    #[test]
    fn the_path_that_failed_is_found_wherever_it_was_passed() {
        for (words, stderr, flag) in [
            (
                &["/etc/passwd"][..],
                "/etc/passwd: No such file or directory",
                "--allow-read=/etc`",
            ),
            (&["--in=data/a.txt"], "cannot open data/a.txt", "--allow-read=.`"),
            (&["-i12", "-fpll.v"], "Failed to open output file 'pll.v'", "--allow-read=.`"),
            (&["12", "in.asc"], "Error: Failed to open input file.", "--allow-read=.`"),
            (&["--", "a", "b"], "b: Capabilities insufficient", "--allow-read=.`"),
        ] {
            let hint = told(words, stderr, &[]).unwrap();
            assert!(hint.contains(flag), "{hint}");
        }
    }

    #[test]
    fn what_is_granted_is_not_asked_for() {
        let stderr = "a.txt: Operation not permitted";
        assert_eq!(told(&["a.txt"], stderr, &[("/data", Access::Write)]), None);
        let hint = told(&["a.txt"], stderr, &[("/data", Access::Read)]).unwrap();
        assert!(hint.contains("--allow-write=/data`"), "{hint}");
        let other = told(&["/srv/x"], "/srv/x: not permitted", &[("/data", Access::Write)]).unwrap();
        assert!(other.contains("no access"), "{other}");
        // Who tries to get out gets no help with that.
        let out = told(
            &["/data/../etc/x"],
            "/data/../etc/x: not permitted",
            &[("/data", Access::Write)],
        );
        assert_eq!(out, None);
        assert_eq!(told(&["/x"], "/x: not permitted", &[("/data", Access::Write)]), None);
    }

    #[test]
    fn other_failures_have_no_hint() {
        assert_eq!(told(&["a.txt"], "a.txt: not a picture", &[]), None);
        assert_eq!(told(&["--fast", "12.5"], "cannot open the device", &[]), None);
    }
}
