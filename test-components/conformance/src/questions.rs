//! Tools that ask. Each may run several times: nothing is done before the last question is answered.

use serde_json::{Value, json};

use crate::blocks::text;
use crate::host::mcp::content::{Content, Role};
use crate::host::mcp::context::{self, Capabilities};
use crate::host::mcp::questions::{self, Answer, Elicitation, Elicited, Error, Question, Sampling, SamplingMessage};
use crate::host::mcp::{elicit, roots, sample};

pub fn sampling(prompt: String) -> Result<Content, String> {
    let said = sample::ask("prompt", &continuation(prompt, 100)).map_err(reason)?;
    Ok(text(format!("LLM response: {}", said.text)))
}

pub fn elicitation(message: &str) -> Result<Content, String> {
    let form = json!({
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        },
        "required": ["username", "email"],
    });
    let done = ask_user("user", message, &form)?;
    Ok(text(format!("User response: {}", told(&done))))
}

/// A form with a default of every primitive type (SEP-1034).
pub fn defaults() -> Result<Content, String> {
    let form = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": true},
        },
        "required": [],
    });
    let done = ask_user("person", "Please check these details", &form)?;
    Ok(text(format!("Elicitation completed: {}", told(&done))))
}

/// A form with every way to choose (SEP-1330).
pub fn enums() -> Result<Content, String> {
    let options = json!(["option1", "option2", "option3"]);
    let titled = json!([
        {"const": "value1", "title": "First Option"},
        {"const": "value2", "title": "Second Option"},
        {"const": "value3", "title": "Third Option"},
    ]);
    let form = json!({
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": options},
            "titledSingle": {"type": "string", "oneOf": titled},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled}},
        },
        "required": [],
    });
    let done = ask_user("choices", "Please choose", &form)?;
    Ok(text(format!("Elicitation completed: {}", told(&done))))
}

/// That an answer came back at all is the proof that the host found its own state in order.
pub fn confirmation(message: &str) -> Result<Content, String> {
    let form = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]});
    let done = ask_user("confirm", message, &form)?;
    Ok(text(format!("state-ok: {}", told(&done))))
}

pub fn name() -> Result<Content, String> {
    let done = ask_user("user_name", "What is your name?", &form_of("name"))?;
    Ok(text(format!("Hello, {}!", field(&done, "name"))))
}

pub fn capital() -> Result<Content, String> {
    let question = continuation("What is the capital of France?", 100);
    let said = sample::ask("capital_question", &question).map_err(reason)?;
    Ok(text(said.text))
}

pub fn folders() -> Result<Content, String> {
    let roots = roots::ask("client_roots").map_err(reason)?;
    let lines: Vec<String> = roots
        .into_iter()
        .map(|root| format!("{} ({})", root.uri, root.name.unwrap_or_default()))
        .collect();
    Ok(text(lines.join("\n")))
}

pub fn all_at_once() -> Result<Content, String> {
    ask_all(vec![user_name(), greeting(), client_roots()])
}

pub fn two_rounds() -> Result<Content, String> {
    let first = ask_user("step1", "Step 1: What is your name?", &form_of("name"))?;
    let second = ask_user("step2", "Step 2: What is your favorite color?", &form_of("color"))?;
    Ok(text(format!("{} likes {}.", field(&first, "name"), field(&second, "color"))))
}

pub fn whatever_is_possible() -> Result<Content, String> {
    let has = context::current().capabilities;
    let possible = [
        (Capabilities::ELICITATION, user_name()),
        (Capabilities::SAMPLING, greeting()),
        (Capabilities::ROOTS, client_roots()),
    ];
    let questions = possible.into_iter().filter(|(needed, _)| has.contains(*needed));
    ask_all(questions.map(|(_, question)| question).collect())
}

/// Shows a form to the user.
pub fn ask_user(key: &str, message: &str, form: &Value) -> Result<Elicited, String> {
    elicit::ask(key, message, &form.to_string()).map_err(reason)
}

/// A form with one line to fill in.
pub fn form_of(field: &str) -> Value {
    json!({"type": "object", "properties": {field: {"type": "string"}}, "required": [field]})
}

/// What the user wrote in this line; nothing, if the form did not come back filled in.
pub fn field(elicited: &Elicited, name: &str) -> String {
    let Elicited::Accepted(content) = elicited else {
        return String::new();
    };
    let content: Value = serde_json::from_str(content).unwrap_or_default();
    content[name].as_str().unwrap_or_default().to_owned()
}

fn ask_all(questions: Vec<(String, Question)>) -> Result<Content, String> {
    let answers = questions::ask(&questions).map_err(reason)?;
    let lines: Vec<String> = answers
        .iter()
        .map(|answer| match answer {
            Answer::Elicitation(done) => format!("The user: {}", told(done)),
            Answer::Sampling(said) => format!("The model: {}", said.text),
            Answer::Roots(roots) => format!("The client: {} folders", roots.len()),
        })
        .collect();
    Ok(text(lines.join("\n")))
}

fn user_name() -> (String, Question) {
    let form = Elicitation {
        message: "What is your name?".to_owned(),
        schema: form_of("name").to_string(),
    };
    ("user_name".to_owned(), Question::Elicitation(form))
}

fn greeting() -> (String, Question) {
    let question = Question::Sampling(continuation("Generate a greeting", 50));
    ("greeting".to_owned(), question)
}

fn client_roots() -> (String, Question) {
    ("client_roots".to_owned(), Question::Roots)
}

/// One message for the model to go on from.
fn continuation(prompt: impl Into<String>, max_tokens: u32) -> Sampling {
    Sampling {
        messages: vec![SamplingMessage {
            role: Role::User,
            text: prompt.into(),
        }],
        system_prompt: None,
        max_tokens,
        temperature: None,
        stop_sequences: Vec::new(),
    }
}

/// What the user did, in the words that the suite uses.
fn told(elicited: &Elicited) -> String {
    match elicited {
        Elicited::Accepted(content) => format!("action=accept, content={content}"),
        Elicited::Declined => "action=decline".to_owned(),
        Elicited::Dismissed => "action=cancel".to_owned(),
    }
}

fn reason(error: Error) -> String {
    match error {
        Error::Unsupported => "the client cannot be asked this".to_owned(),
        Error::Failed(why) => why,
    }
}
