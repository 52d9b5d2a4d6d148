//! What a guest and its client say to each other during one request.
//!
//! The guest speaks to a [`GuestSide`]; the task that answers the request passes it on. That has to be the very task: rmcp knows by it
//! which request a message belongs to.

#![expect(deprecated, reason = "what MCP has deprecated is spoken as long as clients have it")]

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lifecycle::{Answer, Call, Capabilities, Change, Client, Later, Level, LifecycleManager, Question, Report, Unanswered};
use rmcp::RoleServer;
use rmcp::model::{
    InputRequest, LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestContext, ServiceError};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::questions::{self, Answered};

/// What waits to be passed on. A guest that says more waits, too.
const WAITING: usize = 16;

/// How often a client hears that a call still runs.
const STILL_RUNNING: Duration = Duration::from_secs(1);

/// Reports of progress that come sooner after one another are left out, but for the last.
const BETWEEN_REPORTS: Duration = Duration::from_millis(10);

/// What a guest that looks for it has, to put things in order after its call was cancelled.
const GRACE: Duration = Duration::from_secs(2);

/// What a client is told of a question that nobody waits for any more.
const GIVEN_UP: &str = "nobody waits for the answer any more";

/// Where answers go. Closed once the guest waits for them no more.
type Answers = oneshot::Sender<Result<Vec<Answer>, Unanswered>>;

/// Something for the client.
enum Said {
    Progress(Report),
    Log(LoggingMessageNotificationParam),
    Ask(Vec<(String, Question)>, Answers),
}

/// The guest's end.
#[derive(Debug)]
pub(crate) struct GuestSide {
    manager: Arc<LifecycleManager>,
    call: Call,
    said: mpsc::Sender<Said>,
    cancelled: CancellationToken,
    wants_progress: bool,
    level: Option<LoggingLevel>,
    /// What was answered before this attempt; none where the client can be asked within it.
    answered: Option<Answered>,
    asked: Mutex<Vec<(String, Question)>>,
    /// Of what was answered before, that which the guest took for an answer.
    used: Mutex<Answered>,
    reported: Mutex<Option<(f64, Instant)>>,
    printed: AtomicU64,
}

/// The client's end.
pub(crate) struct ClientSide {
    guest_side: Arc<GuestSide>,
    said: mpsc::Receiver<Said>,
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
    cancelled: CancellationToken,
    gone: CancellationToken,
}

/// How the guest's end of a conversation is set up.
pub(crate) struct Terms {
    /// The least important messages that the client wants to see.
    pub(crate) level: Option<LoggingLevel>,
    /// For a client that is asked between attempts: what it has answered.
    pub(crate) answered: Option<Answered>,
    /// Fires when the client is gone for good.
    pub(crate) gone: CancellationToken,
}

/// A conversation about one request.
pub(crate) fn begin(
    manager: &Arc<LifecycleManager>,
    context: &RequestContext<RoleServer>,
    terms: Terms,
) -> (Arc<GuestSide>, ClientSide) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let client = context.client_info();
    let token = context.meta.get_progress_token();
    let capabilities = context.client_capabilities().as_ref().map(questions::capabilities);
    let guest_side = Arc::new(GuestSide {
        manager: Arc::clone(manager),
        call: Call {
            client: client.as_ref().map(|client| client.name.clone()),
            client_version: client.map(|client| client.version),
            protocol: context.protocol_version().map(|version| version.to_string()),
            capabilities: capabilities.unwrap_or(Capabilities::empty()),
            time_left: 0,
        },
        said: sender,
        cancelled: context.ct.clone(),
        wants_progress: token.is_some(),
        level: terms.level,
        answered: terms.answered,
        asked: Mutex::default(),
        used: Mutex::default(),
        reported: Mutex::default(),
        printed: AtomicU64::new(0),
    });
    let client_side = ClientSide {
        guest_side: Arc::clone(&guest_side),
        said: receiver,
        peer: context.peer.clone(),
        token,
        cancelled: context.ct.clone(),
        gone: terms.gone,
    };
    (guest_side, client_side)
}

/// The client took its request back.
pub(crate) struct Cancelled;

