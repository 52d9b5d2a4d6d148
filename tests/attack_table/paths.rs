//! Rows 7 and 8: names that are to become paths, and a guest that wants out of its directory.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::scene::{component, files};
use crate::support::{Home, Server, assert_readable, guest};
use crate::unharmed::{GOOD, Host, good};

/// What nobody may get to see.
const CANARY: &str = "canary-0b1c2d";

/// Names that would lead elsewhere if they were used as paths.
const TRAVERSALS: [&str; 14] = [
    "..",
    "../x",
    "../../etc/passwd",
    "/etc/passwd",
    "a/../../x",
    "..\\x",
    "a\\..\\..\\x",
    "C:\\x",
    "%2e%2e%2fx",
    "%2e%2e",
    "..%c0%af..%c0%afx",
    "a\nb",
    "con.",
    "~root",
];

#[test]
fn row_07_traversal() {
    let home = Home::new();
    fs::create_dir_all(home.file("allowed")).unwrap();
    let root = home.file("").canonicalize().unwrap();
    home.write("allowed/inside.wat", GOOD);
    home.write("outside.wat", GOOD);
    home.write(
        "home/host.toml",
        format!("[agent]\nsources = [{:?}]\n", root.join("allowed/*")),
    );
    let file = good(&home);
    let outside = || -> Vec<PathBuf> {
        let is_outside = |path: &PathBuf| !path.starts_with("home");
        files(&root).into_iter().filter(is_outside).collect()
    };

    // A person at a terminal, who was told to type this.
    let before = outside();
    for id in TRAVERSALS {
        let path = file.to_str().unwrap();
        for arguments in [
            &["add", path, "--name", id][..],
            &["info", id],
            &["remove", id],
            &["update", id],
        ] {
            let refused = home.run(arguments);
            assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{arguments:?}: {refused:?}");
            assert_readable(&refused.stderr);
        }
    }
    // Names of files are only where ids come from.
    for name in ["..%2f..%2fx.wat", "..\\..\\x.wat", "a b\u{202e}c.wat", "-rf.wat", "...wat"] {
        let path = home.write(&format!("odd/{name}"), component("plus", 1));
        let added = home.run(&["add", path.to_str().unwrap(), "--name", "odd"]);
        assert_eq!(added.code, 0, "{added:?}");
        assert_eq!(home.run(&["remove", "odd"]).code, 0);
        let added = home.run(&["add", path.to_str().unwrap()]);
        assert_eq!(added.code, 0, "{added:?}");
        fs::remove_file(path).unwrap();
    }
    fs::remove_dir(home.file("odd")).unwrap();
    assert_eq!(outside(), before);
    // In the store a name is a digest.
    for path in files(&home.directory().join("components")) {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        assert!(path.components().count() == 1 && stem.len() == 64, "{}", path.display());
        assert!(stem.bytes().all(|byte| byte.is_ascii_hexdigit()), "{}", path.display());
    }

    // An agent, who was told to ask for this.
    let allowed = root.join("allowed").to_str().unwrap().to_owned();
    let mut host = Host::serve_files(&home, &["--allow-agent-admin"], &[]);
    host.survives(|server| {
        for id in TRAVERSALS {
            let error = server.call_error("unload_component", &json!({"id": id}));
            assert!(!error.contains(CANARY), "{error}");
            let source = format!("{allowed}/inside.wat");
            server.call_error("load_component", &json!({"source": source, "name": id}));
        }
        for source in [
            format!("{allowed}/../outside.wat"),
            format!("{allowed}/%2e%2e/outside.wat"),
            format!("{allowed}/..\\outside.wat"),
            format!("file://{allowed}/../outside.wat"),
            format!("{allowed}/inside.wat\0.wat"),
            format!("{allowed}/./.././outside.wat"),
        ] {
            let error = server.call_error("load_component", &json!({"source": source}));
            assert!(
                error.contains("hint: ") || error.contains("no component"),
                "{source:?}: {error}"
            );
        }
    });
    host.close_well();
    assert_eq!(outside(), before);
}

