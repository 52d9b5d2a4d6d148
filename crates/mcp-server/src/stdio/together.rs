//! Lines that came together, read on several threads.
//!
//! A client that has many calls under way sends them in one piece. The thread that reads them and its helpers share them out: each reads a
//! line, and if it is a call that nobody could tell apart from one made earlier or later, makes it. Everything else is left to the reader, in
//! the order in which it came. To wake a helper takes as long as a call or two do, so that few lines, and a client that waits for each
//! answer, stay on one thread.

use std::collections::VecDeque;
use std::io;
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tokio::runtime::Builder;
use tokio::sync::Notify;

use super::outgoing::ENOUGH;
use super::to_line;
use crate::direct::{Begun, Direct};
use crate::lane::Lane;
use crate::message::{Received, parse};

/// So many lines are worth the help of others.
pub(super) const WORTH_SHARING: usize = 4;

/// More threads than this would only wait for the one that reads and writes.
const MOST_THREADS: u32 = 4;

/// A line, or what became of it.
pub(super) enum Held {
    Line(Vec<u8>),
    /// A message, and the size that it had.
    Message(Received, usize),
    /// A call that did not end at once, and the size of its request.
    Open(Begun, usize),
    /// The line that answers a call, if it could be written.
    Answer(Option<Vec<u8>>),
}

impl Held {
    /// Whether it is known to be a request.
    pub(super) fn is_request(&self) -> bool {
        matches!(self, Self::Message(received, _) if received.is_request())
    }
}

/// The threads that help.
pub(super) struct Helpers {
    count: usize,
    /// From the first time on that there is something to share.
    lanes: Option<Vec<Lane>>,
}

impl Helpers {
    /// One for each core but one.
    pub(super) fn new() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self {
            count: cores.min(MOST_THREADS as usize) - 1,
            lanes: None,
        }
    }

    pub(super) fn are_there(&self) -> bool {
        self.count > 0
    }

    fn all(&mut self) -> &[Lane] {
        self.lanes.get_or_insert_with(|| {
            // Where no more threads can be had, there is less help.
            (0..self.count).filter_map(|_| helper().ok()).collect()
        })
    }

    /// Reads lines, and makes calls until one has to wait for what came before it, or they have said enough.
    pub(super) async fn read(&mut self, direct: &Direct, lines: Vec<u8>) -> VecDeque<Held> {
        let work = Arc::new(Work::new(direct.clone(), lines));
        // The first line tells whether there is something to share.
        work.help_with_one().await;
        if work.goes_on() {
            for helper in self.all() {
                let work = Arc::downgrade(&work);
                helper.runtime.spawn(async move {
                    // All may be done before a helper comes.
                    if let Some(work) = work.upgrade() {
                        work.help().await;
                    }
                });
            }
            work.help().await;
        }
        work.done().await
    }
}

/// It waits for work and for clocks. What guests read and write is waited for by their own threads, so that this one has no file open.
fn helper() -> io::Result<Lane> {
    let mut runtime = Builder::new_current_thread();
    runtime.enable_time();
    Lane::start("calls", runtime)
}

/// Lines that are shared out.
struct Work {
    direct: Direct,
    lines: Vec<u8>,
    state: Mutex<State>,
    /// Nobody is in the middle of a line any more.
    idle: Notify,
}

#[derive(Default)]
struct State {
    /// Where the next line begins.
    next: usize,
    is_over: bool,
    done: Vec<(usize, Held)>,
    /// Lines that somebody is in the middle of.
    busy: usize,
    /// The length of all answers.
    said: usize,
}

impl State {
    fn goes_on(&self) -> bool {
        !self.is_over && self.said < ENOUGH
    }
}

impl Work {
    fn new(direct: Direct, lines: Vec<u8>) -> Self {
        Self {
            direct,
            lines,
            state: Mutex::default(),
            idle: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn goes_on(&self) -> bool {
        self.state().goes_on()
    }

    /// Reads one line after the other until there are none left, or nobody should go on.
    async fn help(&self) {
        while self.help_with_one().await {}
    }

    async fn help_with_one(&self) -> bool {
        let Some(mut busy) = self.next() else {
            return false;
        };
        busy.held = Some(self.read(busy.line).await);
        true
    }

    async fn read(&self, line: &[u8]) -> Held {
        let call = match parse(line) {
            Received::Call(call) => call,
            other => return Held::Message(other, line.len()),
        };
        let Some(silent) = self.direct.independent(&call, MOST_THREADS) else {
            return Held::Message(Received::Call(call), line.len());
        };
        let mut begun = self.direct.begin_silent(silent, call);
        match begun.at_once().await {
            Some(answer) => Held::Answer(to_line(&answer).ok()),
            None => Held::Open(begun, line.len()),
        }
    }

    fn next(&self) -> Option<Busy<'_>> {
        let mut state = self.state();
        if !state.goes_on() {
            return None;
        }
        let place = state.next;
        let line = self.lines_from(place).next()?;
        state.next += line.len();
        state.busy += 1;
        Some(Busy {
            work: self,
            place,
            line,
            held: None,
        })
    }

    fn lines_from(&self, begin: usize) -> impl Iterator<Item = &[u8]> {
        let lines = self.lines.get(begin..).unwrap_or_default();
        lines.split_inclusive(|byte| *byte == b'\n')
    }

    /// What became of all lines, in their order, once nobody is in the middle of one. For one who has seen that there is nothing left to do.
    async fn done(&self) -> VecDeque<Held> {
        loop {
            {
                let mut state = self.state();
                if state.busy == 0 {
                    let mut done = take(&mut state.done);
                    done.sort_unstable_by_key(|(place, _)| *place);
                    let left = self.lines_from(state.next).map(|line| Held::Line(line.to_vec()));
                    return done.into_iter().map(|(_, held)| held).chain(left).collect();
                }
            }
            self.idle.notified().await;
        }
    }
}

/// Somebody in the middle of a line.
struct Busy<'a> {
    work: &'a Work,
    place: usize,
    line: &'a [u8],
    /// What became of it.
    held: Option<Held>,
}

