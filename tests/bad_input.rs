//! Files that are no components, components that cannot be served, and files that change or break: each has a clear answer.

#![cfg(test)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::{Finished, Home, assert_readable, guest, text};

/// Every command that reads a component, as far as the component.
const COMMANDS: [&str; 4] = ["serve", "tools", "inspect", "call"];

fn run(home: &Home, command: &str, component: &Path) -> Finished {
    let component = component.to_str().unwrap();
    match command {
        "call" => home.run(&["call", component, "add", "a=2", "b=40"]),
        _ => home.run(&[command, component]),
    }
}

/// No command takes the file; all of them say the same of it.
fn assert_refused(home: &Home, component: &Path, parts: &[&str]) {
    for command in COMMANDS {
        let refused = run(home, command, component);
        assert_eq!(
            (refused.code, refused.stdout.as_str()),
            (2, ""),
            "{command} {}: {}",
            component.display(),
            refused.stderr
        );
        assert_readable(&refused.stderr);
        for part in parts {
            assert!(refused.stderr.contains(part), "no {part} from {command}: {}", refused.stderr);
        }
    }
}

#[test]
fn what_is_no_component_is_refused() {
    let home = Home::new();
    let module = wat::parse_str(r#"(module (func (export "add")))"#).unwrap();
    let picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    let cases: [(&str, &[u8], &[&str]); 8] = [
        (
            "library.wasm",
            &module,
            &[
                "a core WebAssembly module and not a component",
                "hint: build it as a component",
            ],
        ),
        (
            "library.wat",
            b"(module)",
            &["a core WebAssembly module and not a component", "hint: "],
        ),
        ("empty.wasm", b"", &["empty.wasm` is empty"]),
        (
            "letter.wasm",
            b"Dear Sir or Madam,\n",
            &[
                "is not WebAssembly: it starts with \"Dear Sir or Madam,",
                "hint: give a component",
            ],
        ),
        ("picture.wasm", picture, &["is not WebAssembly", "hint: "]),
        ("space.wasm", b"   \n", &["is not WebAssembly"]),
        (
            "broken.wat",
            b"(component\n  (export \"add\"",
            &["is not valid WebAssembly text", "broken.wat:2"],
        ),
        ("letter.wat", b"Dear Sir or Madam,\n", &["is not valid WebAssembly text"]),
    ];
    for (name, bytes, parts) in cases {
        assert_refused(&home, &home.write(name, bytes), parts);
    }
    assert_refused(
        &home,
        &home.file("missing.wasm"),
        &[
            "missing.wasm` could not be read: No such file or directory",
            "hint: look at the path",
        ],
    );
    assert_refused(&home, &home.file("missing/missing.wasm"), &["could not be read"]);
}

#[test]
fn a_program_that_needs_more_than_wasi_is_refused() {
    let home = Home::new();
    let program = wat::parse_str(r#"(module (import "env" "launch" (func)) (func (export "_start")))"#).unwrap();
    let file = home.write("program.wasm", &program);
    for command in ["serve", "tools", "call"] {
        let refused = run(&home, command, &file);
        assert_eq!(refused.code, 2, "{command}");
        assert!(
            refused.stderr.contains("imports what this host does not offer: `env.launch`"),
            "{}",
            refused.stderr
        );
    }
    let inspected = run(&home, "inspect", &file);
    assert_eq!(inspected.code, 0);
    assert!(
        inspected.stdout.contains("env.launch  (not offered by this host)"),
        "{}",
        inspected.stdout
    );
}

#[test]
fn a_truncated_file_is_refused_at_every_length() {
    let home = Home::new();
    let bytes = test_guests::bytes("every-type").unwrap();
    for length in [1, 4, 7] {
        assert_refused(&home, &home.write("cut.wasm", &bytes[..length]), &["is not WebAssembly"]);
    }
    for length in [9, 10, 100, 1_000, bytes.len() / 2, bytes.len() - 100, bytes.len() - 1] {
        assert_refused(
            &home,
            &home.write("cut.wasm", &bytes[..length]),
            &["not a valid WebAssembly component: "],
        );
    }
    // Eight bytes are a component, one of nothing.
    let nothing = home.write("nothing.wasm", &bytes[..8]);
    for command in ["serve", "tools", "call"] {
        let refused = run(&home, command, &nothing);
        assert_eq!(refused.code, 2, "{command}");
        assert_readable(&refused.stderr);
        assert!(
            refused.stderr.contains("exports no function that can be a tool"),
            "{}",
            refused.stderr
        );
    }
}

/// Some flips leave a component that works, others one that does not; none may be worse than an error.
/// Some flips leave a component, perhaps with other names in it. Any other is refused when it is loaded, by every command alike, and
/// not only when its code is needed.
#[test]
fn a_corrupt_file_is_refused_before_it_promises_tools() {
    let home = Home::new();
    let whole = test_guests::bytes("exit").unwrap();
    let mut refused = 0;
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xFF;
        let file = home.write("corrupt.wasm", &bytes);
        let [tools, serve, call] = ["tools", "serve", "call"].map(|command| run(&home, command, &file));
        for finished in [&tools, &serve, &call] {
            assert!([0, 1, 2].contains(&finished.code), "byte {at} flipped: {finished:?}");
            assert!(
                !finished.stderr.contains("could not be compiled"),
                "byte {at} flipped: {finished:?}"
            );
        }
        assert_eq!(serve.code, tools.code, "byte {at} flipped");
        if tools.code != 0 {
            assert_eq!((tools.code, call.code), (2, 2), "byte {at} flipped");
            assert_readable(&tools.stderr);
            refused += 1;
        }
    }
    assert!(refused > 10, "{refused} of 40 were refused");
}

#[test]
fn a_directory_without_components_is_refused() {
    let home = Home::new();
    home.write("texts/readme.txt", "no component here");
    home.write("texts/deeper/add.wat", "(component)");
    let directory = home.file("texts");
    for command in ["serve", "tools", "call"] {
        let refused = run(&home, command, &directory);
        assert_eq!(refused.code, 2, "{command}");
        assert_readable(&refused.stderr);
        assert!(
            refused.stderr.contains("there is no `.wasm` or `.wat` file in `"),
            "{}",
            refused.stderr
        );
    }
    let refused = run(&home, "inspect", &directory);
    assert_eq!(refused.code, 2);
    assert_readable(&refused.stderr);
}

#[test]
fn one_bad_file_in_a_directory_is_left_out_with_a_warning() {
    let home = Home::new();
    home.write("mixed/bad.wasm", "Dear Sir or Madam,");
    fs::copy(guest("trap"), home.file("mixed/good.wat")).unwrap();
    let directory = home.file("mixed");
    let listed = run(&home, "tools", &directory);
    assert_eq!(listed.code, 0);
    assert!(listed.stdout.contains("\"divide\""), "{}", listed.stdout);
    assert!(
        listed.stderr.starts_with("warning: left out: `") && listed.stderr.contains("bad.wasm` is not WebAssembly"),
        "{}",
        listed.stderr
    );

    let mut server = home.serve(&[], std::slice::from_ref(&directory));
    server.initialize();
    assert_eq!(
        server.call("add", &json!({"a": 2, "b": 40}))["structuredContent"],
        json!({"result": 42})
    );
    server.close_well();

    fs::remove_file(home.file("mixed/good.wat")).unwrap();
    let refused = run(&home, "serve", &directory);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("error: no component in `"), "{}", refused.stderr);
}