/// A store that somebody swapped a link into is none.
#[test]
fn row_08_links_in_the_store() {
    let home = Home::new();
    let file = good(&home);
    let path = file.to_str().unwrap();
    assert_eq!(home.run(&["add", path]).code, 0);
    fs::create_dir(home.file("elsewhere")).unwrap();
    let mut host = Host::start(&mut home.host(&["serve"]));
    host.survives(|_| {
        for folder in ["components", "cache"] {
            let (place, aside) = (home.directory().join(folder), home.file("aside"));
            fs::rename(&place, &aside).unwrap();
            symlink(home.file("elsewhere"), &place).unwrap();
            let other = home.write("other.wat", component("plus", 1));
            let refused = home.run(&["add", other.to_str().unwrap()]);
            assert_eq!(refused.code, 2, "{folder}: {refused:?}");
            assert!(
                refused.stderr.contains("is a link or no directory\nhint: "),
                "{folder}: {refused:?}"
            );
            assert_eq!(fs::read_dir(home.file("elsewhere")).unwrap().count(), 0);
            fs::remove_file(&place).unwrap();
            fs::rename(&aside, &place).unwrap();
        }
    });
    host.close_well();
    assert_eq!(home.run(&["verify"]).code, 0);
}

/// Calls a tool that works on the granted directory, and fails if it tells what is outside of it.
fn attempt(server: &mut Server, tool: &str, arguments: Value) -> Value {
    let result = server.call(tool, &arguments);
    assert!(!result.to_string().contains(CANARY), "{tool} {arguments}: {result}");
    result
}

fn assert_refused(server: &mut Server, tool: &str, arguments: Value) {
    let shown = arguments.to_string();
    let result = attempt(server, tool, arguments);
    assert_eq!(result["isError"], true, "{tool} {shown}: {result}");
}

/// All that is below a folder, with what is in it.
fn contents(folder: &Path) -> Vec<(PathBuf, String)> {
    let read = |path: PathBuf| (path.clone(), fs::read_to_string(folder.join(path)).unwrap());
    files(folder).into_iter().map(read).collect()
}