impl Drop for Busy<'_> {
    /// Also after a panic: then the line is left to the reader, and nobody waits forever.
    fn drop(&mut self) {
        let held = self.held.take().unwrap_or_else(|| Held::Line(self.line.to_vec()));
        let mut state = self.work.state();
        match &held {
            Held::Answer(answer) => state.said += answer.as_ref().map_or(0, Vec::len),
            _ => state.is_over = true,
        }
        state.done.push((self.place, held));
        state.busy -= 1;
        if state.busy == 0 {
            self.work.idle.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use lifecycle::{AuditConfig, Config, LifecycleManager};
    use policy::{ByteSize, Grants, LimitSettings};
    use rmcp::RoleServer;
    use rmcp::model::RequestId;
    use rmcp::service::RunningService;
    use serde_json::{Value, json};

    use super::*;
    use crate::Server;
    use crate::direct::tests::{opened, serving};
    use crate::handler::Session;

    const TOOL: &str = "test_every_type_echo_echo_string";

    /// How often something is tried that a busy machine may get in the way of.
    const TRIES: usize = 1_000;

    struct Opened {
        manager: Arc<LifecycleManager>,
        direct: Direct,
        _running: RunningService<RoleServer, Arc<Session>>,
    }

    fn session(config: Config) -> Opened {
        let manager = Arc::new(serving("every-type", config));
        let (direct, running) = opened(&Server::new(Arc::clone(&manager)), Some("2025-11-25"));
        Opened {
            manager,
            direct,
            _running: running,
        }
    }

    impl Opened {
        /// Calls the tool until its calls are well known to be short.
        async fn warm_up(&self) {
            for _ in 0..TRIES {
                for _ in 0..10 {
                    made(&self.direct, &call(0, "")).await;
                }
                if self.manager.tool(TOOL).unwrap().is_short() {
                    return;
                }
            }
            panic!("no call is short");
        }

        /// What becomes of lines, read by nobody but this thread.
        async fn read_alone(&self, lines: &str) -> VecDeque<Held> {
            let work = Work::new(self.direct.clone(), lines.as_bytes().to_vec());
            work.help().await;
            work.done().await
        }
    }

    fn call(id: usize, text: &str) -> String {
        let params = json!({"name": TOOL, "arguments": {"value": text}});
        format!(
            "{}\n",
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
        )
    }

    fn calls(count: usize) -> String {
        (0..count).map(|id| call(id, &id.to_string())).collect()
    }

    fn ping(id: usize) -> String {
        format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "ping"}))
    }

    async fn made(direct: &Direct, line: &str) -> Value {
        let Received::Call(call) = parse(line.as_bytes()) else {
            panic!("{line}");
        };
        json!(direct.begin(call).answer.await)
    }

    fn id(held: &Held) -> RequestId {
        let id = match held {
            Held::Open(begun, _) => return begun.id.clone(),
            Held::Message(Received::Call(call), _) => return call.id.clone(),
            Held::Message(Received::Message(message), _) => json!(message)["id"].take(),
            Held::Message(..) => panic!("no message has no id"),
            Held::Line(line) => serde_json::from_slice::<Value>(line).unwrap()["id"].take(),
            Held::Answer(line) => answer(line)["id"].take(),
        };
        serde_json::from_value(id).unwrap()
    }

    fn answer(line: &Option<Vec<u8>>) -> Value {
        serde_json::from_slice(line.as_ref().unwrap()).unwrap()
    }

    /// How many of the first are answered.
    fn answered(held: &VecDeque<Held>) -> usize {
        held.iter().take_while(|held| matches!(held, Held::Answer(_))).count()
    }

    fn assert_complete(held: &VecDeque<Held>, count: usize) {
        let ids: Vec<RequestId> = held.iter().map(id).collect();
        let all = (0..count).map(|id| RequestId::Number(id.try_into().unwrap()));
        assert_eq!(ids, all.collect::<Vec<_>>());
    }

    /// Whether it is so after one of many tries: on a busy machine a call may be interrupted, and goes on elsewhere.
    async fn sooner_or_later(session: &Opened, mut so: impl AsyncFnMut() -> bool) -> bool {
        for _ in 0..TRIES {
            session.warm_up().await;
            if so().await {
                return true;
            }
        }
        false
    }

    #[tokio::test]
    async fn calls_that_came_together_are_answered_in_their_order() {
        let session = session(Config::default());
        let mut helpers = Helpers { count: 3, lanes: None };
        for count in [1, 4, 64] {
            let lines = calls(count);
            let all_are_answered = async || {
                let held = helpers.read(&session.direct, lines.clone().into_bytes()).await;
                assert_complete(&held, count);
                for (held, line) in held.iter().zip(lines.lines()) {
                    if let Held::Answer(line_of_answer) = held {
                        assert_eq!(answer(line_of_answer), made(&session.direct, line).await);
                    }
                }
                answered(&held) == count
            };
            assert!(sooner_or_later(&session, all_are_answered).await, "{count}");
        }
        assert_eq!(helpers.lanes.unwrap().len(), 3);
    }

    #[tokio::test]
    async fn a_helper_does_what_the_reader_does() {
        let session = session(Config::default());
        let lane = helper().unwrap();
        let all_are_answered = async || {
            let work = Arc::new(Work::new(session.direct.clone(), calls(64).into_bytes()));
            let helping = Arc::clone(&work);
            lane.runtime.spawn(async move { helping.help().await }).await.unwrap();
            let held = work.done().await;
            assert_complete(&held, 64);
            answered(&held) == 64
        };
        assert!(sooner_or_later(&session, all_are_answered).await);
    }

    #[tokio::test]
    async fn what_has_to_wait_is_left_with_all_that_is_behind_it() {
        let session = session(Config::default());
        let lines: String = (0..64).map(|id| if id == 20 { ping(id) } else { call(id, "") }).collect();
        let the_ping_ends_it = async || {
            let held = session.read_alone(&lines).await;
            assert_complete(&held, 64);
            let first_left = held.iter().position(|held| !matches!(held, Held::Answer(_))).unwrap();
            assert!(!matches!(held[first_left], Held::Line(_)), "somebody has read it");
            assert!(held.iter().skip(first_left + 1).all(|held| matches!(held, Held::Line(_))));
            first_left == 20 && held[20].is_request()
        };
        assert!(sooner_or_later(&session, the_ping_ends_it).await);
    }

    #[tokio::test]
    async fn once_enough_was_said_the_rest_is_left() {
        let session = session(Config::default());
        // Each stands in its answer twice.
        let text = "x".repeat(ENOUGH / 2);
        let lines: String = (0..9).map(|id| call(id, &text)).collect();
        let the_first_ends_it = async || {
            let held = session.read_alone(&lines).await;
            assert_complete(&held, 9);
            assert!(held.iter().skip(1).all(|held| matches!(held, Held::Line(_))));
            answered(&held) == 1
        };
        assert!(sooner_or_later(&session, the_first_ends_it).await);
    }

    #[tokio::test]
    async fn a_line_that_is_dropped_is_left_to_the_reader() {
        let session = session(Config::default());
        let work = Work::new(session.direct.clone(), calls(3).into_bytes());
        drop(work.next());
        work.help().await;
        let held = work.done().await;
        assert_complete(&held, 3);
        assert!(held.iter().all(|held| matches!(held, Held::Line(_))));
    }

    #[tokio::test]
    async fn calls_that_could_be_told_apart_are_left() {
        let folder = tempfile::tempdir().unwrap();
        let grants = Grants {
            all: true,
            ..Grants::default()
        };
        let few_wait = LimitSettings {
            max_waiting_calls: Some(MOST_THREADS - 1),
            ..LimitSettings::default()
        };
        let few_run = LimitSettings {
            max_concurrent_calls: NonZeroU32::new(MOST_THREADS - 1),
            ..LimitSettings::default()
        };
        let audit = AuditConfig {
            file: folder.path().join("audit.jsonl"),
            max_size: ByteSize::from_mib(1),
        };
        let shared = folder.path().join("host.toml");
        lifecycle::write_atomically(&shared, b"[components.every-type]\ninstance = 'shared'\n").unwrap();
        let all = [
            Config {
                grants: Arc::new(grants),
                ..Config::default()
            },
            Config {
                limits: few_wait,
                ..Config::default()
            },
            Config {
                limits: few_run,
                ..Config::default()
            },
            Config {
                audit: Some(audit),
                ..Config::default()
            },
            Config {
                config_file: Some(shared),
                ..Config::default()
            },
        ];
        for (number, config) in all.into_iter().enumerate() {
            let session = session(config);
            session.warm_up().await;
            let held = session.read_alone(&calls(9)).await;
            assert_complete(&held, 9);
            assert!(held[0].is_request(), "{number}");
        }
    }
}
