//! What components offer besides tools: resources, prompts and completions, of their own or made from what is known of them.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use command2json::Command;
use component2json::{exports_to_wit, json_to_arguments, returned_to_json};
use policy::Limits;
use sandbox::{MAX_URI, Nobody, Start};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::audit::Caller;
use crate::commands::{HELP_ENV, HELP_OUTPUT, HELP_TIMEOUT};
use crate::content::{
    Block, Completion, Filled, Prompt, PromptArgument, PromptMessage, Resource, ResourceBody, ResourceContents, Speaker, Template,
    TextBlock,
};
use crate::error::ExecuteError;
use crate::loaded::{Code, Loaded};
use crate::manager::{LifecycleManager, redact};
use crate::metadata::Interface;
use crate::registry::{Action, Tool};

/// Schemes of resources that are made here. No component can offer one of them.
const WIT: &str = "wit";
const README: &str = "readme";
const HELP: &str = "help";

/// What one component may list.
const MAX_LISTED: usize = 1_000;

/// The variables of a template. Each is a pass over the URIs that are held against it.
const MAX_VARIABLES: usize = 32;

/// What a list may take. Nobody should wait longer for what another component has.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

const MAX_PROMPT_NAME: usize = 128;

/// What is sent of completions; the protocol allows no more.
const MAX_COMPLETIONS: usize = 100;

/// What is told of something that is not there.
const NO_RESOURCE: &str = "there is no such resource";
const NO_PROMPT: &str = "there is no prompt of this name";

/// What is asked in a prompt that was made from examples.
const TASK: &str = "task";

/// What is to be completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Prompt(String),
    /// A template of URIs.
    Template(String),
}

/// The JSON of a WIT `result`.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Outcome<T, E> {
    Ok(T),
    Err(E),
}

/// The errors of all interfaces.
#[derive(Deserialize)]
#[serde(tag = "tag", content = "val", rename_all = "kebab-case")]
enum OfferError {
    NotFound,
    Invalid(String),
    Failed(String),
}

impl OfferError {
    /// What is told of it. `not_found` says what is not there.
    fn told(self, not_found: &str) -> ExecuteError {
        match self {
            Self::NotFound => ExecuteError::NotFound(not_found.to_owned()),
            Self::Invalid(why) => ExecuteError::Refused(why),
            Self::Failed(why) => ExecuteError::Failed(why),
        }
    }
}

impl LifecycleManager {
    /// All resources: what is known of the components, then what they list, each in their order.
    pub async fn resources(&self, caller: &Caller) -> Vec<Resource> {
        let registry = self.registry();
        let mut resources: Vec<Resource> = registry.components().iter().flat_map(|loaded| made_here(loaded)).collect();
        let mut taken: HashSet<String> = resources.iter().map(|resource| resource.uri.clone()).collect();
        for (_, listed) in self.listed_by_all::<Resource>("resources", "list", caller).await {
            let new = listed.into_iter().filter(|resource| taken.insert(resource.uri.clone()));
            resources.extend(new.map(Resource::cleaned));
        }
        resources
    }

    /// All templates of resources.
    pub async fn resource_templates(&self, caller: &Caller) -> Vec<Template> {
        let registry = self.registry();
        let programs = registry.components().iter().any(|loaded| program(loaded).is_some());
        let help = Template {
            uri_template: format!("{HELP}://{{id}}/{{+command}}"),
            name: "help of a command".to_owned(),
            title: None,
            description: Some(
                "What a program prints for `--help` of one of its commands, as in `help://git/remote/add`.".to_owned(),
            ),
            mime_type: Some("text/plain".to_owned()),
            annotations: None,
        };
        let mut templates: Vec<Template> = programs.then_some(help).into_iter().collect();
        for (_, mut listed) in self.listed_by_all::<Template>("resources", "templates", caller).await {
            listed.retain(|template| templates.iter().all(|known| known.uri_template != template.uri_template));
            templates.extend(listed.into_iter().map(Template::cleaned));
        }
        templates
    }

