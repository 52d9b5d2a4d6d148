//! Sessions over pipes in memory: who hears of changes, when, and how often.

use std::sync::Arc;
use std::time::Duration;

use lifecycle::{Change, ComponentId, Config, LifecycleManager};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::stdio::serve;
use crate::{ServeError, Server};

const CHANGED: &str = "notifications/tools/list_changed";
const OTHER_RESOURCES: &str = "notifications/resources/list_changed";

/// How long anything may take before a test gives up. Far more than needed, so that a busy machine fails no test.
const PATIENCE: Duration = Duration::from_secs(60);

fn manager() -> Arc<LifecycleManager> {
    let config = Config {
        home: None,
        ..Config::default()
    };
    Arc::new(LifecycleManager::new(config).unwrap())
}

fn load(manager: &LifecycleManager, name: &str) -> ComponentId {
    manager.ensure_component_loaded(&test_guests::path(name).unwrap()).unwrap()
}

/// A client's end of a session.
struct Client {
    write: DuplexStream,
    read: Lines<BufReader<DuplexStream>>,
    serving: JoinHandle<Result<(), ServeError>>,
    last_id: u64,
    stateless: bool,
}

impl Client {
    fn connect(server: Server, stateless: bool) -> Self {
        let (write, input) = tokio::io::duplex(1 << 10);
        let (output, read) = tokio::io::duplex(1 << 10);
        Self {
            write,
            read: BufReader::new(read).lines(),
            serving: tokio::spawn(serve(server, input, output)),
            last_id: 0,
            stateless,
        }
    }

    /// A client of the old era that has said all that it has to say to begin with.
    async fn initialized(server: Server) -> Self {
        let mut client = Self::connect(server, false);
        client.initialize().await;
        client.notify("notifications/initialized", json!({})).await;
        // What is notified of is seen once a later request is answered.
        client.request("ping", json!({})).await;
        client
    }

    async fn initialize(&mut self) -> Value {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        self.request("initialize", params).await
    }

    async fn send(&mut self, message: Value) {
        self.write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    async fn start(&mut self, method: &str, mut params: Value) -> u64 {
        if self.stateless {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        self.last_id += 1;
        self.send(json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}))
            .await;
        self.last_id
    }

    async fn receive(&mut self) -> Value {
        let line = timeout(PATIENCE, self.read.next_line()).await.expect("the server is silent");
        let line = line.unwrap().expect("the session goes on");
        serde_json::from_str(&line).unwrap()
    }

    /// The next message, but for that there are other resources: with every component come and go those that describe it.
    async fn heard(&mut self) -> Value {
        loop {
            let message = self.receive().await;
            if message["method"] != OTHER_RESOURCES {
                return message;
            }
        }
    }

    /// The answer to a request, which must be the next message.
    async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.start(method, params).await;
        let mut answer = self.heard().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer["result"].take()
    }

    async fn tool_names(&mut self) -> Vec<String> {
        let result = self.request("tools/list", json!({})).await;
        let tools = result["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    async fn assert_hears_of_a_change(&mut self) {
        let message = self.heard().await;
        assert_eq!(message, json!({"jsonrpc": "2.0", "method": CHANGED}));
        self.assert_hears_nothing().await;
    }

    async fn assert_hears_nothing(&mut self) {
        // Enough turns for everything that is ready to run.
        for _ in 0..10 {
            self.tool_names().await;
        }
    }

    async fn subscribe(&mut self, filter: Value) -> u64 {
        let id = self.start("subscriptions/listen", json!({"notifications": filter})).await;
        let acknowledged = self.receive().await;
        assert_eq!(
            acknowledged["method"], "notifications/subscriptions/acknowledged",
            "{acknowledged}"
        );
        assert_eq!(subscription(&acknowledged), id);
        id
    }

    /// Closes the client's end. Returns what the server still said.
    async fn close(mut self) -> Vec<Value> {
        drop(self.write);
        let mut rest = Vec::new();
        while let Some(line) = self.read.next_line().await.unwrap() {
            rest.push(serde_json::from_str(&line).unwrap());
        }
        rest.retain(|message: &Value| message["method"] != OTHER_RESOURCES);
        self.serving.await.unwrap().unwrap();
        rest
    }
}

