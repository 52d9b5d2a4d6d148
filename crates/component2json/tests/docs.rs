//! Where descriptions come from: WIT given beside the component, our own section in it, a `package-docs` section. The better
//! source wins for each thing that it describes, a wrong one is reported and ignored, and nobody's text reaches a client raw.

mod support;

use component2json::{DOCS_SECTION, Docs, Exports, component_exports_to_tools, embed_docs, read_exports};
use serde_json::{Value, json};
use wasm_encoder::{ComponentSection, CustomSection};

const PLAIN: &str = "package a:b@1.0.0;
    interface i {
        record r { x: u32, y: u32, z: u32 }
        f: func(r: r);
        g: func();
        h: func();
    }
    world w { export i; }";

/// The same with docs; `who` says them.
fn wit(who: &str, documents: &str) -> String {
    let docs = |what: &str| {
        if documents.contains(what) {
            format!("/// {what} from {who}\n")
        } else {
            String::new()
        }
    };
    format!(
        "package a:b@1.0.0;
        {}interface i {{
            {}record r {{ {}x: u32, {}y: u32, {}z: u32 }}
            {}f: func(r: r);
            {}g: func();
            {}h: func();
        }}
        world w {{ export i; }}",
        docs("I"),
        docs("R"),
        docs("X"),
        docs("Y"),
        docs("Z"),
        docs("F"),
        docs("G"),
        docs("H"),
    )
}

fn docs(wit: &str) -> Docs {
    support::component_of(wit).unwrap_or_default().1
}

fn component() -> Vec<u8> {
    support::component_of(PLAIN).unwrap_or_default().0
}

fn with_section(component: &[u8], name: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = component.to_vec();
    CustomSection {
        name: name.into(),
        data: data.into(),
    }
    .append_to_component(&mut bytes);
    bytes
}

fn package_docs(docs: &Value) -> Vec<u8> {
    [b"\x01", docs.to_string().as_bytes()].concat()
}

/// Descriptions of `f`, its parameter and the three fields of that, then of `g` and `h`.
fn descriptions(exports: &Exports) -> Vec<String> {
    let tools = serde_json::to_value(component_exports_to_tools(exports)).unwrap_or_default();
    let paths = [
        "/0/description",
        "/0/inputSchema/properties/r/description",
        "/0/inputSchema/properties/r/properties/x/description",
        "/0/inputSchema/properties/r/properties/y/description",
        "/0/inputSchema/properties/r/properties/z/description",
        "/1/description",
        "/2/description",
    ];
    paths
        .map(|path| tools.pointer(path).and_then(Value::as_str).unwrap_or("-").to_owned())
        .into()
}

#[test]
fn the_better_source_wins_and_the_others_fill_its_gaps() {
    let package = json!({"interfaces": {"i": {
        "docs": "I from package",
        "funcs": {"f": {"docs": "F from package"}, "g": {"docs": "G from package"}, "h": {"docs": "H from package"}},
        "types": {"r": {"docs": "R from package", "items": {"x": "X from package", "y": "Y from package", "z": "Z from package"}}},
    }}});
    let bare = component();
    let with_package = with_section(&bare, "package-docs", &package_docs(&package));
    let with_both = embed_docs(&with_package, &docs(&wit("ours", "F G R Y"))).unwrap();
    let side = docs(&wit("side", "F X"));

    let read = |bytes: &[u8], given: Option<&Docs>| {
        let (exports, warnings) = read_exports(bytes, given).unwrap();
        assert!(warnings.0.is_empty(), "{warnings:?}");
        descriptions(&exports)
    };
    let about = "\n\nPart of a:b/i@1.0.0: I from package";
    assert_eq!(
        read(&with_both, Some(&side)),
        [
            format!("F from side{about}").as_str(),
            "R from ours",
            "X from side",
            "Y from ours",
            "Z from package",
            &format!("G from ours{about}"),
            &format!("H from package{about}"),
        ]
    );
    assert_eq!(
        read(&bare, None),
        [
            "f: func(r: r)\n\nPart of a:b/i@1.0.0.",
            "-",
            "-",
            "-",
            "-",
            "g: func()\n\nPart of a:b/i@1.0.0.",
            "h: func()\n\nPart of a:b/i@1.0.0."
        ],
        "without docs the description says what the signature says"
    );
    assert_eq!(
        read(&with_package, None)[1..5],
        ["R from package", "X from package", "Y from package", "Z from package"]
    );
}

#[test]
fn docs_of_another_version_are_better_than_none() {
    let newer = wit("newer", "F R").replace("a:b@1.0.0", "a:b@2.0.0");
    let ours = embed_docs(&component(), &docs(&wit("ours", "F G"))).unwrap();
    let (exports, _) = read_exports(&ours, Some(&docs(&newer))).unwrap();
    let found = descriptions(&exports);
    assert_eq!(
        found[..2],
        ["F from newer", "R from newer"],
        "what was given counts first, whatever its version"
    );
    assert_eq!(found[5], "G from ours");
}

