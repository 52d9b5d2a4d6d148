//! Rows 21–24: a client that attacks through what it writes: depth, numbers, words for numbers, bytes.

use serde_json::{Value, json};

use crate::support::{Home, Server, text};
use crate::unharmed::Host;

const ECHO: &str = "test_every_type_echo_echo_";

/// The line of a call whose argument `value` is written so.
fn line(id: u64, tool: &str, value: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"value":{value}}}}}}}"#)
}

/// What is answered to an argument that is written so.
fn echo(server: &mut Server, ty: &str, value: &str) -> Value {
    const ID: u64 = 1_000_000;
    server.send_line(line(ID, &format!("{ECHO}{ty}"), value));
    let mut answer = server.receive();
    assert_eq!(answer["id"], ID, "{answer}");
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].take()
}

/// A component whose only tool takes a list of lists, so many levels deep.
fn deep(levels: usize) -> String {
    let types: String = (0..levels)
        .map(|level| format!("(type $t{} (list $t{level}))", level + 1))
        .collect();
    format!(
        r#"(component
            (core module $m
                (memory (export "memory") 1)
                (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 0))
                (func (export "deep") (param i32 i32)))
            (core instance $i (instantiate $m))
            (alias core export $i "memory" (core memory $memory))
            (alias core export $i "realloc" (core func $realloc))
            (type $t0 s8)
            {types}
            (func (export "deep") (param "value" $t{levels})
                (canon lift (core func $i "deep") (memory $memory) (realloc $realloc))))"#
    )
}

fn nested(depth: usize) -> String {
    "[".repeat(depth) + &"]".repeat(depth)
}

#[test]
fn row_21_nested_json() {
    let home = Home::new();
    let file = home.write("deep.wat", deep(90));
    let mut host = Host::serve_files(&home, &[], &[file]);
    host.survives(|server| {
        // Around the argument there are `arguments`, `params` and the message: what is deeper than 128 in all cannot be read.
        for (depth, is_read) in [
            (90, true),
            (100, true),
            (124, true),
            (127, false),
            (128, false),
            (100_000, false),
        ] {
            server.send_line(line(7, "deep", &nested(depth)));
            let answer = server.receive();
            assert_eq!(answer["id"], 7, "{answer}");
            assert!(
                answer.to_string().len() < 10_000,
                "{depth}: {} bytes",
                answer.to_string().len()
            );
            assert_eq!(answer["error"]["code"] == -32700, !is_read, "{depth}: {answer}");
            if is_read {
                assert_eq!(answer["result"]["isError"], depth > 90, "{depth}: {answer}");
            }
        }
        // Where there is no id to be found, the answer has none.
        for endless in ["[".repeat(100_000), r#"{"a":"#.repeat(100_000), nested(100_000)] {
            server.send_line(endless);
            let answer = server.receive();
            assert_eq!(
                (&answer["id"], answer["error"]["code"].is_i64()),
                (&Value::Null, true),
                "{answer}"
            );
        }
    });
    host.close_well();

    // What nobody could ever be sent is refused when it is loaded.
    let file = home.write("deeper.wat", deep(200));
    let refused = home.run(&["serve", file.to_str().unwrap()]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("nesting is too deep"), "{}", refused.stderr);
}

/// Each width with its least and greatest value.
const INTEGERS: [(&str, i128, i128); 8] = [
    ("u8", 0, u8::MAX as i128),
    ("s8", i8::MIN as i128, i8::MAX as i128),
    ("u16", 0, u16::MAX as i128),
    ("s16", i16::MIN as i128, i16::MAX as i128),
    ("u32", 0, u32::MAX as i128),
    ("s32", i32::MIN as i128, i32::MAX as i128),
    ("u64", 0, u64::MAX as i128),
    ("s64", i64::MIN as i128, i64::MAX as i128),
];

/// What every reader of JSON keeps.
const SAFE: i128 = (1 << 53) - 1;

#[test]
fn row_22_integers() {
    let home = Home::new();
    let mut host = Host::serve(&home, &[], &["every-type"]);
    let given = |number: i128| match i64::try_from(number) {
        Ok(number) if i128::from(number).abs() <= SAFE => json!(number),
        _ => json!(number.to_string()),
    };
    host.survives(|server| {
        for (ty, least, greatest) in INTEGERS {
            for number in [least, greatest, 0, 1] {
                let mut spellings = vec![number.to_string()];
                if number.abs() <= SAFE {
                    spellings.push(format!("{number}.0"));
                }
                if ty.ends_with("64") {
                    spellings.push(format!("\"{number}\""));
                }
                for spelling in spellings {
                    let result = echo(server, ty, &spelling);
                    assert_eq!(
                        result["structuredContent"],
                        json!({"result": given(number)}),
                        "{ty} {spelling}: {result}"
                    );
                }
            }
            let beyond = [least - 1, greatest + 1].map(|number| number.to_string());
            let disguised = ["1.5", "1e400", "-0.5", "true", "null", "[1]", "\"one\"", "\"\""].map(String::from);
            for wrong in beyond.into_iter().chain(disguised) {
                server.send_line(line(9, &format!("{ECHO}{ty}"), &wrong));
                let answer = server.receive();
                // 1e400 is no number that a reader of JSON has room for.
                if answer["error"]["code"] == -32700 {
                    assert_eq!(wrong, "1e400", "{answer}");
                    continue;
                }
                assert_eq!(answer["result"]["isError"], true, "{ty} {wrong}: {answer}");
                assert!(text(&answer["result"]).starts_with("$.value: "), "{ty} {wrong}: {answer}");
            }
        }
        // 2^53 + 1 is the first that a float would lose.
        for ty in ["u64", "s64"] {
            let result = echo(server, ty, "9007199254740993");
            assert_eq!(result["structuredContent"], json!({"result": "9007199254740993"}));
        }
    });
    host.close_well();
}