fn subscription(notification: &Value) -> &Value {
    &notification["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"]
}

#[tokio::test]
async fn an_initialized_client_hears_of_each_change_once() {
    let manager = manager();
    let mut client = Client::initialized(Server::new(Arc::clone(&manager))).await;
    assert!(client.tool_names().await.is_empty());

    let id = load(&manager, "documented");
    client.assert_hears_of_a_change().await;
    assert_eq!(client.tool_names().await.len(), 6);
    load(&manager, "documented");
    client.assert_hears_nothing().await;

    manager.unload(&id);
    client.assert_hears_of_a_change().await;
    assert!(client.tool_names().await.is_empty());
    assert!(client.close().await.is_empty());
}

#[tokio::test]
async fn a_list_is_the_same_until_something_else_is_offered() {
    let manager = manager();
    load(&manager, "documented");
    let mut client = Client::initialized(Server::new(Arc::clone(&manager))).await;
    // It speaks both eras by turns, which rmcp allows.
    let mut lists = Vec::new();
    for _ in 0..3 {
        for stateless in [false, true] {
            client.stateless = stateless;
            lists.push(client.request("tools/list", json!({})).await);
        }
    }
    let [session, stateless] = [lists[0].clone(), lists[1].clone()];
    assert_eq!(session["tools"], stateless["tools"]);
    assert!(
        session.get("ttlMs").is_none() && stateless["ttlMs"].is_number(),
        "{stateless}"
    );
    for pair in lists.chunks(2) {
        assert_eq!(pair, [session.clone(), stateless.clone()]);
    }

    load(&manager, "trap");
    client.stateless = false;
    client.assert_hears_of_a_change().await;
    for is_stateless in [true, false, true] {
        client.stateless = is_stateless;
        let more = client.request("tools/list", json!({})).await;
        let [more, before] = [&more["tools"], &session["tools"]].map(|tools| tools.as_array().unwrap());
        assert!(more.len() > before.len() && before.iter().all(|tool| more.contains(tool)));
    }
    assert!(client.close().await.is_empty());
}

#[tokio::test]
async fn nobody_is_told_before_it_said_that_it_is_initialized() {
    let manager = manager();
    load(&manager, "trap");
    let mut client = Client::connect(Server::new(Arc::clone(&manager)), false);
    let result = client.initialize().await;
    assert_eq!(result["capabilities"]["tools"], json!({"listChanged": true}));

    load(&manager, "documented");
    client.assert_hears_nothing().await;
    client.notify("notifications/initialized", json!({})).await;
    // The instructions that came with the answer to `initialize` are older than that.
    client.assert_hears_of_a_change().await;

    client.notify("notifications/initialized", json!({})).await;
    client.assert_hears_nothing().await;
    load(&manager, "exit");
    client.assert_hears_of_a_change().await;
    assert!(client.close().await.is_empty());
}

#[tokio::test]
async fn a_stateless_client_hears_only_what_it_subscribed_to() {
    let manager = manager();
    let mut client = Client::connect(Server::new(Arc::clone(&manager)), true);
    client.notify("notifications/initialized", json!({})).await;
    let result = client.request("server/discover", json!({})).await;
    assert_eq!(result["capabilities"]["tools"], json!({"listChanged": true}));
    client.tool_names().await;
    client.notify("notifications/initialized", json!({})).await;
    client.assert_hears_nothing().await;
    load(&manager, "trap");
    client.assert_hears_nothing().await;

    let others = client.subscribe(json!({"promptsListChanged": true})).await;
    let id = load(&manager, "documented");
    client.assert_hears_nothing().await;
    let result = client.request("server/discover", json!({})).await;
    assert_eq!(result["instructions"], "documented: The library as its visitors see it.");

    let first = client.subscribe(json!({"toolsListChanged": true})).await;
    let second = client.subscribe(json!({"toolsListChanged": true})).await;
    manager.unload(&id);
    let mut told = [client.receive().await, client.receive().await];
    told.sort_by_key(|message| subscription(message).as_u64());
    for (message, id) in told.iter().zip([first, second]) {
        assert_eq!((&message["method"], subscription(message)), (&json!(CHANGED), &json!(id)));
    }
    client.assert_hears_nothing().await;

    client.notify("notifications/cancelled", json!({"requestId": first})).await;
    client.assert_hears_nothing().await;
    load(&manager, "exit");
    let message = client.receive().await;
    assert_eq!(*subscription(&message), json!(second));
    client.assert_hears_nothing().await;

    // A client that ends its input is told of the end of its subscriptions; rmcp would wait for them, and say nothing.
    let mut rest = client.close().await;
    rest.sort_by_key(|message| message["id"].as_u64());
    let ids: Vec<&Value> = rest.iter().map(|message| &message["id"]).collect();
    assert_eq!(ids, [&json!(others), &json!(second)], "{rest:?}");
    assert!(
        rest.iter().all(|message| message["result"]["resultType"] == "complete"),
        "{rest:?}"
    );
}

