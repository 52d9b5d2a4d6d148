//! A store and the files that its components came from; and all that can be seen of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Finished, finish, write};

/// A component with one tool, that always gives the same answer.
pub(crate) fn component(tool: &str, answer: u32) -> String {
    format!(
        r#"(component
            (core module $m (func (export "f") (result i32) (i32.const {answer})))
            (core instance $i (instantiate $m))
            (func (export "{tool}") (result u32) (canon lift (core func $i "f"))))"#
    )
}

/// The WIT of such a component, with docs for its tool.
pub(crate) fn wit(tool: &str, docs: &str) -> String {
    format!("package test:docs;\nworld docs {{\n  /// {docs}\n  export {tool}: func() -> u32;\n}}\n")
}

/// A program, as a core module, that prints a line.
pub(crate) const PROGRAM: &str = r#"(module
    (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 8) "\10\00\00\00\06\00\00\00hello\n")
    (func (export "_start") (drop (call $fd_write (i32.const 1) (i32.const 8) (i32.const 1) (i32.const 0)))))"#;

/// A folder with the files of components, and stores beside them.
pub(crate) struct Scene(TempDir);

impl Scene {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }

    /// The store that a test begins with.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder().join("home")
    }

    pub(crate) fn write(&self, name: &str, contents: &str) {
        write(&self.folder().join(name), contents);
    }

    /// A copy of the store, to try something with.
    pub(crate) fn copy(&self) -> TempDir {
        let copy = tempfile::tempdir_in(self.folder()).unwrap();
        copy_folder(&self.home(), &copy.path().join("home"));
        copy
    }

    /// `host` with these arguments on some store, in the folder of the components.
    pub(crate) fn host(&self, home: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_host"));
        command.args(arguments);
        self.prepare(command, home)
    }

    /// Some other program, that will start `host`, with what `host` needs.
    pub(crate) fn prepare(&self, mut command: Command, home: &Path) -> Command {
        command
            .current_dir(self.folder())
            .env("HOST_HOME", home)
            .env_remove("HOST_LOG")
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, home: &Path, arguments: &[&str]) -> Finished {
        finish(&mut self.host(home, arguments))
    }

    /// Does what must succeed, with the store that a test begins with.
    pub(crate) fn do_well(&self, arguments: &[&str]) -> Finished {
        let finished = self.run(&self.home(), arguments);
        assert_eq!(finished.code, 0, "{arguments:?}: {finished:?}");
        finished
    }

    pub(crate) fn state(&self, home: &Path) -> State {
        let listed = self.run(home, &["list", "--json"]);
        assert_eq!(listed.code, 0, "{listed:?}");
        let mut listed: Value = serde_json::from_str(&listed.stdout).unwrap();
        let components = listed["components"].as_array_mut().unwrap();
        let mut answers = Vec::new();
        for component in components.iter_mut() {
            component.as_object_mut().unwrap().remove("addedAt");
            let (id, tool) = (component["id"].as_str().unwrap(), component["tools"][0].as_str().unwrap());
            let called = self.run(home, &["call", id, tool]);
            assert_eq!(called.code, 0, "{id} {tool}: {called:?}");
            answers.push(called.stdout);
        }
        let index = fs::read_to_string(home.join("components.toml")).unwrap_or_default();
        let changing = ["# ", "added_at", "updated_at"];
        let lines = index
            .lines()
            .filter(|line| !changing.iter().any(|start| line.starts_with(start)));
        State {
            index: lines.map(str::to_owned).collect(),
            listed,
            answers,
        }
    }
}

/// All that can be seen of a store but times.
#[derive(Debug, PartialEq)]
pub(crate) struct State {
    index: Vec<String>,
    listed: Value,
    /// What each component answers.
    answers: Vec<String>,
}

/// All files below a folder, by their paths in it, sorted.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let Ok(entries) = next.read_dir() else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// Copies a folder, if it is there, with the permissions that a store must have.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    let Ok(entries) = from.read_dir() else { return };
    fs::create_dir(to).unwrap();
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
    for path in entries.map(|entry| entry.unwrap().path()) {
        let copy = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_folder(&path, &copy);
        } else {
            fs::copy(&path, &copy).unwrap();
        }
    }
}
