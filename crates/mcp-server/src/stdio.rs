//! MCP over a pair of pipes, one JSON-RPC message a line.
//!
//! rmcp's own line transport drops what it cannot read, so that the client waits forever, and ends the session when a notification
//! comes before the first request. This one answers the former and passes over the latter. Nothing but messages is ever written.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, GetMeta, ProtocolVersion, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{RoleServer, ServiceExt};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::handler::{Server, Session};

/// The longest message that is read: arguments of 8 MiB in base64, and room besides.
const MAX_LINE: usize = 32 << 20;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("the session could not be opened: {0}")]
    Open(#[from] Box<ServerInitializeError>),
    #[error("the session ended badly: {0}")]
    Session(#[from] tokio::task::JoinError),
}

/// Serves one client on stdin and stdout until it closes its end.
pub async fn serve_stdio(server: Server) -> Result<(), ServeError> {
    let (read, write) = rmcp::transport::stdio_pipes();
    serve(server, read, write).await
}

/// Serves one client on any pair of pipes until it closes its end.
pub async fn serve(
    server: Server,
    read: impl AsyncRead + Unpin + Send + 'static,
    write: impl AsyncWrite + Unpin + Send + 'static,
) -> Result<(), ServeError> {
    let lines = Lines::new(read, write);
    let session = Session::new(server, lines.ended.clone());
    match session.serve(lines).await {
        Ok(session) => {
            session.waiting().await?;
            Ok(())
        }
        // A client that goes away before it said anything was only looking.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(Box::new(error).into()),
    }
}

/// Messages that wait for a client that does not read. More than this, and answers wait with the calls they belong to.
const WAITING: usize = 16;

/// Requests that are not answered yet, and what they take. More than this, and nothing more is read: whoever asks without listening
/// waits for itself.
const MAX_OPEN_REQUESTS: usize = 1024;
const MAX_OPEN_BYTES: usize = 8 << 20;

/// What a request takes at least, however short it is.
const MIN_REQUEST: usize = 4 << 10;

/// How long a client that has ended its side may take to read a piece of what is left.
const PATIENCE: Duration = Duration::from_secs(5);
const PIECE: usize = 64 << 10;

/// The transport.
///
/// rmcp drops the future of `receive` whenever something else is ready first, so all progress is kept here, and nothing is written
/// from within it: a task of its own does all the writing, line by line.
struct Lines<R> {
    read: BufReader<R>,
    line: Vec<u8>,
    /// Within a line that was too long, until it ends.
    skipping: bool,
    /// Whether rmcp has left the phase in which it takes requests only.
    open: bool,
    /// The answer to a line that was no message, until there is room for it.
    answer: Option<Vec<u8>>,
    /// To the writer; gone when the session is closed.
    lines: Option<mpsc::Sender<Vec<u8>>>,
    /// Cancelled when there is nothing more to read.
    ended: CancellationToken,
    writer: Option<JoinHandle<io::Result<()>>>,
    open_requests: Arc<OpenRequests>,
}

/// The requests that are not answered yet, by id, with their size.
#[derive(Debug, Default)]
struct OpenRequests {
    sizes: Mutex<HashMap<RequestId, usize>>,
    answered: Notify,
}

impl OpenRequests {
    fn sizes(&self) -> MutexGuard<'_, HashMap<RequestId, usize>> {
        self.sizes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what a message begins or ends.
    fn received(&self, message: &ClientJsonRpcMessage, size: usize) {
        match message {
            ClientJsonRpcMessage::Request(request) => {
                // One id for many requests does not make them fewer.
                *self.sizes().entry(request.id.clone()).or_default() += size.max(MIN_REQUEST);
            }
            // What is cancelled is not answered.
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.ended(id);
                }
            }
            _ => {}
        }
    }

    fn ended(&self, id: &RequestId) {
        self.sizes().remove(id);
        self.answered.notify_waiters();
    }

    /// Waits until there is room for one more.
    async fn room(&self) {
        loop {
            let answered = self.answered.notified();
            let is_full = {
                let sizes = self.sizes();
                sizes.len() >= MAX_OPEN_REQUESTS || sizes.values().sum::<usize>() >= MAX_OPEN_BYTES
            };
            if !is_full {
                return;
            }
            answered.await;
        }
    }
}