    /// What is in a resource.
    pub async fn read_resource(&self, uri: &str, caller: &Caller) -> Result<Vec<ResourceContents>, ExecuteError> {
        let not_found = || OfferError::NotFound.told(NO_RESOURCE);
        let registry = self.registry();
        if let Some((scheme, path)) = own_scheme(uri) {
            let (id, rest) = path.split_once('/').unwrap_or((path, ""));
            let loaded = registry.components().iter().find(|loaded| loaded.id.as_str() == id);
            let loaded = loaded.ok_or_else(not_found)?;
            let (mime_type, text) = match scheme {
                WIT if rest.is_empty() => ("text/plain", wit(loaded)),
                README if rest.is_empty() => ("text/markdown", loaded.revision.metadata.readme.clone()),
                HELP => ("text/plain", self.help(loaded, rest, caller).await?),
                _ => return Err(not_found()),
            };
            return Ok(vec![ResourceContents {
                uri: uri.to_owned(),
                mime_type: Some(mime_type.to_owned()),
                body: ResourceBody::Text(text.ok_or_else(not_found)?),
            }]);
        }
        for loaded in self.owners_of(uri, caller).await {
            let read: Option<Outcome<Vec<ResourceContents>, OfferError>> =
                self.ask(&loaded, "resources", "read", json!({ "uri": uri }), caller).await?;
            match read {
                Some(Outcome::Ok(mut contents)) => {
                    for one in contents.iter_mut().filter(|one| !is_uri(&one.uri)) {
                        uri.clone_into(&mut one.uri);
                    }
                    return Ok(contents);
                }
                // Another one may have it.
                Some(Outcome::Err(OfferError::NotFound)) | None => {}
                Some(Outcome::Err(error)) => return Err(error.told(NO_RESOURCE)),
            }
        }
        Err(not_found())
    }

    /// Who is asked for a resource: those who list it, then those with a template that it fits.
    async fn owners_of(&self, uri: &str, caller: &Caller) -> Vec<Arc<Loaded>> {
        if !is_uri(uri) {
            return Vec::new();
        }
        let (listed, templates) = self.resources_and_templates(caller).await;
        let exact = listed
            .into_iter()
            .filter(|(_, listed)| listed.iter().any(|resource| resource.uri == uri));
        let fitting = templates
            .into_iter()
            .filter(|(_, templates)| templates.iter().any(|template| template.fits(uri)));
        exact
            .map(|(loaded, _)| loaded)
            .chain(fitting.map(|(loaded, _)| loaded))
            .collect()
    }

    /// All prompts, by the names that clients know them by.
    pub async fn prompts(&self, caller: &Caller) -> Vec<Prompt> {
        self.named_prompts(caller)
            .await
            .into_values()
            .map(|offered| offered.prompt)
            .collect()
    }

    async fn named_prompts(&self, caller: &Caller) -> BTreeMap<String, Offered> {
        let mut prompts = BTreeMap::new();
        for tool in self.registry().tools() {
            let examples = tool.examples();
            if !examples.is_empty() {
                let prompt = prompt_of_examples(tool);
                let source = Source::Examples(Arc::clone(tool), examples);
                prompts.insert(prompt.name.clone(), Offered { prompt, source });
            }
        }
        for (loaded, listed) in self.listed_by_all::<Prompt>("prompts", "list", caller).await {
            for mut prompt in listed {
                let own_name = prompt.name.clone();
                let prefixed = format!("{}_{own_name}", loaded.id);
                let numbered = (2..).map(|number| format!("{prefixed}_{number}"));
                let mut names = [own_name.clone(), prefixed.clone()].into_iter().chain(numbered);
                prompt.name = names.find(|name| !prompts.contains_key(name)).unwrap_or(prefixed);
                let offered = Offered {
                    prompt: prompt.cleaned(),
                    source: Source::Guest(Arc::clone(&loaded), own_name),
                };
                prompts.insert(offered.prompt.name.clone(), offered);
            }
        }
        prompts
    }

