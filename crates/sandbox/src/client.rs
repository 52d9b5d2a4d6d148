//! Who called, as a guest sees it: somebody to tell how far it is, and to ask.
//!
//! [`Client`] is what the sandbox needs of that; whoever runs calls implements it. What guests import of `host:mcp` ends there.

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::Semaphore;
use wasmtime::component::{HasSelf, Linker};

use crate::guest::Guest;

/// How long somebody may think about all questions of a call.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(10 * 60);

/// What one question, message or key may take in bytes.
const MAX_TEXT: usize = 1 << 20;

/// What is passed on of a message for the log, in bytes. Some of them are kept for clients that do not listen just now.
const MAX_LOG: usize = 16 << 10;

/// What is passed on of a message about progress, and of the name of a logger.
const MAX_LINE: usize = 1 << 10;

/// What is taken of the words that end a model's answer.
const MAX_STOP_SEQUENCES: usize = 16;

/// The longest URI of a resource.
pub const MAX_URI: usize = 4_096;

/// How many questions are asked at once.
const MAX_QUESTIONS: usize = 32;

/// What a guest is told for which there is no place among those who wait.
const TOO_MANY_WAIT: &str = "as many calls wait for answers as may";

mod bindings {
    wasmtime::component::bindgen!({
        inline: "
            package host:sandbox;
            world imports {
                import host:mcp/progress@0.1.0;
                import host:mcp/log@0.1.0;
                import host:mcp/cancelled@0.1.0;
                import host:mcp/context@0.1.0;
                import host:mcp/changes@0.1.0;
                import host:mcp/questions@0.1.0;
                import host:mcp/elicit@0.1.0;
                import host:mcp/sample@0.1.0;
                import host:mcp/roots@0.1.0;
            }
        ",
        path: "../../wit",
        imports: { default: async | trappable },
        additional_derives: [PartialEq],
    });
}

use bindings::host::mcp;
pub use mcp::content::Role;
pub use mcp::context::{Call, Capabilities};
pub use mcp::log::Level;
pub use mcp::questions::{Answer, Elicitation, Elicited, Question, Root, Sampled, Sampling, SamplingMessage};

/// Something that waits for the client.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// How far a call has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// What is not as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Tools,
    Prompts,
    Resources,
    /// What is in the resource with this URI.
    Resource(String),
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// The client cannot be asked.
    Unsupported,
    Failed(String),
    /// There will be one when the call is made again.
    Later,
}

/// Who called. Every method is called from within the guest's call.
pub trait Client: Debug + Send + Sync {
    /// What is known of it. The time that is left is filled in by the sandbox.
    fn describe(&self) -> Call;
    fn report(&self, report: Report) -> Later<'_, ()>;
    fn wants_log(&self, level: Level) -> bool;
    fn log(&self, level: Level, logger: Option<String>, message: String) -> Later<'_, ()>;
    fn is_cancelled(&self) -> bool;
    fn changed(&self, change: Change);
    /// Answers in the order of the questions.
    fn ask(&self, questions: Vec<(String, Question)>) -> Later<'_, Result<Vec<Answer>, Unanswered>>;
    /// The guest has printed this many bytes more.
    fn printed(&self, bytes: usize);
}

/// Nobody listens, and nobody can be asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Client for Nobody {
    fn describe(&self) -> Call {
        Call {
            client: None,
            client_version: None,
            protocol: None,
            capabilities: Capabilities::empty(),
            time_left: 0,
        }
    }

    fn report(&self, _: Report) -> Later<'_, ()> {
        Box::pin(async {})
    }

    fn wants_log(&self, _: Level) -> bool {
        false
    }

    fn log(&self, _: Level, _: Option<String>, _: String) -> Later<'_, ()> {
        Box::pin(async {})
    }

    fn is_cancelled(&self) -> bool {
        false
    }

    fn changed(&self, _: Change) {}

    fn ask(&self, _: Vec<(String, Question)>) -> Later<'_, Result<Vec<Answer>, Unanswered>> {
        Box::pin(async { Err(Unanswered::Unsupported) })
    }

    fn printed(&self, _: usize) {}
}

