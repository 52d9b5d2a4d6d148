//! Connections to servers that a few lines of a script are, over a pipe in memory.

#![cfg(test)]

use std::time::Duration;

use catalog::{CallError, Catalog, ConnectError, ConnectOptions, Connection, Era};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// What a server does with a request: the lines that it sends. `None` ends it.
type Answer = fn(&Value) -> Option<Vec<String>>;

async fn connect(era: Era, answer: Answer) -> Result<Connection, ConnectError> {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    tokio::spawn(async move {
        let (read, mut write) = tokio::io::split(theirs);
        let mut lines = BufReader::new(read).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            let Some(answers) = answer(&message) else { break };
            for line in answers {
                write.write_all(format!("{line}\n").as_bytes()).await.unwrap();
            }
        }
    });
    let (read, write) = tokio::io::split(ours);
    let options = ConnectOptions {
        era,
        timeout: Duration::from_secs(20),
        tls: None,
    };
    Connection::over(read, write, &options).await
}

async fn catalog(answer: Answer) -> Catalog {
    connect(Era::Legacy, answer).await.unwrap().catalog().await.unwrap()
}

fn result(request: &Value, result: Value) -> Option<Vec<String>> {
    Some(vec![
        json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string(),
    ])
}

fn refused(request: &Value, code: i64) -> Option<Vec<String>> {
    let error = json!({ "code": code, "message": "no" });
    Some(vec![
        json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }).to_string(),
    ])
}

/// A handshake of the older era, with tools only, and nothing else.
fn hello(request: &Value) -> Option<Vec<String>> {
    match request["method"].as_str() {
        Some("initialize") => result(
            request,
            json!({
                "protocolVersion": "2025-06-18",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "script", "version": "1", "x-own": true },
            }),
        ),
        _ if request.get("id").is_none() => Some(Vec::new()),
        _ => refused(request, -32601),
    }
}

fn tool(number: u64) -> Value {
    json!({ "name": format!("tool-{number:04}"), "inputSchema": { "type": "object" }, "x-number": number })
}

fn is_tools_list(request: &Value) -> bool {
    request["method"] == "tools/list"
}

#[tokio::test]
async fn a_thousand_tools_come_in_pages() {
    let catalog = catalog(|request| {
        if !is_tools_list(request) {
            return hello(request);
        }
        let page: u64 = request["params"]["cursor"].as_str().unwrap_or("0").parse().unwrap();
        let tools: Vec<Value> = (page * 10..page * 10 + 10).map(tool).collect();
        match page {
            99 => result(request, json!({ "tools": tools })),
            _ => result(request, json!({ "tools": tools, "nextCursor": (page + 1).to_string() })),
        }
    })
    .await;
    let document = catalog.document();
    assert_eq!((document.items.len(), document.problems.len()), (1_000, 0));
    for (number, item) in document.items.iter().enumerate() {
        assert_eq!(item.meta.extensions["x-number"], number);
    }
    assert_eq!(document.server.info["x-own"], true);
}

#[tokio::test]
async fn pages_that_go_in_circles_end() {
    let catalog = catalog(|request| match is_tools_list(request) {
        true => result(request, json!({ "tools": [tool(1)], "nextCursor": "again" })),
        false => hello(request),
    })
    .await;
    let problem = &catalog.document().problems[0];
    assert_eq!(problem.list, "tools/list");
    assert_eq!(problem.message, "the pages go in circles; 2 entries were read");
    assert_eq!(catalog.document().items.len(), 2);
}

#[tokio::test]
async fn an_empty_cursor_is_none() {
    let catalog = catalog(|request| match is_tools_list(request) {
        true => result(request, json!({ "tools": [tool(1)], "nextCursor": "" })),
        false => hello(request),
    })
    .await;
    assert_eq!((catalog.document().items.len(), catalog.document().problems.len()), (1, 0));
}

#[tokio::test]
async fn what_cannot_be_read_is_told_at_once() {
    // Half of a character, as it is left when a text is cut.
    let half = catalog(|request| match is_tools_list(request) {
        true => {
            let id = &request["id"];
            let tool = r#"{"name":"t","description":"cut \ud83d","inputSchema":{}}"#;
            Some(vec![format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{tool}]}}}}"#
            )])
        }
        false => hello(request),
    })
    .await;
    assert_eq!(half.document().items[0].description.as_deref(), Some("cut \u{fffd}"));
    // What Python writes for a number that JSON does not have.
    let mut connection = connect(Era::Legacy, |request| match is_tools_list(request) {
        true => {
            let id = &request["id"];
            let tool = r#"{"name":"t","inputSchema":{"default":Infinity}}"#;
            Some(vec![format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{tool}]}}}}"#
            )])
        }
        false => hello(request),
    })
    .await
    .unwrap();
    assert!(matches!(connection.catalog().await, Err(ConnectError::Unreadable { .. })));
}

#[tokio::test]
async fn pages_without_end_end() {
    let catalog = catalog(|request| {
        if !is_tools_list(request) {
            return hello(request);
        }
        let page: u64 = request["params"]["cursor"].as_str().unwrap_or("0").parse().unwrap();
        result(
            request,
            json!({ "tools": [tool(page)], "nextCursor": (page + 1).to_string() }),
        )
    })
    .await;
    let message = &catalog.document().problems[0].message;
    assert_eq!(message, "the list has more than 1000 pages; 1000 entries were read");
    assert_eq!(catalog.document().items.len(), 1_000);
}