#[tokio::test]
async fn a_subscription_of_the_wrong_shape_is_refused() {
    let mut client = Client::connect(Server::new(manager()), true);
    client.start("subscriptions/listen", json!({"notifications": 7})).await;
    assert_eq!(client.receive().await["error"]["code"], -32602);

    let mut client = Client::initialized(Server::new(manager())).await;
    for params in [
        json!({"notifications": 7}),
        json!({"notifications": {"toolsListChanged": true}}),
    ] {
        client.start("subscriptions/listen", params).await;
        assert_eq!(client.receive().await["error"]["code"], -32601);
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_keeps_nobody_waiting() {
    let manager = manager();
    let server = Server::new(Arc::clone(&manager));
    let mut deaf = Client::initialized(server.clone()).await;
    let mut subscribed = Client::connect(server.clone(), true);
    subscribed.subscribe(json!({"toolsListChanged": true})).await;
    let mut client = Client::initialized(server).await;
    // Far more than fit into its pipe and into what waits for it.
    for _ in 0..100 {
        let id = load(&manager, "exit");
        client.assert_hears_of_a_change().await;
        assert_eq!(subscribed.receive().await["method"], CHANGED);
        manager.unload(&id);
        client.assert_hears_of_a_change().await;
        assert_eq!(subscribed.receive().await["method"], CHANGED);
    }
    // It still can be talked to, and what it missed is not more than it was told of.
    let id = deaf.start("tools/list", json!({})).await;
    let mut told = 0;
    while deaf.receive().await["id"] != id {
        told += 1;
    }
    assert!((1..=400).contains(&told), "{told}");
}

/// Whoever could not keep up is told of everything that it wanted to know of: it may have been that.
#[tokio::test]
async fn a_change_of_a_resource_is_not_lost_among_many() {
    let manager = manager();
    let server = Server::new(Arc::clone(&manager));
    let mut initialized = Client::initialized(server.clone()).await;
    initialized
        .request("resources/subscribe", json!({"uri": "test://mine"}))
        .await;
    let mut stateless = Client::connect(server, true);
    stateless.subscribe(json!({"resourceSubscriptions": ["test://mine"]})).await;
    // Nobody has a turn to listen between these.
    manager.announce(&Change::Resource("test://mine".to_owned()));
    for number in 0..1_000 {
        manager.announce(&Change::Resource(format!("test://{number}")));
    }
    for client in [&mut initialized, &mut stateless] {
        let told = client.heard().await;
        assert_eq!(
            (&told["method"], &told["params"]["uri"]),
            (&json!("notifications/resources/updated"), &json!("test://mine")),
            "{told}"
        );
        client.assert_hears_nothing().await;
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_session() {
    let manager = manager();
    let server = Server::new(Arc::clone(&manager));
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for _ in 0..3 {
        let client = Client::initialized(server.clone()).await;
        assert!(client.close().await.is_empty());

        let mut client = Client::connect(server.clone(), true);
        client.subscribe(json!({"toolsListChanged": true})).await;
        client.close().await;

        let Client {
            write, read, serving, ..
        } = Client::initialized(server.clone()).await;
        drop((write, read));
        serving.await.unwrap().unwrap();
    }
    let all_ended = async {
        while tasks() > before {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, all_ended)
        .await
        .expect("a task goes on without its session");
    load(&manager, "exit");
    drop(server);
    assert_eq!(Arc::strong_count(&manager), 1);
}