/// A client of whom only so many guests at a time wait for an answer, whatever components they are of.
#[derive(Debug)]
pub(crate) struct Bounded {
    pub(crate) client: Arc<dyn Client>,
    pub(crate) places: Arc<Semaphore>,
}

impl Client for Bounded {
    fn describe(&self) -> Call {
        self.client.describe()
    }

    fn report(&self, report: Report) -> Later<'_, ()> {
        self.client.report(report)
    }

    fn wants_log(&self, level: Level) -> bool {
        self.client.wants_log(level)
    }

    fn log(&self, level: Level, logger: Option<String>, message: String) -> Later<'_, ()> {
        self.client.log(level, logger, message)
    }

    fn is_cancelled(&self) -> bool {
        self.client.is_cancelled()
    }

    fn changed(&self, change: Change) {
        self.client.changed(change);
    }

    fn ask(&self, questions: Vec<(String, Question)>) -> Later<'_, Result<Vec<Answer>, Unanswered>> {
        Box::pin(async move {
            let Ok(_place) = self.places.try_acquire() else {
                return Err(Unanswered::Failed(TOO_MANY_WAIT.to_owned()));
            };
            self.client.ask(questions).await
        })
    }

    fn printed(&self, bytes: usize) {
        self.client.printed(bytes);
    }
}

/// The attempt is over: the client is asked, and calls again.
#[derive(Debug, thiserror::Error)]
#[error("the call waits for answers of its client")]
pub(crate) struct Paused;

/// The call cannot go on with this client.
#[derive(Debug, thiserror::Error)]
#[error("the client lacks what the call needs")]
pub(crate) struct Missing(pub(crate) Capabilities);

pub(crate) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    bindings::Imports::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest)
}

/// A text of a guest for a person: without secrets and hidden characters, and bounded.
fn shown(guest: &Guest, what: &str, text: &str) -> wasmtime::Result<String> {
    if text.len() > MAX_TEXT {
        return Err(wasmtime::format_err!("{what} is longer than {MAX_TEXT} bytes"));
    }
    let text = guest.confinement.secrets.redact(text);
    Ok(component2json::without_hidden(&text))
}

/// JSON of a guest, likewise: in it a text can be written in many ways. What is no JSON is a plain text.
fn shown_json(guest: &Guest, what: &str, text: &str) -> wasmtime::Result<String> {
    let Ok(mut value) = serde_json::from_str(text) else {
        return shown(guest, what, text);
    };
    show_all(guest, what, &mut value)?;
    shown(guest, what, &value.to_string())
}

