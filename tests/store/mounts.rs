//! A disk that is really full, and one that is really read-only: mounted in a namespace of the command's own.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::scene::{Scene, component};
use crate::support::{Finished, Server, assert_readable, finish};

/// A shell that may mount, for its own eyes only, and does so before it runs the rest of its arguments.
fn mounted(scene: &Scene, home: &Path, script: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--map-root-user", "--mount", "sh", "-ec", script, "sh"])
        .args(arguments);
    scene.prepare(command, home)
}

fn run(command: &mut Command) -> Finished {
    let finished = finish(command);
    let refused = finished.stderr.starts_with("unshare: ") || finished.stderr.starts_with("mount: ");
    assert!(
        !refused,
        "this test has to mount in a user namespace; allow that with `sysctl kernel.unprivileged_userns_clone=1` and \
         `kernel.apparmor_restrict_unprivileged_userns=0`, and in a container with `--security-opt seccomp=unconfined`: {}",
        finished.stderr
    );
    finished
}

const HOST: &str = env!("CARGO_BIN_EXE_host");

/// A small disk with one component on it, then filled but for $2 KiB; another one is added, and once more when there is room.
const ON_A_FULL_DISK: &str = r#"
mount -t tmpfs -o size=512k,mode=700 tmpfs "$HOST_HOME"
export HOST_HOME="$HOST_HOME/home"
"$1" add a.wat >/dev/null
ballast="$HOST_HOME/../ballast"
dd if=/dev/zero of="$ballast" bs=4k 2>/dev/null || true
[ "$2" = 0 ] || truncate -s "-$2K" "$ballast"
code=0; "$1" add b.wat >/dev/null || code=$?
echo "add: $code, left: $(find "$HOST_HOME" -name '.tmp*' | wc -l)"
"$1" verify >/dev/null
"$1" call a one
"$1" list | cut -d ' ' -f 1
rm "$ballast"
"$1" add b.wat >/dev/null
"$1" call b two
"#;

#[test]
fn on_a_full_disk_adding_fails_and_all_else_goes_on() {
    let scene = Scene::new();
    scene.write("a.wat", &component("one", 1));
    scene.write("b.wat", &component("two", 2));
    std::fs::create_dir(scene.home()).unwrap();
    let mut failed = 0;
    for free in (0..=64).step_by(4) {
        let finished = run(&mut mounted(
            &scene,
            &scene.home(),
            ON_A_FULL_DISK,
            &[HOST, &free.to_string()],
        ));
        assert_eq!(finished.code, 0, "{free} KiB: {finished:?}");
        let is_full = finished.stdout.starts_with("add: 2, left: 0\n");
        let expected = if is_full {
            "add: 2, left: 0\n1\nID\na\n2\n"
        } else {
            "add: 0, left: 0\n1\nID\na\nb\n2\n"
        };
        assert_eq!(finished.stdout, expected, "{free} KiB: {}", finished.stderr);
        if is_full {
            failed += 1;
            let told = &finished.stderr[finished.stderr.find("error: ").unwrap()..];
            assert_readable(told);
            assert!(
                told.contains("No space left on device") && told.contains("\nhint: "),
                "{free} KiB: {told}"
            );
        }
    }
    // With nothing at all free, and with not quite enough; and with enough.
    assert!((2..17).contains(&failed), "{failed} of 17 failed");
}

const READ_ONLY: &str = r#"mount --bind "$HOST_HOME" "$HOST_HOME"; mount -o remount,bind,ro "$HOST_HOME"; exec "$@""#;

#[test]
fn a_read_only_store_serves_and_refuses_changes() {
    let scene = Scene::new();
    for (name, tool) in [("a.wat", "one"), ("b.wat", "two"), ("c.wat", "three")] {
        scene.write(name, &component(tool, 1));
    }
    for name in ["a.wat", "b.wat"] {
        scene.do_well(&["add", name]);
    }
    // Code that was never kept cannot be kept now.
    let cached = scene.home().join("cache");
    for file in cached.read_dir().unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
    scene.do_well(&["call", "a", "one"]);
    scene.write("home/.tmp1", "left behind");
    let before = crate::scene::files(&scene.home());
    let read_only = |arguments: &[&str]| mounted(&scene, &scene.home(), READ_ONLY, &[&[HOST], arguments].concat());

    for (arguments, stdout) in [
        (&["call", "a", "one"][..], "1\n"),
        (&["call", "b", "two"], "1\n"),
        (&["verify"], "components: 2, files checked: 6; all is as it was written\n"),
    ] {
        let finished = run(&mut read_only(arguments));
        assert_eq!(
            (finished.code, finished.stdout.as_str()),
            (0, stdout),
            "{arguments:?}: {finished:?}"
        );
    }
    for arguments in [
        &["list"][..],
        &["list", "--json"],
        &["info", "a"],
        &["tools", "a"],
        &["inspect", "a"],
    ] {
        let finished = run(&mut read_only(arguments));
        assert_eq!(
            (finished.code, finished.stderr.as_str()),
            (0, ""),
            "{arguments:?}: {finished:?}"
        );
    }
    for arguments in [
        &["add", "c.wat"][..],
        &["remove", "a"],
        &["gc"],
        &["add", "a.wat", "--allow-read", "."],
    ] {
        let finished = run(&mut read_only(arguments));
        assert_eq!(
            (finished.code, finished.stdout.as_str()),
            (2, ""),
            "{arguments:?}: {finished:?}"
        );
        let told = &finished.stderr[finished.stderr.find("error: ").unwrap()..];
        assert_readable(told);
        assert!(
            told.contains("Read-only file system") && told.contains("\nhint: "),
            "{arguments:?}: {told}"
        );
    }
    let mut server = Server::start(&mut read_only(&["serve"]));
    server.initialize();
    assert_eq!(server.tool_names(), ["one", "two"]);
    for tool in ["one", "two"] {
        assert_eq!(server.call(tool, &json!({}))["structuredContent"], json!({"result": 1}));
    }
    server.close_well();
    assert_eq!(crate::scene::files(&scene.home()), before);
}
