use std::path::Path;

use lifecycle::{
    ComponentReport, Config, GrantReport, InstanceMode, LimitsReport, LoadOutcome, MissingReport, RESERVED_NAMES, RuleReport,
    RuleSource, Status, UnloadOutcome,
};
use rmcp::model::ErrorCode;
use serde_json::Map;

use super::*;
use crate::Server;

fn manager(components: &[&str]) -> Arc<LifecycleManager> {
    let config = Config {
        home: None,
        ..Config::default()
    };
    let manager = LifecycleManager::new(config).unwrap();
    for name in components {
        manager.ensure_component_loaded(&test_guests::path(name).unwrap()).unwrap();
    }
    Arc::new(manager)
}

fn names(server: &Server) -> Vec<String> {
    server.tools().into_iter().map(|tool| tool.name.into_owned()).collect()
}

#[test]
fn every_reserved_name_is_a_tool() {
    let names: Vec<&str> = tools().into_keys().collect();
    assert_eq!(names, RESERVED_NAMES);
    for (name, tool) in tools() {
        assert_eq!(tool.definition.name, name);
    }
}

#[test]
fn without_leave_there_are_none() {
    let server = Server::new(manager(&["documented"]));
    for name in RESERVED_NAMES {
        assert!(!names(&server).contains(&name.to_owned()));
        let error = server.tool(name).err().unwrap();
        assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
        assert!(
            error.message.starts_with(&format!("there is no tool `{name}`; there is `")),
            "{}",
            error.message
        );
    }
}

#[test]
fn they_stand_among_the_others() {
    let server = Server::with_admin(manager(&["documented"]));
    let names = names(&server);
    assert_eq!(names.len(), 6 + 7);
    assert!(names.is_sorted(), "{names:?}");
    assert_eq!(names[5], "reset_permissions");
    let error = server.tool("load_componnt").err().unwrap();
    let start = "there is no tool `load_componnt`; there is `load_component`, ";
    assert!(error.message.starts_with(start), "{}", error.message);
}

/// Clients and models read these; `BLESS=1` records what is now.
#[test]
#[allow(clippy::disallowed_methods, reason = "a test's own file")]
fn definitions_are_as_recorded() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/admin/tools.json");
    let now: Vec<Tool> = tools().into_values().map(|tool| tool.definition.clone()).collect();
    let now = serde_json::to_string_pretty(&now).unwrap() + "\n";
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&file, &now).unwrap();
    }
    let recorded = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(now == recorded, "BLESS=1 records what is now: {now}");
}

#[test]
fn schemas_are_such_as_every_client_reads() {
    for (name, tool) in tools() {
        let input = Value::Object((*tool.definition.input_schema).clone());
        let output = Value::Object((**tool.definition.output_schema.as_ref().unwrap()).clone());
        assert_eq!(
            structured_output::canonicalize_output_schema(Some(output.clone())),
            Some(output.clone()),
            "{name}"
        );
        for schema in [input, output] {
            assert_eq!(schema["type"], "object");
            jsonschema::draft202012::new(&schema).unwrap();
            assert_plain(&schema);
        }
    }
}

/// No references, no names of Rust types, one type each; and a text for every property but the envelope's.
fn assert_plain(schema: &Value) {
    let object = schema.as_object().unwrap_or_else(|| panic!("{schema} is no object"));
    for keyword in ["$schema", "$ref", "$defs", "title", "format", "oneOf", "allOf"] {
        assert!(!object.contains_key(keyword), "{keyword} in {schema}");
    }
    assert!(
        object.get("type").is_none_or(Value::is_string),
        "several types at once: {schema}"
    );
    for (name, property) in object.get("properties").and_then(Value::as_object).unwrap_or(&Map::new()) {
        assert!(property.get("description").is_some(), "{name} in {schema} says nothing");
        assert_plain(property);
    }
    for choice in object.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
        assert_plain(choice);
    }
    if let Some(more) = object.get("additionalProperties") {
        assert_eq!(*more, false);
    }
    if let Some(items) = object.get("items") {
        assert_plain(items);
    }
}