fn show_all(guest: &Guest, what: &str, value: &mut Value) -> wasmtime::Result<()> {
    match value {
        Value::String(text) => *text = shown(guest, what, text)?,
        Value::Array(items) => items.iter_mut().try_for_each(|item| show_all(guest, what, item))?,
        Value::Object(fields) => {
            for (key, mut value) in std::mem::take(fields) {
                show_all(guest, what, &mut value)?;
                fields.insert(shown(guest, what, &key)?, value);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Ok(())
}

fn shown_option(guest: &Guest, what: &str, text: Option<String>) -> wasmtime::Result<Option<String>> {
    text.map(|text| shown(guest, what, &text)).transpose()
}

/// The beginning of a text that is too long to be passed on whole.
fn beginning(mut text: String, length: usize) -> String {
    if text.len() > length {
        text.truncate(text.floor_char_boundary(length));
        text.push_str(" …");
    }
    text
}

impl mcp::progress::Host for Guest {
    async fn report(&mut self, progress: f64, total: Option<f64>, message: Option<String>) -> wasmtime::Result<()> {
        let message = shown_option(self, "a message", message)?;
        let report = Report {
            progress,
            total,
            message: message.map(|message| beginning(message, MAX_LINE)),
        };
        let client = Arc::clone(&self.client);
        client.report(report).await;
        Ok(())
    }
}

impl mcp::log::Host for Guest {
    async fn wanted(&mut self, level: Level) -> wasmtime::Result<bool> {
        Ok(self.client.wants_log(level))
    }

    async fn write(&mut self, level: Level, logger: Option<String>, message: String) -> wasmtime::Result<()> {
        if !self.client.wants_log(level) {
            return Ok(());
        }
        let logger = shown_option(self, "the name of a logger", logger)?;
        let logger = logger.map(|logger| beginning(logger, MAX_LINE));
        let message = match message.starts_with(['{', '[']) {
            true => shown_json(self, "a message", &message)?,
            false => shown(self, "a message", &message)?,
        };
        let client = Arc::clone(&self.client);
        client.log(level, logger, beginning(message, MAX_LOG)).await;
        Ok(())
    }
}

impl mcp::cancelled::Host for Guest {
    async fn is_cancelled(&mut self) -> wasmtime::Result<bool> {
        Ok(self.client.is_cancelled())
    }
}

impl mcp::context::Host for Guest {
    async fn current(&mut self) -> wasmtime::Result<Call> {
        Ok(Call {
            time_left: self.deadline().left().as_millis().try_into().unwrap_or(u64::MAX),
            ..self.client.describe()
        })
    }

    async fn require(&mut self, needed: Capabilities) -> wasmtime::Result<()> {
        let missing = needed & !self.client.describe().capabilities;
        if missing == Capabilities::empty() {
            return Ok(());
        }
        Err(Missing(missing).into())
    }
}

impl mcp::changes::Host for Guest {
    async fn tools(&mut self) -> wasmtime::Result<()> {
        self.client.changed(Change::Tools);
        Ok(())
    }

    async fn prompts(&mut self) -> wasmtime::Result<()> {
        self.client.changed(Change::Prompts);
        Ok(())
    }

    async fn resources(&mut self) -> wasmtime::Result<()> {
        self.client.changed(Change::Resources);
        Ok(())
    }

    async fn resource(&mut self, uri: String) -> wasmtime::Result<()> {
        if uri.len() > MAX_URI {
            return Err(wasmtime::format_err!("a URI is longer than {MAX_URI} bytes"));
        }
        let uri = shown(self, "a URI", &uri)?;
        self.client.changed(Change::Resource(uri));
        Ok(())
    }
}

impl mcp::content::Host for Guest {}

/// What a guest is told when it gets no answer.
type Refused = mcp::questions::Error;

impl Guest {
    /// Asks, and does not count the time until there is an answer.
    async fn ask_all(&mut self, questions: Vec<(String, Question)>) -> wasmtime::Result<Result<Vec<Answer>, Refused>> {
        if questions.len() > MAX_QUESTIONS {
            return Err(wasmtime::format_err!("more than {MAX_QUESTIONS} questions at once"));
        }
        let questions = questions
            .into_iter()
            .map(|(key, question)| {
                let key = shown(self, "a key", &key)?;
                let question = match question {
                    Question::Elicitation(form) => Question::Elicitation(Elicitation {
                        // A person should know who asks before answering.
                        message: format!(
                            "{} asks: {}",
                            self.confinement.name,
                            shown(self, "a question", &form.message)?
                        ),
                        schema: shown_json(self, "a schema", &form.schema)?,
                    }),
                    Question::Sampling(request) => Question::Sampling(shown_sampling(self, request)?),
                    Question::Roots => Question::Roots,
                };
                Ok((key, question))
            })
            .collect::<wasmtime::Result<Vec<_>>>()?;
        if questions.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        let (client, confinement) = (Arc::clone(&self.client), Arc::clone(&self.confinement));
        let Ok(_place) = confinement.waiting_for_answers.try_acquire() else {
            return Ok(Err(Refused::Failed(TOO_MANY_WAIT.to_owned())));
        };
        let asked = Instant::now();
        let _paused = self.deadline().pause();
        let answered = tokio::time::timeout(self.patience, client.ask(questions)).await;
        self.patience = self.patience.saturating_sub(asked.elapsed());
        match answered {
            Ok(Ok(answers)) => Ok(Ok(answers)),
            Ok(Err(Unanswered::Unsupported)) => Ok(Err(Refused::Unsupported)),
            Ok(Err(Unanswered::Failed(why))) => Ok(Err(Refused::Failed(why))),
            Ok(Err(Unanswered::Later)) => Err(Paused.into()),
            Err(_) => Ok(Err(Refused::Failed("nobody answered in time".to_owned()))),
        }
    }

    async fn ask_one(&mut self, key: String, question: Question) -> wasmtime::Result<Result<Answer, Refused>> {
        let answers = self.ask_all(vec![(key, question)]).await?;
        Ok(answers.and_then(|answers| answers.into_iter().next().ok_or_else(wrong_answer)))
    }
}

fn shown_sampling(guest: &Guest, request: Sampling) -> wasmtime::Result<Sampling> {
    let messages = request
        .messages
        .into_iter()
        .map(|message| {
            Ok(SamplingMessage {
                role: message.role,
                text: shown(guest, "a message", &message.text)?,
            })
        })
        .collect::<wasmtime::Result<_>>()?;
    Ok(Sampling {
        messages,
        system_prompt: shown_option(guest, "a system prompt", request.system_prompt)?,
        stop_sequences: request
            .stop_sequences
            .iter()
            .take(MAX_STOP_SEQUENCES)
            .map(|text| shown(guest, "a stop sequence", text))
            .collect::<wasmtime::Result<_>>()?,
        ..request
    })
}

/// The client answered something else than it was asked.
fn wrong_answer() -> Refused {
    Refused::Failed("the answer is of another kind than the question".to_owned())
}

impl mcp::questions::Host for Guest {
    async fn ask(&mut self, questions: Vec<(String, Question)>) -> wasmtime::Result<Result<Vec<Answer>, Refused>> {
        self.ask_all(questions).await
    }
}

impl mcp::elicit::Host for Guest {
    async fn ask(&mut self, key: String, message: String, schema: String) -> wasmtime::Result<Result<Elicited, Refused>> {
        let question = Question::Elicitation(Elicitation { message, schema });
        Ok(self.ask_one(key, question).await?.and_then(|answer| match answer {
            Answer::Elicitation(elicited) => Ok(elicited),
            _ => Err(wrong_answer()),
        }))
    }
}

impl mcp::sample::Host for Guest {
    async fn ask(&mut self, key: String, request: Sampling) -> wasmtime::Result<Result<Sampled, Refused>> {
        Ok(self
            .ask_one(key, Question::Sampling(request))
            .await?
            .and_then(|answer| match answer {
                Answer::Sampling(sampled) => Ok(sampled),
                _ => Err(wrong_answer()),
            }))
    }
}

impl mcp::roots::Host for Guest {
    async fn ask(&mut self, key: String) -> wasmtime::Result<Result<Vec<Root>, Refused>> {
        Ok(self.ask_one(key, Question::Roots).await?.and_then(|answer| match answer {
            Answer::Roots(roots) => Ok(roots),
            _ => Err(wrong_answer()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_too_long_is_cut_between_its_characters() {
        let text = |text: &str, length| beginning(text.to_owned(), length);
        assert_eq!(text("straße", 7), "straße");
        assert_eq!(text("straße", 5), "stra …");
        assert_eq!(text("straße", 6), "straß …");
    }

    #[tokio::test]
    async fn of_all_components_only_so_many_calls_wait_for_answers() {
        let places = Arc::new(Semaphore::new(1));
        let client = Bounded {
            client: Arc::new(Nobody),
            places: Arc::clone(&places),
        };
        let taken = places.acquire().await.unwrap();
        let refused = Unanswered::Failed(TOO_MANY_WAIT.to_owned());
        assert_eq!(client.ask(vec![]).await, Err(refused));
        drop(taken);
        assert_eq!(client.ask(vec![]).await, Err(Unanswered::Unsupported), "it was asked");
        assert_eq!(places.available_permits(), 1);
    }
}
