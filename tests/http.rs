//! MCP over HTTP, through the real binary and plain sockets.
//!
//! | file       | what                                                            |
//! |------------|-----------------------------------------------------------------|
//! | `eras`     | both eras of the protocol at one address, and what is told unasked |
//! | `messages` | everything that is no good message, and what is answered to it  |
//! | `access`   | tokens, hosts, origins, and where it listens                    |
//! | `sessions` | their ids, their end, and another process that takes them up    |
//! | `calls`    | calls that take long: progress and cancellation, over stdio too |
//! | `shutdown` | running calls are finished                                      |
//! | `numbers`  | health, readiness and metrics                                   |

#![cfg(test)]
#![cfg(unix)]

mod support;

#[path = "http/access.rs"]
mod access;
#[path = "http/calls.rs"]
mod calls;
#[path = "http/eras.rs"]
mod eras;
#[path = "http/messages.rs"]
mod messages;
#[path = "http/numbers.rs"]
mod numbers;
#[path = "http/sessions.rs"]
mod sessions;
#[path = "http/shutdown.rs"]
mod shutdown;

use serde_json::{Value, json};
use support::http::{HttpClient, HttpServer, Request, stateless, stateless_call};
use support::{Home, guest};

/// A server of the component that adds at once and sleeps for as long as it is told.
fn serve(home: &Home, options: &[&str]) -> HttpServer {
    home.serve_http(options, &[guest("evil-17-host-sleep")])
}

/// A request that is answered with 42.
fn good() -> Request {
    stateless(&stateless_call(7, "add", &json!({"a": 2, "b": 40})))
}

fn is_42(message: &Value) -> bool {
    message["result"]["structuredContent"] == json!({"result": 42})
}

/// Fails unless somebody who did nothing wrong is answered.
fn assert_serves(server: &HttpServer) {
    let answer = server.ask(&good());
    assert!(answer.status == 200 && is_42(&answer.message()), "{answer:?}");
}

fn assert_adds(client: &mut HttpClient) {
    let result = client.call("add", json!({"a": 2, "b": 40}));
    assert_eq!(result["structuredContent"], json!({"result": 42}), "{result}");
}