/// What a line turned out to be.
enum Received {
    Message(Box<ClientJsonRpcMessage>),
    Ignored,
    Wrong { id: Option<RequestId>, error: ErrorData },
}

impl<R: AsyncRead + Unpin + Send> Lines<R> {
    fn new(read: R, write: impl AsyncWrite + Unpin + Send + 'static) -> Self {
        let (lines, waiting) = mpsc::channel(WAITING);
        let ended = CancellationToken::new();
        Self {
            read: BufReader::with_capacity(64 << 10, read),
            line: Vec::new(),
            skipping: false,
            open: false,
            answer: None,
            lines: Some(lines),
            writer: Some(tokio::spawn(write_lines(waiting, write, ended.clone()))),
            ended,
            open_requests: Arc::default(),
        }
    }

    /// Reads up to the end of a line into `self.line`. `None` at the end of the input.
    async fn read_line(&mut self) -> io::Result<Option<LineLength>> {
        loop {
            let available = self.read.fill_buf().await?;
            let at_end = available.is_empty();
            if at_end && self.line.is_empty() && !self.skipping {
                return Ok(None);
            }
            let newline = available.iter().position(|byte| *byte == b'\n');
            let taken = newline.map_or(available.len(), |newline| newline + 1);
            if self.line.len() + taken > MAX_LINE {
                self.line.clear();
                self.skipping = true;
            }
            if !self.skipping {
                self.line.extend_from_slice(available.get(..taken).unwrap_or_default());
            }
            self.read.consume(taken);
            // The last line counts without its newline too: that is how `printf` ends one.
            if newline.is_some() || at_end {
                let length = if self.skipping {
                    LineLength::TooLong
                } else {
                    LineLength::Fine
                };
                self.skipping = false;
                return Ok(Some(length));
            }
        }
    }

    /// Hands the answer that waits to the writer. `None` when nobody reads any more.
    async fn send_answer(&mut self) -> Option<()> {
        if self.answer.is_some() {
            let room = self.lines.as_ref()?.reserve().await.ok()?;
            if let Some(answer) = self.answer.take() {
                room.send(answer);
            }
        }
        Some(())
    }

    /// The next message, with every line before it that is none answered or ignored.
    async fn next(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            self.send_answer().await?;
            self.open_requests.room().await;
            let lines = self.lines.clone()?;
            let read = tokio::select! {
                read = self.read_line() => read,
                // Nobody reads any more, so nobody has to be asked.
                () = lines.closed() => return None,
            };
            let size = self.line.len();
            let received = match read {
                Ok(Some(LineLength::Fine)) => parse(&self.line),
                Ok(Some(LineLength::TooLong)) => Received::Wrong {
                    id: None,
                    error: ErrorData::invalid_request(format!("the message is longer than {} MiB", MAX_LINE >> 20), None),
                },
                Ok(None) => return None,
                Err(error) => {
                    tracing::error!(%error, "stdin could not be read");
                    return None;
                }
            };
            self.line.clear();
            // A large message should not hold its memory forever.
            self.line.shrink_to(64 << 10);
            match self.accept(received) {
                Received::Message(message) => {
                    self.open_requests.received(&message, size);
                    return Some(*message);
                }
                Received::Ignored => {}
                Received::Wrong { id, error } => {
                    self.answer = to_line(&Orphan {
                        jsonrpc: "2.0",
                        id,
                        error,
                    })
                    .ok()
                }
            }
        }
    }

    fn accept(&mut self, received: Received) -> Received {
        if self.open {
            return received;
        }
        let Received::Message(message) = received else {
            return received;
        };
        match &*message {
            ClientJsonRpcMessage::Request(request) => {
                self.open = opens_session(&request.request);
                Received::Message(message)
            }
            // Before there is a session nobody can be notified of anything.
            _ => Received::Ignored,
        }
    }
}

#[derive(Clone, Copy)]
enum LineLength {
    Fine,
    TooLong,
}

/// Whether rmcp starts a session with this request: any but a probe, in either era.
fn opens_session(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        other => {
            let meta = other.get_meta();
            meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
                && meta
                    .protocol_version()
                    .is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version))
        }
    }
}

