//! `host serve --http` and its clients: HTTP/1.1 over a plain socket, so that a test can send what no library would, byte by byte, and
//! read as little of the answer as it likes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use serde_json::{Value, json};

use super::client::Era;
use super::{Ended, Finished, Home, PATIENCE};

/// The version that a client of either era speaks here.
pub(crate) const SESSION_VERSION: &str = "2025-11-25";
pub(crate) const STATELESS_VERSION: &str = "2026-07-28";

pub(crate) const SESSION: &str = "Mcp-Session-Id";
pub(crate) const VERSION: &str = "MCP-Protocol-Version";
pub(crate) const METHOD: &str = "Mcp-Method";
pub(crate) const NAME: &str = "Mcp-Name";

const BOTH_TYPES: &str = "application/json, text/event-stream";

impl Home {
    /// Starts `host serve --http` on a port that is free, and waits until it listens.
    pub(crate) fn serve_http(&self, options: &[&str], components: &[PathBuf]) -> HttpServer {
        self.try_serve_http("127.0.0.1:0", options, components)
            .unwrap_or_else(|finished| panic!("the server does not listen: {finished:?}"))
    }

    /// The same at any address. What it said where it ended instead.
    pub(crate) fn try_serve_http(&self, address: &str, options: &[&str], components: &[PathBuf]) -> Result<HttpServer, Finished> {
        let mut command = self.host(&["serve", "--http", address]);
        command.args(options).args(components);
        HttpServer::start(&mut command)
    }
}

/// A running `host serve --http`. Killed when dropped.
pub(crate) struct HttpServer {
    child: Child,
    /// Where it listens, as it says itself.
    pub(crate) url: String,
    /// Where it is reached from here.
    pub(crate) address: SocketAddr,
    said: Arc<Mutex<String>>,
    stderr: Option<JoinHandle<()>>,
}