    /// A prompt with its arguments in place.
    pub async fn prompt(&self, name: &str, arguments: &BTreeMap<String, String>, caller: &Caller) -> Result<Filled, ExecuteError> {
        let mut prompts = self.named_prompts(caller).await;
        let Some(Offered { prompt, source }) = prompts.remove(name) else {
            let names: Vec<String> = prompts.into_keys().map(|name| format!("`{name}`")).collect();
            let known = if names.is_empty() {
                String::new()
            } else {
                format!("; there is {}", names.join(", "))
            };
            return Err(ExecuteError::NotFound(format!("{NO_PROMPT}{known}")));
        };
        let missing = prompt
            .arguments
            .iter()
            .find(|argument| argument.required && !arguments.contains_key(&argument.name));
        if let Some(argument) = missing {
            return Err(ExecuteError::Refused(format!("the argument `{}` is missing", argument.name)));
        }
        match source {
            Source::Examples(tool, examples) => Ok(fill_examples(&tool, &examples, arguments)),
            Source::Guest(loaded, own_name) => {
                let arguments = json!({ "name": own_name, "arguments": pairs(arguments) });
                let filled: Option<Outcome<Filled, OfferError>> = self.ask(&loaded, "prompts", "get", arguments, caller).await?;
                match filled {
                    Some(Outcome::Ok(filled)) => Ok(filled),
                    Some(Outcome::Err(error)) => Err(error.told(NO_PROMPT)),
                    None => Err(OfferError::NotFound.told(NO_PROMPT)),
                }
            }
        }
    }

    /// What could stand for the beginning of an argument: of a prompt, of a template, or of a tool that has choices for it.
    pub async fn complete(
        &self,
        subject: &Subject,
        argument: &str,
        value: &str,
        known: &BTreeMap<String, String>,
        caller: &Caller,
    ) -> Result<Completion, ExecuteError> {
        let (loaded, asked) = match subject {
            Subject::Prompt(name) => match self.named_prompts(caller).await.remove(name).map(|offered| offered.source) {
                Some(Source::Guest(loaded, own_name)) => (loaded, json!({ "tag": "prompt", "val": own_name })),
                _ => {
                    let tool = self.registry().tool(name).cloned();
                    let tool = tool.ok_or_else(|| ExecuteError::NotFound("there is no prompt or tool of this name".to_owned()))?;
                    return Ok(beginning_with(value, choices(&tool.definition.input_schema, argument)));
                }
            },
            Subject::Template(template) => match own_scheme(template) {
                Some(_) if argument == "id" => {
                    let registry = self.registry();
                    let scheme = own_scheme(template).map(|(scheme, _)| scheme);
                    let has_it = |loaded: &&Arc<Loaded>| {
                        let mut made = made_here(loaded).into_iter();
                        made.any(|resource| own_scheme(&resource.uri).map(|(scheme, _)| scheme) == scheme)
                    };
                    let ids = registry
                        .components()
                        .iter()
                        .filter(has_it)
                        .map(|loaded| loaded.id.to_string());
                    return Ok(beginning_with(value, ids.collect()));
                }
                Some(_) => return Ok(Completion::default()),
                None => match self.owner_of(template, caller).await {
                    Some(loaded) => (loaded, json!({ "tag": "template", "val": template })),
                    None => return Err(ExecuteError::NotFound("there is no such template".to_owned())),
                },
            },
        };
        // Nobody is asked anything to complete a word.
        let caller = &Caller::silent(&caller.name);
        let arguments = json!({ "subject": asked, "argument": argument, "value": value, "known": pairs(known) });
        let completion: Option<Completion> = self.ask(&loaded, "completions", "complete", arguments, caller).await?;
        let mut completion = completion.unwrap_or_default();
        completion.total = completion.total.or(u32::try_from(completion.values.len()).ok());
        completion.values.truncate(MAX_COMPLETIONS);
        Ok(completion)
    }