/// A file that was named has to load, also where others do.
#[test]
fn one_bad_file_among_named_ones_is_an_error() {
    let home = Home::new();
    let bad = home.write("bad.wasm", "Dear Sir or Madam,");
    let refused = home.run(&["tools", guest("trap").to_str().unwrap(), bad.to_str().unwrap()]);
    assert_eq!(refused.code, 2);
    assert_readable(&refused.stderr);
}

#[test]
fn unknown_imports_are_named() {
    let home = Home::new();
    let component = guest("unknown-import");
    for command in ["serve", "tools", "call"] {
        let refused = run(&home, command, &component);
        assert_eq!(refused.code, 2, "{command}");
        assert_readable(&refused.stderr);
        assert!(
            refused
                .stderr
                .contains("imports what this host does not offer: `acme:secret/vault`\nhint: "),
            "{}",
            refused.stderr
        );
    }
    // What cannot be served can still be looked at.
    let inspected = home.run(&["inspect", "--json", component.to_str().unwrap()]);
    assert_eq!(inspected.code, 0);
    let report: Value = serde_json::from_str(&inspected.stdout).unwrap();
    assert_eq!(report["unknownImports"], json!(["acme:secret/vault"]));
}

#[test]
fn a_name_of_99_000_letters_is_shortened() {
    let home = Home::new();
    let component = guest("evil-05-huge-name");
    let mut server = home.serve(&[], std::slice::from_ref(&component));
    server.initialize();
    let names = server.tool_names();
    assert_eq!(names.len(), 2);
    for name in &names {
        assert!(name.len() <= 48, "{name}");
        assert_eq!(
            server.call(name, &json!({"a": 2, "b": 40}))["structuredContent"],
            json!({"result": 42})
        );
    }
    let answer = server.request("tools/list", &json!({}));
    assert!(
        answer.to_string().len() < 8 << 10,
        "{} bytes of definitions",
        answer.to_string().len()
    );
    server.close_well();
    for command in COMMANDS {
        let finished = run(&home, command, &component);
        assert_eq!(finished.code, 0, "{command}: {}", finished.stderr);
    }
    let longest = home
        .run(&["inspect", component.to_str().unwrap()])
        .stdout
        .lines()
        .map(str::len)
        .max();
    assert!(longest < Some(1_000), "a line of {longest:?} characters");
}

