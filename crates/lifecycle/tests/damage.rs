//! A store in which any one byte is wrong, or a file is cut off or gone: that is reported, or makes no difference. Never is there a wrong
//! answer, another tool, another source or another grant.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail as the tests do"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lifecycle::{Caller, Config, Index, LifecycleManager, Selection, StoreError, Wanted};
use policy::{Access, DirectoryGrant, Grants};
use serde_json::{Value, json};
use tempfile::TempDir;

const PROGRAM: &str = r#"(module
    (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 8) "\10\00\00\00\06\00\00\00hello\n")
    (func (export "_start") (drop (call $fd_write (i32.const 1) (i32.const 8) (i32.const 1) (i32.const 0)))))"#;

fn component(tool: &str, answer: u32) -> String {
    format!(
        r#"(component
            (core module $m (func (export "f") (result i32) (i32.const {answer})))
            (core instance $i (instantiate $m))
            (func (export "{tool}") (result u32) (canon lift (core func $i "f"))))"#
    )
}

const WIT: &str = "package test:docs;\nworld docs {\n  /// Gives one.\n  export one: func() -> u32;\n}\n";

/// A store with three components: one with docs beside it and a grant, one that is a program, and one more.
struct Scene {
    folder: TempDir,
    files: Vec<(PathBuf, Vec<u8>)>,
    index: Index,
    tools: Vec<Value>,
}

/// What can be seen of a store, and whether something in it is said to be wrong.
struct Seen {
    reports: Vec<String>,
    index: Result<Index, StoreError>,
    tools: Vec<Value>,
    /// Of each tool that is there.
    answers: Vec<(String, Result<Value, String>)>,
}

const ANSWERS: [(&str, &str); 3] = [("one", "1"), ("program", "\"hello\\n\""), ("two", "2")];

impl Scene {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        for (name, text) in [
            ("a.wat", component("one", 1)),
            ("a.wit", WIT.to_owned()),
            ("b.wat", component("two", 2)),
            ("program.wat", PROGRAM.to_owned()),
        ] {
            lifecycle::write_atomically(&folder.path().join(name), text.as_bytes()).unwrap();
        }
        let manager = Arc::new(manager(&home));
        let granted = Grants {
            directories: vec![DirectoryGrant {
                directory: folder.path().to_str().unwrap().parse().unwrap(),
                access: Access::Read,
            }],
            ..Grants::default()
        };
        for (name, grants) in [
            ("a.wat", granted),
            ("program.wat", Grants::default()),
            ("b.wat", Grants::default()),
        ] {
            let source = manager.sources(folder.path().join(name).to_str().unwrap()).unwrap().remove(0);
            let candidate = manager.fetch(&source.unwrap(), Wanted::default()).await.unwrap();
            manager.add(&candidate, &grants).unwrap();
        }
        // Left behind by a server that was killed, and by a download that broke off.
        for name in ["running/.tmp1", "downloads/0", ".tmp2", "cache/.tmp3"] {
            lifecycle::write_atomically(&home.join(name), b"left behind").unwrap();
        }
        let mut scene = Self {
            files: read(&home),
            folder,
            index: manager.store().unwrap().index().unwrap(),
            tools: vec![],
        };
        let seen = scene.look().await;
        assert_eq!(seen.reports, [""; 0]);
        assert_eq!(seen.tools.len(), ANSWERS.len());
        scene.tools = seen.tools.clone();
        scene.check(&seen, Path::new(""), "undamaged");
        scene.restore();
        scene
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn write(&self, file: &Path, bytes: &[u8]) {
        // In place: this is what a failing disk does.
        #[allow(clippy::disallowed_methods, reason = "a test's own file")]
        fs::write(self.home().join(file), bytes).unwrap();
    }

    /// Puts everything back that was damaged, or made again meanwhile.
    fn restore(&self) {
        let now = read(&self.home());
        for (file, _) in now
            .iter()
            .filter(|(file, _)| !self.files.iter().any(|(known, _)| known == file))
        {
            fs::remove_file(self.home().join(file)).unwrap();
        }
        for (file, bytes) in self.files.iter().filter(|known| !now.contains(known)) {
            let _ = fs::remove_file(self.home().join(file));
            self.write(file, bytes);
        }
    }

    async fn look(&self) -> Seen {
        let mut seen = Seen {
            reports: vec![],
            index: Err(StoreError::NoHome),
            tools: vec![],
            answers: vec![],
        };
        let manager = manager(&self.home());
        let store = match manager.store() {
            Ok(store) => store,
            Err(error) => {
                seen.reports.push(error.to_string());
                return seen;
            }
        };
        match store.verify(false) {
            Ok(verified) => {
                let report = |finding: &lifecycle::Finding| format!("{} {}", finding.path.display(), finding.problem);
                seen.reports.extend(verified.findings.iter().map(report));
            }
            Err(error) => seen.reports.push(error.to_string()),
        }
        seen.index = store.index();
        if let Err(error) = manager.serve_added(Selection::All) {
            seen.reports.push(error.to_string());
        }
        for tool in manager.tools() {
            seen.tools.push(json!(tool.definition));
            let called = manager.execute_component_call(&tool, &json!({}), &Caller::default()).await;
            let answer = called.map(|outcome| outcome.structured.unwrap()["result"].clone());
            seen.answers
                .push((tool.definition.name.to_string(), answer.map_err(|error| error.to_string())));
        }
        seen
    }