impl ClientSide {
    /// Passes on what the guest says while it works. A guest that looks for it hears that its call was cancelled, and has a moment.
    pub(crate) async fn during<T>(mut self, work: impl Future<Output = T>, manners: Manners) -> Result<T, Cancelled> {
        let mut work = pin!(work);
        let start = Instant::now();
        let mut still_running = tokio::time::interval(STILL_RUNNING);
        still_running.set_missed_tick_behavior(MissedTickBehavior::Delay);
        still_running.reset();
        // Progress only grows, so only one of the two can tell it.
        let tells_time = self.token.is_some() && !manners.reports_progress;
        let (cancelled, gone) = (self.cancelled.clone(), self.gone.clone());
        let end = async move {
            tokio::select! {
                () = gone.cancelled() => return,
                () = cancelled.cancelled() => {}
            }
            if manners.polls_cancellation {
                tokio::time::sleep(GRACE).await;
            }
        };
        let mut end = pin!(end);
        let result = loop {
            let said = tokio::select! {
                result = &mut work => break result,
                () = &mut end => return Err(Cancelled),
                Some(said) = self.said.recv() => said,
                _ = still_running.tick(), if tells_time => Said::Progress(self.guest_side.still_running(start)),
            };
            let is_question = matches!(said, Said::Ask(..));
            let mut passing = pin!(pass_on(&self.peer, self.token.as_ref(), said));
            let ended = tokio::select! {
                () = &mut passing => None,
                // The guest may end while a question is open. Anything else is told to its end.
                result = &mut work, if is_question => Some(result),
                () = &mut end => return Err(Cancelled),
            };
            if let Some(result) = ended {
                // With the guest went whoever waited for an answer, and the client hears that, too.
                tokio::select! {
                    () = passing => {}
                    () = &mut end => return Err(Cancelled),
                }
                break result;
            }
        };
        self.conclude().await?;
        Ok(result)
    }

    /// Passes on what the guest said before its end: that comes before the answer.
    pub(crate) async fn conclude(mut self) -> Result<(), Cancelled> {
        while let Ok(said) = self.said.try_recv() {
            if matches!(said, Said::Ask(..)) {
                continue;
            }
            tokio::select! {
                () = Box::pin(pass_on(&self.peer, self.token.as_ref(), said)) => {}
                () = self.gone.cancelled() => return Err(Cancelled),
                () = self.cancelled.cancelled() => return Err(Cancelled),
            }
        }
        Ok(())
    }
}

/// What a guest does by itself, of what is otherwise done for it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manners {
    /// It looks whether its call was cancelled.
    pub(crate) polls_cancellation: bool,
    /// It tells how far it is.
    pub(crate) reports_progress: bool,
}

async fn pass_on(peer: &Peer<RoleServer>, token: Option<&ProgressToken>, said: Said) {
    match said {
        Said::Progress(report) => {
            let Some(token) = token else { return };
            let mut notification = ProgressNotificationParam::new(token.clone(), report.progress);
            notification.total = report.total;
            notification.message = report.message;
            // A client that is gone hears nothing.
            let _ = peer.notify_progress(notification).await;
        }
        Said::Log(message) => _ = peer.notify_logging_message(message).await,
        Said::Ask(questions, mut answers) => {
            let answered = ask(peer, &questions, &mut answers).await;
            // The guest may have given up.
            let _ = answers.send(answered);
        }
    }
}

/// Asks a client that can be asked in the middle of a call, as long as the guest waits for it.
async fn ask(peer: &Peer<RoleServer>, questions: &[(String, Question)], waiting: &mut Answers) -> Result<Vec<Answer>, Unanswered> {
    let mut answers = Vec::with_capacity(questions.len());
    for (_, question) in questions {
        let request = match questions::request(question).map_err(Unanswered::Failed)? {
            InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
            InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
            InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
            _ => return Err(Unanswered::Unsupported),
        };
        let failed = |error: &dyn std::fmt::Display| Unanswered::Failed(format!("the client gave no answer: {error}"));
        let asked = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let mut asked = asked.map_err(|error| failed(&error))?;
        let result = tokio::select! {
            answered = &mut asked.rx => answered.unwrap_or(Err(ServiceError::TransportClosed)),
            () = waiting.closed() => {
                // A client that is gone hears nothing.
                let _ = asked.cancel(Some(GIVEN_UP.to_owned())).await;
                return Err(Unanswered::Failed(GIVEN_UP.to_owned()));
            }
        };
        let value = serde_json::to_value(result.map_err(|error| failed(&error))?).map_err(|error| failed(&error))?;
        let answer = questions::answer(question, &value);
        answers.push(answer.map_err(|problem| Unanswered::Failed(format!("the answer does not fit the question: {problem}")))?);
    }
    Ok(answers)
}