#[tokio::test]
async fn a_list_that_fails_does_not_hide_the_others() {
    let catalog = catalog(|request| match request["method"].as_str() {
        Some("initialize") => {
            let capabilities = json!({ "tools": {}, "resources": {}, "prompts": {} });
            let info = json!({ "protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": {} });
            result(request, info)
        }
        Some("tools/list") => refused(request, -32603),
        Some("prompts/list") => result(request, json!({ "prompts": "none" })),
        Some("resources/list") => result(request, json!({ "resources": [{ "uri": "x:1", "name": "one" }] })),
        _ => hello(request),
    })
    .await;
    let document = catalog.document();
    let problems: Vec<(&str, &str)> = document
        .problems
        .iter()
        .map(|p| (p.list.as_str(), p.message.as_str()))
        .collect();
    assert_eq!(
        problems,
        [
            ("tools/list", "the server refused the call: no (code -32603)"),
            (
                "prompts/list",
                "the answer of the server is not one of the protocol: it has no list `prompts`"
            ),
        ]
    );
    assert_eq!(document.items.len(), 1);
}

#[tokio::test]
async fn what_is_not_declared_is_not_asked_for() {
    let catalog = catalog(|request| match request["method"].as_str() {
        Some("tools/list") => result(request, json!({ "tools": [] })),
        Some(method) if method.ends_with("/list") => panic!("{method} was asked for"),
        _ => hello(request),
    })
    .await;
    assert_eq!(catalog.document().items.len(), 0);
    assert_eq!(catalog.document().problems.len(), 0);
}

#[tokio::test]
async fn noise_is_passed_over() {
    let catalog = catalog(|request| {
        let mut lines = vec![
            "Listening on stdin…".to_owned(),
            "{}".to_owned(),
            String::new(),
            "[]".to_owned(),
            json!({ "jsonrpc": "2.0", "id": 9999, "result": { "tools": [tool(9)] } }).to_string(),
            json!({ "jsonrpc": "2.0", "method": "notifications/own", "params": {} }).to_string(),
        ];
        // Before the handshake is over, an answer that nobody asked for is the end of it.
        if request["method"] == "initialize" {
            lines.truncate(4);
        }
        let answer = match is_tools_list(request) {
            true => result(request, json!({ "tools": [tool(1)] })),
            false => hello(request),
        };
        lines.extend(answer?);
        Some(lines)
    })
    .await;
    assert_eq!(catalog.document().items.len(), 1);
}

#[tokio::test]
async fn the_older_era_is_found_by_itself() {
    let mut connection = connect(Era::Auto, hello).await.unwrap();
    let catalog = connection.catalog().await.unwrap();
    assert_eq!(catalog.document().server.protocol.version.as_deref(), Some("2025-06-18"));
    let error = connect(Era::Modern, hello).await.unwrap_err().to_string();
    assert!(
        error.ends_with("hint: it may be an older server; leave `--era` out"),
        "{error}"
    );
}

#[tokio::test]
async fn what_is_nested_too_deeply_is_told() {
    let mut connection = connect(Era::Legacy, |request| match is_tools_list(request) {
        true => {
            let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
            Some(vec![format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{deep}}}",
                request["id"]
            )])
        }
        false => hello(request),
    })
    .await
    .unwrap();
    assert!(matches!(connection.catalog().await, Err(ConnectError::TooDeep)));
}

#[tokio::test]
async fn a_server_that_goes_away_is_told() {
    let ended = connect(Era::Legacy, |_| None).await.unwrap_err().to_string();
    assert_eq!(
        ended,
        "the server does not keep to the protocol: it closed the connection without an answer"
    );
    let mut connection = connect(Era::Legacy, |request| match is_tools_list(request) {
        true => None,
        false => hello(request),
    })
    .await
    .unwrap();
    assert!(matches!(connection.catalog().await, Err(ConnectError::Protocol { .. })));
}

#[tokio::test]
async fn results_are_given_as_they_came() {
    let answer: Answer = |request| match request["params"]["name"].as_str() {
        Some("odd") => result(
            request,
            json!({ "content": [{ "type": "new", "x": 1 }], "x-own": { "a": null } }),
        ),
        Some("text") => result(request, json!("done")),
        Some("asks") => result(request, json!({ "resultType": "input_required", "inputRequests": {} })),
        _ => hello(request),
    };
    let mut connection = connect(Era::Legacy, answer).await.unwrap();
    let odd = connection.call("odd", Map::new()).await.unwrap();
    assert_eq!(
        odd.0,
        json!({ "content": [{ "type": "new", "x": 1 }], "x-own": { "a": null } })
    );
    assert!(matches!(connection.call("text", Map::new()).await, Err(CallError::Answer(_))));
    assert!(matches!(
        connection.call("asks", Map::new()).await,
        Err(CallError::InputRequired)
    ));
    let refused = connection.call("none", Map::new()).await.unwrap_err().to_string();
    assert_eq!(refused, "the server refused the call: no (code -32601)");
}