fn parse(line: &[u8]) -> Received {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Received::Ignored;
    }
    match serde_json::from_slice::<ClientJsonRpcMessage>(line) {
        Ok(message) => match component2json::refuse_duplicate_keys(line) {
            Ok(()) => Received::Message(Box::new(message)),
            Err(error) => Received::Wrong {
                id: match &message {
                    ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
                    _ => None,
                },
                error: ErrorData::invalid_request(error.to_string(), None),
            },
        },
        Err(error) => explain(line, &error),
    }
}

/// Why a line is no message, with the id of the request it was to be, where that can be read.
fn explain(line: &[u8], error: &serde_json::Error) -> Received {
    #[derive(Deserialize)]
    struct Envelope {
        /// A null id is there, and wrong; only a message without any is a notification.
        #[serde(default, deserialize_with = "present")]
        id: Option<Value>,
        method: Option<Value>,
        jsonrpc: Option<Value>,
    }
    impl Envelope {
        fn is_request(&self) -> bool {
            matches!(&self.method, Some(Value::String(_))) && self.jsonrpc.as_ref().is_some_and(|version| version == "2.0")
        }
    }
    // Unknown fields are skipped without recursion, so this reads also what nests too deep to be parsed.
    let envelope: Option<Envelope> = serde_json::from_slice(line).ok();
    let id = |envelope: &Envelope| serde_json::from_value::<RequestId>(envelope.id.clone()?).ok();
    let is_json = serde_json::from_slice::<IgnoredAny>(line).is_ok();
    match (envelope, is_json && error.is_data()) {
        // A notification that nobody knows is no mistake.
        (
            Some(Envelope {
                id: None,
                method: Some(Value::String(_)),
                ..
            }),
            _,
        ) => Received::Ignored,
        (envelope, false) => Received::Wrong {
            id: envelope.as_ref().and_then(id),
            error: ErrorData::parse_error(format!("the message is not JSON that can be read: {error}"), None),
        },
        // All is well but for the parameters.
        (Some(envelope), true) if envelope.is_request() && id(&envelope).is_some() => Received::Wrong {
            id: id(&envelope),
            error: ErrorData::invalid_params("the parameters must be an object", None),
        },
        (envelope, true) => {
            let problem = if line.starts_with(b"[") {
                "batches are not part of the protocol"
            } else {
                "not a JSON-RPC 2.0 message"
            };
            Received::Wrong {
                id: envelope.as_ref().and_then(id),
                error: ErrorData::invalid_request(problem, None),
            }
        }
    }
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// An error that belongs to no request that we could tell: JSON-RPC wants its id to be null, where rmcp would leave it out.
#[derive(Serialize)]
struct Orphan {
    jsonrpc: &'static str,
    id: Option<RequestId>,
    error: ErrorData,
}

fn to_line(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// The request that a message answers.
fn answered(message: &TxJsonRpcMessage<RoleServer>) -> Option<&RequestId> {
    match message {
        ServerJsonRpcMessage::Response(response) => Some(&response.id),
        ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    }
}

/// Writes lines until there are no more, in whole and in order; flushes when none is waiting. A client that reads slowly is waited for,
/// but not one that has left.
async fn write_lines(
    mut waiting: mpsc::Receiver<Vec<u8>>,
    mut write: impl AsyncWrite + Unpin,
    ended: CancellationToken,
) -> io::Result<()> {
    while let Some(line) = waiting.recv().await {
        for piece in line.chunks(PIECE) {
            let left = async {
                ended.cancelled().await;
                tokio::time::sleep(PATIENCE).await;
            };
            tokio::select! {
                written = write.write_all(piece) => written?,
                () = left => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
        if waiting.is_empty() {
            write.flush().await?;
        }
    }
    write.shutdown().await
}

impl<R: AsyncRead + Unpin + Send> Transport<RoleServer> for Lines<R> {
    type Error = io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let lines = self.lines.clone();
        let open_requests = Arc::clone(&self.open_requests);
        async move {
            let line = to_line(&item)?;
            let lines = lines.ok_or(io::ErrorKind::NotConnected)?;
            let sent = lines.send(line).await.map_err(|_| io::ErrorKind::BrokenPipe.into());
            if let Some(id) = answered(&item) {
                open_requests.ended(id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let message = self.next().await;
        if message.is_none() {
            self.ended.cancel();
        }
        message
    }

    /// Waits until everything is written.
    async fn close(&mut self) -> Result<(), Self::Error> {
        self.lines = None;
        match self.writer.take() {
            Some(writer) => writer.await?,
            None => Ok(()),
        }
    }
}
