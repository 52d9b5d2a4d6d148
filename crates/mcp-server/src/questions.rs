//! Questions of guests to clients, and their answers: what both eras of the protocol have in common, and the sealed state in which
//! clients of the stateless era carry what they have answered so far.

use std::collections::BTreeMap;
use std::time::Duration;

use lifecycle::{Answer, Capabilities, Checker, Elicited, Key, Question, Role, Root, Sampled, Sampling};
use rmcp::ErrorData;
use rmcp::model::{ClientCapabilities, InputRequest, InputRequiredResult, RequestStateCodec, SealOptions};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How long somebody may take to answer.
const STATE_TTL: Duration = Duration::from_secs(60 * 60);

/// What a question is in the protocol. An error tells the guest why it can never be asked.
pub(crate) fn request(question: &Question) -> Result<InputRequest, String> {
    let value = match question {
        Question::Elicitation(form) => {
            let schema: Value = serde_json::from_str(&form.schema).map_err(|error| format!("the schema is no JSON: {error}"))?;
            json!({ "method": "elicitation/create", "params": { "message": form.message, "requestedSchema": schema } })
        }
        Question::Sampling(request) => json!({ "method": "sampling/createMessage", "params": sampling(request) }),
        Question::Roots => json!({ "method": "roots/list" }),
    };
    serde_json::from_value(value).map_err(|error| match question {
        Question::Elicitation(_) => format!("the schema is none that the protocol allows for a form: {error}"),
        _ => error.to_string(),
    })
}

fn sampling(request: &Sampling) -> Value {
    let message = |message: &lifecycle::SamplingMessage| {
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        json!({ "role": role, "content": { "type": "text", "text": message.text } })
    };
    let messages: Vec<Value> = request.messages.iter().map(message).collect();
    let optional = [
        ("systemPrompt", json!(request.system_prompt)),
        ("temperature", json!(request.temperature)),
        (
            "stopSequences",
            if request.stop_sequences.is_empty() {
                Value::Null
            } else {
                json!(request.stop_sequences)
            },
        ),
    ];
    let required = [("messages", json!(messages)), ("maxTokens", json!(request.max_tokens))];
    let there = required.into_iter().chain(optional).filter(|(_, value)| !value.is_null());
    Value::Object(there.map(|(name, value)| (name.to_owned(), value)).collect())
}

/// What a client must have to be asked this.
pub(crate) fn needed(question: &Question) -> Capabilities {
    match question {
        Question::Elicitation(_) => Capabilities::ELICITATION,
        Question::Sampling(_) => Capabilities::SAMPLING,
        Question::Roots => Capabilities::ROOTS,
    }
}

/// What a client has.
pub(crate) fn capabilities(client: &ClientCapabilities) -> Capabilities {
    let mut capabilities = Capabilities::empty();
    if let Some(elicitation) = &client.elicitation
        && (elicitation.form.is_some() || elicitation.url.is_none())
    {
        capabilities |= Capabilities::ELICITATION;
    }
    if client.sampling.is_some() {
        capabilities |= Capabilities::SAMPLING;
    }
    if client.roots.is_some() {
        capabilities |= Capabilities::ROOTS;
    }
    capabilities
}

/// What a client would need.
pub(crate) fn client_capabilities(needed: Capabilities) -> ClientCapabilities {
    let names = [
        (Capabilities::ELICITATION, "elicitation"),
        (Capabilities::SAMPLING, "sampling"),
        (Capabilities::ROOTS, "roots"),
    ];
    let needed = names.into_iter().filter(|(one, _)| needed.contains(*one));
    let value: serde_json::Map<String, Value> = needed.map(|(_, name)| (name.to_owned(), json!({}))).collect();
    serde_json::from_value(Value::Object(value)).unwrap_or_default()
}

