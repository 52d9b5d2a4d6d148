//! The manager with real components: loading, naming, calling, unloading, and what is kept between runs.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as the tests do")]

use std::path::{Path, PathBuf};

use lifecycle::{Caller, Config, ExecuteError, LifecycleManager, LoadError};
use serde_json::json;

fn manager(home: &Path) -> LifecycleManager {
    let config = Config {
        home: Some(home.to_owned()),
        ..Config::default()
    };
    LifecycleManager::new(config).unwrap()
}

fn guest(name: &str) -> PathBuf {
    test_guests::path(name).unwrap()
}

fn tool_names(manager: &LifecycleManager) -> Vec<String> {
    manager.tools().iter().map(|tool| tool.definition.name.to_string()).collect()
}

async fn call(
    manager: &LifecycleManager,
    tool: &str,
    arguments: serde_json::Value,
) -> Result<Option<serde_json::Value>, ExecuteError> {
    let tool = manager.tool(tool)?;
    Ok(manager
        .execute_component_call(&tool, &arguments, &Caller::default())
        .await?
        .structured)
}

#[tokio::test]
async fn a_component_is_loaded_called_and_unloaded() {
    let home = tempfile::tempdir().unwrap();
    let manager = manager(home.path());
    let id = manager.ensure_component_loaded(&guest("trap")).unwrap();
    assert_eq!(
        manager.ensure_component_loaded(&guest("trap")).unwrap(),
        id,
        "loading again changes nothing"
    );
    assert_eq!(manager.list_components().components.len(), 1);
    assert_eq!(
        call(&manager, "add", json!({"a": 2, "b": 40})).await.unwrap(),
        Some(json!({"result": 42}))
    );

    let listed: Vec<_> = manager.get_component_schema(&id).unwrap()["tools"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(listed.len(), manager.tools().len());

    assert!(manager.unload(&id));
    assert!(!manager.unload(&id));
    assert!(manager.tools().is_empty() && manager.list_components().components.is_empty());
    assert!(manager.get_component_schema(&id).is_none());
    let error = call(&manager, "add", json!({})).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no tool `add`; no tools are loaded");
}

#[tokio::test]
async fn two_tools_of_one_name_stay_callable_and_keep_their_names() {
    let home = tempfile::tempdir().unwrap();
    let names = {
        let manager = manager(home.path());
        manager.ensure_component_loaded(&guest("same-name-a")).unwrap();
        manager.ensure_component_loaded(&guest("same-name-b")).unwrap();
        let first = call(&manager, "shared", json!({})).await.unwrap();
        let second = call(&manager, "same_name_b_shared", json!({})).await.unwrap();
        assert_ne!(first, second);
        tool_names(&manager)
    };
    assert_eq!(names, ["same_name_b_shared", "shared"]);

    let again = manager(home.path());
    again.ensure_component_loaded(&guest("same-name-a")).unwrap();
    let second = again.ensure_component_loaded(&guest("same-name-b")).unwrap();
    assert_eq!(tool_names(&again), names, "the same after a restart");

    // What stays keeps its name; clients know it by that.
    assert!(again.unload(&second));
    assert_eq!(tool_names(&again), ["shared"]);
}

#[tokio::test]
async fn management_names_are_never_taken() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("impostor.wat");
    let text = r#"(component
        (core module $m (func (export "f") (result i32) (i32.const 7)))
        (core instance $i (instantiate $m))
        (func $f (result u32) (canon lift (core func $i "f")))
        (export "load-component" (func $f)))"#;
    lifecycle::write_atomically(&file, text.as_bytes()).unwrap();
    let manager = manager(home.path());
    manager.ensure_component_loaded(&file).unwrap();
    assert_eq!(tool_names(&manager), ["impostor_load_component"]);
    assert_eq!(
        call(&manager, "impostor_load_component", json!({})).await.unwrap(),
        Some(json!({"result": 7}))
    );
}

#[tokio::test]
async fn what_was_read_once_is_not_read_again() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("kitchen.wasm");
    std::fs::copy(guest("kitchen-c"), &file).unwrap();
    let first = manager(home.path());
    first.ensure_component_loaded(&file).unwrap();
    call(&first, "test_kitchen_kitchen_add", json!({"a": 1, "b": 2}))
        .await
        .unwrap();

    let cached = || {
        let entries = std::fs::read_dir(home.path().join("cache")).unwrap();
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    };
    let kept = cached();
    let modified = |files: &[PathBuf]| -> Vec<_> {
        files
            .iter()
            .map(|file| file.metadata().unwrap().modified().unwrap())
            .collect()
    };
    let before = modified(&kept);
    assert_eq!(kept.len(), 3, "metadata, code, and its checksum: {kept:?}");

    let second = manager(home.path());
    second.ensure_component_loaded(&file).unwrap();
    call(&second, "test_kitchen_kitchen_add", json!({"a": 1, "b": 2}))
        .await
        .unwrap();
    assert_eq!(cached(), kept);
    assert_eq!(modified(&kept), before, "nothing was written, so nothing was compiled");
    assert_eq!(tool_names(&first), tool_names(&second));
}

#[tokio::test]
async fn a_file_that_changes_under_us_is_not_run() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("guest.wat");
    std::fs::copy(guest("same-name-a"), &file).unwrap();
    let manager = manager(home.path());
    manager.ensure_component_loaded(&file).unwrap();
    std::fs::copy(guest("same-name-b"), &file).unwrap();
    let error = call(&manager, "shared", json!({})).await.unwrap_err();
    assert!(matches!(error, ExecuteError::Changed { .. }), "{error}");
}

#[test]
fn what_can_never_run_is_refused_with_a_reason() {
    let home = tempfile::tempdir().unwrap();
    let manager = manager(home.path());
    match manager.ensure_component_loaded(&guest("unknown-import")) {
        Err(LoadError::UnknownImports { imports, .. }) => assert_eq!(imports, ["acme:secret/vault"]),
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        manager.ensure_component_loaded(Path::new("no-such-file.wasm")),
        Err(LoadError::Read { .. })
    ));
}
