//! Which of the added components one server serves, when an agent chooses them one by one.
#![cfg(test)]

use std::path::Path;
use std::sync::Arc;

use lifecycle::{ComponentId, Config, LifecycleManager};

/// A manager whose agent may load everything, and the sources of so many components.
fn manager(folder: &Path, components: usize) -> (Arc<LifecycleManager>, Vec<String>) {
    let home = folder.join("home");
    let config = Config {
        config_file: Some(folder.join("host.toml")),
        home: Some(home),
        ..Config::default()
    };
    let allowed = format!("[agent]\nsources = [\"{}/*\"]\n", folder.display());
    lifecycle::write_atomically(&folder.join("host.toml"), allowed.as_bytes()).unwrap();
    let source = |number| {
        let file = folder.join(format!("c{number}.wat"));
        let text = format!(
            r#"(component
                (core module $m (func (export "f") (result i32) (i32.const {number})))
                (core instance $i (instantiate $m))
                (func (export "c{number}") (result u32) (canon lift (core func $i "f"))))"#
        );
        lifecycle::write_atomically(&file, text.as_bytes()).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let sources = (0..components).map(source).collect();
    (Arc::new(LifecycleManager::new(config).unwrap()), sources)
}

fn tool_names(manager: &LifecycleManager) -> Vec<String> {
    manager.tools().iter().map(|tool| tool.definition.name.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn what_is_loaded_at_once_is_all_served() {
    let folder = tempfile::tempdir().unwrap();
    let (manager, sources) = manager(folder.path(), 9);
    let load = |source: String| {
        let manager = Arc::clone(&manager);
        tokio::spawn(async move { manager.agent_load(&source, None, None).await.unwrap() })
    };
    let running: Vec<_> = sources.into_iter().map(load).collect();
    for loading in running {
        loading.await.unwrap();
    }
    assert_eq!(tool_names(&manager), ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"]);
}

#[tokio::test]
async fn what_was_removed_keeps_nothing_else_from_being_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let (manager, sources) = manager(folder.path(), 2);
    manager.agent_load(&sources[0], None, None).await.unwrap();
    manager.agent_unload(&ComponentId::from("c0".to_owned())).await.unwrap();
    assert!(tool_names(&manager).is_empty());
    manager.agent_load(&sources[1], None, None).await.unwrap();
    assert_eq!(tool_names(&manager), ["c1"]);
    manager.agent_load(&sources[0], None, None).await.unwrap();
    assert_eq!(tool_names(&manager), ["c0", "c1"]);
}