#[test]
fn answers_are_what_the_schemas_promise() {
    let grant = GrantReport {
        kind: serde_json::from_value(json!("write")).unwrap(),
        host: "/srv/data".to_owned(),
        guest: "/data".to_owned(),
    };
    let id = || ComponentId::from("weather".to_owned());
    let ready = ComponentReport {
        id: id(),
        status: Status::Ready,
        reason: None,
        source: "oci://example.com/weather:1".to_owned(),
        digest: Some(format!("sha256:{}", "0".repeat(64))),
        size: 1 << 30,
        tools: vec!["forecast".to_owned()],
        grants: vec![grant.clone()],
        added_at: Some("2026-11-16T08:30:00Z".to_owned()),
    };
    let broken = ComponentReport {
        status: Status::Broken,
        reason: Some("the file is gone".to_owned()),
        tools: vec![],
        grants: vec![],
        added_at: None,
        ..ready.clone()
    };
    let policy = || PolicyReport {
        id: id(),
        digest: ready.digest.clone(),
        grants: vec![grant.clone()],
        server_grants: vec![],
        rules: vec![RuleReport {
            rule: "--allow-net=https://api.example.com".to_owned(),
            from: RuleSource::Grant,
        }],
        instance: InstanceMode::Fresh,
        not_granted: vec![MissingReport {
            what: "files".to_owned(),
            option: "--allow-read=DIR".to_owned(),
        }],
        limits: LimitsReport {
            timeout_ms: 30_000,
            max_cpu_ms: 30_000,
            max_memory_bytes: 1 << 29,
            max_output_bytes: 1 << 23,
            max_stdio_bytes: 1 << 20,
            max_received_bytes: 1 << 26,
            connect_timeout_ms: 10_000,
            max_handles: 1_000,
            max_concurrent_calls: 64,
            max_waiting_calls: 256,
        },
    };
    let load = |outcome| LoadReport {
        component: ready.clone(),
        outcome,
        notes: vec!["a note".to_owned()],
    };
    let answers = [
        ("get_policy", answer(policy())),
        ("grant_permission", answer(policy())),
        ("list_components", answer(ComponentList { components: vec![] })),
        (
            "list_components",
            answer(ComponentList {
                components: vec![broken, ready.clone()],
            }),
        ),
        ("load_component", answer(load(LoadOutcome::Added))),
        ("load_component", answer(load(LoadOutcome::Unchanged))),
        ("reset_permissions", answer(policy())),
        ("revoke_permission", answer(policy())),
        (
            "unload_component",
            answer(UnloadReport {
                id: id(),
                outcome: UnloadOutcome::Removed,
            }),
        ),
    ];
    let tools = tools();
    for (name, answer) in answers {
        let schema = Value::Object((**tools[name].definition.output_schema.as_ref().unwrap()).clone());
        let answer = answer.unwrap().structured.unwrap();
        if let Err(error) = jsonschema::draft202012::new(&schema).unwrap().validate(&answer) {
            panic!("{name}: {error}");
        }
        // Nothing is missing that canonicalization would have to fill in.
        assert_eq!(
            structured_output::ensure_structured_result(Some(&schema), answer.clone()),
            Some(answer)
        );
    }
}

#[tokio::test]
async fn what_the_schemas_allow_is_understood() {
    let manager = manager(&["trap"]);
    let tools = tools();
    let grant = json!({"kind": "write", "host": "/srv/data", "guest": "/data"});
    let short = json!({"kind": "read", "host": "/srv/data"});
    for (name, arguments) in [
        ("get_policy", json!({"id": "no-such"})),
        ("grant_permission", json!({"id": "no-such", "permission": grant})),
        ("grant_permission", json!({"id": "no-such", "permission": short})),
        ("load_component", json!({"source": "/no/such"})),
        (
            "load_component",
            json!({"source": "/no/such", "name": "x", "sha256": "0".repeat(64)}),
        ),
        ("load_component", json!({"source": "/no/such", "name": null, "sha256": null})),
        ("reset_permissions", json!({"id": "no-such"})),
        ("revoke_permission", json!({"id": "no-such", "permission": grant})),
        ("unload_component", json!({"id": "no-such"})),
    ] {
        let schema = Value::Object((*tools[name].definition.input_schema).clone());
        assert!(
            jsonschema::draft202012::new(&schema).unwrap().is_valid(&arguments),
            "{arguments}"
        );
        let error = tools[name].call(&manager, arguments).await.unwrap_err();
        assert!(matches!(error, Failure::Refused(_)), "{name}: {error}");
    }
    let listed = tools["list_components"].call(&manager, json!({})).await.unwrap();
    assert_eq!(listed.structured.unwrap()["result"]["components"][0]["id"], "trap");
}

#[tokio::test]
async fn mistakes_are_told_with_their_place() {
    let manager = manager(&[]);
    let tools = tools();
    for (name, arguments, error) in [
        ("get_policy", json!({}), "$.id: missing; expected a string"),
        ("list_components", json!({"id": "x"}), "$.id: unknown field; it has no fields"),
        (
            "load_component",
            json!({"sorce": "/x", "sha256": 7}),
            "$.source: missing; expected a string\n\
             $.sha256: expected a string, got 7\n\
             $.sorce: unknown field; did you mean `source`?",
        ),
        (
            "revoke_permission",
            json!({"id": "x", "permission": {"kind": "execute", "path": "/srv"}}),
            "$.permission.kind: expected one of `read`, `write`, got \"execute\"\n\
             $.permission.host: missing; expected a string\n\
             $.permission.path: unknown field; there is `host`, `kind`, `guest`",
        ),
        (
            "grant_permission",
            json!({"id": ["x"], "permission": "/srv"}),
            "$.id: expected a string, got an array of 1 items\n\
             $.permission: expected an object with `kind`, `host`, `guest`, got \"/srv\"",
        ),
    ] {
        let found = tools[name].call(&manager, arguments).await.unwrap_err();
        assert_eq!(found.to_string(), error);
    }
}
