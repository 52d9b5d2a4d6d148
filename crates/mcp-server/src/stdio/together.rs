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

use tokio::sync::Notify;

use super::outgoing::ENOUGH;
use super::to_line;
use crate::direct::{Begun, Direct};
use crate::lane::Lane;
use crate::message::{Received, parse};

/// So many lines are worth the help of others.
pub(super) const WORTH_SHARING: usize = 4;

/// More threads than this would only wait for the one that reads and writes.
pub(crate) const MOST_THREADS: u32 = 4;

/// A line, or what became of it.
pub(super) enum Held {
    Line(Vec<u8>),
    /// A message, and the size that it had.
    Message(Received, usize),
    /// A call that did not end at once, and the size of its request.
    Open(Begun, usize),
    /// The line that answers a call.
    Answer(io::Result<Vec<u8>>),
}

impl Held {
    /// Whether it is known to be a request.
    pub(super) fn is_request(&self) -> bool {
        matches!(self, Self::Message(received, _) if received.is_request())
    }
}

/// The threads that help, from the first time on that there is something to share.
#[derive(Default)]
pub(super) struct Helpers(Option<Vec<Lane>>);

impl Helpers {
    fn all(&mut self) -> &[Lane] {
        self.0.get_or_insert_with(|| {
            let cores = thread::available_parallelism().map_or(1, usize::from);
            let lanes = (1..cores.min(MOST_THREADS as usize)).map(|_| Lane::start("calls"));
            // Where no more threads can be had, there is less help.
            lanes.filter_map(Result::ok).collect()
        })
    }

    /// Reads lines, and makes calls until one has to wait for what came before it, or they have said enough.
    pub(super) async fn read(&mut self, direct: &Direct, lines: Vec<u8>) -> VecDeque<Held> {
        let work = Arc::new(Work::new(direct.clone(), lines));
        for helper in self.all() {
            let work = Arc::clone(&work);
            helper.runtime.spawn(async move { work.help().await });
        }
        work.help().await;
        work.done().await
    }
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

    /// Reads one line after the other until there are none left, or nobody should go on.
    async fn help(&self) {
        while let Some((place, line, _busy)) = self.next() {
            let held = self.read(line).await;
            let mut state = self.state();
            match &held {
                Held::Answer(answer) => state.said += answer.as_ref().map_or(0, Vec::len),
                _ => state.is_over = true,
            }
            state.done.push((place, held));
        }
    }

    async fn read(&self, line: &[u8]) -> Held {
        let call = match parse(line) {
            Received::Call(call) => call,
            other => return Held::Message(other, line.len()),
        };
        let Some(silent) = self.direct.independent(&call) else {
            return Held::Message(Received::Call(call), line.len());
        };
        let mut begun = self.direct.begin_silent(silent, call);
        match begun.at_once().await {
            Some(answer) => Held::Answer(to_line(&answer)),
            None => Held::Open(begun, line.len()),
        }
    }

    /// The next line and where it begins.
    fn next(&self) -> Option<(usize, &[u8], Busy<'_>)> {
        let mut state = self.state();
        if state.is_over || state.said >= ENOUGH {
            return None;
        }
        let place = state.next;
        let line = self.line(place)?;
        state.next += line.len();
        state.busy += 1;
        Some((place, line, Busy(self)))
    }

    fn line(&self, begin: usize) -> Option<&[u8]> {
        self.lines.get(begin..)?.split_inclusive(|byte| *byte == b'\n').next()
    }

    /// What became of all lines, in their order, once nobody is in the middle of one. For one who has seen that there is nothing left to do.
    async fn done(&self) -> VecDeque<Held> {
        loop {
            {
                let mut state = self.state();
                if state.busy == 0 {
                    let mut done = take(&mut state.done);
                    done.sort_unstable_by_key(|(place, _)| *place);
                    let left = self.lines.get(state.next..).unwrap_or_default();
                    let left = left
                        .split_inclusive(|byte| *byte == b'\n')
                        .map(|line| Held::Line(line.to_vec()));
                    return done.into_iter().map(|(_, held)| held).chain(left).collect();
                }
            }
            self.idle.notified().await;
        }
    }
}

/// Somebody in the middle of a line.
struct Busy<'a>(&'a Work);

