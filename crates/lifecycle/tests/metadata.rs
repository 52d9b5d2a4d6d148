//! Metadata that this build did not write: whatever form its output schemas have, clients see the canonical one.
#![cfg(test)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lifecycle::{Caller, ComponentId, Config, Interface, LifecycleManager, Metadata, Place, Selection, Wanted};
use policy::Grants;
use serde_json::{Value, json};
use sources::Source;

/// Returns a number, and a pair.
const COMPONENT: &str = r#"(component
    (core module $m
        (memory (export "memory") 1)
        (data (i32.const 0) "\01\00\00\00\02\00\00\00")
        (func (export "one") (result i32) (i32.const 7))
        (func (export "two") (result i32) (i32.const 0)))
    (core instance $i (instantiate $m))
    (func (export "one") (result u32) (canon lift (core func $i "one")))
    (func (export "two") (result (tuple u32 u32)) (canon lift (core func $i "two") (memory $i "memory"))))"#;

fn manager(home: &Path) -> Arc<LifecycleManager> {
    let config = Config {
        home: Some(home.to_owned()),
        ..Config::default()
    };
    Arc::new(LifecycleManager::new(config).unwrap())
}

fn file(folder: &Path) -> PathBuf {
    let file = folder.join("numbers.wat");
    lifecycle::write_atomically(&file, COMPONENT.as_bytes()).unwrap();
    file
}

/// Output schemas as somebody else would write them: without the envelope, and a pair as an array.
fn foreign_schemas() -> [Value; 2] {
    let number = json!({"type": "integer"});
    [
        number.clone(),
        json!({"type": "array", "prefixItems": [number, number], "items": false, "minItems": 2}),
    ]
}

async fn assert_canonical(manager: &LifecycleManager, id: &ComponentId) {
    let schema = manager.get_component_schema(id).unwrap();
    let tools = schema["tools"].as_array().unwrap();
    let number = json!({"type": "integer"});
    assert_eq!(
        tools[0]["outputSchema"],
        json!({"type": "object", "properties": {"result": number}, "required": ["result"]})
    );
    let pair = &tools[1]["outputSchema"]["properties"]["result"];
    assert_eq!(
        (&pair["type"], &pair["properties"], &pair["required"]),
        (
            &json!("object"),
            &json!({"val0": number, "val1": number}),
            &json!(["val0", "val1"])
        )
    );
    for (tool, result) in [("one", json!(7)), ("two", json!({"val0": 1, "val1": 2}))] {
        let tool = manager.tool(tool).unwrap();
        let outcome = manager
            .execute_component_call(&tool, &json!({}), &Caller::default())
            .await
            .unwrap();
        assert_eq!(outcome.structured, Some(json!({"result": result})));
    }
}

#[tokio::test]
async fn foreign_metadata_is_served_in_canonical_form() {
    let folder = tempfile::tempdir().unwrap();
    let file = file(folder.path());
    let manager = manager(&folder.path().join("home"));
    let known = manager.inspect(&Place::File(file.clone())).unwrap();
    let Interface::Functions { exports, mut tools } = known.interface else {
        panic!("it has functions");
    };
    for (tool, schema) in tools.iter_mut().zip(foreign_schemas()) {
        tool.output_schema = Some(schema);
    }
    let metadata = Metadata::new(known.digest, known.size, Interface::Functions { exports, tools });
    let id = manager.populate_registry_from_metadata(&file, metadata);
    assert_canonical(&manager, &id).await;
}

/// Changes what a store knows of its one component, as another program would that has the key.
fn replace_metadata(home: &Path, change: impl FnOnce(&mut Value)) {
    let components = home.join("components").read_dir().unwrap();
    let old = components
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|extension| extension == "json"))
        .unwrap();
    let mut metadata: Value = serde_json::from_slice(&std::fs::read(&old).unwrap()).unwrap();
    change(&mut metadata);
    let text = metadata.to_string();
    let digest = sources::Digest::of(text.as_bytes()).hex();
    lifecycle::write_atomically(&old.with_file_name(format!("{digest}.json")), text.as_bytes()).unwrap();
    let index = home.join("components.toml");
    let entries = std::fs::read_to_string(&index).unwrap();
    let entries = entries.replace(old.file_stem().unwrap().to_str().unwrap(), &digest);
    lifecycle::write_atomically(&index, entries.as_bytes()).unwrap();
    std::fs::remove_file(old).unwrap();
    manager(home).store().unwrap().verify(true).unwrap();
}

async fn home_with_component(folder: &Path) -> PathBuf {
    let home = folder.join("home");
    let manager = manager(&home);
    let source = Source::File(file(folder));
    let candidate = manager.fetch(&source, Wanted::default()).await.unwrap();
    manager.add(&candidate, &Grants::default()).unwrap();
    home
}

#[tokio::test]
async fn stored_metadata_is_served_in_canonical_form() {
    let folder = tempfile::tempdir().unwrap();
    let home = home_with_component(folder.path()).await;
    replace_metadata(&home, |metadata| {
        let tools = metadata["interface"]["Functions"]["tools"].as_array_mut().unwrap();
        for (tool, schema) in tools.iter_mut().zip(foreign_schemas()) {
            tool["outputSchema"] = schema;
        }
    });
    let manager = manager(&home);
    manager.serve_added(Selection::All).unwrap();
    assert_canonical(&manager, &ComponentId::from("numbers".to_owned())).await;
}

#[tokio::test]
async fn metadata_of_another_format_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let home = home_with_component(folder.path()).await;
    let served = || {
        let manager = manager(&home);
        manager.serve_added(Selection::All).unwrap();
        manager
            .get_component_schema(&ComponentId::from("numbers".to_owned()))
            .unwrap()
    };
    let before = served();
    replace_metadata(&home, |metadata| {
        metadata["format"] = json!(1);
        metadata["interface"]["Functions"]["tools"] = json!([]);
    });
    assert_eq!(served(), before);
}
