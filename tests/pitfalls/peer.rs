//! A client that can be of either era and on either transport, so that each test is written once.

use serde_json::{Value, json};

use crate::support::client::{ERAS, Era};
use crate::support::http::{Answer, Connection, HttpClient, HttpServer, Pending, SESSION_VERSION, stateless_meta};
use crate::support::{Home, Server, guest};

/// What a client says that it can be asked for, where nothing else is said.
const NOTHING: Value = Value::Null;

pub(crate) struct Peer {
    wire: Wire,
    pub(crate) era: Era,
    capabilities: Value,
    /// What the server declared.
    pub(crate) declared: Value,
}

enum Wire {
    Stdio(Server),
    Http { server: HttpServer, client: Box<HttpClient> },
}

/// What was answered to a request.
#[derive(Debug)]
pub(crate) struct Answered {
    /// Over HTTP.
    pub(crate) status: Option<u16>,
    /// What came on the way, other than the answer.
    pub(crate) before: Vec<Value>,
    pub(crate) message: Value,
}

/// Runs a test with a client of each era on each transport.
pub(crate) fn with_each(components: &[&str], test: impl Fn(&mut Peer)) {
    with_each_that_can(&NOTHING, components, test);
}

/// The same with clients that can be asked for something.
pub(crate) fn with_each_that_can(capabilities: &Value, components: &[&str], test: impl Fn(&mut Peer)) {
    for era in ERAS {
        for connect in [Peer::stdio, Peer::http] {
            let home = Home::new();
            let mut peer = connect(&home, era, capabilities, components);
            test(&mut peer);
            assert_works(&mut peer);
            peer.close_well();
        }
    }
}

/// Every component that these tests use has a function `add`, or is served beside one that has.
fn assert_works(peer: &mut Peer) {
    let result = peer.call("add", json!({"a": 2, "b": 40}));
    assert_eq!(result["structuredContent"], json!({"result": 42}), "{result}");
}

impl Peer {
    pub(crate) fn stdio(home: &Home, era: Era, capabilities: &Value, components: &[&str]) -> Self {
        let components: Vec<_> = components.iter().map(|name| guest(name)).collect();
        let mut peer = Self {
            wire: Wire::Stdio(home.serve(&[], &components)),
            era,
            capabilities: given(capabilities),
            declared: Value::Null,
        };
        if era == Era::Initialize {
            let client = json!({"name": "test", "version": "1"});
            let params = json!({"protocolVersion": SESSION_VERSION, "capabilities": peer.capabilities, "clientInfo": client});
            peer.declared = peer.request("initialize", params).message["result"]["capabilities"].take();
            peer.notify("notifications/initialized", json!({}));
        } else {
            peer.discover();
        }
        peer
    }

    pub(crate) fn http(home: &Home, era: Era, capabilities: &Value, components: &[&str]) -> Self {
        let components: Vec<_> = components.iter().map(|name| guest(name)).collect();
        let server = home.serve_http(&[], &components);
        let capabilities = given(capabilities);
        let client = HttpClient::connect_with(server.address, era, &capabilities);
        let declared = client.initialized["capabilities"].clone();
        let mut peer = Self {
            wire: Wire::Http {
                server,
                client: Box::new(client),
            },
            era,
            capabilities,
            declared,
        };
        if era == Era::Stateless {
            peer.discover();
        }
        peer
    }

    fn discover(&mut self) {
        let mut result = self.result("server/discover", json!({}));
        self.declared = result["capabilities"].take();
    }

    pub(crate) fn is_stateless(&self) -> bool {
        self.era == Era::Stateless
    }

    /// For messages of tests that fail.
    pub(crate) fn name(&self) -> String {
        let wire = match &self.wire {
            Wire::Stdio(_) => "stdio",
            Wire::Http { .. } => "HTTP",
        };
        format!("{:?} over {wire}", self.era)
    }

    /// The status of an answer where HTTP has one. Within a session JSON-RPC's own error is all that there is.
    pub(crate) fn status(&self, stateless: u16) -> Option<u16> {
        match (&self.wire, self.era) {
            (Wire::Stdio(_), _) => None,
            (Wire::Http { .. }, Era::Initialize) => Some(200),
            (Wire::Http { .. }, Era::Stateless) => Some(stateless),
        }
    }

