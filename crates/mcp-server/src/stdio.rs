//! MCP over a pair of pipes, one JSON-RPC message a line.
//!
//! rmcp's own line transport drops what it cannot read, so that the client waits forever, and ends the session when a notification
//! comes before the first request. This one answers the former and passes over the latter. Nothing but messages is ever written.
//!
//! One task has both pipes, the [`Wire`]. Calls of tools, and requests for the list of them, take the [short road](crate::direct): those
//! that end at once are read, answered and written without leaving it, but for many that came together, which are
//! [shared out](together). Everything else goes to rmcp, by the [`Link`].

mod lines;
mod lists;
mod outgoing;
mod together;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, GetMeta, JsonRpcRequest, ProtocolVersion, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{RoleServer, ServiceExt};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use self::lines::{Line, Lines, MAX_LINE};
use self::lists::ToldLists;
use self::outgoing::Outgoing;
use self::together::{Held, Helpers, WORTH_SHARING};
use crate::direct::{Begun, Direct, List};
use crate::handler::{Server, Session};
use crate::lull::Lull;
use crate::message::{Orphan, Received, answered_by, cancelled_by, parse};

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
    let ended = CancellationToken::new();
    let session = Arc::new(Session::new(server, ended.clone(), CancellationToken::new()));
    let direct = Arc::new(OnceLock::new());
    let (messages, received) = mpsc::channel(1);
    let (lines, said) = mpsc::channel(WAITING);
    let wire = Wire {
        lines: Lines::new(read),
        out: Outgoing::new(write),
        said,
        input: Some(Input {
            messages,
            lines: lines.clone(),
        }),
        next: None,
        held: VecDeque::new(),
        is_open: false,
        direct: Arc::clone(&direct),
        told: ToldLists::default(),
        open: OpenRequests::default(),
        calls: JoinSet::new(),
        helpers: Helpers::new(),
    };
    let link = Link {
        messages: received,
        lines: Some(lines),
    };
    let wire = tokio::spawn(async move {
        // Also if it fails: a client that does not listen has nothing more to ask.
        let _ended = ended.clone().drop_guard();
        if let Err(error) = wire.run(&ended).await {
            tracing::debug!(%error, "the client has left");
        }
    });
    match Arc::clone(&session).serve(link).await {
        Ok(running) => {
            let _ = direct.set(Direct::new(session, running.peer().clone()));
            running.waiting().await?;
        }
        // A client that goes away before it said anything was only looking.
        Err(ServerInitializeError::ConnectionClosed(_)) => {}
        Err(error) => return Err(Box::new(error).into()),
    }
    Ok(wire.await?)
}

/// Lines that wait for a client that does not read. More than this, and answers wait with the calls they belong to.
const WAITING: usize = 16;

/// Requests that are not answered yet, and what they and unread answers take. More than this, and the next request waits, with all that
/// is behind it: whoever asks without listening waits for itself.
const MAX_OPEN_REQUESTS: usize = 1024;
const MAX_OPEN_BYTES: usize = 8 << 20;

/// What a request takes at least, however short it is.
const MIN_REQUEST: usize = 4 << 10;

/// Lines that are handled before what was answered is written.
const AT_A_TIME: usize = 64;

/// How long a client that has ended its side may take to read a piece of what is left, and how long calls may take that it waits for.
const PATIENCE: Duration = Duration::from_secs(5);

/// A line for the client.
struct Said {
    line: Vec<u8>,
    /// The request that it answers.
    answers: Option<RequestId>,
}

impl Said {
    fn new(message: &ServerJsonRpcMessage) -> io::Result<Self> {
        Ok(Self {
            line: to_line(message)?,
            answers: answered_by(message).cloned(),
        })
    }
}

/// rmcp's end of the pipes.
struct Link {
    messages: mpsc::Receiver<ClientJsonRpcMessage>,
    /// Gone when the session is closed.
    lines: Option<mpsc::Sender<Said>>,
}

impl Transport<RoleServer> for Link {
    type Error = io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let lines = self.lines.clone();
        async move {
            let lines = lines.ok_or(io::ErrorKind::NotConnected)?;
            let sent = lines.send(Said::new(&item)?).await;
            sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.lines = None;
        Ok(())
    }
}

/// Both pipes.
struct Wire<R, W> {
    lines: Lines<R>,
    out: Outgoing<W>,
    /// What rmcp says, and the answers of calls that took longer.
    said: mpsc::Receiver<Said>,
    /// Gone when there is nothing more to read.
    input: Option<Input>,
    /// The message for rmcp that was read last, until there is room for it.
    next: Option<ClientJsonRpcMessage>,
    /// What was read and is not handled yet: lines that came together; or a request, while too many are open. Until then answers and
    /// cancellations are still read.
    held: VecDeque<Held>,
    /// Whether rmcp has left the phase in which it takes requests only.
    is_open: bool,
    /// Known once rmcp has opened the session.
    direct: Arc<OnceLock<Direct>>,
    told: ToldLists,
    open: OpenRequests,
    /// Calls that did not end at once.
    calls: JoinSet<()>,
    helpers: Helpers,
}