impl GuestSide {
    /// The questions that ended this attempt.
    pub(crate) fn asked(&self) -> Vec<(String, Question)> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The answers that this attempt had.
    pub(crate) fn used(&self) -> Answered {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// That the call has not ended.
    fn still_running(&self, start: Instant) -> Report {
        let seconds = start.elapsed().as_secs();
        let printed = match self.printed.load(Ordering::Relaxed) {
            0 => String::new(),
            bytes => format!(", {bytes} bytes of output"),
        };
        Report {
            progress: seconds as f64,
            total: None,
            message: Some(format!("running for {seconds} s{printed}")),
        }
    }

    /// Whether a report says something new, and not too soon after the last.
    fn is_new(&self, report: &Report) -> bool {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let is_last = report.total == Some(report.progress);
        let is_new = report.progress.is_finite()
            && reported.is_none_or(|(progress, at)| report.progress > progress && (is_last || at.elapsed() >= BETWEEN_REPORTS));
        if is_new {
            *reported = Some((report.progress, Instant::now()));
        }
        is_new
    }

    /// Answers from what the client has answered before; else it has to be asked.
    fn look_up(&self, answered: &Answered, asked: Vec<(String, Question)>) -> Result<Vec<Answer>, Unanswered> {
        let known = |(key, question): &(String, Question)| {
            let value = answered.0.get(key)?;
            let answer = questions::answer(question, value).ok()?;
            let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
            used.0.insert(key.clone(), value.clone());
            Some(answer)
        };
        let answers: Vec<Option<Answer>> = asked.iter().map(known).collect();
        if let Some(answers) = answers.iter().cloned().collect() {
            return Ok(answers);
        }
        let open = asked.into_iter().zip(answers).filter(|(_, answer)| answer.is_none());
        let open: Vec<(String, Question)> = open.map(|(question, _)| question).collect();
        for (_, question) in &open {
            questions::request(question).map_err(Unanswered::Failed)?;
        }
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = open;
        Err(Unanswered::Later)
    }
}

impl Client for GuestSide {
    fn describe(&self) -> Call {
        self.call.clone()
    }

    fn report(&self, report: Report) -> Later<'_, ()> {
        Box::pin(async move {
            if self.wants_progress && self.is_new(&report) {
                let _ = self.said.send(Said::Progress(report)).await;
            }
        })
    }

    fn wants_log(&self, level: Level) -> bool {
        self.level.is_some_and(|least| logging_level(level) as u8 >= least as u8)
    }

    fn log(&self, level: Level, logger: Option<String>, message: String) -> Later<'_, ()> {
        Box::pin(async move {
            let is_structure = message.starts_with(['{', '[']);
            let structure = is_structure.then(|| serde_json::from_str(&message).ok()).flatten();
            let mut notification =
                LoggingMessageNotificationParam::new(logging_level(level), structure.unwrap_or(Value::String(message)));
            notification.logger = logger;
            let _ = self.said.send(Said::Log(notification)).await;
        })
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    fn changed(&self, change: Change) {
        self.manager.announce(&change);
    }