    async fn owner_of(&self, template: &str, caller: &Caller) -> Option<Arc<Loaded>> {
        let (listed, templates) = self.resources_and_templates(caller).await;
        let by_template = templates
            .into_iter()
            .find(|(_, all)| all.iter().any(|one| one.uri_template == template));
        let by_uri = || listed.into_iter().find(|(_, all)| all.iter().any(|one| one.uri == template));
        by_template
            .map(|(loaded, _)| loaded)
            .or_else(|| by_uri().map(|(loaded, _)| loaded))
    }

    /// Both lists, asked for at the same time.
    async fn resources_and_templates(&self, caller: &Caller) -> (ByComponent<Resource>, ByComponent<Template>) {
        tokio::join!(
            self.listed_by_all("resources", "list", caller),
            self.listed_by_all("resources", "templates", caller),
        )
    }

    /// What all components list, asked at the same time. One that fails or takes long lists nothing, and hides no other.
    async fn listed_by_all<T: Listed>(&self, interface: &str, function: &str, caller: &Caller) -> ByComponent<T> {
        let registry = self.registry();
        // A list is no place for questions and news.
        let caller = &Caller::silent(&caller.name);
        let list = |loaded: &Arc<Loaded>| {
            let loaded = Arc::clone(loaded);
            async move {
                let listing = self.ask::<Vec<T>>(&loaded, interface, function, json!({}), caller);
                let listed = match tokio::time::timeout(LIST_TIMEOUT, listing).await {
                    Ok(Ok(listed)) => listed.unwrap_or_default(),
                    Ok(Err(error)) => {
                        tracing::warn!(component = %loaded.id, "{interface}.{function}: {error}");
                        Vec::new()
                    }
                    Err(_) => {
                        tracing::warn!(component = %loaded.id, "{interface}.{function} took longer than {} s", LIST_TIMEOUT.as_secs());
                        Vec::new()
                    }
                };
                let fitting = listed.into_iter().filter(Listed::may_be_listed).take(MAX_LISTED).collect();
                (loaded, fitting)
            }
        };
        futures_util::future::join_all(registry.components().iter().map(list)).await
    }

    /// Calls a function of an interface of `host:mcp`. None where the component does not export it.
    async fn ask<T: DeserializeOwned>(
        &self,
        loaded: &Arc<Loaded>,
        interface: &str,
        function: &str,
        arguments: Value,
        caller: &Caller,
    ) -> Result<Option<T>, ExecuteError> {
        let Some((index, plan)) = loaded.revision.metadata.interface.exports().offer(interface, function) else {
            return Ok(None);
        };
        let shape = arguments;
        let arguments = json_to_arguments(plan, &shape).map_err(|error| ExecuteError::Offer(error.to_string()))?;
        let confinement = &loaded.confinement;
        let Code::Functions(program) = loaded.revision.code(&self.compiler, confinement.limits()).await? else {
            return Ok(None);
        };
        let client = Arc::clone(&caller.client);
        let call = self.compiler.sandbox.call(&program, index, arguments, confinement, client);
        let name = format!("{interface}.{function}");
        let result = self.recorded_offer(loaded, &name, &shape, caller, call).await?;
        let Some(returned) = result? else { return Ok(None) };
        let limit = usize::try_from(confinement.limits().max_output.bytes()).unwrap_or(usize::MAX);
        let returned = crate::manager::without_secrets(returned, confinement.secrets());
        let mut value = returned_to_json(plan, &returned, limit)
            .map_err(ExecuteError::Result)?
            .unwrap_or_default();
        redact(&mut value, confinement.secrets());
        serde_json::from_value(value)
            .map(Some)
            .map_err(|error| ExecuteError::Offer(error.to_string()))
    }