    fn complete(&self, mut params: Value) -> Value {
        if self.is_stateless() {
            let mut meta = stateless_meta(&self.capabilities);
            if let (Some(meta), Some(given)) = (meta.as_object_mut(), params["_meta"].as_object()) {
                meta.extend(given.clone());
            }
            params["_meta"] = meta;
        }
        params
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Answered {
        self.converse(method, params, |question| panic!("nobody expected {question}"))
    }

    /// Makes a request, and answers what the server asks on the way.
    pub(crate) fn converse(&mut self, method: &str, params: Value, mut answer: impl FnMut(&Value) -> Value) -> Answered {
        let params = self.complete(params);
        let mut before = Vec::new();
        let is_question = |message: &Value| message.get("method").is_some() && message.get("id").is_some();
        match &mut self.wire {
            Wire::Stdio(server) => {
                let id = server.start_request(method, &params);
                loop {
                    let message = server.receive();
                    if is_question(&message) {
                        server.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": answer(&message)}));
                    } else if message["id"] == id {
                        return Answered {
                            status: None,
                            before,
                            message,
                        };
                    }
                    before.push(message);
                }
            }
            Wire::Http { client, .. } => {
                let Pending { id, mut connection } = client.start(method, params);
                let head = connection.head();
                let mut next = || match head.is_events() {
                    true => connection.event().expect("the stream ends with the answer"),
                    false => json_body(&mut connection, &head),
                };
                loop {
                    let message = next();
                    if is_question(&message) {
                        assert_eq!(client.respond(&message["id"], answer(&message)).status, 202);
                    } else if message["id"] == id {
                        return Answered {
                            status: Some(head.status),
                            before,
                            message,
                        };
                    }
                    before.push(message);
                }
            }
        }
    }

    /// The result of a request that must succeed.
    pub(crate) fn result(&mut self, method: &str, params: Value) -> Value {
        let mut answered = self.request(method, params);
        assert_eq!(answered.status, self.status(200), "{}: {answered:?}", self.name());
        assert!(answered.message["result"].is_object(), "{}: {answered:?}", self.name());
        answered.message["result"].take()
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Fails unless the request is answered with this code; and, without a session, with this status.
    pub(crate) fn assert_error(&mut self, method: &str, params: Value, code: i64, stateless: u16) -> Answered {
        let answered = self.request(method, params);
        assert_eq!(
            answered.message["error"]["code"],
            code,
            "{} {method}: {answered:?}",
            self.name()
        );
        assert_eq!(
            answered.status,
            self.status(stateless),
            "{} {method}: {answered:?}",
            self.name()
        );
        answered
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        match &mut self.wire {
            Wire::Stdio(server) => server.notify(method, &params),
            Wire::Http { client, .. } => assert_eq!(client.notify(method, params).status, 202),
        }
    }

    /// Sends a message as it is. Over HTTP what is sent has a status, also where it is no message.
    pub(crate) fn send(&mut self, body: &str) -> (Option<u16>, Value) {
        match &mut self.wire {
            Wire::Stdio(server) => {
                server.send_line(body);
                (None, server.receive())
            }
            Wire::Http { server, client } => {
                let answer = server.ask(&client.post(&Value::Null).body(body));
                (Some(answer.status), answer.message())
            }
        }
    }

    pub(crate) fn tools(&mut self) -> Vec<Value> {
        let result = self.result("tools/list", json!({}));
        result["tools"].as_array().unwrap().clone()
    }

    /// What is told to this client besides answers, over HTTP.
    pub(crate) fn listen_http(&mut self) -> Option<Connection> {
        match &mut self.wire {
            Wire::Stdio(_) => None,
            Wire::Http { client, .. } => Some(client.listen()),
        }
    }

    /// The next line over stdio.
    pub(crate) fn receive_stdio(&mut self) -> Option<Value> {
        match &mut self.wire {
            Wire::Stdio(server) => Some(server.receive()),
            Wire::Http { .. } => None,
        }
    }

    pub(crate) fn close_well(self) {
        match self.wire {
            Wire::Stdio(server) => server.close_well(),
            Wire::Http { server, .. } => server.close_well(),
        }
    }
}

fn given(capabilities: &Value) -> Value {
    if capabilities.is_null() {
        json!({})
    } else {
        capabilities.clone()
    }
}

fn json_body(connection: &mut Connection, head: &Answer) -> Value {
    let mut answer = head.clone();
    answer.body = connection.body();
    answer.message()
}