    fn ask(&self, asked: Vec<(String, Question)>) -> Later<'_, Result<Vec<Answer>, Unanswered>> {
        Box::pin(async move {
            let needed = asked
                .iter()
                .fold(Capabilities::empty(), |all, (_, question)| all | questions::needed(question));
            if !self.call.capabilities.contains(needed) {
                return Err(Unanswered::Unsupported);
            }
            if let Some(answered) = &self.answered {
                return self.look_up(answered, asked);
            }
            let (sender, answers) = oneshot::channel();
            let gone = || Unanswered::Failed("the client is gone".to_owned());
            self.said.send(Said::Ask(asked, sender)).await.map_err(|_| gone())?;
            answers.await.map_err(|_| gone())?
        })
    }

    fn printed(&self, bytes: usize) {
        self.printed.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

fn logging_level(level: Level) -> LoggingLevel {
    match level {
        Level::Debug => LoggingLevel::Debug,
        Level::Info => LoggingLevel::Info,
        Level::Notice => LoggingLevel::Notice,
        Level::Warning => LoggingLevel::Warning,
        Level::Error => LoggingLevel::Error,
        Level::Critical => LoggingLevel::Critical,
        Level::Alert => LoggingLevel::Alert,
        Level::Emergency => LoggingLevel::Emergency,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use lifecycle::Config;
    use rmcp::ServerHandler;
    use rmcp::model::{InitializeRequestParams, RequestId};
    use rmcp::service::{RunningService, serve_directly};
    use serde_json::json;
    use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream, Lines};
    use tokio::time::timeout;

    use super::*;

    /// How long anything may take before a test gives up.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Nobody asks anything here.
    pub(crate) struct Silent;

    impl ServerHandler for Silent {}

    /// The client's end of a connection, over pipes in memory. It can be asked for its folders.
    pub(crate) struct Other {
        running: RunningService<RoleServer, Silent>,
        read: Lines<BufReader<DuplexStream>>,
        _write: DuplexStream,
    }

    impl Other {
        pub(crate) fn connect() -> Self {
            let (write, input) = tokio::io::duplex(1 << 10);
            let (output, read) = tokio::io::duplex(1 << 10);
            let info = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"roots": {}},
                "clientInfo": {"name": "test", "version": "1"},
            });
            let info: InitializeRequestParams = serde_json::from_value(info).unwrap();
            Self {
                running: serve_directly(Silent, (input, output), Some(info)),
                read: BufReader::new(read).lines(),
                _write: write,
            }
        }

        /// Both ends of a conversation about a request of this client.
        pub(crate) fn converse(&self) -> (Arc<GuestSide>, ClientSide) {
            let config = Config {
                home: None,
                ..Config::default()
            };
            let manager = Arc::new(LifecycleManager::new(config).unwrap());
            let context = RequestContext::new(RequestId::Number(1), self.running.peer().clone());
            let terms = Terms {
                level: Some(LoggingLevel::Info),
                answered: None,
                gone: CancellationToken::new(),
            };
            begin(&manager, &context, terms)
        }

        async fn receive(&mut self) -> Value {
            let line = timeout(PATIENCE, self.read.next_line()).await.expect("nothing is said");
            serde_json::from_str(&line.unwrap().expect("the connection is open")).unwrap()
        }
    }

    #[tokio::test]
    async fn a_question_that_nobody_waits_for_is_taken_back_and_holds_nothing_up() {
        const MESSAGES: usize = 3 * WAITING;
        let mut other = Other::connect();
        let (guest, listener) = other.converse();
        let work = async move {
            let asking = guest.ask(vec![("folders".to_owned(), Question::Roots)]);
            assert!(timeout(Duration::from_millis(20), asking).await.is_err());
            for number in 0..MESSAGES {
                guest.log(Level::Info, None, number.to_string()).await;
            }
        };
        let hear = async {
            let question = other.receive().await;
            assert_eq!(question["method"], "roots/list", "{question}");
            let off = other.receive().await;
            assert_eq!(
                (&off["method"], &off["params"]["requestId"]),
                (&json!("notifications/cancelled"), &question["id"]),
                "{off}"
            );
            for number in 0..MESSAGES {
                assert_eq!(other.receive().await["params"]["data"], number.to_string());
            }
        };
        let (ended, ()) = tokio::join!(timeout(PATIENCE, listener.during(work, Manners::default())), hear);
        assert!(ended.expect("the guest goes on").is_ok());
    }

    #[tokio::test]
    async fn a_question_of_a_guest_that_ended_is_taken_back() {
        let mut other = Other::connect();
        let (guest, listener) = other.converse();
        let work = async move {
            let asking = guest.ask(vec![("folders".to_owned(), Question::Roots)]);
            let _ = timeout(Duration::from_millis(20), asking).await;
        };
        let ended = timeout(PATIENCE, listener.during(work, Manners::default())).await;
        assert!(ended.expect("the guest ended").is_ok());
        let (question, off) = (other.receive().await, other.receive().await);
        assert_eq!(off["params"]["requestId"], question["id"], "{off}");
    }
}