    /// What a program prints for `--help` of a command. It waits for its turn among the calls of the program, and is recorded like one.
    async fn help(&self, loaded: &Arc<Loaded>, command: &str, caller: &Caller) -> Result<Option<String>, ExecuteError> {
        let Some(name) = program(loaded) else { return Ok(None) };
        let Code::Program(executable) = loaded.revision.code(&self.compiler, loaded.confinement.limits()).await? else {
            return Ok(None);
        };
        let words: Vec<&str> = command.split('/').filter(|word| !word.is_empty()).collect();
        // Anything else in the place of a command would make the program do something else than print its help.
        if command_at(loaded, &words).is_none() || words.iter().any(|word| word.starts_with('-')) {
            return Ok(None);
        }
        let limits = Limits {
            timeout: HELP_TIMEOUT,
            max_output: HELP_OUTPUT,
            ..Limits::default()
        };
        let confinement = Arc::new(loaded.confinement.with_nothing_granted(limits));
        let shape = json!({ "command": command });
        for flag in ["--help", "-h"] {
            let argv = std::iter::once(name).chain(words.iter().copied()).chain([flag]);
            let start = Start {
                argv: argv.map(str::to_owned).collect(),
                env: HELP_ENV.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
                stdin: vec![],
            };
            let run = self.compiler.sandbox.run(&executable, start, &confinement, Arc::new(Nobody));
            let exited = self.recorded_offer(loaded, HELP, &shape, caller, run).await??;
            let printed = [exited.stdout.bytes, exited.stderr.bytes].concat();
            let text = component2json::without_hidden(&String::from_utf8_lossy(&printed));
            if !text.trim().is_empty() && exited.exit_code == 0 {
                return Ok(Some(text));
            }
        }
        Ok(None)
    }
}

/// What each component lists.
type ByComponent<T> = Vec<(Arc<Loaded>, Vec<T>)>;

/// What a component lists.
trait Listed: DeserializeOwned {
    /// Whether it is something that a component may offer.
    fn may_be_listed(&self) -> bool;
}

impl Listed for Resource {
    fn may_be_listed(&self) -> bool {
        is_uri(&self.uri)
    }
}

impl Listed for Template {
    fn may_be_listed(&self) -> bool {
        is_uri(&self.uri_template) && self.variables() <= MAX_VARIABLES
    }
}

impl Listed for Prompt {
    fn may_be_listed(&self) -> bool {
        let is_name =
            |name: &str| !name.is_empty() && name.len() <= MAX_PROMPT_NAME && component2json::without_hidden(name) == name;
        is_name(&self.name) && self.arguments.iter().all(|argument| is_name(&argument.name))
    }
}

/// A prompt, and where it comes from.
struct Offered {
    prompt: Prompt,
    source: Source,
}

enum Source {
    /// Of a component, under the name that it has there.
    Guest(Arc<Loaded>, String),
    /// Made from the examples of a command.
    Examples(Arc<Tool>, Vec<String>),
}

fn pairs(map: &BTreeMap<String, String>) -> Vec<[&String; 2]> {
    map.iter().map(|(name, value)| [name, value]).collect()
}

/// The scheme of a URI of ours, and what comes after it.
fn own_scheme(uri: &str) -> Option<(&'static str, &str)> {
    let (scheme, path) = uri.split_once(':')?;
    let own = [WIT, README, HELP].into_iter().find(|own| own.eq_ignore_ascii_case(scheme))?;
    Some((own, path.strip_prefix("//").unwrap_or(path)))
}

/// Whether a component may offer a resource of this URI.
fn is_uri(uri: &str) -> bool {
    let has_scheme = uri.split_once(':').is_some_and(|(scheme, rest)| {
        let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
        scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(is_scheme) && !rest.is_empty()
    });
    has_scheme && own_scheme(uri).is_none() && uri.len() <= MAX_URI && !uri.contains(|c: char| c.is_control() || c.is_whitespace())
}

/// The name of a program.
fn program(loaded: &Loaded) -> Option<&str> {
    match &loaded.revision.metadata.interface {
        Interface::Program(program) => Some(&program.command.name),
        Interface::Functions { .. } => None,
    }
}

