//! The rules of `crates/README.md` that a compiler does not hold: who may depend on whom, and who may do what.

#![cfg(test)]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The crates from the top down. A crate depends only on crates of lower layers; `None` is the layer of helpers for tests, which
/// depend on none of the others.
const LAYERS: &[(&str, Option<u8>)] = &[
    ("host-bench", Some(7)),
    ("host", Some(6)),
    ("fuzz-oracles", Some(5)),
    ("mcp-server", Some(5)),
    ("lifecycle", Some(4)),
    ("sandbox", Some(3)),
    ("command2json", Some(3)),
    ("sources", Some(3)),
    ("clients", Some(2)),
    ("component2json", Some(2)),
    ("policy", Some(2)),
    ("structured-output", Some(1)),
    ("catalog", Some(1)),
    ("test-guests", None),
];

/// Crates that only compute: they know no runtime and no protocol, not even through what they depend on.
const PURE: &[&str] = &["clients", "command2json", "component2json", "policy", "structured-output"];

#[test]
fn dependencies_point_downwards() {
    let mut broken = Vec::new();
    for package in packages() {
        let from = layer(&package.name);
        for dependency in package.dependencies.iter().filter(|dependency| dependency.is_ours) {
            let to = layer(&dependency.name);
            let allowed = match (from, to) {
                (Some(from), Some(to)) => to < from,
                // Helpers for tests are for tests.
                (Some(_), None) => dependency.is_dev,
                (None, _) => false,
            };
            if !allowed {
                broken.push(format!("{} → {}", package.name, dependency.name));
            }
        }
    }
    assert!(broken.is_empty(), "dependencies that point up or sideways: {broken:#?}");
}

#[test]
fn pure_crates_know_no_runtime_and_no_protocol() {
    for name in PURE {
        let tree = run(
            env!("CARGO"),
            &["tree", "--package", name, "--edges", "normal", "--prefix", "none"],
        );
        assert!(tree.starts_with(name), "{tree}");
        for forbidden in ["tokio ", "rmcp "] {
            let found: Vec<&str> = tree.lines().filter(|line| line.starts_with(forbidden)).collect();
            assert!(
                found.is_empty(),
                "`{name}` depends on {found:?}: see `cargo tree -p {name} -i {forbidden}`"
            );
        }
    }
}

#[test]
fn the_protocol_and_the_network_have_two_rooms_each() {
    // The benchmark measures rmcp's own server beside ours.
    let rmcp: &[&str] = &["catalog", "host-bench", "mcp-server"];
    for (library, rooms) in [("rmcp", rmcp), ("reqwest", &["catalog", "sources"])] {
        let users: Vec<String> = packages()
            .into_iter()
            .filter(|package| {
                let named = |dependency: &Dependency| dependency.name.starts_with(library);
                package.dependencies.iter().any(named)
            })
            .map(|package| package.name)
            .collect();
        assert_eq!(users, rooms, "{library}");
    }
}

#[test]
fn only_sandbox_creates_stores() {
    let creators = code_with(&["Store::new(", "Store::<"]);
    assert!(!creators.is_empty(), "this test looks for the wrong thing");
    for (file, line) in creators {
        assert!(
            file.starts_with("crates/sandbox"),
            "{} creates a store: {line}",
            file.display()
        );
    }
}

#[test]
fn only_one_file_prints() {
    let std_streams = ["io::stdout()", "io::stderr()"];
    let macros = ["print!(", "println!(", "eprint!(", "eprintln!(", "dbg!("];
    let printers = code_with(&macros).into_iter().chain(code_with(&std_streams));
    for (file, line) in printers {
        let asks_only = line.contains(".is_terminal()");
        let is_test = file.components().any(|part| part.as_os_str() == "tests");
        assert!(
            file == Path::new("src/output.rs") || asks_only || is_test,
            "{} prints, and stdout is the protocol: {line}",
            file.display()
        );
    }
}