/// The answer that a client gave, or why it is none.
pub(crate) fn answer(question: &Question, value: &Value) -> Result<Answer, String> {
    fn read<'de, T: Deserialize<'de>>(value: &'de Value) -> Result<T, String> {
        T::deserialize(value).map_err(|error| error.to_string())
    }
    match question {
        Question::Elicitation(_) => {
            let given: Form = read(value)?;
            let elicited = match given.action {
                Action::Decline => Elicited::Declined,
                Action::Cancel => Elicited::Dismissed,
                Action::Accept => {
                    let content = given.content.unwrap_or_else(|| json!({}));
                    // What the client saw of it: that has only what the protocol allows, and cannot be made to take long.
                    let asked = serde_json::to_value(request(question)?).map_err(|error| error.to_string())?;
                    let schema = asked.pointer("/params/requestedSchema").ok_or("there was no form")?;
                    Checker::new(schema).check(&content)?;
                    Elicited::Accepted(content.to_string())
                }
            };
            Ok(Answer::Elicitation(elicited))
        }
        Question::Sampling(_) => {
            let message: Message = read(value)?;
            let texts: Vec<&str> = match &message.content {
                Value::Array(blocks) => blocks.iter().filter_map(text).collect(),
                block => text(block).into_iter().collect(),
            };
            if texts.is_empty() {
                return Err("the answer has no text".to_owned());
            }
            Ok(Answer::Sampling(Sampled {
                text: texts.join("\n"),
                model: message.model,
                stop_reason: message.stop_reason,
            }))
        }
        Question::Roots => {
            let folders: Folders = read(value)?;
            let root = |folder: Folder| Root {
                uri: folder.uri,
                name: folder.name,
            };
            Ok(Answer::Roots(folders.roots.into_iter().map(root).collect()))
        }
    }
}

fn text(block: &Value) -> Option<&str> {
    block.get("text")?.as_str()
}

#[derive(Deserialize)]
struct Form {
    action: Action,
    content: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Accept,
    Decline,
    Cancel,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    model: String,
    content: Value,
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Folders {
    roots: Vec<Folder>,
}

#[derive(Deserialize)]
struct Folder {
    uri: String,
    name: Option<String>,
}

/// What a client of the stateless era has answered so far, by key.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Answered(pub(crate) BTreeMap<String, Value>);

impl Answered {
    /// With what is answered now. What the function took for an answer before stays.
    pub(crate) fn and(mut self, responses: Option<BTreeMap<String, Value>>) -> Self {
        for (key, value) in responses.unwrap_or_default() {
            self.0.entry(key).or_insert(value);
        }
        self
    }
}

/// Seals what clients carry for us, so that they cannot change it. Values are not hidden from them: they are their own answers.
#[derive(Clone)]
pub(crate) struct Seal(Option<RequestStateCodec>);

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Seal").finish_non_exhaustive()
    }
}

impl Seal {
    /// With a key that other replicas have, too.
    pub(crate) fn with_key(key: &Key) -> Self {
        let key = blake3::derive_key("host 2026 state of requests", key.expose().as_bytes());
        Self(Some(RequestStateCodec::new_unchecked(key)))
    }

    /// For this process alone. Without random numbers there is no key that nobody knows: then nothing is sealed, and nothing believed.
    pub(crate) fn of_this_process() -> Self {
        let mut key = [0; 32];
        let filled = getrandom::fill(&mut key);
        if let Err(error) = filled {
            tracing::error!(%error, "there are no random numbers; questions to clients will fail");
        }
        Self(filled.is_ok().then(|| RequestStateCodec::new_unchecked(key)))
    }

    fn codec(&self) -> Result<&RequestStateCodec, ErrorData> {
        let problem = "the host has no random numbers, so clients cannot be asked anything";
        self.0.as_ref().ok_or_else(|| ErrorData::internal_error(problem, None))
    }

    /// What was answered before. `about` is the request that it was asked in.
    pub(crate) fn open(&self, about: &[u8], state: &str) -> Result<Answered, ErrorData> {
        self.codec()?.open_json_with(state, about).map_err(|error| {
            tracing::info!(%error, "request state was refused");
            ErrorData::invalid_params(
                "the requestState is not one that was given for this request, or it has expired; call again without it",
                None,
            )
        })
    }

