//! Components that are valid, and made to be a burden: too many of something, or too long. What is too much is left out with its
//! reason, and what is left fits in a message.

mod support;

use component2json::{Error, Exports, component_exports_to_tools, read_exports};

/// A component with some types and functions; every function is the same trap.
fn component(types: &str, functions: &[(String, String)]) -> Exports {
    let functions: String = functions
        .iter()
        .map(|(name, signature)| {
            format!(r#"(func (export "{name}") {signature} (canon lift (core func $i "f") (memory $m) (realloc $r)))"#)
        })
        .collect();
    let text = format!(
        r#"(component
            (core module $code
                (memory (export "m") 1)
                (func (export "r") (param i32 i32 i32 i32) (result i32) unreachable)
                (func (export "f") (param i32) unreachable))
            (core instance $i (instantiate $code))
            (alias core export $i "m" (core memory $m))
            (alias core export $i "r" (core func $r))
            {types}
            {functions})"#
    );
    let read = wat::parse_str(text).map_err(|error| error.to_string());
    let read = read.and_then(|bytes| read_exports(&bytes, None).map_err(|error| error.to_string()));
    match read {
        Ok((exports, _)) => exports,
        Err(error) => unreachable!("{error}"),
    }
}

fn bytes_of_tools(exports: &Exports) -> usize {
    component_exports_to_tools(exports)
        .iter()
        .map(|tool| serde_json::to_string(tool).unwrap_or_default().len())
        .sum()
}

#[test]
fn a_function_with_too_large_a_schema_is_left_out() {
    // 32 lists of 1000 tuples each, all different from each other.
    let tuple = |n: usize| format!("(type $t{n} (tuple {}))", "u32 ".repeat(400 + n));
    let types: String = (0..32).map(tuple).collect::<String>()
        + "(type $all (tuple "
        + &(0..32).map(|n| format!("$t{n} ")).collect::<String>()
        + "))";
    let functions = [
        ("big".to_owned(), r#"(param "a" $all)"#.to_owned()),
        ("small".to_owned(), r#"(param "a" u32)"#.to_owned()),
    ];
    let exports = component(&types, &functions);
    assert_eq!(exports.functions.len(), 1);
    assert_eq!(exports.left_out[0].export, "big");
    let reason = &exports.left_out[0].reason;
    assert!(
        reason.starts_with("its schema would have ") && reason.ends_with(" nodes; 20000 is the limit"),
        "{reason}"
    );
}

#[test]
fn many_functions_with_large_schemas_are_too_many_together() {
    let types = format!("(type $t (tuple {}))", "u32 ".repeat(900));
    let functions: Vec<_> = (0..300).map(|n| (format!("f{n}"), r#"(param "a" $t)"#.to_owned())).collect();
    let exports = component(&types, &functions);
    assert!((100..200).contains(&exports.functions.len()), "{}", exports.functions.len());
    assert_eq!(exports.functions.len() + exports.left_out.len(), 300);
    assert_eq!(
        exports.left_out[0].reason,
        "the schemas of the functions before it have 250000 nodes, which is the limit"
    );
    assert!(bytes_of_tools(&exports) < 16 << 20);
}

#[test]
fn names_without_end_are_bounded() {
    let long = "a".repeat(90_000);
    let functions = [(long.clone(), format!(r#"(param "{long}" u32)"#))];
    let exports = component("", &functions);
    assert_eq!(exports.functions[0].export.function, long, "wasmtime needs it as it is");
    assert!(bytes_of_tools(&exports) < 4_000);

    let stream = [(long.clone(), format!(r#"(param "{long}" (stream u8))"#))];
    let exports = component("", &stream);
    assert!(exports.left_out[0].export.chars().count() <= 200);
    assert!(exports.left_out[0].reason.chars().count() <= 400);

    let cases: String = ('a'..='u').map(|c| format!("{},", String::from(c).repeat(90_000))).collect();
    let wit = format!("package a:b; interface i {{ enum e {{ {cases} }} f: func(e: e); }} world w {{ export i; }}");
    let (component, _) = support::component_of(&wit).unwrap();
    let (exports, _) = read_exports(&component, None).unwrap();
    assert!(exports.functions.is_empty(), "1.9 MB of labels");
}

#[test]
fn what_is_no_component_is_told_apart() {
    assert!(matches!(read_exports(b"", None), Err(Error::Malformed(_))));
    assert!(matches!(read_exports(b"hello, world", None), Err(Error::Malformed(_))));
    assert!(matches!(
        read_exports(&wat::parse_str("(module)").unwrap(), None),
        Err(Error::Malformed(_))
    ));
    let mut resolve = wit_parser::Resolve::default();
    let package = resolve.push_str("a.wit", "package a:b; interface i { f: func(); }").unwrap();
    let package = wit_component::encode(&resolve, package).unwrap();
    assert!(matches!(read_exports(&package, None), Err(Error::WitPackage)));
    let (exports, warnings) = read_exports(&wat::parse_str("(component)").unwrap(), None).unwrap();
    assert!(exports.functions.is_empty() && exports.left_out.is_empty() && warnings.0.is_empty());
}

#[test]
fn names_that_no_function_has_are_refused() {
    for name in [
        "a:b/c",
        "url=<https://x>",
        "integrity=<sha256-YQ==>",
        "unlocked-dep=<a:b>",
        "locked-dep=<a:b>",
    ] {
        let text = format!(
            r#"(component
                (core module $m (func (export "f")))
                (core instance $i (instantiate $m))
                (func $f (canon lift (core func $i "f")))
                (export "{name}" (func $f)))"#
        );
        let component = wat::parse_str(text).unwrap();
        assert!(component2json::read_exports(&component, None).is_err(), "{name}");
    }
}