impl Drop for Busy<'_> {
    /// Also after a panic: nobody should wait forever.
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.busy -= 1;
        if state.busy == 0 {
            self.0.idle.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use lifecycle::{Config, LifecycleManager};
    use policy::Grants;
    use rmcp::RoleServer;
    use rmcp::model::RequestId;
    use rmcp::service::RunningService;
    use serde_json::{Value, json};

    use super::*;
    use crate::Server;
    use crate::direct::tests::{opened, serving};
    use crate::handler::Session;

    const TOOL: &str = "test_every_type_echo_echo_string";

    struct Opened {
        manager: Arc<LifecycleManager>,
        direct: Direct,
        _running: RunningService<RoleServer, Arc<Session>>,
    }

    /// A session with a component whose calls are known to be short.
    async fn session(config: Config) -> Opened {
        let manager = Arc::new(serving("every-type", config));
        let (direct, running) = opened(&Server::new(Arc::clone(&manager)), Some("2025-11-25"));
        // On a busy machine some take long.
        while !manager.tool(TOOL).unwrap().is_short() {
            made(&direct, &call(0, "")).await;
        }
        Opened {
            manager,
            direct,
            _running: running,
        }
    }

    fn call(id: usize, text: &str) -> String {
        let params = json!({"name": TOOL, "arguments": {"value": text}});
        format!(
            "{}\n",
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
        )
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

    fn answer(line: &io::Result<Vec<u8>>) -> Value {
        serde_json::from_slice(line.as_ref().unwrap()).unwrap()
    }

    fn is_answer(held: &&Held) -> bool {
        matches!(held, Held::Answer(_))
    }

    fn assert_complete(held: &VecDeque<Held>, count: usize) {
        let ids: Vec<RequestId> = held.iter().map(id).collect();
        let all = (0..count).map(|id| RequestId::Number(id.try_into().unwrap()));
        assert_eq!(ids, all.collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn calls_that_came_together_are_answered_in_their_order() {
        let session = session(Config::default()).await;
        let mut helpers = Helpers::default();
        for count in [1, 4, 64] {
            let lines: Vec<String> = (0..count).map(|id| call(id, &id.to_string())).collect();
            loop {
                let held = helpers.read(&session.direct, lines.concat().into_bytes()).await;
                assert_complete(&held, count);
                for (held, line) in held.iter().zip(&lines) {
                    if let Held::Answer(line_of_answer) = held {
                        assert_eq!(answer(line_of_answer), made(&session.direct, line).await);
                    }
                }
                // On a busy machine a call may be interrupted, and goes on elsewhere.
                if held.iter().filter(is_answer).count() == count {
                    break;
                }
            }
        }
    }

    #[tokio::test]
    async fn a_helper_does_what_the_reader_does() {
        let session = session(Config::default()).await;
        let lane = Lane::start("test").unwrap();
        let lines: String = (0..64).map(|id| call(id, "")).collect();
        loop {
            let work = Arc::new(Work::new(session.direct.clone(), lines.clone().into_bytes()));
            let helping = Arc::clone(&work);
            lane.runtime.spawn(async move { helping.help().await }).await.unwrap();
            let held = work.done().await;
            assert_complete(&held, 64);
            if held.iter().filter(is_answer).count() == 64 {
                break;
            }
        }
    }

    #[tokio::test]
    async fn what_has_to_wait_is_left_with_all_that_is_behind_it() {
        let session = session(Config::default()).await;
        let lines: String = (0..64).map(|id| if id == 20 { ping(id) } else { call(id, "") }).collect();
        let held = Helpers::default().read(&session.direct, lines.into_bytes()).await;
        assert_complete(&held, 64);
        assert!(matches!(held[20], Held::Message(..) | Held::Line(_)));
        // Others may have been in the middle of the next ones.
        let others = MOST_THREADS as usize - 1;
        assert!(held.iter().skip(21 + others).all(|held| matches!(held, Held::Line(_))));
    }

    #[tokio::test]
    async fn calls_that_reach_something_are_left() {
        let grants = Grants {
            all: true,
            ..Grants::default()
        };
        let session = session(Config {
            grants: Arc::new(grants),
            ..Config::default()
        })
        .await;
        assert!(!session.manager.tool(TOOL).unwrap().is_independent(1));
        let lines: String = (0..64).map(|id| call(id, "")).collect();
        let held = Helpers::default().read(&session.direct, lines.into_bytes()).await;
        assert_complete(&held, 64);
        assert_eq!(held.iter().filter(is_answer).count(), 0);
    }

    #[tokio::test]
    async fn once_enough_was_said_the_rest_is_left() {
        let session = session(Config::default()).await;
        let text = "x".repeat(ENOUGH / 2);
        let lines: String = (0..64).map(|id| call(id, &text)).collect();
        let held = Helpers::default().read(&session.direct, lines.into_bytes()).await;
        assert_complete(&held, 64);
        assert!(held.iter().filter(is_answer).count() <= MOST_THREADS as usize);
    }
}