#[test]
fn row_23_nan_and_infinity() {
    let home = Home::new();
    let mut host = Host::serve(&home, &[], &["every-type"]);
    host.survives(|server| {
        for ty in ["f32", "f64"] {
            for word in ["NaN", "Infinity", "-Infinity"] {
                let result = echo(server, ty, &format!("\"{word}\""));
                assert_eq!(result["structuredContent"], json!({"result": word}), "{ty}");
                assert!(!text(&result).contains("null"), "{result}");
            }
            for number in ["0.1", "-0.0", "1e-40", "3.4028235e38", "16777216"] {
                let result = echo(server, ty, number);
                let expected: f64 = number.parse().unwrap();
                let got = result["structuredContent"]["result"].as_f64().unwrap();
                let is_near = (got - expected).abs() <= expected.abs() * 1e-5;
                assert!(
                    is_near && got.is_sign_negative() == expected.is_sign_negative(),
                    "{ty} {number}: {got}"
                );
            }
            for wrong in ["null", "\"nan\"", "\"inf\"", "\"1\"", "true"] {
                let result = echo(server, ty, wrong);
                assert_eq!(result["isError"], true, "{ty} {wrong}: {result}");
            }
        }
        // What has no room in a single is said to have none, or is infinite in so many words.
        let result = echo(server, "f32", "1e300");
        let is_told = result["isError"] == true || result["structuredContent"] == json!({"result": "Infinity"});
        assert!(is_told, "{result}");
        let listed = server.request("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        for ty in ["f32", "f64"] {
            let tool = tools.iter().find(|tool| tool["name"] == format!("{ECHO}{ty}")).unwrap();
            let schema = tool["outputSchema"].to_string();
            assert!(schema.contains("\"NaN\"") && schema.contains("\"-Infinity\""), "{schema}");
        }
    });
    host.close_well();
}

#[test]
fn row_24_bytes_that_are_no_text() {
    let home = Home::new();
    let mut host = Host::serve(&home, &[], &["every-type"]);
    let call = |value: &[u8]| {
        let [head, tail] = ["", "\"}}}"].map(str::as_bytes);
        let start =
            format!(r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"{ECHO}string","arguments":{{"value":""#);
        [head, start.as_bytes(), value, tail].concat()
    };
    host.survives(|server| {
        let wrong: [&[u8]; 9] = [
            b"\xff",
            b"\xc0\x80",
            b"\xed\xa0\x80",
            b"\xf5\x80\x80\x80",
            b"\xe2\x82",
            b"\\ud800",
            b"\\udc00\\ud800",
            b"\0",
            b"\x1b[2J",
        ];
        for value in wrong {
            server.send_line(call(value));
            let answer = server.receive();
            assert_eq!(answer["error"]["code"], -32700, "{value:?}: {answer}");
            assert!(answer["id"].is_null() || answer["id"] == 5, "{value:?}: {answer}");
        }
        // What is text, however odd, comes back as it was.
        let odd = [
            "\0",
            "\u{feff}",
            "\u{202e}\u{1f600}",
            "\u{10ffff}",
            "e\u{301}",
            "\r\n\t\u{7f}",
        ];
        for value in odd {
            let result = server.call(&format!("{ECHO}string"), &json!({"value": value}));
            assert_eq!(result["structuredContent"], json!({"result": value}), "{value:?}");
        }
    });
    host.close_well();
}

#[test]
fn row_24_duplicate_keys() {
    let home = Home::new();
    let mut host = Host::serve(&home, &[], &["every-type"]);
    let request = |params: &str| format!(r#"{{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{params}}}"#);
    let record = format!("{ECHO}record");
    host.survives(|server| {
        for duplicated in [
            request(r#"{"name":"greet","arguments":{"name":"Ada","name":"Eve"}}"#),
            request(r#"{"name":"greet","arguments":{"name":"Ada","n\u0061me":"Eve"}}"#),
            request(r#"{"name":"add","name":"greet","arguments":{"name":"Ada"}}"#),
            request(&format!(
                r#"{{"name":"{record}","arguments":{{"value":{{"file_name":"a","size":1,"size":2}}}}}}"#
            )),
        ] {
            server.send_line(&duplicated);
            let answer = server.receive();
            assert_eq!(answer["id"], 6, "{duplicated}: {answer}");
            // Which of the two was meant, nobody can tell: neither is taken.
            assert!(
                answer["error"].is_object() || answer["result"]["isError"] == true,
                "{duplicated}: {answer}"
            );
            assert!(!answer.to_string().contains("Hello"), "{answer}");
        }
    });
    host.close_well();
}
