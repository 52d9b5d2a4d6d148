//! Calls of small components, written out here: what the pool, the limits and the two engines do.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as the tests do")]

use std::sync::Arc;

use component2json::{Argument, Exports, Returned};
use policy::{ByteSize, Limits};
use sandbox::{CallError, CodeKind, Confinement, Nobody, Program, Sandbox};
use wasmtime::component::Val;

fn load(sandbox: &Sandbox, text: &str) -> (Arc<Program>, Exports) {
    let bytes = wat::parse_str(text).unwrap();
    let (exports, _) = component2json::read_exports(&bytes, None).unwrap();
    let compiled = sandbox.compile(&bytes, kind(&exports)).unwrap();
    (Arc::new(sandbox.link(&compiled, &exports).unwrap()), exports)
}

fn kind(exports: &Exports) -> CodeKind {
    CodeKind::Component {
        concurrency: exports.needs_concurrency,
    }
}

async fn call(sandbox: &Sandbox, program: &Arc<Program>, exports: &Exports, name: &str) -> Result<Option<Returned>, CallError> {
    let function = exports
        .functions
        .iter()
        .position(|function| function.export.function == name)
        .unwrap();
    let confinement = Arc::new(Confinement::bare(sandbox.limits().clone()));
    sandbox
        .call(program, function, vec![], &confinement, Arc::new(Nobody))
        .await
        .result
}

/// A component of one module, whose functions take nothing and return a number.
fn component(module: &str, functions: &[&str]) -> String {
    let exports: String = functions
        .iter()
        .map(|name| format!(r#"(func ${name} (result u32) (canon lift (core func $i "{name}"))) (export "{name}" (func ${name}))"#))
        .collect();
    format!("(component (core module $m {module}) (core instance $i (instantiate $m)) {exports})")
}

#[tokio::test]
async fn a_module_may_have_several_memories_and_tables() {
    let sandbox = Sandbox::new(Limits::default()).unwrap();
    let text = component(
        r#"(memory 1) (memory $second 1) (table 10 funcref) (table 10 funcref)
           (func (export "f") (result i32) (i32.store $second (i32.const 0) (i32.const 7)) (i32.load $second (i32.const 0)))"#,
        &["f"],
    );
    let (program, exports) = load(&sandbox, &text);
    assert_eq!(
        call(&sandbox, &program, &exports, "f").await.unwrap(),
        Some(Returned::Val(Val::U32(7)))
    );
}

#[tokio::test]
async fn the_largest_components_leave_room_for_others() {
    let sandbox = Arc::new(
        Sandbox::new(Limits {
            timeout: "60s".parse().unwrap(),
            ..Limits::default()
        })
        .unwrap(),
    );
    let memories = "(memory 1)".repeat(16);
    // Long enough that all of them are there at the same time.
    let hog = format!(
        r#"{memories} (func (export "f") (result i32) (local $n i32)
            (loop $again
                (local.set $n (i32.add (local.get $n) (i32.const 1)))
                (br_if $again (i32.lt_u (local.get $n) (i32.const 50000000))))
            (local.get $n))"#
    );
    let (hog, hog_exports) = load(&sandbox, &component(&hog, &["f"]));
    let (nice, nice_exports) = load(
        &sandbox,
        &component(r#"(memory 1) (func (export "f") (result i32) (i32.const 1))"#, &["f"]),
    );
    let hogs: Vec<_> = (0..60)
        .map(|_| {
            let (sandbox, hog, exports) = (Arc::clone(&sandbox), Arc::clone(&hog), hog_exports.clone());
            tokio::spawn(async move { call(&sandbox, &hog, &exports, "f").await.map(|_| ()) })
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(
            call(&sandbox, &nice, &nice_exports, "f").await.unwrap(),
            Some(Returned::Val(Val::U32(1)))
        );
    }
    for hog in hogs {
        hog.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn memory_counts_over_all_memories_and_names_the_limit() {
    let sandbox = Sandbox::new(Limits {
        max_memory: ByteSize::from_mib(1),
        ..Limits::default()
    })
    .unwrap();
    let text = component(
        r#"(memory $a 1) (memory $b 1 2)
           (func (export "within") (result i32) (memory.grow $a (i32.const 10)))
           (func (export "own-maximum") (result i32) (drop (memory.grow $b (i32.const 100))) (memory.grow $a (i32.const 10)))
           (func (export "beyond") (result i32)
             (drop (memory.grow $b (i32.const 1)))
             (if (i32.eq (memory.grow $a (i32.const 15)) (i32.const -1)) (then unreachable))
             (i32.const 0))"#,
        &["within", "own-maximum", "beyond"],
    );
    let (program, exports) = load(&sandbox, &text);
    for name in ["within", "own-maximum"] {
        assert_eq!(
            call(&sandbox, &program, &exports, name).await.unwrap(),
            Some(Returned::Val(Val::U32(1))),
            "{name}"
        );
    }
    let error = call(&sandbox, &program, &exports, "beyond").await.unwrap_err();
    assert!(
        matches!(error, CallError::Memory(limit) if limit == ByteSize::from_mib(1)),
        "{error}"
    );
}

#[tokio::test]
async fn bytes_take_the_typed_road_and_any_other() {
    let sandbox = Sandbox::new(Limits::default()).unwrap();
    let bytes = std::fs::read(test_guests::path("every-type").unwrap()).unwrap();
    let (exports, _) = component2json::read_exports(&bytes, None).unwrap();
    let program = Arc::new(
        sandbox
            .link(&sandbox.compile(&bytes, kind(&exports)).unwrap(), &exports)
            .unwrap(),
    );
    let echo = exports
        .functions
        .iter()
        .position(|function| function.export.function == "echo-bytes")
        .unwrap();
    let payload: Vec<u8> = (0..1 << 20).map(|n| n as u8).collect();
    let typed = sandbox
        .call(
            &program,
            echo,
            vec![Argument::Bytes(payload.clone())],
            &Arc::new(Confinement::bare(Limits::default())),
            Arc::new(Nobody),
        )
        .await
        .result
        .unwrap();
    assert_eq!(typed, Some(Returned::Bytes(payload)));
}

#[tokio::test]
async fn a_dropped_call_gives_its_place_back() {
    let limits = Limits {
        max_concurrent_calls: 1.try_into().unwrap(),
        ..Limits::default()
    };
    let sandbox = Sandbox::new(limits).unwrap();
    let text = component(
        r#"(func (export "spin") (result i32) (loop $again (br $again)) (i32.const 0))
           (func (export "f") (result i32) (i32.const 1))"#,
        &["spin", "f"],
    );
    let (program, exports) = load(&sandbox, &text);
    for _ in 0..3 {
        let spinning = call(&sandbox, &program, &exports, "spin");
        assert!(
            tokio::time::timeout(std::time::Duration::from_millis(50), spinning)
                .await
                .is_err()
        );
        // There is one place only, so this waits until the guest is really gone.
        assert_eq!(
            call(&sandbox, &program, &exports, "f").await.unwrap(),
            Some(Returned::Val(Val::U32(1)))
        );
    }
}
