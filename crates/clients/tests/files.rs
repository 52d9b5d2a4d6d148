//! `files/CLIENT/CASE/`: a config file before, after `host install` and after `host uninstall`, to the byte. If there is no
//! `before`, there was no file. `error.txt` has what is said where nothing is changed, and `servers.txt` what is listed.
//! `BLESS=1` writes all of them from `before`.
//!
//! How a case begins says what is installed: `http`, `headers`, `env`, `windows`; `forced` replaces what others have.

#![cfg(test)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clients::{Change, Client, Configured, EditError, Endpoint, Entry, Format, Transport};

/// Cases in which an install and an uninstall do not give back the file that was there, and why; besides those in which the name
/// was there before.
const NOT_RESTORED: &[(&str, &str)] = &[
    ("fresh", "there was no file; an empty one is what is left"),
    ("empty-file", "an empty object is what is left"),
    ("comments-only", "an empty object is what is left"),
    ("empty-container", "an empty list is as good as none"),
    ("null-container", "an empty list is as good as none"),
    ("braces-container", "an empty list is as good as none"),
];

#[test]
fn files_are_what_the_snapshots_say() {
    let mut report = Report::default();
    let mut count = 0;
    for client in Client::ALL {
        for case in folders(&root().join(client.id())) {
            report.case = format!("{client}/{}", name_of(&case));
            run(client, &case, &mut report);
            count += 1;
        }
    }
    assert!(count >= 100, "the cases are gone");
    assert!(report.failures.is_empty(), "{}", report.failures.join("\n"));
}

#[test]
fn every_client_has_the_usual_cases() {
    for client in Client::ALL {
        let cases: Vec<String> = folders(&root().join(client.id())).iter().map(|case| name_of(case)).collect();
        let usual = [
            "fresh",
            "real",
            "crlf",
            "bom",
            "broken",
            "wrong-container",
            "taken",
            "http",
            "windows",
            "same",
            "replaced",
        ];
        for case in usual {
            assert!(cases.iter().any(|known| known == case), "{client} has no case `{case}`");
        }
    }
}

fn run(client: Client, folder: &Path, report: &mut Report) {
    let case = name_of(folder);
    let ending = match client.format() {
        Format::Json => "json",
        Format::Toml => "toml",
        Format::Yaml => "yaml",
    };
    let file = |stem: &str| folder.join(format!("{stem}.{ending}"));
    let before = fs::read_to_string(file("before")).ok();
    let entry = entry(&case);
    let mut errors = String::new();

    let installed = client.install(before.as_deref(), &entry, case.starts_with("forced"));
    report.compare(&file("installed"), installed.as_ref().ok().map(|edit| edit.text.as_str()));
    let there = before.as_deref().map_or(Ok(Vec::new()), |text| client.servers(text));
    let was_there = there.iter().flatten().any(|server| server.name == "text-tools");
    match &installed {
        Err(error) => note(&mut errors, "install", error),
        Ok(edit) => {
            let expected: &[Change] = if was_there {
                &[Change::None, Change::Replaced]
            } else {
                &[Change::Added]
            };
            report.expect(expected.contains(&edit.change), &format!("{:?}", edit.change));
            report.expect(
                edit.change != Change::None || Some(&edit.text) == before.as_ref(),
                "changed, and not",
            );
            let again = client.install(Some(&edit.text), &entry, false).unwrap();
            report.expect(again.change == Change::None, "the second install does something");
            report.expect(again.text == edit.text, "the second install changes the text");
            let servers = client.servers(&edit.text).unwrap();
            let ours = servers.iter().find(|server| server.name == "text-tools").unwrap();
            report.expect(has(&ours.endpoint, &entry.transport), "what was installed is not there");
        }
    }

    let text = installed.as_ref().map_or(before.clone(), |edit| Some(edit.text.clone()));
    let uninstalled = text.map(|text| client.uninstall(&text, entry.name.as_str(), ""));
    let text = uninstalled
        .as_ref()
        .and_then(|result| result.as_ref().ok())
        .map(|edit| edit.text.as_str());
    report.compare(&file("uninstalled"), text);
    match &uninstalled {
        None => {}
        Some(Err(error)) => note(&mut errors, "uninstall", error),
        Some(Ok(edit)) => {
            let is_there = was_there || installed.is_ok();
            let expected = if is_there { Change::Removed } else { Change::None };
            report.expect(edit.change == expected, &format!("{:?}, not {expected:?}", edit.change));
            let again = client.uninstall(&edit.text, entry.name.as_str(), "").unwrap();
            report.expect(again.change == Change::None, "the second uninstall does something");
            report.expect(again.text == edit.text, "the second uninstall changes the text");
            let is_known = NOT_RESTORED.iter().any(|(start, _)| case.starts_with(start));
            let is_restored = Some(&edit.text) == before.as_ref();
            report.expect(is_restored || is_known || was_there, "the file is not given back");
        }
    }

    let mut listed = String::new();
    match there {
        Err(error) => note(&mut errors, "servers", &error),
        Ok(servers) if servers.is_empty() => {}
        Ok(servers) => servers.iter().for_each(|server| list(&mut listed, server)),
    }
    report.compare(
        &folder.join("error.txt"),
        Some(errors.as_str()).filter(|text| !text.is_empty()),
    );
    report.compare(
        &folder.join("servers.txt"),
        Some(listed.as_str()).filter(|text| !text.is_empty()),
    );
}