#[test]
fn a_type_that_doubles_18_times_is_spelled_once() {
    let home = Home::new();
    let component = guest("evil-06-schema-bomb");
    let mut server = home.serve(&[], std::slice::from_ref(&component));
    server.initialize();
    let answer = server.request("tools/list", &json!({}));
    assert!(
        answer.to_string().len() < 64 << 10,
        "{} bytes of definitions",
        answer.to_string().len()
    );
    assert_eq!(
        server.call("add", &json!({"a": 2, "b": 40}))["structuredContent"],
        json!({"result": 42})
    );
    let error = server.call_error("bomb", &json!({"value": {"val0": 1, "val1": [2]}}));
    assert!(error.starts_with("$.value.val0: expected "), "{error}");
    #[cfg(target_os = "linux")]
    assert!(support::proc::status(server.pid(), "VmHWM") < 200 << 10);
    server.close_well();
    for arguments in [&["tools"][..], &["inspect"], &["inspect", "--json"]] {
        let finished = support::finish(home.host(arguments).arg(&component));
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        assert!(
            finished.stdout.len() < 64 << 10,
            "{} bytes from {arguments:?}",
            finished.stdout.len()
        );
    }
}

#[test]
fn a_name_that_is_taken_gets_its_component_before_it() {
    let home = Home::new();
    let [a, b] = ["same-name-a", "same-name-b"].map(guest);
    // The same at every start: what is kept from the first changes nothing.
    for _ in 0..2 {
        for (components, names, results) in [
            ([&a, &b], ["same_name_b_shared", "shared"], ["b", "a"]),
            ([&b, &a], ["same_name_a_shared", "shared"], ["a", "b"]),
        ] {
            let mut server = home.serve(&[], &components.map(PathBuf::clone));
            server.initialize();
            assert_eq!(server.tool_names(), names);
            for (name, result) in names.iter().zip(results) {
                assert_eq!(server.call(name, &json!({}))["structuredContent"], json!({"result": result}));
            }
            server.close_well();
        }
    }
}

/// Files of one name in two folders are two components; one file named twice is one.
#[test]
fn components_of_one_file_name_are_told_apart() {
    let home = Home::new();
    let first = home.write("one/tool.wat", fs::read(guest("same-name-a")).unwrap());
    let second = home.write("two/tool.wat", fs::read(guest("same-name-b")).unwrap());
    let mut server = home.serve(&[], &[first.clone(), second, first]);
    server.initialize();
    let names = server.tool_names();
    assert_eq!(names, ["shared", "tool_2_shared"]);
    assert_eq!(server.call("shared", &json!({}))["structuredContent"], json!({"result": "a"}));
    assert_eq!(
        server.call("tool_2_shared", &json!({}))["structuredContent"],
        json!({"result": "b"})
    );
    server.close_well();
}