#[test]
fn a_wit_that_describes_something_else_is_told_apart() {
    let (exports, _) = read_exports(&component(), None).unwrap();
    assert!(docs(PLAIN).describes(&exports));
    assert!(docs(&PLAIN.replace("@1.0.0", "@3.1.0")).describes(&exports));
    assert!(!docs(&PLAIN.replace("a:b", "a:c")).describes(&exports));
    assert!(!docs("package a:b; interface j { f: func(); } world w { export j; export f: func(); }").describes(&exports));
}

#[test]
fn wrong_sections_are_reported_and_ignored() {
    let plain = descriptions(&read_exports(&component(), None).unwrap().0);
    for (name, data, warning) in [
        (
            DOCS_SECTION,
            &b"not json"[..],
            "the docs in section `host:docs` were ignored: the section is not JSON of the expected shape",
        ),
        (
            DOCS_SECTION,
            br#"{"format": 1, "surprise": 1}"#,
            "the docs in section `host:docs` were ignored: the section is not JSON",
        ),
        (
            DOCS_SECTION,
            br#"{"format": 2}"#,
            "the docs in section `host:docs` were ignored: the section has format 2, which is newer",
        ),
        (
            "package-docs",
            b"",
            "the docs in section `package-docs` were ignored: the section has version None",
        ),
        (
            "package-docs",
            b"\x07{}",
            "the docs in section `package-docs` were ignored: the section has version Some(7)",
        ),
        (
            "package-docs",
            b"\x01{\"interfaces\": []}",
            "the docs in section `package-docs` were ignored: the section is not JSON",
        ),
    ] {
        let (exports, warnings) = read_exports(&with_section(&component(), name, data), None).unwrap();
        assert_eq!(warnings.0.len(), 1, "{warnings:?}");
        assert!(warnings.0[0].starts_with(warning), "{warnings:?}");
        assert_eq!(descriptions(&exports), plain);
    }
}

#[test]
fn docs_of_what_is_not_there_are_ignored() {
    let nowhere = json!({
        "worlds": {"gone": {"docs": "lost", "func_exports": {"nobody": {"docs": "lost"}}}},
        "interfaces": {"gone": {"docs": "lost"}, "i": {"funcs": {"nobody": {"docs": "lost"}, "f": {"docs": "found"}}, "types": {"r": {"items": {"q": "lost"}}}}},
    });
    let (exports, warnings) = read_exports(&with_section(&component(), "package-docs", &package_docs(&nowhere)), None).unwrap();
    assert!(warnings.0.is_empty());
    assert_eq!(descriptions(&exports)[0], "found");
}

#[test]
fn hostile_text_is_cleaned_wherever_it_comes_from() {
    let hostile = "safe\u{1b}[2J\u{202e}\u{200b} text\u{e0041}\u{0}";
    let clean = "safe[2J text";
    let flood = "x".repeat(100_000);
    let package = json!({"interfaces": {"i": {
        "docs": flood,
        "funcs": {"f": {"docs": hostile}, "g": {"docs": "\u{200b}\u{feff}"}},
        "types": {"r": {"docs": hostile, "items": {"x": hostile, "y": flood}}},
    }}});
    let scope = json!({
        "docs": flood,
        "functions": {"f": hostile, "g": "\u{200b}\u{feff}"},
        "types": {"r": {"docs": hostile, "items": {"x": hostile, "y": flood}}},
    });
    let ours = json!({"format": 1, "interfaces": {"a:b/i@1.0.0": scope}});
    for bytes in [
        with_section(&component(), "package-docs", &package_docs(&package)),
        with_section(&component(), DOCS_SECTION, ours.to_string().as_bytes()),
    ] {
        let (exports, warnings) = read_exports(&bytes, None).unwrap();
        assert!(warnings.0.len() == 1 && warnings.0[0].contains("hide text"), "{warnings:?}");
        let found = descriptions(&exports);
        assert!(
            found[0].starts_with(&format!("{clean}\n\nPart of a:b/i@1.0.0: xxx")),
            "{}",
            found[0]
        );
        assert_eq!(found[1..3], [clean, clean]);
        assert!(
            found
                .iter()
                .all(|text| text.chars().count() < 2_200 && !text.contains(['\u{1b}', '\u{202e}', '\u{200b}', '\u{e0041}', '\0']))
        );
        assert_eq!(found[3].chars().count(), 1024);
        assert!(
            found[5].starts_with("g: func()"),
            "a text of nothing that can be seen is none: {}",
            found[5]
        );
    }
}

#[test]
fn a_component_carries_only_docs_that_it_can_use() {
    let mut docs = docs(&wit("ours", "I F").replace(
        "world w",
        "/// Not exported.\ninterface other { /// Nor this.\ng: func(); }\nworld w",
    ));
    let names = component2json::interface_names(&component()).unwrap();
    assert_eq!(names, ["a:b/i@1.0.0"]);
    docs.retain_interfaces(&names);
    let section = String::from_utf8(docs.to_section().unwrap()).unwrap();
    assert_eq!(
        section,
        r#"{"format":1,"interfaces":{"a:b/i@1.0.0":{"docs":"I from ours","functions":{"f":"F from ours"}}}}"#
    );
}
