//! What is told to whoever watches the server.

use std::collections::{BTreeMap, HashSet};

use serde_json::json;

use crate::support::client::{ERAS, Era};
use crate::support::http::{HttpServer, Request};
use crate::support::{Home, guest, wait_until};
use crate::{assert_adds, serve};

#[test]
fn health_and_readiness_are_told_to_anybody() {
    let home = Home::new();
    let server = serve(&home, &[]);
    for path in ["/healthz", "/readyz"] {
        let answer = server.ask(&Request::get(path));
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        // Probes come by an address and not by a name.
        for host in ["10.1.2.3:8080", "pod.cluster.local"] {
            assert_eq!(
                server.ask(&Request::get(path).with("Host", host)).status,
                200,
                "{path} {host}"
            );
        }
        assert_eq!(server.ask(&Request::new("POST", path)).status, 405, "{path}");
    }
    server.close_well();
}

/// One number: its name with its labels as they stand, and its value.
type Samples = BTreeMap<String, f64>;

/// Reads the text format of Prometheus, and fails where it is none.
fn metrics(server: &HttpServer) -> Samples {
    let answer = server.ask(&Request::get("/metrics"));
    assert_eq!(answer.status, 200, "{answer:?}");
    let kind = answer.header("Content-Type").expect("a type");
    assert!(
        kind.starts_with("text/plain") || kind.starts_with("application/openmetrics-text"),
        "{kind}"
    );
    let text = answer.text();
    let mut samples = Samples::new();
    let mut typed = HashSet::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            if let Some(kind) = comment.strip_prefix("TYPE ") {
                typed.insert(kind.split(' ').next().unwrap().to_owned());
            }
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value in {line:?}"));
        let value = value.parse().unwrap_or_else(|_| panic!("no number in {line:?}"));
        assert!(samples.insert(name.to_owned(), value).is_none(), "{name} is there twice");
        let family = name.split('{').next().unwrap();
        let known = ["", "_total", "_count", "_sum", "_bucket", "_info"]
            .iter()
            .any(|end| family.strip_suffix(end).is_some_and(|family| typed.contains(family)));
        assert!(known, "no type of {family} in {text}");
    }
    samples
}

/// The sum of all samples whose name ends so and whose labels have all of these.
fn sum(samples: &Samples, end: &str, labels: &[&str]) -> f64 {
    samples
        .iter()
        .filter(|(name, _)| name.split('{').next().unwrap().ends_with(end) && labels.iter().all(|label| name.contains(label)))
        .map(|(_, value)| value)
        .sum()
}

#[test]
fn calls_are_counted_by_tool_and_outcome() {
    let home = Home::new();
    let server = home.serve_http(&[], &[guest("trap")]);
    let before = metrics(&server);
    for era in ERAS {
        let mut client = server.client(era);
        for _ in 0..3 {
            assert_adds(&mut client);
        }
        assert_eq!(client.call("give_up", json!({}))["isError"], true);
        client.request("tools/call", json!({"name": "no_such_tool", "arguments": {}}));
    }
    let after = metrics(&server);
    let grown = |end: &str, labels: &[&str]| sum(&after, end, labels) - sum(&before, end, labels);
    assert_eq!(grown("_total", &["tool=\"add\""]), 6.0, "{after:?}");
    assert_eq!(grown("_total", &["tool=\"give_up\""]), 2.0, "{after:?}");
    // Two outcomes are two numbers.
    let outcomes = after
        .keys()
        .filter(|name| name.contains("tool=\"add\"") || name.contains("tool=\"give_up\""))
        .filter_map(|name| name.split("outcome=\"").nth(1)?.split('"').next())
        .collect::<HashSet<_>>();
    assert!(outcomes.len() >= 2, "{outcomes:?}");
    // The time that each took is known.
    assert!(grown("_count", &[]) >= 8.0, "{after:?}");
    // Names that clients make up are not kept.
    assert!(!after.keys().any(|name| name.contains("no_such_tool")), "{after:?}");
    server.close_well();
}

#[test]
fn requests_are_counted_by_status() {
    let home = Home::new();
    let server = serve(&home, &[]);
    let before = metrics(&server);
    for _ in 0..5 {
        assert_eq!(server.ask(&crate::good().body("{")).status, 400);
    }
    let after = metrics(&server);
    let grown = sum(&after, "_total", &["\"400\""]) - sum(&before, "_total", &["\"400\""]);
    assert_eq!(grown, 5.0, "{after:?}");
    server.close_well();
}

/// The sum of all samples that are no counters and have this in their name.
fn gauge(samples: &Samples, part: &str) -> f64 {
    let found = samples
        .iter()
        .filter(|(name, _)| name.contains(part) && !name.contains("_total"));
    found.map(|(_, value)| value).sum()
}

/// How many calls run.
pub(crate) fn running(server: &HttpServer) -> f64 {
    gauge(&metrics(server), "running")
}

#[test]
fn what_is_under_way_is_told() {
    let home = Home::new();
    let server = serve(&home, &[]);
    let before = metrics(&server);
    let mut client = server.client(Era::Initialize);
    let meta = json!({"progressToken": "running"});
    let params = json!({"name": "sleep", "arguments": {"seconds": 3}, "_meta": meta});
    let mut call = client.start("tools/call", params);
    call.wait_until_it_runs();
    let during = metrics(&server);
    for part in ["session", "connections", "running"] {
        assert!(gauge(&during, part) > gauge(&before, part), "{part}: {during:?}");
    }
    assert!(gauge(&during, "memory") > f64::from(1 << 20), "{during:?}");
    call.answer();
    wait_until("nothing runs any more", || running(&server) == gauge(&before, "running"));
    server.close_well();
}

/// The host that a page in a browser would name is checked here as well: numbers are nobody else's.
#[test]
fn metrics_are_for_this_machine() {
    let home = Home::new();
    let server = serve(&home, &[]);
    assert_eq!(server.ask(&Request::get("/metrics").with("Host", "evil.example")).status, 403);
    assert_eq!(
        server
            .ask(&Request::get("/metrics").with("Origin", "https://evil.example"))
            .status,
        403
    );
    server.close_well();
}