#[test]
fn a_file_that_changes_while_served_stays_what_it_was() {
    let home = Home::new();
    let file = home.write("plugin.wat", fs::read(guest("same-name-a")).unwrap());
    let mut server = home.serve(&[], std::slice::from_ref(&file));
    server.initialize();
    assert_eq!(server.call("shared", &json!({}))["structuredContent"], json!({"result": "a"}));
    home.write("plugin.wat", fs::read(guest("same-name-b")).unwrap());
    assert_eq!(server.call("shared", &json!({}))["structuredContent"], json!({"result": "a"}));
    fs::remove_file(&file).unwrap();
    assert_eq!(server.call("shared", &json!({}))["structuredContent"], json!({"result": "a"}));
    server.close_well();

    home.write("plugin.wat", fs::read(guest("same-name-b")).unwrap());
    let mut server = home.serve(&[], &[file]);
    server.initialize();
    assert_eq!(server.call("shared", &json!({}))["structuredContent"], json!({"result": "b"}));
    server.close_well();
}

/// Before the first call the code may be there or not yet; the tool is what it was, or says that it is not there any more.
#[test]
fn a_file_that_changes_before_it_is_compiled_is_never_mistaken() {
    let home = Home::new();
    let file = home.write("plugin.wat", fs::read(guest("same-name-a")).unwrap());
    let mut server = home.serve(&[], &[guest("every-type"), file]);
    server.initialize();
    home.write("plugin.wat", fs::read(guest("same-name-b")).unwrap());
    let result = server.call("shared", &json!({}));
    if result["isError"] == true {
        assert!(
            text(&result).contains("plugin.wat` has changed since it was loaded\nhint: restart"),
            "{result}"
        );
    } else {
        assert_eq!(result["structuredContent"], json!({"result": "a"}));
    }
    assert_eq!(server.call("greet", &json!({"name": "you"}))["isError"], false);
    server.close_well();
}

#[test]
fn what_is_kept_is_made_again_when_it_is_broken() {
    let home = Home::new();
    let component = guest("exit");
    // What the call says besides its result.
    let call = |what: &str| {
        let finished = run(&home, "call", &component);
        assert_eq!(
            (finished.code, finished.stdout.as_str()),
            (0, "42\n"),
            "{what}: {}",
            finished.stderr
        );
        finished.stderr
    };
    assert_eq!(call("nothing kept"), "");
    let [metadata] = &home.cached("json")[..] else {
        panic!("one file of metadata")
    };
    let [code] = &home.cached("cwasm")[..] else {
        panic!("one file of code")
    };

    let good = fs::read(metadata).unwrap();
    let half = &good[..good.len() / 2];
    for broken in [
        b"" as &[u8],
        b"garbage",
        b"{}",
        b"null",
        b"[1]",
        b"{\"format\": 99}",
        b"\0\xFF",
        half,
    ] {
        support::write(metadata, broken);
        assert_eq!(call(&format!("{} bytes of metadata", broken.len())), "");
        assert_eq!(fs::read(metadata).unwrap(), good);
    }

    let length = fs::read(code).unwrap().len();
    let cut = [0, 1, 16, 64, 1_000, length / 2, length - 1].map(|end| ("cut", end));
    let flipped = [0, 64, 1_000, length / 2, length - 1].map(|at| ("flipped", at));
    for (how, at) in cut.into_iter().chain(flipped) {
        let mut broken = fs::read(code).unwrap();
        match how {
            "cut" => broken.truncate(at),
            _ => broken[at] ^= 0xFF,
        }
        support::write(code, &broken);
        let stderr = call(&format!("code {how} at {at}"));
        assert!(
            stderr.contains("compiled code was damaged; it is compiled again"),
            "code {how} at {at}: {stderr}"
        );
        assert_eq!(call("code made again"), "");
    }
}