#[test]
fn row_08_symlink_escape() {
    let home = Home::new();
    home.write("outside/secret.txt", CANARY);
    home.write("data/mine.txt", "mine");
    home.write("data/denied/secret.txt", CANARY);
    home.write("read-only/theirs.txt", "theirs");
    let [data, denied, read_only] = ["data", "data/denied", "read-only"].map(|name| home.file(name).canonicalize().unwrap());
    let options = [
        format!("--allow-write={}:/data", data.display()),
        format!("--allow-read={}:/read-only", read_only.display()),
        format!("--deny-read={}", denied.display()),
    ];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let outside = home.file("outside");
    let absolute = outside.join("secret.txt").to_str().unwrap().to_owned();
    // Links that were there before the guest.
    symlink("../outside", data.join("way-out")).unwrap();
    symlink(&absolute, data.join("absolute-way-out")).unwrap();
    symlink("denied", data.join("way-in")).unwrap();
    let mut host = Host::serve(&home, &options, &["evil-08-escape"]);
    let before = contents(&outside);
    let preopens = host.server.call("preopens", &json!({}))["structuredContent"]["result"].take();
    let theirs = preopens
        .as_array()
        .unwrap()
        .iter()
        .position(|path| path == "/read-only")
        .unwrap();
    host.survives(|server| {
        // What is granted works.
        let read = attempt(server, "read", json!({"preopen": 0, "path": "mine.txt", "follow": true}));
        assert_eq!(read["structuredContent"]["result"], json!({"ok": "mine"}), "{read}");

        let ways_out = [
            "../outside/secret.txt",
            "./../outside/secret.txt",
            "mine.txt/../../outside/secret.txt",
            absolute.as_str(),
            "way-out/secret.txt",
            "way-out/secret.txt/",
            "way-out/../outside/secret.txt",
            "absolute-way-out",
            "absolute-way-out/",
            "denied/secret.txt",
            "./denied/../denied/secret.txt",
            "way-in/secret.txt",
            "../data/denied/secret.txt",
        ];
        for path in ways_out {
            for follow in [true, false] {
                assert_refused(server, "read", json!({"preopen": 0, "path": path, "follow": follow}));
            }
            assert_refused(server, "write", json!({"preopen": 0, "path": path, "text": "owned"}));
            assert_refused(server, "append", json!({"preopen": 0, "path": path, "text": "owned"}));
            // A second name of a link is a link, and leads nowhere either.
            attempt(server, "hard_link", json!({"preopen": 0, "old": path, "new": "hard"}));
            assert_refused(server, "read", json!({"preopen": 0, "path": "hard", "follow": true}));
            attempt(server, "remove", json!({"preopen": 0, "path": "hard"}));
            attempt(
                server,
                "set_times",
                json!({"preopen": 0, "path": path, "follow": true, "seconds": 1}),
            );
        }
        for path in ["..", "../outside", "way-out", "way-out/", "denied", "way-in/"] {
            assert_refused(server, "list_directory", json!({"preopen": 0, "path": path}));
        }

        // Links that it makes by itself.
        for target in [
            "../outside/secret.txt",
            "way-out/secret.txt",
            "denied/secret.txt",
            absolute.as_str(),
        ] {
            attempt(server, "symlink", json!({"preopen": 0, "target": target, "path": "own"}));
            assert_refused(server, "read", json!({"preopen": 0, "path": "own", "follow": true}));
            assert_refused(server, "write", json!({"preopen": 0, "path": "own/", "text": "owned"}));
            attempt(server, "remove", json!({"preopen": 0, "path": "own"}));
        }

        // Things that it carries out, or in.
        for (old, new) in [
            ("mine.txt", "../outside/mine.txt"),
            ("way-out/secret.txt", "in.txt"),
            ("denied", "open"),
        ] {
            assert_refused(
                server,
                "rename",
                json!({"from_preopen": 0, "old": old, "to_preopen": 0, "new": new}),
            );
        }
        assert_refused(
            server,
            "rename",
            json!({"from_preopen": theirs, "old": "theirs.txt", "to_preopen": 0, "new": "stolen.txt"}),
        );
        assert_refused(
            server,
            "hard_link_across",
            json!({"from_preopen": theirs, "old": "theirs.txt", "to_preopen": 0, "new": "stolen.txt"}),
        );
        assert_refused(
            server,
            "write",
            json!({"preopen": theirs, "path": "theirs.txt", "text": "owned"}),
        );
        assert_refused(server, "remove", json!({"preopen": theirs, "path": "theirs.txt"}));

        // A directory that moves while it is open.
        attempt(server, "make_directory", json!({"preopen": 0, "path": "deep"}));
        attempt(server, "make_directory", json!({"preopen": 0, "path": "deep/er"}));
        assert_refused(
            server,
            "open_then_rename_then_read",
            json!({"preopen": 0, "directory": "deep/er", "renamed": "er", "path": "../../outside/secret.txt"}),
        );
        for path in ["er", "deep/er", "deep"] {
            attempt(server, "remove_directory", json!({"preopen": 0, "path": path}));
        }
    });
    host.close_well();
    assert_eq!(contents(&outside), before);
    assert_eq!(fs::read_to_string(data.join("mine.txt")).unwrap(), "mine");
    assert_eq!(fs::read_to_string(data.join("denied/secret.txt")).unwrap(), CANARY);
    assert_eq!(fs::read_to_string(read_only.join("theirs.txt")).unwrap(), "theirs");
}