#[test]
fn versions_stand_in_the_workspace() {
    let mut broken = Vec::new();
    for package in packages() {
        let manifest = std::fs::read_to_string(&package.manifest).unwrap();
        let mut in_dependencies = false;
        for line in manifest.lines().map(str::trim) {
            if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                let is_dependencies = |section: &str| section.ends_with("dependencies");
                in_dependencies = is_dependencies(section) && section != "workspace.dependencies";
                // `[dependencies.NAME]` could hide a version from the check below.
                if section.rsplit_once('.').is_some_and(|(parent, _)| is_dependencies(parent)) {
                    broken.push(format!("{}: [{section}]", package.name));
                }
            } else if in_dependencies && !line.is_empty() && !line.starts_with('#') {
                let (name, rest) = line.split_once(['.', ' ', '=']).unwrap_or((line, ""));
                if !(rest.contains("workspace = true") || rest.contains("path = ")) || rest.contains("version") {
                    broken.push(format!("{}: {name}", package.name));
                }
            }
        }
    }
    assert!(broken.is_empty(), "not `name.workspace = true` on one line: {broken:#?}");
}

#[test]
fn no_file_names_a_machine() {
    // Put together here, so that this file does not name one.
    let homes = [["/ro", "ot/"], ["/ho", "me/"], ["/Us", "ers/"], ["\\Us", "ers\\"]].map(|parts| parts.concat());
    let here = root().to_string_lossy().into_owned();
    let Ok(listing) = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output() else {
        return;
    };
    for file in String::from_utf8(listing.stdout).unwrap().split_terminator('\0') {
        // What is deleted but not committed yet is still listed.
        let Ok(bytes) = std::fs::read(root().join(file)) else {
            continue;
        };
        for path in homes.iter().chain([&here]) {
            let found = bytes.windows(path.len()).any(|window| window == path.as_bytes());
            assert!(!found, "`{file}` contains a path of somebody's machine: {path}…");
        }
    }
}

struct Package {
    name: String,
    manifest: PathBuf,
    dependencies: Vec<Dependency>,
}

struct Dependency {
    name: String,
    /// It is a member of this workspace.
    is_ours: bool,
    is_dev: bool,
}

fn layer(name: &str) -> Option<u8> {
    let place = LAYERS.iter().find(|(known, _)| *known == name);
    place
        .unwrap_or_else(|| panic!("`{name}` has no place in LAYERS yet; give it one, and a part in crates/README.md"))
        .1
}

/// Cargo runs tests in the folder of their package.
fn root() -> PathBuf {
    std::env::current_dir().unwrap()
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(root()).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// The members of the workspace, by name.
fn packages() -> Vec<Package> {
    let metadata: Value = serde_json::from_str(&run(env!("CARGO"), &["metadata", "--no-deps", "--format-version", "1"])).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let dependency = |value: &Value| Dependency {
        name: text(&value["name"]),
        is_ours: value.get("path").is_some_and(Value::is_string),
        is_dev: value["kind"] == "dev",
    };
    let package = |value: &Value| Package {
        name: text(&value["name"]),
        manifest: text(&value["manifest_path"]).into(),
        dependencies: value["dependencies"].as_array().unwrap().iter().map(dependency).collect(),
    };
    let mut packages: Vec<Package> = metadata["packages"].as_array().unwrap().iter().map(package).collect();
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    packages
}

/// Every line of `src/` and `crates/` that has one of these as a word of its own, comments left out.
fn code_with(needles: &[&str]) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    rust_files(&root().join("src"), &mut files);
    rust_files(&root().join("crates"), &mut files);
    assert!(files.len() > 20, "this test looks in the wrong place");
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let relative = file.strip_prefix(root()).unwrap();
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
            if needles.iter().any(|needle| contains_word(line, needle)) {
                found.push((relative.to_owned(), line.to_owned()));
            }
        }
    }
    found
}

fn contains_word(line: &str, needle: &str) -> bool {
    let is_part_of_a_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(needle)
        .any(|(at, _)| !line[..at].ends_with(is_part_of_a_name))
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
