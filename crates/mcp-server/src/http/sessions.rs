//! Sessions, for clients of the older era.
//!
//! What a session needs stands in its id, so that one that is closed here because nobody used it comes back with the next request, and
//! another process that has the same key can take it up. What is held here is its end of the pipe that rmcp serves, no more.

use std::collections::{HashMap, HashSet, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::Stream;
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, InitializeRequestParams, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    EventIdParseError, LocalSessionHandle, LocalSessionWorker, SessionConfig, SessionError, StreamableHttpMessageReceiver,
    create_local_session,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionState, SessionStore, SessionStoreError};
use rmcp::transport::streamable_http_server::{RestoreOutcome, SessionId, SessionManager};
use rmcp::transport::{Transport, WorkerTransport};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::auth::Principal;
use super::session_id::{IssueError, SessionIds};
use crate::direct::Direct;
use crate::handler::Session;
use crate::message::{answered_by, cancelled_by};
use crate::metrics::{Metrics, Open};

/// How long a session in which nothing happens is held.
const MAX_IDLE: Duration = Duration::from_secs(10 * 60);

/// Sessions that are many: for each beyond them one is closed in which nothing happens. And those that are held at the same time at most,
/// if something happens in all of them. For each, rmcp keeps the last 16 messages that belong to no answer; messages of a guest's log are
/// the longest of these, which is why the sandbox cuts them.
const MANY_SESSIONS: usize = 1_000;
const MAX_SESSIONS: usize = 10_000;

/// Ids that clients have given up and that are remembered.
const MAX_ENDED: usize = 10_000;

tokio::task_local! {
    /// The request that is handled. rmcp asks for a session without saying for whom.
    pub(super) static CURRENT: Arc<Current>;
}

/// A request on its way through rmcp.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) principal: Principal,
    pub(super) body: Bytes,
    /// Its session stays until it is handled.
    session: OnceLock<InUse>,
    /// Fires when the session that is begun with it has ended.
    pub(super) gone: CancellationToken,
    /// What answers in that session.
    handler: Arc<OnceLock<Arc<Session>>>,
    /// Why there is no session for it. rmcp has but one status for all reasons.
    pub(super) refused: OnceLock<Refused>,
}

impl Current {
    /// The token of the session that the request at hand begins.
    pub(super) fn gone() -> CancellationToken {
        CURRENT.try_with(|current| current.gone.clone()).unwrap_or_default()
    }

    /// Notes what answers in it.
    pub(super) fn handled_by(handler: Arc<Session>) -> Arc<Session> {
        let _ = CURRENT.try_with(|current| current.handler.set(Arc::clone(&handler)));
        handler
    }