impl HttpServer {
    fn start(command: &mut Command) -> Result<Self, Finished> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let said = Arc::<Mutex<String>>::default();
        let (sender, urls) = channel();
        let kept = Arc::clone(&said);
        let stderr = thread::spawn(move || {
            for line in lines {
                let line = line.unwrap();
                {
                    // Before anybody hears of it, who may then look for it.
                    let mut kept = kept.lock().unwrap();
                    kept.push_str(&line);
                    kept.push('\n');
                }
                if let Some(url) = url_in(&line) {
                    // Only the first is waited for.
                    let _ = sender.send(url.to_owned());
                }
            }
        });
        match urls.recv_timeout(PATIENCE) {
            Ok(url) => Ok(Self {
                child,
                address: SocketAddr::from(([127, 0, 0, 1], port(&url))),
                url,
                said,
                stderr: Some(stderr),
            }),
            Err(RecvTimeoutError::Disconnected) => {
                let mut finished = Finished::from(child.wait_with_output().unwrap());
                stderr.join().unwrap();
                finished.stderr = said.lock().unwrap().clone();
                Err(finished)
            }
            Err(RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                panic!("the server neither listens nor ends")
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it said on stderr so far.
    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::open(self.address)
    }

    /// The answer to a request on a connection of its own.
    pub(crate) fn ask(&self, request: &Request) -> Answer {
        self.connect().ask(request)
    }

    pub(crate) fn client(&self, era: Era) -> HttpClient {
        HttpClient::connect(self.address, era)
    }

    /// Whether nobody listens any more.
    pub(crate) fn refuses(&self) -> bool {
        TcpStream::connect(self.address).is_err()
    }

    /// Asks it to end, as a supervisor does.
    #[cfg(unix)]
    pub(crate) fn terminate(&self) {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    }

    /// Waits until it has ended by itself.
    pub(crate) fn ended(mut self) -> Ended {
        let start = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None => assert!(start.elapsed() < PATIENCE, "the server does not end: {}", self.said()),
            }
            thread::sleep(std::time::Duration::from_millis(20));
        };
        let mut stdout = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        self.stderr.take().unwrap().join().unwrap();
        Ended {
            status,
            lines: stdout.lines().map(str::to_owned).collect(),
            stderr: self.said(),
        }
    }

    /// Ends it, which must go well: exit code 0, and nothing on stdout ever.
    #[cfg(unix)]
    pub(crate) fn close_well(self) {
        self.terminate();
        let ended = self.ended();
        assert!(ended.status.success() && ended.lines.is_empty(), "{ended:?}");
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address of the endpoint in a line that tells it.
fn url_in(line: &str) -> Option<&str> {
    let from = line.find("http://")?;
    let length = line[from..].find("/mcp")? + "/mcp".len();
    Some(&line[from..from + length])
}

fn port(url: &str) -> u16 {
    let authority = url
        .strip_prefix("http://")
        .and_then(|rest| rest.strip_suffix("/mcp"))
        .unwrap();
    authority.rsplit(':').next().unwrap().parse().unwrap()
}

/// A request, to be sent as it is.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        Self {
            line: format!("{method} {path} HTTP/1.1"),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    /// What every client sends with a message.
    pub(crate) fn post(body: impl AsRef<[u8]>) -> Self {
        Self::new("POST", "/mcp")
            .with("Content-Type", "application/json")
            .with("Accept", BOTH_TYPES)
            .body(body)
    }

    /// The request for the stream of a session.
    pub(crate) fn stream(session: &str) -> Self {
        Self::get("/mcp")
            .with("Accept", "text/event-stream")
            .with(SESSION, session)
            .with(VERSION, SESSION_VERSION)
    }

    pub(crate) fn delete(session: &str) -> Self {
        Self::new("DELETE", "/mcp")
            .with(SESSION, session)
            .with(VERSION, SESSION_VERSION)
    }

    /// With one header more, whether or not there is one of this name.
    pub(crate) fn and(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With this header instead of what it was.
    pub(crate) fn with(self, name: &str, value: &str) -> Self {
        self.without(name).and(name, value)
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(found, _)| !found.eq_ignore_ascii_case(name));
        self
    }

    pub(crate) fn token(self, token: &str) -> Self {
        self.with("Authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = body.as_ref().to_vec();
        self
    }

    fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(found, _)| found.eq_ignore_ascii_case(name))
    }

    /// As it goes over the wire, with the headers that it cannot do without.
    pub(crate) fn bytes(&self, address: SocketAddr) -> Vec<u8> {
        let mut head = format!("{}\r\n", self.line);
        if !self.has("Host") {
            head.push_str(&format!("Host: {address}\r\n"));
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !self.has("Content-Length") && !self.has("Transfer-Encoding") && !self.body.is_empty() {
            head.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// How the body of an answer is told from what comes after it.
#[derive(Clone, Copy, Debug)]
enum Rest {
    Nothing,
    Bytes(usize),
    Chunks,
    ToTheEnd,
}

/// One connection, kept as long as it is wanted.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
    rest: Rest,
    /// What was read of a stream of events and is no whole event yet.
    events: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        // So that nothing hangs: it fails then, and says where.
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream: BufReader::with_capacity(4 << 10, stream),
            address,
            rest: Rest::Nothing,
            events: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, request: &Request) {
        self.send_bytes(request.bytes(self.address)).unwrap();
    }

    /// Sends bytes as they are. The other side may have had enough of them before all are sent.
    pub(crate) fn send_bytes(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes.as_ref())
    }

    /// Says that nothing more will be sent.
    pub(crate) fn end(&mut self) {
        self.stream.get_mut().shutdown(Shutdown::Write).unwrap();
    }

    pub(crate) fn ask(&mut self, request: &Request) -> Answer {
        self.send(request);
        self.answer()
    }

    /// The next answer, with its whole body.
    pub(crate) fn answer(&mut self) -> Answer {
        let mut answer = self.head();
        answer.body = self.body();
        answer
    }

    /// The body of the answer whose head was read.
    pub(crate) fn body(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        while let Some(piece) = self.piece() {
            body.extend(piece);
        }
        body
    }

    /// The next answer as far as its headers. Its body, if it has one, comes by [`Self::event`].
    pub(crate) fn head(&mut self) -> Answer {
        self.try_head().unwrap_or_else(|error| panic!("no answer: {error}"))
    }

    pub(crate) fn try_head(&mut self) -> io::Result<Answer> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no status in {first:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            match line.split_once(':') {
                Some((name, value)) => headers.push((name.to_owned(), value.trim().to_owned())),
                None => break,
            }
        }
        let answer = Answer {
            status,
            headers,
            body: Vec::new(),
        };
        self.events.clear();
        self.rest = if answer.header("Transfer-Encoding") == Some("chunked") {
            Rest::Chunks
        } else if let Some(length) = answer.header("Content-Length") {
            Rest::Bytes(length.parse().map_err(io::Error::other)?)
        } else if matches!(status, 100..200 | 204 | 304) {
            Rest::Nothing
        } else {
            Rest::ToTheEnd
        };
        Ok(answer)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }

    /// Some more of the body; none at its end.
    fn piece(&mut self) -> Option<Vec<u8>> {
        self.try_piece()
            .unwrap_or_else(|error| panic!("the answer breaks off: {error}"))
    }

    fn try_piece(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut piece = Vec::new();
        match self.rest {
            Rest::Nothing | Rest::Bytes(0) => {}
            Rest::Bytes(length) => {
                piece = vec![0; length];
                self.stream.read_exact(&mut piece)?;
                self.rest = Rest::Nothing;
            }
            Rest::Chunks => {
                let length = usize::from_str_radix(&self.line()?, 16).map_err(io::Error::other)?;
                piece = vec![0; length];
                self.stream.read_exact(&mut piece)?;
                self.line()?;
                if length == 0 {
                    self.rest = Rest::Nothing;
                }
            }
            Rest::ToTheEnd => {
                self.stream.read_to_end(&mut piece)?;
                self.rest = Rest::Nothing;
            }
        }
        Ok(Some(piece).filter(|piece| !piece.is_empty()))
    }

    /// The next message in a stream of events; none where the stream ends.
    pub(crate) fn event(&mut self) -> Option<Value> {
        self.event_with_id().map(|(_, message)| message)
    }

    /// The same with the id under which the stream could be taken up again.
    pub(crate) fn event_with_id(&mut self) -> Option<(Option<String>, Value)> {
        loop {
            while let Some(at) = self.events.windows(2).position(|pair| pair == b"\n\n") {
                let event: Vec<u8> = self.events.drain(..at + 2).collect();
                let event = Event::parse(&event);
                if let Some(message) = event.message {
                    return Some((event.id, message));
                }
            }
            let piece = self.piece()?;
            self.events.extend(piece.into_iter().filter(|byte| *byte != b'\r'));
        }
    }

    /// Waits until the other side has closed.
    pub(crate) fn closed(mut self) {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
            Err(error) => panic!("the connection is not closed: {error}"),
        }
    }
}