/// Somebody on the host swaps a directory for a link and back, as fast as that goes, while the guest reads and writes through it.
#[test]
fn row_08_swap_race() {
    let home = Home::new();
    home.write("outside/file.txt", CANARY);
    home.write("data/swapped/file.txt", "inside");
    let data = home.file("data").canonicalize().unwrap();
    symlink(home.file("outside"), data.join("link")).unwrap();
    let grant = format!("--allow-write={}:/data", data.display());
    let mut host = Host::serve(&home, &[&grant], &["evil-08-escape"]);
    let (over, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let [swapped, link, aside] = ["swapped", "link", "aside"].map(|name| data.join(name));
            while !over.load(Ordering::Relaxed) {
                fs::rename(&swapped, &aside).unwrap();
                fs::rename(&link, &swapped).unwrap();
                thread::yield_now();
                fs::rename(&swapped, &link).unwrap();
                fs::rename(&aside, &swapped).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        host.survives(|server| {
            for _ in 0..200 {
                attempt(
                    server,
                    "read",
                    json!({"preopen": 0, "path": "swapped/file.txt", "follow": true}),
                );
                attempt(
                    server,
                    "append",
                    json!({"preopen": 0, "path": "swapped/file.txt", "text": "."}),
                );
            }
        });
        over.store(true, Ordering::Relaxed);
    });
    host.close_well();
    assert!(swaps.into_inner() > 0);
    assert_eq!(fs::read_to_string(home.file("outside/file.txt")).unwrap(), CANARY);
}

/// The same out of a program, whose paths go another way through the host.
#[test]
fn row_08_escape_of_a_program() {
    let home = Home::new();
    home.write("outside/secret.txt", CANARY);
    home.write("data/mine.txt", "mine");
    let data = home.file("data").canonicalize().unwrap();
    symlink("../outside", data.join("way-out")).unwrap();
    let grant = format!("--allow-write={}:/data", data.display());
    let run = |arguments: &[&str]| {
        let file = guest("cli-files");
        let mut command = home.host(&["call", file.to_str().unwrap(), &grant, "--json"]);
        crate::support::finish(command.args(arguments))
    };
    for granted in [
        &["read", "path=/data/mine.txt"][..],
        &["write", "path=/data/new.txt", "text=new"],
        &["link", "old=/data/new.txt", "new=/data/second.txt"],
        &["rename", "old=/data/second.txt", "new=/data/new.txt"],
    ] {
        let done = run(granted);
        assert_eq!(done.code, 0, "{granted:?}: {done:?}");
    }
    for path in [
        "/data/../outside/secret.txt",
        "/data/way-out/secret.txt",
        "/data/way-out/secret.txt/",
        "/outside/secret.txt",
        home.file("outside/secret.txt").to_str().unwrap(),
    ] {
        for arguments in [
            &["read", &format!("path={path}")][..],
            &["write", &format!("path={path}"), "text=owned"],
            &["link", &format!("old={path}"), "new=/data/hard"],
            &["rename", "old=/data/mine.txt", &format!("new={path}")],
        ] {
            let refused = run(arguments);
            assert_eq!(refused.code, 1, "{arguments:?}: {refused:?}");
            assert!(!format!("{refused:?}").contains(CANARY), "{arguments:?}: {refused:?}");
        }
    }
    assert_eq!(fs::read_to_string(home.file("outside/secret.txt")).unwrap(), CANARY);
    assert_eq!(fs::read_to_string(data.join("mine.txt")).unwrap(), "mine");
    let mut host = Host::serve(&home, &[&grant], &["cli-files"]);
    host.survives(|server| {
        let tools = server.tool_names();
        let read = tools.iter().find(|tool| tool.ends_with("read")).expect("a tool that reads");
        let mine = server.call(read, &json!({"args": {"path": "/data/mine.txt"}}));
        assert_eq!(mine["structuredContent"]["result"]["stdout"], "mine", "{mine}");
        let result = server.call(read, &json!({"args": {"path": "/data/way-out/secret.txt"}}));
        assert!(result["isError"] == true && !result.to_string().contains(CANARY), "{result}");
    });
    host.close_well();
}
