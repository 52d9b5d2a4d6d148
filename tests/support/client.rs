//! A client that hears of changes to the list of tools, in either era of the protocol.

use serde_json::{Value, json};

use super::Server;

pub(crate) const CHANGED: &str = "notifications/tools/list_changed";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// `initialize`, and all changes are told.
    Initialize,
    /// 2026-07-28: each request stands alone, and changes are told to who subscribed.
    Stateless,
}

pub(crate) const ERAS: [Era; 2] = [Era::Initialize, Era::Stateless];

pub(crate) struct Client {
    server: Server,
    era: Era,
    /// The request that subscribed.
    subscription: Option<u64>,
    /// Changes that were told and not waited for yet.
    unheeded: usize,
}

impl Client {
    /// A client that is told of all changes from here on.
    pub(crate) fn connect(server: Server, era: Era) -> Self {
        let mut client = Self::silent(server, era);
        match era {
            Era::Initialize => client.server.notify("notifications/initialized", &json!({})),
            Era::Stateless => {
                let filter = json!({"notifications": {"toolsListChanged": true}});
                client.subscription = Some(client.start("subscriptions/listen", filter));
                let acknowledged = client.server.receive();
                assert_eq!(
                    acknowledged["method"], "notifications/subscriptions/acknowledged",
                    "{acknowledged}"
                );
            }
        }
        client
    }

    /// A client that is not told of any.
    pub(crate) fn silent(mut server: Server, era: Era) -> Self {
        if era == Era::Initialize {
            let client = json!({"name": "test", "version": "1"});
            let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
            let answer = server.request("initialize", &params);
            assert_eq!(answer["result"]["capabilities"]["tools"]["listChanged"], true, "{answer}");
        }
        Self {
            server,
            era,
            subscription: None,
            unheeded: 0,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.server.pid()
    }

    pub(crate) fn start(&mut self, method: &str, mut params: Value) -> u64 {
        if self.era == Era::Stateless {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        self.server.start_request(method, &params)
    }

    /// Notes a message that tells of a change. Returns any other.
    fn receive(&mut self) -> Option<Value> {
        let message = self.server.receive();
        if super::tells_of_other_lists(&message) {
            return None;
        }
        if message["method"] != CHANGED {
            return Some(message);
        }
        let told_to = &message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert_eq!(told_to.as_u64(), self.subscription, "{message}");
        self.unheeded += 1;
        None
    }

    /// The answer to a request that is made while no other is under way.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.start(method, params);
        loop {
            if let Some(answer) = self.receive() {
                assert_eq!(answer["id"], id, "{answer}");
                return answer;
            }
        }
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let mut answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].take()
    }

    /// The text of a call that must fail.
    pub(crate) fn call_error(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        super::text(&result).to_owned()
    }

    pub(crate) fn tools(&mut self) -> Vec<Value> {
        let answer = self.request("tools/list", json!({}));
        answer["result"]["tools"].as_array().unwrap().clone()
    }

    pub(crate) fn tool_names(&mut self) -> Vec<String> {
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        self.tools().iter().map(name).collect()
    }

    /// Waits until a change is told that was not waited for before. What is asked afterwards is answered by what is new, so a change
    /// that is told twice is found out by the next test of what there is.
    pub(crate) fn wait_for_change(&mut self) {
        while self.unheeded == 0 {
            if let Some(message) = self.receive() {
                panic!("nobody asked for {message}");
            }
        }
        self.unheeded -= 1;
    }

    /// Fails when a change was told that was not waited for.
    pub(crate) fn assert_heard_all(&mut self) {
        for _ in 0..10 {
            self.tool_names();
        }
        assert_eq!(self.unheeded, 0, "a change was told that nobody made");
    }

    /// Ends the session, which must end well, and with everything heard.
    pub(crate) fn close_well(mut self) {
        self.assert_heard_all();
        let ended = self.server.close();
        assert!(ended.status.success(), "{ended:?}");
        let rest: Vec<Value> = ended.lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        // The subscription is answered when it ends.
        let answered: Vec<Option<u64>> = rest.iter().map(|message| message["id"].as_u64()).collect();
        let expected: Vec<Option<u64>> = self.subscription.into_iter().map(Some).collect();
        assert_eq!(answered, expected, "{rest:?}");
    }
}