#[derive(Debug, Default)]
struct Event {
    id: Option<String>,
    /// None in one that only keeps the connection alive or tells its id.
    message: Option<Value>,
}

impl Event {
    fn parse(bytes: &[u8]) -> Self {
        let mut event = Self::default();
        let mut data = Vec::new();
        for line in String::from_utf8(bytes.to_vec()).unwrap().lines() {
            match line.split_once(':') {
                Some(("id", id)) => event.id = Some(id.trim().to_owned()),
                Some(("data", part)) => data.push(part.trim_start().to_owned()),
                _ => {}
            }
        }
        let data = data.join("\n");
        if !data.is_empty() {
            event.message = Some(serde_json::from_str(&data).unwrap_or_else(|error| panic!("{error} in {data}")));
        }
        event
    }
}

/// What was answered.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn is_events(&self) -> bool {
        self.header("Content-Type")
            .is_some_and(|found| found.starts_with("text/event-stream"))
    }

    pub(crate) fn is_json(&self) -> bool {
        self.header("Content-Type")
            .is_some_and(|found| found.starts_with("application/json"))
    }

    /// Every message in it, in order.
    pub(crate) fn messages(&self) -> Vec<Value> {
        if self.is_events() {
            let text = self.text().replace('\r', "");
            return text
                .split("\n\n")
                .filter_map(|event| Event::parse(event.as_bytes()).message)
                .collect();
        }
        assert!(
            self.is_json(),
            "no message in {} {:?}: {}",
            self.status,
            self.headers,
            self.text()
        );
        vec![serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {}", self.text()))]
    }

    /// The answer proper, which is the last message.
    pub(crate) fn message(&self) -> Value {
        self.messages()
            .pop()
            .unwrap_or_else(|| panic!("nothing is answered: {self:?}"))
    }

    /// Fails unless it is an error of this kind.
    pub(crate) fn assert_error(&self, status: u16, code: i64, id: &Value) {
        let message = self.message();
        assert_eq!(
            (self.status, &message["error"]["code"], &message["id"]),
            (status, &json!(code), id),
            "{message}"
        );
        assert!(
            message["error"]["message"].as_str().is_some_and(|text| !text.is_empty()),
            "{message}"
        );
    }
}