    /// Fails if something is wrong without being told, or wrong at all in what is there.
    fn check(&self, seen: &Seen, file: &Path, what: &str) {
        let context = format!("{}, {what}: {:?}", file.display(), seen.reports);
        let is_reported = !seen.reports.is_empty();
        if is_reported {
            let name = file.file_stem().unwrap().to_str().unwrap();
            let is_named = |name: &str| seen.reports.iter().any(|report| report.contains(name));
            // All that a wrong key fits is the key itself.
            assert!(is_named(name) || name == "key" && is_named("components.toml"), "{context}");
        }
        match &seen.index {
            Ok(index) => assert_eq!(*index, self.index, "{context}"),
            Err(_) => assert!(is_reported, "{context}"),
        }
        let is_complete = seen.tools.len() == self.tools.len();
        assert!(is_complete || is_reported, "{context}");
        for tool in &seen.tools {
            assert!(self.tools.contains(tool), "{context}: {tool}");
        }
        for (tool, answer) in &seen.answers {
            let expected = ANSWERS.iter().find(|(name, _)| name == tool).unwrap().1;
            match answer {
                Ok(value) => {
                    let value = value.get("stdout").unwrap_or(value);
                    assert_eq!(value.to_string(), expected, "{context}: {tool}");
                }
                Err(error) => assert!(is_reported, "{context}: {tool}: {error}"),
            }
        }
    }
}

fn manager(home: &Path) -> LifecycleManager {
    let config = Config {
        home: Some(home.to_owned()),
        ..Config::default()
    };
    LifecycleManager::new(config).unwrap()
}

/// All files of a store, with their contents.
fn read(home: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![home.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in folder.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push((path.strip_prefix(home).unwrap().to_owned(), fs::read(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

/// Every byte of a small file; of a large one its beginning, its end and many between.
fn positions(length: usize) -> Vec<usize> {
    let is_tried = |position: &usize| length <= 4096 || *position < 512 || position.is_multiple_of(97) || position + 64 >= length;
    (0..length).filter(is_tried).collect()
}

#[tokio::test]
async fn any_wrong_byte_is_reported_or_makes_no_difference() {
    let scene = Scene::new().await;
    let mut flips = 0;
    for (file, bytes) in &scene.files {
        for position in positions(bytes.len()) {
            // Another bit at each position, so that all eight have their turn.
            let bit = position % 8;
            let mut damaged = bytes.clone();
            damaged[position] ^= 1 << bit;
            scene.write(file, &damaged);
            let seen = scene.look().await;
            scene.check(&seen, file, &format!("bit {bit} of byte {position}"));
            scene.restore();
            flips += 1;
        }
    }
    println!("{flips} flips");
    assert!(flips >= 3000);
}

#[tokio::test]
async fn a_file_that_is_cut_off_or_gone_is_reported_or_makes_no_difference() {
    let scene = Scene::new().await;
    for (file, bytes) in &scene.files {
        for length in [0, bytes.len() / 2, bytes.len().saturating_sub(1)] {
            scene.write(file, &bytes[..length]);
            let seen = scene.look().await;
            scene.check(&seen, file, &format!("{length} bytes"));
            scene.restore();
        }
        fs::remove_file(scene.home().join(file)).unwrap();
        let seen = scene.look().await;
        scene.check(&seen, file, "gone");
        scene.restore();
    }
}

/// All files of one kind in the places of each other: each is sealed under its own name, or named by its digest.
#[tokio::test]
async fn files_in_the_place_of_others_are_not_believed() {
    let scene = Scene::new().await;
    let mut swaps = 0;
    for (first, bytes) in &scene.files {
        for (second, other) in &scene.files {
            if first < second && first.extension().is_some() && first.extension() == second.extension() {
                scene.write(first, other);
                scene.write(second, bytes);
                // With the seals that belong to the code.
                if first.extension().is_some_and(|extension| extension == "cwasm") {
                    let seal = |file: &Path| fs::read(scene.home().join(file.with_extension("seal"))).unwrap();
                    let (one, two) = (seal(first), seal(second));
                    scene.write(&first.with_extension("seal"), &two);
                    scene.write(&second.with_extension("seal"), &one);
                }
                let seen = scene.look().await;
                assert!(!seen.reports.is_empty(), "{} and {}", first.display(), second.display());
                scene.check(&seen, first, "swapped");
                scene.restore();
                swaps += 1;
            }
        }
    }
    assert!(swaps >= 9, "{swaps} swaps");
}