    pub(super) fn new(principal: Principal, body: Bytes) -> Self {
        Self {
            principal,
            body,
            session: OnceLock::new(),
            gone: CancellationToken::new(),
            handler: Arc::default(),
            refused: OnceLock::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// All sessions that may be held are in use.
    Full,
    /// The client says more of itself than an id can carry.
    TooLong,
    /// No such session.
    Unknown,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum SessionsError {
    #[error("the session is refused: {0:?}")]
    Refused(Refused),
    #[error("no session belongs to this")]
    OutOfPlace,
    #[error("there is no session for it")]
    Unknown,
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    EventId(#[from] EventIdParseError),
    #[error(transparent)]
    Id(#[from] IssueError),
}

/// Notes for the answer why a session is refused.
fn refuse(refused: Refused) -> SessionsError {
    let _ = CURRENT.try_with(|current| current.refused.set(refused));
    SessionsError::Refused(refused)
}

/// All sessions. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Sessions {
    ids: SessionIds,
    table: Arc<Mutex<Table>>,
    metrics: Metrics,
}

#[derive(Debug)]
struct Table {
    live: HashMap<SessionId, Live>,
    /// The hashes of ids that were given up, the oldest first.
    ended: HashSet<blake3::Hash>,
    ended_in_order: VecDeque<blake3::Hash>,
}

impl Table {
    fn new() -> Self {
        Self {
            live: HashMap::new(),
            ended: HashSet::new(),
            ended_in_order: VecDeque::new(),
        }
    }

    fn has_ended(&self, id: &str) -> bool {
        self.ended.contains(&blake3::hash(id.as_bytes()))
    }

    fn end(&mut self, id: &str) {
        let hash = blake3::hash(id.as_bytes());
        if self.ended.insert(hash) {
            self.ended_in_order.push_back(hash);
        }
        if self.ended_in_order.len() > MAX_ENDED
            && let Some(oldest) = self.ended_in_order.pop_front()
        {
            self.ended.remove(&oldest);
        }
    }

    fn close_idle(&mut self, max_idle: Duration) {
        let is_idle = |live: &Live| live.usage.idle_since().is_some_and(|since| since.elapsed() >= max_idle);
        self.live
            .extract_if(|_, live| is_idle(live))
            .for_each(|(_, live)| live.close());
    }

    /// Makes room for one more session where there are many, unless there are as many as there may be.
    fn make_room(&mut self, many: usize, max: usize) -> Result<(), Refused> {
        if self.live.len() < many {
            return Ok(());
        }
        let idle = self.live.iter().filter_map(|(id, live)| Some((live.usage.idle_since()?, id)));
        let most_idle = idle.min_by_key(|(since, _)| *since).map(|(_, id)| SessionId::clone(id));
        match most_idle.and_then(|id| self.live.remove(&id)) {
            Some(idle) => idle.close(),
            None if self.live.len() >= max => return Err(Refused::Full),
            None => {}
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Live {
    handle: LocalSessionHandle,
    principal: Principal,
    usage: Arc<Usage>,
    gone: CancellationToken,
    handler: Arc<OnceLock<Arc<Session>>>,
    _open: Open,
}

impl Live {
    /// Ends what serves the session.
    fn close(self) {
        self.gone.cancel();
        tokio::spawn(async move { self.handle.close().await });
    }
}

/// What happens in a session.
#[derive(Debug)]
struct Usage(Mutex<UsedNow>);

#[derive(Debug)]
struct UsedNow {
    /// Requests of the client that are not answered yet. They go on when nobody listens any more.
    requests: HashSet<RequestId>,
    /// Calls that rmcp knows nothing of, and how they are cancelled.
    calls: HashMap<RequestId, CancellationToken>,
    /// Those who use the session in other ways.
    users: usize,
    last: Instant,
}

impl Usage {
    fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(UsedNow {
            requests: HashSet::new(),
            calls: HashMap::new(),
            users: 0,
            last: Instant::now(),
        })))
    }

    fn now(&self) -> MutexGuard<'_, UsedNow> {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        now.last = Instant::now();
        now
    }

    fn idle_since(&self) -> Option<Instant> {
        let now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (now.requests.is_empty() && now.users == 0).then_some(now.last)
    }
}

/// The session stays as long as this.
#[derive(Debug)]
pub(super) struct InUse(Arc<Usage>);

impl InUse {
    fn new(usage: &Arc<Usage>) -> Self {
        usage.now().users += 1;
        Self(Arc::clone(usage))
    }

    /// Lets the client cancel a call that rmcp knows nothing of.
    pub(super) fn for_call(self, id: RequestId, cancelled: CancellationToken) -> OpenCall {
        self.0.now().calls.insert(id.clone(), cancelled);
        OpenCall { id, in_use: self }
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.now().users -= 1;
    }
}

/// A call that has not ended.
#[derive(Debug)]
pub(super) struct OpenCall {
    id: RequestId,
    in_use: InUse,
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.in_use.0.now().calls.remove(&self.id);
    }
}

impl Sessions {
    pub(super) fn new(ids: SessionIds, metrics: Metrics) -> Self {
        Self {
            ids,
            table: Arc::new(Mutex::new(Table::new())),
            metrics,
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes sessions in which nothing has happened for long.
    pub(super) fn close_idle(&self) {
        self.table().close_idle(MAX_IDLE);
    }

    /// Begins to hold a session. `None` if it is held already.
    fn hold(&self, id: &SessionId, current: &Current) -> Result<Option<Tracked>, SessionsError> {
        // Sessions end when they are idle, which rmcp cannot tell: it takes a long call for idleness.
        let mut config = SessionConfig::default();
        config.keep_alive = None;
        let mut table = self.table();
        if table.live.contains_key(id) {
            return Ok(None);
        }
        table.make_room(MANY_SESSIONS, MAX_SESSIONS).map_err(refuse)?;
        let (handle, worker) = create_local_session(SessionId::clone(id), config);
        let usage = Usage::new();
        let _ = current.session.set(InUse::new(&usage));
        let live = Live {
            handle,
            principal: current.principal.clone(),
            usage: Arc::clone(&usage),
            gone: current.gone.clone(),
            handler: Arc::clone(&current.handler),
            _open: self.metrics.session(),
        };
        table.live.insert(SessionId::clone(id), live);
        Ok(Some(Tracked {
            transport: WorkerTransport::spawn(worker),
            id: SessionId::clone(id),
            usage,
            table: Arc::clone(&self.table),
        }))
    }

    /// The short road into a session, if it is that of who asks and its client has said that it is ready.
    pub(super) fn direct(&self, id: &str, principal: &Principal) -> Option<(Direct, InUse)> {
        let table = self.table();
        let live = table.live.get(id).filter(|live| live.principal == *principal)?;
        let session = live.handler.get()?;
        let direct = Direct::new(Arc::clone(session), session.peer()?.clone());
        Some((direct, InUse::new(&live.usage)))
    }

    /// The session of this id, if it is that of who asks.
    fn get(&self, id: &SessionId) -> Result<(LocalSessionHandle, Arc<Usage>), SessionsError> {
        let current = current()?;
        let table = self.table();
        let live = table.live.get(id).filter(|live| live.principal == current.principal);
        let live = live.ok_or(SessionsError::Unknown)?;
        Ok((live.handle.clone(), Arc::clone(&live.usage)))
    }
}

fn current() -> Result<Arc<Current>, SessionsError> {
    CURRENT.try_with(Arc::clone).map_err(|_| SessionsError::OutOfPlace)
}

impl SessionManager for Sessions {
    type Error = SessionsError;
    type Transport = Tracked;

    async fn create_session(&self) -> Result<(SessionId, Tracked), SessionsError> {
        #[derive(Deserialize)]
        struct Initialize {
            params: InitializeRequestParams,
        }
        let current = current()?;
        let Initialize { params } = serde_json::from_slice(&current.body).map_err(|_| SessionsError::OutOfPlace)?;
        let id: SessionId = match self.ids.issue(params, &current.principal) {
            Err(IssueError::TooLong) => return Err(refuse(Refused::TooLong)),
            issued => issued?.into(),
        };
        let session = self.hold(&id, &current)?.ok_or(SessionsError::OutOfPlace)?;
        Ok((id, session))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionsError> {
        let (session, _) = self.get(id)?;
        Ok(session.initialize(message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionsError> {
        let current = current()?;
        let table = self.table();
        let live = table.live.get(id).filter(|live| live.principal == current.principal);
        if let Some(live) = live {
            let _ = current.session.set(InUse::new(&live.usage));
        }
        Ok(live.is_some())
    }

    /// Called by rmcp for a client that gives its session up, and once more when all is over.
    async fn close_session(&self, id: &SessionId) -> Result<(), SessionsError> {
        let Ok(current) = current() else {
            return Ok(());
        };
        let live = {
            let mut table = self.table();
            if table.has_ended(id) || self.ids.open(id, &current.principal).is_none() {
                refuse(Refused::Unknown);
                return Ok(());
            }
            table.end(id);
            table.live.remove(id)
        };
        if let Some(live) = live {
            live.close();
        }
        Ok(())
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionsError> {
        let (session, usage) = self.get(id)?;
        let stream = Messages::new(session.establish_request_wise_channel().await?, &usage);
        session.push_message(message, stream.receiver.http_request_id).await?;
        Ok(stream)
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), SessionsError> {
        let (session, _) = self.get(id)?;
        Ok(session.push_message(message, None).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionsError> {
        let (session, usage) = self.get(id)?;
        Ok(Messages::new(session.establish_common_channel().await?, &usage))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionsError> {
        let (session, usage) = self.get(id)?;
        Ok(Messages::new(session.resume(last_event_id.parse()?).await?, &usage))
    }

    async fn restore_session(&self, id: SessionId) -> Result<RestoreOutcome<Tracked>, SessionsError> {
        Ok(match self.hold(&id, &*current()?)? {
            Some(session) => RestoreOutcome::Restored(session),
            None => RestoreOutcome::AlreadyPresent,
        })
    }
}

/// Ids keep themselves: there is nothing to store.
#[async_trait]
impl SessionStore for Sessions {
    async fn load(&self, id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        let current = current()?;
        if self.table().has_ended(id) {
            return Ok(None);
        }
        Ok(self.ids.open(id, &current.principal).map(SessionState::new))
    }

    async fn store(&self, _: &str, _: &SessionState) -> Result<(), SessionStoreError> {
        Ok(())
    }

    async fn delete(&self, _: &str) -> Result<(), SessionStoreError> {
        Ok(())
    }
}

/// rmcp's end of a session, which notes what is asked and what is answered. With it the session ends.
pub(super) struct Tracked {
    transport: WorkerTransport<LocalSessionWorker>,
    id: SessionId,
    usage: Arc<Usage>,
    table: Arc<Mutex<Table>>,
}

impl Drop for Tracked {
    fn drop(&mut self) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        // By now the same id may have come back.
        if table
            .live
            .get(&self.id)
            .is_some_and(|live| Arc::ptr_eq(&live.usage, &self.usage))
        {
            table.live.remove(&self.id);
        }
    }
}

impl Transport<RoleServer> for Tracked {
    type Error = <WorkerTransport<LocalSessionWorker> as Transport<RoleServer>>::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = answered_by(&item).cloned();
        let (sent, usage) = (self.transport.send(item), Arc::clone(&self.usage));
        async move {
            let sent = sent.await;
            if let Some(id) = answered {
                usage.now().requests.remove(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let message = self.transport.receive().await?;
        if let ClientJsonRpcMessage::Request(request) = &message {
            self.usage.now().requests.insert(request.id.clone());
        }
        if let Some(id) = cancelled_by(&message) {
            let mut now = self.usage.now();
            now.requests.remove(id);
            now.calls.remove(id).iter().for_each(CancellationToken::cancel);
        }
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}

/// Messages for one client that listens.
struct Messages {
    receiver: StreamableHttpMessageReceiver,
    _session: InUse,
}

impl Messages {
    fn new(receiver: StreamableHttpMessageReceiver, usage: &Arc<Usage>) -> Self {
        Self {
            receiver,
            _session: InUse::new(usage),
        }
    }
}

impl Stream for Messages {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        self.receiver.inner.poll_recv(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sessions, and the folder that their key is in.
    fn sessions() -> (tempfile::TempDir, Sessions) {
        let folder = tempfile::tempdir().unwrap();
        let key = lifecycle::Key::of_file(&folder.path().join("key")).unwrap();
        (folder, Sessions::new(SessionIds::new(&key), Metrics::default()))
    }

    fn asking() -> Arc<Current> {
        Arc::new(Current::new(Principal::new("somebody"), Bytes::new()))
    }

    /// Begins a session in which nothing happens any more.
    fn begin(sessions: &Sessions, id: &str) -> Tracked {
        sessions.hold(&id.into(), &asking()).unwrap().unwrap()
    }

    fn ids(sessions: &Sessions) -> Vec<String> {
        let mut ids: Vec<String> = sessions.table().live.keys().map(ToString::to_string).collect();
        ids.sort();
        ids
    }

    #[tokio::test]
    async fn a_session_is_idle_when_nothing_happens_in_it() {
        let (_folder, sessions) = sessions();
        let handled = asking();
        let session = sessions.hold(&"a".into(), &handled).unwrap().unwrap();
        let is_idle = || session.usage.idle_since().is_some();
        assert!(!is_idle(), "its request is handled");
        drop(handled);
        assert!(is_idle());
        // A call that nobody listens to runs on.
        session.usage.now().requests.insert(RequestId::Number(1));
        assert!(!is_idle());
        sessions.table().close_idle(Duration::ZERO);
        assert_eq!(ids(&sessions), ["a"]);
        session.usage.now().requests.remove(&RequestId::Number(1));
        let stream = InUse::new(&session.usage);
        assert!(!is_idle());
        drop(stream);
        assert!(is_idle());
        sessions.table().close_idle(Duration::from_secs(60));
        assert_eq!(ids(&sessions), ["a"], "not for so long");
        sessions.table().close_idle(Duration::ZERO);
        assert!(ids(&sessions).is_empty());
    }

    #[tokio::test]
    async fn the_session_that_was_idle_for_longest_makes_room() {
        let (_folder, sessions) = sessions();
        let held = ["a", "b", "c"].map(|id| begin(&sessions, id));
        let make_room = |many, max| sessions.table().make_room(many, max);
        make_room(4, 4).unwrap();
        assert_eq!(ids(&sessions), ["a", "b", "c"]);
        // What happened last in the first is now.
        drop(held[0].usage.now());
        make_room(3, 4).unwrap();
        assert_eq!(ids(&sessions), ["a", "c"]);
        let in_use = held.each_ref().map(|session| InUse::new(&session.usage));
        make_room(1, 3).unwrap();
        assert_eq!(make_room(1, 2), Err(Refused::Full));
        assert_eq!(ids(&sessions), ["a", "c"]);
        drop(in_use);
        make_room(1, 2).unwrap();
        assert_eq!(ids(&sessions).len(), 1);
    }

    #[tokio::test]
    async fn a_session_is_there_only_for_who_began_it() {
        let (_folder, sessions) = sessions();
        let id: SessionId = "a".into();
        let _session = begin(&sessions, &id);
        let get = async |name: &str| {
            let current = Arc::new(Current::new(Principal::new(name), Bytes::new()));
            CURRENT.scope(current, async { sessions.get(&id).is_ok() }).await
        };
        assert!(get("somebody").await && !get("somebody else").await);
        assert!(sessions.get(&id).is_err(), "nobody asks");
    }
}