/// What every request of the stateless era says of its client.
pub(crate) fn stateless_meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS_VERSION,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// A request of the stateless era as it is posted.
pub(crate) fn stateless(message: &Value) -> Request {
    let request = Request::post(message.to_string()).with(VERSION, STATELESS_VERSION);
    let request = match message["method"].as_str() {
        Some(method) => request.with(METHOD, method),
        None => request,
    };
    let params = &message["params"];
    match params["name"].as_str().or_else(|| params["uri"].as_str()) {
        Some(name) => request.with(NAME, name),
        None => request,
    }
}

/// A call in the stateless era.
pub(crate) fn stateless_call(id: u64, tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments, "_meta": stateless_meta(&json!({}))});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

pub(crate) fn initialize(version: &str, capabilities: &Value) -> Value {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

/// A client of either era that makes each request on a connection of its own.
#[derive(Clone, Debug)]
pub(crate) struct HttpClient {
    address: SocketAddr,
    era: Era,
    session: Option<String>,
    capabilities: Value,
    /// What it was told about the server, in the era with a session.
    pub(crate) initialized: Value,
    last_id: u64,
}

/// A request whose answer was not read yet.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) id: u64,
    pub(crate) connection: Connection,
}

impl HttpClient {
    pub(crate) fn connect(address: SocketAddr, era: Era) -> Self {
        Self::connect_with(address, era, &json!({}))
    }

    /// A client that can be asked for what its capabilities say.
    pub(crate) fn connect_with(address: SocketAddr, era: Era, capabilities: &Value) -> Self {
        let mut client = Self {
            address,
            era,
            session: None,
            capabilities: capabilities.clone(),
            initialized: Value::Null,
            last_id: 0,
        };
        if era == Era::Initialize {
            let request = Request::post(initialize(SESSION_VERSION, capabilities).to_string());
            let answer = Connection::open(address).ask(&request);
            assert_eq!(answer.status, 200, "{answer:?}");
            client.initialized = answer.message()["result"].take();
            client.session = answer.header(SESSION).map(str::to_owned);
            assert!(client.session.is_some(), "{answer:?}");
            assert_eq!(client.notify("notifications/initialized", json!({})).status, 202);
        }
        client
    }

    /// The same client at another server.
    pub(crate) fn at(&self, server: &HttpServer) -> Self {
        Self {
            address: server.address,
            ..self.clone()
        }
    }