    /// Asks, and gives the client what it has answered so far to carry.
    pub(crate) fn ask(
        &self,
        about: &[u8],
        questions: &[(String, Question)],
        answered: &Answered,
    ) -> Result<InputRequiredResult, ErrorData> {
        let failed = |error: String| ErrorData::internal_error(error, None);
        let requests = questions.iter().map(|(key, question)| Ok((key.clone(), request(question)?)));
        let requests = requests.collect::<Result<_, String>>().map_err(failed)?;
        let options = SealOptions::new().associated_data(about).ttl(STATE_TTL);
        let state = self
            .codec()?
            .seal_json_with(answered, &options)
            .map_err(|error| failed(error.to_string()))?;
        Ok(InputRequiredResult::new(Some(requests), Some(state)))
    }
}

#[cfg(test)]
mod tests {
    use lifecycle::Elicitation;

    use super::*;

    fn form() -> Question {
        Question::Elicitation(Elicitation {
            message: "Who?".to_owned(),
            schema: r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#.to_owned(),
        })
    }

    #[test]
    fn answers_are_held_against_the_form() {
        let accepted = answer(&form(), &json!({"action": "accept", "content": {"name": "Ada"}}));
        assert_eq!(
            accepted,
            Ok(Answer::Elicitation(Elicited::Accepted(r#"{"name":"Ada"}"#.to_owned())))
        );
        assert_eq!(
            answer(&form(), &json!({"action": "decline"})),
            Ok(Answer::Elicitation(Elicited::Declined))
        );
        for wrong in [
            json!(12345),
            json!({}),
            json!({"action": "accept"}),
            json!({"action": "accept", "content": {"name": 1}}),
        ] {
            assert!(answer(&form(), &wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn state_opens_for_its_own_request_only() {
        let seal = Seal::of_this_process();
        let answered = Answered([("who".to_owned(), json!({"action": "decline"}))].into());
        let asked = seal.ask(b"a request", &[("next".to_owned(), form())], &answered).unwrap();
        let state = asked.request_state.unwrap();
        assert_eq!(seal.open(b"a request", &state).unwrap().0, answered.0);
        assert!(seal.open(b"another request", &state).is_err());
        assert!(seal.open(b"a request", &format!("{state}x")).is_err());
        assert!(Seal::of_this_process().open(b"a request", &state).is_err());
        let changed = answered
            .clone()
            .and(Some([("who".to_owned(), json!(1)), ("next".to_owned(), json!(2))].into()));
        assert_eq!((&changed.0["who"], &changed.0["next"]), (&answered.0["who"], &json!(2)));
    }

    #[test]
    fn without_a_key_nothing_is_sealed_and_nothing_believed() {
        let state = Seal::of_this_process().ask(b"a request", &[("next".to_owned(), form())], &Answered::default());
        let state = state.unwrap().request_state.unwrap();
        let keyless = Seal(None);
        let asked = keyless.ask(b"a request", &[("next".to_owned(), form())], &Answered::default());
        let opened = keyless.open(b"a request", &state);
        for error in [asked.unwrap_err(), opened.unwrap_err()] {
            assert_eq!(error.code, rmcp::model::ErrorCode::INTERNAL_ERROR, "{error}");
        }
    }

    #[test]
    fn a_form_that_the_protocol_does_not_allow_is_told_to_the_guest() {
        for schema in ["", "[]", r#"{"type":"object","properties":{"a":{"type":"object"}}}"#] {
            let question = Question::Elicitation(Elicitation {
                message: String::new(),
                schema: schema.to_owned(),
            });
            assert!(request(&question).is_err(), "{schema}");
        }
        assert!(request(&form()).is_ok() && request(&Question::Roots).is_ok());
    }
}