/// Where what is read goes.
struct Input {
    messages: mpsc::Sender<ClientJsonRpcMessage>,
    lines: mpsc::Sender<Said>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Wire<R, W> {
    /// Reads, answers and writes until the client has ended its side and has got what it waits for.
    async fn run(mut self, ended: &CancellationToken) -> io::Result<()> {
        let mut give_up = Instant::now();
        let mut lull = Lull::new();
        loop {
            let has_more = self.handle_lines().await;
            if !has_more && self.lines.has_ended() && self.next.is_none() && self.input.take().is_some() {
                ended.cancel();
                give_up = Instant::now() + PATIENCE;
            }
            while self.calls.try_join_next().is_some() {}
            let has_room = self.out.has_room();
            let may_read = self.may_read();
            let reads = self.input.is_some();
            let has_work_left = !self.calls.is_empty() || !self.out.is_done();
            tokio::select! {
                biased;
                written = self.out.progress(), if !self.out.is_done() => {
                    written?;
                    let now = Instant::now();
                    give_up = now + PATIENCE;
                    if self.out.is_done() && self.open.is_empty() {
                        lull.begin(now);
                    }
                }
                said = self.said.recv(), if has_room => match said {
                    Some(said) => self.say(said),
                    None => break,
                },
                is_taken = hand_over(&self.input, &mut self.next), if self.next.is_some() => if !is_taken { break },
                () = self.lines.fill(), if reads && !has_more && !self.lines.has_ended() => lull.end(Instant::now()),
                () = std::future::ready(()), if has_more && may_read => {}
                () = yield_now(), if lull.is_watched(Instant::now()) => {}
                () = sleep_until(give_up), if !reads && has_work_left => {
                    if !self.out.is_done() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    self.calls.abort_all();
                    give_up += PATIENCE;
                }
            }
        }
        while !self.out.is_done() {
            timeout(PATIENCE, self.out.progress()).await??;
        }
        self.out.shutdown().await
    }

    /// Whether there is room for another request.
    fn has_room_for_a_request(&self) -> bool {
        self.open.has_room_beside(self.out.waiting())
    }

    /// Whether there is room for what comes of another line.
    fn may_read(&self) -> bool {
        let may_be_request = !self.held.front().is_some_and(Held::is_request) || self.has_room_for_a_request();
        self.input.is_some() && self.next.is_none() && self.out.waiting() < MAX_OPEN_BYTES && may_be_request
    }

    /// Handles lines that have come, as long as there is room. False if there are no more.
    async fn handle_lines(&mut self) -> bool {
        for _ in 0..AT_A_TIME {
            if !self.may_read() {
                return self.input.is_some();
            }
            self.read_together().await;
            let (received, size) = match self.held.pop_front() {
                Some(Held::Answer(line)) => {
                    self.out.extend(line);
                    continue;
                }
                Some(Held::Open(call, size)) => {
                    self.go_on(call, size);
                    // It may wait for a place: one that is free is its own, and not for the lines behind it to queue for.
                    yield_now().await;
                    continue;
                }
                Some(Held::Message(received, size)) => (received, size),
                Some(Held::Line(line)) => (parse(&line), line.len()),
                None => match self.lines.next() {
                    Some(Line::Whole(line)) => (parse(line), line.len()),
                    Some(Line::TooLong) => (too_long(), 0),
                    None => return false,
                },
            };
            if received.is_request() && !self.has_room_for_a_request() {
                self.held.push_front(Held::Message(received, size));
            } else {
                self.accept(received, size).await;
            }
        }
        true
    }

    /// Reads lines that came together on several threads, where calls can be made at once.
    async fn read_together(&mut self) {
        if self.held.is_empty()
            && self.helpers.are_there()
            && self.out.has_room()
            && self.has_room_for_a_request()
            && let Some(direct) = self.direct.get()
            && let Some(lines) = self.lines.several(WORTH_SHARING, AT_A_TIME)
        {
            self.held = self.helpers.read(direct, lines).await;
        }
    }

    async fn accept(&mut self, received: Received, size: usize) {
        match received {
            Received::Call(call) => match self.direct.get() {
                Some(direct) => self.answer(direct.begin(call), size).await,
                None => self.pass_on(call.into_request(), size),
            },
            Received::Message(message) => match *message {
                ClientJsonRpcMessage::Request(request) => self.accept_request(request, size).await,
                // Before there is a session nobody can be notified of anything.
                _ if !self.is_open => {}
                message => {
                    if let Some(id) = cancelled_by(&message) {
                        self.open.take_back(id);
                    }
                    self.next = Some(message);
                }
            },
            Received::Ignored => {}
            Received::Wrong { id, error } => self.out.extend(to_line(&Orphan::new(id, error)).ok()),
        }
    }

    async fn accept_request(&mut self, request: JsonRpcRequest<ClientRequest>, size: usize) {
        let Some(direct) = self.direct.get() else {
            return self.pass_on(request, size);
        };
        if Direct::is_call(&request.request) {
            return self.answer(direct.begin_request(request), size).await;
        }
        match direct.list(&request.request) {
            Some(list) => self.tell(list, direct.begin_request(request), size).await,
            None => self.pass_on(request, size),
        }
    }

    /// Tells which tools there are. Unlike calls, this does not wait until answers are read: nothing more is read if many are not. Who asks
    /// for lists without end, faster than it reads them, hears nothing else meanwhile.
    async fn tell(&mut self, list: List, mut request: Begun, size: usize) {
        if let Some(line) = self.told.line(list, &request.id) {
            return self.out.extend(line.into_iter().flatten());
        }
        match request.at_once().await {
            Some(answer) => self.out.extend(self.told.keep(list, &answer).into_iter().flatten()),
            None => self.go_on(request, size),
        }
    }

    /// Answers a call, now or later.
    async fn answer(&mut self, mut call: Begun, size: usize) {
        // Where answers wait to be read, a call waits with its own and is counted.
        let at_once = if self.out.has_room() { call.at_once().await } else { None };
        match at_once {
            Some(answer) => self.out.extend(to_line(&answer).ok()),
            None => self.go_on(call, size),
        }
    }

    /// Leaves a request to rmcp.
    fn pass_on(&mut self, request: JsonRpcRequest<ClientRequest>, size: usize) {
        self.is_open |= opens_session(&request.request);
        self.open.begin(request.id.clone(), size, None);
        self.next = Some(ClientJsonRpcMessage::Request(request));
    }

    /// Lets a call go on while other lines are read.
    fn go_on(&mut self, call: Begun, size: usize) {
        let Some(input) = &self.input else { return };
        let lines = input.lines.clone();
        self.open.begin(call.id, size, Some(call.cancelled.clone()));
        self.calls.spawn(async move {
            let answer = call.answer.await;
            if !call.cancelled.is_cancelled()
                && let Ok(said) = Said::new(&answer)
            {
                // The client may be gone.
                let _ = lines.send(said).await;
            }
        });
    }

    /// Says something, unless it answers what the client has taken back meanwhile.
    fn say(&mut self, said: Said) {
        if said.answers.is_none_or(|id| self.open.answer(&id)) {
            self.out.push(said.line);
        }
    }
}

/// Gives rmcp the next message. False if it takes no more.
async fn hand_over(input: &Option<Input>, next: &mut Option<ClientJsonRpcMessage>) -> bool {
    let Some(input) = input else { return false };
    let Ok(room) = input.messages.reserve().await else {
        return false;
    };
    if let Some(message) = next.take() {
        room.send(message);
    }
    true
}

/// The requests that are not answered yet.
#[derive(Default)]
struct OpenRequests {
    requests: HashMap<RequestId, OpenRequest>,
    size: usize,
}

/// All requests with one id. A client should not have several, but one that has is answered as often as it asked.
#[derive(Default)]
struct OpenRequest {
    count: usize,
    size: usize,
    /// For a call that rmcp knows nothing of.
    cancelled: Option<CancellationToken>,
}

impl OpenRequests {
    /// Whether there is room for another, with so many bytes of answers that are not read yet.
    fn has_room_beside(&self, unread: usize) -> bool {
        self.requests.len() < MAX_OPEN_REQUESTS && self.size + unread < MAX_OPEN_BYTES
    }

    fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    fn begin(&mut self, id: RequestId, size: usize, cancelled: Option<CancellationToken>) {
        let size = size.max(MIN_REQUEST);
        let request = self.requests.entry(id).or_default();
        request.count += 1;
        request.size += size;
        request.cancelled = cancelled;
        self.size += size;
    }

    /// Notes an answer. False if nobody waits for it.
    fn answer(&mut self, id: &RequestId) -> bool {
        let Some(request) = self.requests.get_mut(id) else {
            return false;
        };
        request.count -= 1;
        if request.count == 0 {
            self.size -= request.size;
            self.requests.remove(id);
        }
        true
    }

    /// Forgets a request that the client wants no answer to any more.
    fn take_back(&mut self, id: &RequestId) {
        if let Some(request) = self.requests.remove(id) {
            self.size -= request.size;
            request.cancelled.iter().for_each(CancellationToken::cancel);
        }
    }
}

fn too_long() -> Received {
    let problem = format!("the message is longer than {} MiB", MAX_LINE >> 20);
    Received::Wrong {
        id: None,
        error: ErrorData::invalid_request(problem, None),
    }
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

fn to_line(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}