fn note(errors: &mut String, command: &str, error: &EditError) {
    writeln!(errors, "{command}: {error}").unwrap();
}

/// Is the server what was wanted? There may be more variables and headers, of the person.
fn has(found: &Endpoint, wanted: &Transport) -> bool {
    let all = |found: &[(String, String)], wanted: &[(String, String)]| wanted.iter().all(|pair| found.contains(pair));
    match (found, wanted) {
        (
            Endpoint::Known(Transport::Stdio { command, args, env }),
            Transport::Stdio {
                command: wanted_command,
                args: wanted_args,
                env: wanted_env,
            },
        ) => command == wanted_command && args == wanted_args && all(env, wanted_env),
        (
            Endpoint::Known(Transport::Http { url, headers }),
            Transport::Http {
                url: wanted_url,
                headers: wanted_headers,
            },
        ) => url == wanted_url && all(headers, wanted_headers),
        _ => false,
    }
}

fn list(listed: &mut String, server: &Configured) {
    let Configured {
        name,
        endpoint,
        enabled,
        cwd,
    } = server;
    write!(listed, "{name}").unwrap();
    match endpoint {
        Endpoint::Known(Transport::Stdio { command, args, env }) => {
            write!(listed, ": {command} {args:?}").unwrap();
            env.iter()
                .for_each(|(name, value)| write!(listed, " {name}={value}").unwrap());
        }
        Endpoint::Known(Transport::Http { url, headers }) => {
            write!(listed, ": {url}").unwrap();
            headers
                .iter()
                .for_each(|(name, value)| write!(listed, " {name}: {value}").unwrap());
        }
        Endpoint::Unknown { reason } => write!(listed, ": unknown: {reason}").unwrap(),
    }
    cwd.iter().for_each(|cwd| write!(listed, " in {cwd}").unwrap());
    let ours = if server.is_ours("") { " (ours)" } else { "" };
    writeln!(listed, "{}{ours}", if *enabled { "" } else { " (off)" }).unwrap();
}

fn entry(case: &str) -> Entry {
    let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    let pair = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    let stdio = |command: &str, env| Transport::Stdio {
        command: command.to_owned(),
        args: owned(&["serve", "text-tools", "--allow-read=/data"]),
        env,
    };
    let http = |headers| Transport::Http {
        url: "http://127.0.0.1:8080/mcp".to_owned(),
        headers,
    };
    Entry {
        name: "text-tools".parse().unwrap(),
        transport: match case.split('-').next().unwrap() {
            "http" => http(Vec::new()),
            "headers" => http(pair("Authorization", "Bearer ${TOKEN}")),
            "env" => stdio("/opt/host/bin/host", pair("HOST_LOG", "debug, but \"quiet\"")),
            "windows" => stdio(r"C:\opt\host\host.exe", Vec::new()),
            _ => stdio("/opt/host/bin/host", Vec::new()),
        },
    }
}

#[derive(Default)]
struct Report {
    case: String,
    failures: Vec<String>,
}

impl Report {
    fn expect(&mut self, truth: bool, what: &str) {
        if !truth {
            self.failures.push(format!("{}: {what}", self.case));
        }
    }

    /// Compares a file with what it should be, or with `BLESS=1` writes that.
    fn compare(&mut self, file: &Path, text: Option<&str>) {
        if std::env::var_os("BLESS").is_some() {
            match text {
                #[expect(clippy::disallowed_methods, reason = "a snapshot that is half written is blessed again")]
                Some(text) => fs::write(file, text).unwrap(),
                None => drop(fs::remove_file(file)),
            }
        } else {
            let found = fs::read_to_string(file).ok();
            let what = format!("{} differs; look at `git diff` after BLESS=1", name_of(file));
            self.expect(found.as_deref() == text, &what);
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files")
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut folders: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
}
