//! A server over HTTP, and connections to it that are kept: HTTP/1.1 over a plain socket, because a client library would be a good
//! part of what is measured.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::question::{Asked, Era, Question, SESSION_VERSION, STATELESS_VERSION, initialized, opening};
use crate::road::{Road, check};

/// A running server. Killed when dropped.
pub(crate) struct HttpServer {
    child: Child,
    address: SocketAddr,
}

impl HttpServer {
    /// Starts a server, and waits until it says where it listens.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let started = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = started.with_context(|| format!("{:?}", command.get_program()))?;
        let mut stderr = BufReader::new(child.stderr.take().context("a pipe was asked for")?);
        let mut said = String::new();
        let address = loop {
            let from = said.len();
            ensure!(stderr.read_line(&mut said)? > 0, "the server does not listen: {said}");
            if let Some(address) = said.get(from..).and_then(address_in) {
                break address;
            }
        };
        // Whatever it says later must not make it wait.
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        Ok(Self { child, address })
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address in a line that tells it as `http://ADDRESS/mcp`.
fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("http://")?;
    let (address, _) = rest.split_once("/mcp")?;
    address.parse().ok()
}

/// What the head of every request of a client has.
#[derive(Clone)]
struct Head {
    address: SocketAddr,
    era: Era,
    session: Option<String>,
}

impl Head {
    fn text(&self, asked: Option<&Asked>, length: usize) -> String {
        let mut text = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n",
            self.address
        );
        let mut add = |name: &str, value: &str| text.push_str(&format!("{name}: {value}\r\n"));
        match self.era {
            Era::Session => add("MCP-Protocol-Version", SESSION_VERSION),
            Era::Stateless => {
                add("MCP-Protocol-Version", STATELESS_VERSION);
                if let Some(asked) = asked {
                    add("Mcp-Method", asked.method);
                    if let Some(name) = asked.params["name"].as_str() {
                        add("Mcp-Name", name);
                    }
                }
            }
        }
        if let Some(session) = &self.session {
            add("Mcp-Session-Id", session);
        }
        text.push_str("\r\n");
        text
    }

    fn question(&self, asked: &Asked) -> Question {
        Question::after(|length| self.text(Some(asked), length), asked)
    }
}

/// A connection that is kept.
struct Connection {
    stream: BufReader<TcpStream>,
    line: Vec<u8>,
    body: Vec<u8>,
    /// Of the last answer, if it opened one.
    session: Option<String>,
}

impl Connection {
    fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::with_capacity(64 << 10, stream),
            line: Vec::new(),
            body: Vec::new(),
            session: None,
        })
    }

    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.stream.get_mut().write_all(bytes)?)
    }

    /// The body of the next answer.
    fn receive(&mut self) -> Result<&[u8]> {
        self.next_line()?;
        let is_well = [&b" 200 "[..], b" 202 "].iter().any(|status| contains(&self.line, status));
        let mut length = None;
        let mut is_chunked = false;
        loop {
            self.next_line()?;
            let Some((name, value)) = std::str::from_utf8(&self.line)?.trim_end().split_once(':') else {
                break;
            };
            if name.eq_ignore_ascii_case("content-length") {
                length = Some(value.trim().parse()?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                is_chunked = true;
            } else if name.eq_ignore_ascii_case("mcp-session-id") {
                self.session = Some(value.trim().to_owned());
            }
        }
        self.body.clear();
        match length {
            Some(length) => self.piece(length)?,
            None if is_chunked => self.chunks()?,
            None => {}
        }
        ensure!(is_well, "the server refuses: {}", String::from_utf8_lossy(&self.body));
        Ok(&self.body)
    }

    fn chunks(&mut self) -> Result<()> {
        loop {
            self.next_line()?;
            let length = usize::from_str_radix(std::str::from_utf8(&self.line)?.trim_end(), 16)?;
            self.piece(length)?;
            self.next_line()?;
            if length == 0 {
                return Ok(());
            }
        }
    }

    fn next_line(&mut self) -> Result<()> {
        self.line.clear();
        self.stream.read_until(b'\n', &mut self.line)?;
        ensure!(!self.line.is_empty(), "the server has closed the connection");
        Ok(())
    }

    fn piece(&mut self, length: usize) -> Result<()> {
        let from = self.body.len();
        self.body.resize(from + length, 0);
        Ok(self.stream.read_exact(self.body.get_mut(from..).unwrap_or_default())?)
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// The same call again and again, of a server that is ready.
pub(crate) struct Posted {
    name: &'static str,
    server: HttpServer,
    connections: Vec<Connection>,
    question: Question,
}

impl Posted {
    /// `opens` says whether the server has to be told first that a session begins.
    pub(crate) fn new(
        name: &'static str,
        server: HttpServer,
        era: Era,
        opens: bool,
        asked: &Asked,
        expected: &str,
    ) -> Result<Self> {
        let mut connection = Connection::open(server.address)?;
        let mut head = Head {
            address: server.address,
            era,
            session: None,
        };
        if opens {
            connection.send(head.question(&opening(era)).next())?;
            check(name, connection.receive()?, r#""result":"#)?;
            head.session = connection.session.take();
            ensure!(head.session.is_some(), "{name}: no session was opened");
            let body = initialized();
            connection.send(format!("{}{body}", head.text(None, body.len())).as_bytes())?;
            connection.receive()?;
        }
        let mut question = head.question(asked);
        connection.send(question.next())?;
        check(name, connection.receive()?, expected)?;
        Ok(Self {
            name,
            server,
            connections: vec![connection],
            question,
        })
    }
}

impl Road for Posted {
    fn name(&self) -> &'static str {
        self.name
    }

    fn call(&mut self) -> Result<()> {
        let connection = self.connections.first_mut().context("one is always there")?;
        connection.send(self.question.next())?;
        connection.receive()?;
        Ok(())
    }

    /// Each connection has one request under way. Whose answer was read is asked anew at once, one connection after the other.
    fn calls(&mut self, count: usize, in_flight: usize) -> Result<()> {
        while self.connections.len() < in_flight {
            self.connections.push(Connection::open(self.server.address)?);
        }
        let connections = self.connections.get_mut(..in_flight).unwrap_or_default();
        for connection in &mut *connections {
            connection.send(self.question.next())?;
        }
        for answered in 0..count.max(in_flight) {
            if let Some(connection) = connections.get_mut(answered % in_flight) {
                connection.receive()?;
                if answered + in_flight < count {
                    connection.send(self.question.next())?;
                }
            }
        }
        Ok(())
    }
}