/// The WIT of a component with its docs; programs have none worth reading.
fn wit(loaded: &Loaded) -> Option<String> {
    match &loaded.revision.metadata.interface {
        Interface::Functions { exports, .. } if !exports.functions.is_empty() => Some(exports_to_wit(exports)),
        _ => None,
    }
}

/// Resources that are made from what is known of a component.
fn made_here(loaded: &Loaded) -> Vec<Resource> {
    let id = &loaded.id;
    let resource = |scheme: &str, what: &str, about: &str, mime_type: &str| Resource {
        uri: format!("{scheme}://{id}"),
        name: format!("{what} of {id}"),
        title: None,
        description: Some(about.to_owned()),
        mime_type: Some(mime_type.to_owned()),
        size: None,
        annotations: None,
    };
    let metadata = &loaded.revision.metadata;
    let has_wit = matches!(&metadata.interface, Interface::Functions { exports, .. } if !exports.functions.is_empty());
    [
        has_wit.then(|| resource(WIT, "WIT", "Its functions and types, with their docs", "text/plain")),
        metadata
            .readme
            .is_some()
            .then(|| resource(README, "README", "What is written about it for people", "text/markdown")),
        program(loaded).map(|_| resource(HELP, "help", "What it prints for `--help`", "text/plain")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The command of a program that these words name.
fn command_at<'a>(loaded: &'a Loaded, words: &[&str]) -> Option<&'a Command> {
    let Interface::Program(program) = &loaded.revision.metadata.interface else {
        return None;
    };
    let inner = |command: &'a Command, word: &&str| command.commands.iter().find(|inner| inner.name == **word);
    words.iter().try_fold(&program.command, inner)
}

impl Tool {
    /// The documented examples of the command that it runs.
    pub(crate) fn examples(&self) -> Vec<String> {
        let Action::Command(target) = &self.action else {
            return Vec::new();
        };
        let [plan] = target.plans() else { return Vec::new() };
        let words: Vec<&str> = plan.path.iter().skip(1).map(String::as_str).collect();
        let Some(command) = command_at(&self.component, &words) else {
            return Vec::new();
        };
        command
            .examples
            .iter()
            .filter_map(|example| component2json::clean_text(example))
            .collect()
    }
}

fn prompt_of_examples(tool: &Tool) -> Prompt {
    let schema = &tool.definition.input_schema;
    let task = PromptArgument {
        name: TASK.to_owned(),
        title: None,
        description: Some("What you want to be done".to_owned()),
        required: true,
    };
    let choice = |name: String| PromptArgument {
        description: Some(format!("one of {}", choices(schema, &name).join(", "))),
        name,
        title: None,
        required: false,
    };
    Prompt {
        name: tool.definition.name.to_string(),
        title: Some(format!("Use {}", tool.definition.title)),
        description: Some(format!(
            "Asks for the tool `{}`, with the examples of its documentation",
            tool.definition.name
        )),
        arguments: std::iter::once(task)
            .chain(with_choices(schema).into_iter().map(choice))
            .collect(),
    }
}

fn fill_examples(tool: &Tool, examples: &[String], arguments: &BTreeMap<String, String>) -> Filled {
    let name = &tool.definition.name;
    let task = arguments.get(TASK).map(String::as_str).unwrap_or_default();
    let with: Vec<String> = arguments
        .iter()
        .filter(|(argument, _)| *argument != TASK)
        .map(|(argument, value)| format!("\nUse `{value}` for `{argument}`."))
        .collect();
    let text = format!(
        "Use the tool `{name}` for this: {task}{}\n\nExamples of the command line that it stands for:\n\n{}\n\n\
         Give flags and arguments as the tool's input, not as a command line.",
        with.concat(),
        examples
            .iter()
            .map(|example| format!("    {example}"))
            .collect::<Vec<_>>()
            .join("\n"),
    );
    Filled {
        description: None,
        messages: vec![PromptMessage {
            role: Speaker::User,
            content: Block::Text(TextBlock { text, annotations: None }),
        }],
    }
}

/// The properties of a tool's input, those of `flags` and `args` too.
fn properties(schema: &Value) -> Vec<(&String, &Value)> {
    fn of(schema: &Value) -> Option<&serde_json::Map<String, Value>> {
        schema.get("properties")?.as_object()
    }
    let own = of(schema).into_iter().flatten();
    own.flat_map(|(name, property)| match (name.as_str(), of(property)) {
        ("flags" | "args", Some(inner)) => inner.iter().collect(),
        _ => vec![(name, property)],
    })
    .collect()
}

/// The names of those that have a few values to choose from.
fn with_choices(schema: &Value) -> Vec<String> {
    let names = properties(schema).into_iter().map(|(name, _)| name.clone());
    names.filter(|name| !choices(schema, name).is_empty()).collect()
}

/// The values that an argument may have, if those are few.
fn choices(schema: &Value, argument: &str) -> Vec<String> {
    let named = component2json::property_key(argument);
    let property = properties(schema)
        .into_iter()
        .find(|(name, _)| *name == argument || **name == named);
    let Some((_, property)) = property else { return Vec::new() };
    if property.get("type").and_then(Value::as_str) == Some("boolean") {
        return vec!["false".to_owned(), "true".to_owned()];
    }
    // Of an optional one, and of each of a list.
    let alternatives = property.get("anyOf").and_then(Value::as_array);
    let inner = alternatives
        .into_iter()
        .flatten()
        .chain(property.get("items"))
        .chain([property]);
    let values = inner.filter_map(|schema| schema.get("enum")?.as_array()).flatten();
    values.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn beginning_with(value: &str, mut all: Vec<String>) -> Completion {
    let value = value.to_lowercase();
    all.retain(|one| one.to_lowercase().starts_with(&value));
    let total = u32::try_from(all.len()).ok();
    all.truncate(MAX_COMPLETIONS);
    Completion { values: all, total }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_found_wherever_they_stand() {
        let schema = json!({"type": "object", "properties": {
            "level": {"type": "string", "enum": ["low", "high"]},
            "maybe": {"anyOf": [{"type": "string", "enum": ["a", "b"]}, {"type": "null"}]},
            "flags": {"type": "object", "properties": {"output_format": {"type": "string", "enum": ["json", "text"]}, "all": {"type": "boolean"}}},
            "text": {"type": "string"},
        }});
        assert_eq!(choices(&schema, "level"), ["low", "high"]);
        assert_eq!(choices(&schema, "maybe"), ["a", "b"]);
        assert_eq!(choices(&schema, "output-format"), ["json", "text"]);
        assert_eq!(choices(&schema, "text"), [""; 0]);
        assert_eq!(with_choices(&schema), ["level", "maybe", "output_format", "all"]);
        assert_eq!(beginning_with("J", choices(&schema, "output_format")).values, ["json"]);
    }

    #[test]
    fn a_template_has_a_few_variables() {
        let template = |variables: usize| Template {
            uri_template: format!("test://{}", "{+v}".repeat(variables)),
            name: String::new(),
            title: None,
            description: None,
            mime_type: None,
            annotations: None,
        };
        assert!(template(MAX_VARIABLES).may_be_listed());
        assert!(!template(MAX_VARIABLES + 1).may_be_listed());
    }

    #[test]
    fn a_component_offers_no_resource_of_ours() {
        for uri in ["test://a", "note:x", "test://template/{id}/data"] {
            assert!(is_uri(uri), "{uri}");
        }
        for uri in [
            "wit://a",
            "WIT://a",
            "readme:x",
            "help://x",
            "nothing",
            "://x",
            "1a://x",
            "a b://x",
            "test://a\nb",
        ] {
            assert!(!is_uri(uri), "{uri}");
        }
    }
}