    pub(crate) fn session(&self) -> &str {
        self.session.as_deref().expect("a client with a session")
    }

    /// A message as this client posts it.
    pub(crate) fn post(&self, message: &Value) -> Request {
        match &self.session {
            Some(session) => Request::post(message.to_string())
                .with(SESSION, session)
                .with(VERSION, SESSION_VERSION),
            None => stateless(message),
        }
    }

    /// The next request of this client.
    pub(crate) fn message(&mut self, method: &str, mut params: Value) -> Value {
        self.last_id += 1;
        if self.era == Era::Stateless {
            let mut meta = stateless_meta(&self.capabilities);
            if let (Some(meta), Some(given)) = (meta.as_object_mut(), params["_meta"].as_object()) {
                meta.extend(given.clone());
            }
            params["_meta"] = meta;
        }
        json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})
    }

    /// Sends a request, without waiting for its answer.
    pub(crate) fn start(&mut self, method: &str, params: Value) -> Pending {
        let message = self.message(method, params);
        let mut connection = Connection::open(self.address);
        connection.send(&self.post(&message));
        Pending {
            id: self.last_id,
            connection,
        }
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Answer {
        let Pending { id, mut connection } = self.start(method, params);
        let answer = connection.answer();
        let message = answer.message();
        assert_eq!(message["id"], id, "{message}");
        answer
    }

    /// The result of a request that must succeed.
    pub(crate) fn result(&mut self, method: &str, params: Value) -> Value {
        let answer = self.request(method, params);
        let mut message = answer.message();
        assert!(
            answer.status == 200 && message["result"].is_object(),
            "{} {message}",
            answer.status
        );
        message["result"].take()
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    pub(crate) fn notify(&self, method: &str, params: Value) -> Answer {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        Connection::open(self.address).ask(&self.post(&message))
    }

    /// Answers a question of the server.
    pub(crate) fn respond(&self, id: &Value, result: Value) -> Answer {
        let message = json!({"jsonrpc": "2.0", "id": id, "result": result});
        Connection::open(self.address).ask(&self.post(&message))
    }

    pub(crate) fn tool_names(&mut self) -> Vec<String> {
        let result = self.result("tools/list", json!({}));
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        result["tools"].as_array().unwrap().iter().map(name).collect()
    }

    /// What is told to this client besides answers: the stream of its session, or a subscription.
    pub(crate) fn listen(&mut self) -> Connection {
        match self.era {
            Era::Initialize => {
                let mut connection = Connection::open(self.address);
                connection.send(&Request::stream(self.session()));
                let head = connection.head();
                assert!(head.status == 200 && head.is_events(), "{head:?}");
                connection
            }
            Era::Stateless => {
                let filter = json!({"notifications": {"toolsListChanged": true}});
                let mut connection = self.start("subscriptions/listen", filter).connection;
                let head = connection.head();
                assert!(head.status == 200 && head.is_events(), "{head:?}");
                let acknowledged = connection.event().expect("an acknowledgement");
                assert_eq!(
                    acknowledged["method"], "notifications/subscriptions/acknowledged",
                    "{acknowledged}"
                );
                connection
            }
        }
    }
}

impl Pending {
    /// Waits until the call is told to be under way, which it is only where it has a `progressToken`.
    pub(crate) fn wait_until_it_runs(&mut self) {
        let head = self.connection.head();
        assert!(head.status == 200 && head.is_events(), "{head:?}");
        let first = self.connection.event().expect("progress");
        assert_eq!(first["method"], "notifications/progress", "{first}");
    }

    /// The answer, after whatever else the stream tells.
    pub(crate) fn answer(mut self) -> Value {
        loop {
            let message = self.connection.event().expect("the stream ends with the answer");
            if message.get("method").is_none() {
                assert_eq!(message["id"], self.id, "{message}");
                return message;
            }
        }
    }
}
