//! Schemas that strangers wrote, compiled once, and values checked against them.
//!
//! A schema can be made to take forever or to need any depth of stack: chains of references that each double the work, or that are
//! thousands long. So what is large is refused, and compiling and checking run on a thread of their own that is given up when its time
//! is over. Nothing is ever fetched: a reference that leads out of the schema does not compile.

use std::collections::HashMap;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use jsonschema::{PatternOptions, Retrieve, Uri, Validator};
use serde_json::{Map, Value};

use crate::document::{Detail, Item};

/// For all schemas of a catalog together.
const COMPILE_TIME: Duration = Duration::from_secs(20);
/// For one value.
const CHECK_TIME: Duration = Duration::from_secs(5);
const STACK: usize = 64 << 20;
const MAX_DEPTH: usize = 128;
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
const MAX_REFERENCES: usize = 2_000;
const MAX_NODES: usize = 200_000;
/// Of one compiled pattern, in bytes.
const MAX_PATTERN: usize = 512 << 10;
/// Of one schema.
const MAX_PATTERNS: usize = 200;
/// Of one check; more help nobody.
const MAX_ERRORS: usize = 10;

/// How much of a problem is told, in characters.
const MAX_PROBLEM: usize = 300;

/// Which schema of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Side {
    Input,
    Output,
}

/// Why a value is not valid, or not known to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValidationError {
    #[error("there is no tool `{0}`")]
    UnknownTool(String),
    /// The schema did not compile; the error of the item says why.
    #[error("the schema of `{0}` cannot be used")]
    Unusable(String),
    #[error("{}", .0.join("\n"))]
    Invalid(Vec<String>),
    #[error("the schema takes longer than {} s to check", CHECK_TIME.as_secs())]
    TooSlow,
}

/// The compiled schemas of a catalog, by the name of the tool.
#[derive(Clone, Debug, Default)]
pub(crate) struct Validators(HashMap<(String, Side), Arc<Validator>>);

impl Validators {
    /// Compiles every schema; one that does not compile puts an error on its item.
    pub(crate) fn compile(items: &mut [Item]) -> Self {
        let mut compiled = HashMap::new();
        let mut errors: HashMap<usize, Vec<String>> = HashMap::new();
        let mut first: HashMap<String, usize> = HashMap::new();
        let mut wanted = Vec::new();
        for (place, item) in items.iter().enumerate() {
            let Detail::Tool(tool) = &item.detail else {
                continue;
            };
            // Of two tools of one name, the first is the one that is called.
            first.entry(item.name.clone()).or_insert(place);
            let schemas = [(Side::Input, Some(&tool.input)), (Side::Output, tool.output.as_ref())];
            for (side, schema) in schemas {
                let Some(schema) = schema else { continue };
                match measure(schema) {
                    Ok(parts) => wanted.push((parts, place, side, schema.clone())),
                    Err(problem) => errors.entry(place).or_default().push(describe(side, &problem)),
                }
            }
        }
        // The small ones first, so that a large one that takes all the time takes it from its like.
        wanted.sort_by_key(|(parts, ..)| *parts);
        let wanted: Vec<_> = wanted
            .into_iter()
            .map(|(_, place, side, schema)| (place, side, schema))
            .collect();
        let mut names: Vec<(usize, Side)> = wanted.iter().map(|(place, side, _)| (*place, *side)).collect();
        names.sort_unstable();
        let mut results = compile_all(wanted);
        for (place, side) in names {
            match results.remove(&(place, side)) {
                Some(Ok(validator)) => {
                    if let Some(item) = items.get(place).filter(|item| first.get(&item.name) == Some(&place)) {
                        compiled.insert((item.name.clone(), side), Arc::new(validator));
                    }
                }
                Some(Err(problem)) => errors.entry(place).or_default().push(describe(side, &problem)),
                None => errors
                    .entry(place)
                    .or_default()
                    .push(describe(side, "it takes too long to compile")),
            }
        }
        for (place, item) in items.iter_mut().enumerate() {
            for error in errors.remove(&place).unwrap_or_default() {
                item.add_error(error);
            }
        }
        Self(compiled)
    }

    pub(crate) fn get(&self, tool: &str, side: Side) -> Option<&Arc<Validator>> {
        self.0.get(&(tool.to_owned(), side))
    }
}

/// Checks a value, within its time.
pub(crate) fn check(validator: &Arc<Validator>, value: &Value) -> Result<(), ValidationError> {
    let (send, receive) = mpsc::channel();
    let (validator, value) = (Arc::clone(validator), value.clone());
    let work = move || {
        let errors = validator.iter_errors(&value).take(MAX_ERRORS).map(|error| {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() {
                String::new()
            } else {
                format!("`{place}`: ")
            };
            format!("{place}{error}")
        });
        // Nobody listens any more when the time is over.
        let _ = send.send(errors.collect::<Vec<_>>());
    };
    start(work)?;
    match receive.recv_timeout(CHECK_TIME) {
        Ok(errors) if errors.is_empty() => Ok(()),
        Ok(errors) => Err(ValidationError::Invalid(errors)),
        Err(_) => Err(ValidationError::TooSlow),
    }
}

type Compiled = HashMap<(usize, Side), Result<Validator, String>>;

/// As many as there is time for.
fn compile_all(wanted: Vec<(usize, Side, Value)>) -> Compiled {
    let (send, receive) = mpsc::channel();
    let count = wanted.len();
    let work = move || {
        for (place, side, schema) in wanted {
            let result = jsonschema::options()
                .with_retriever(Nowhere)
                .with_pattern_options(
                    PatternOptions::fancy_regex()
                        .size_limit(MAX_PATTERN)
                        .dfa_size_limit(MAX_PATTERN),
                )
                .build(&schema)
                .map_err(|error| error.to_string());
            if send.send(((place, side), result)).is_err() {
                break;
            }
        }
    };
    let deadline = Instant::now() + COMPILE_TIME;
    let mut compiled = Compiled::with_capacity(count);
    if start(work).is_err() {
        return compiled;
    }
    while compiled.len() < count {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok((key, result)) = receive.recv_timeout(left) else {
            break;
        };
        compiled.insert(key, result);
    }
    compiled
}

/// Where schemas are fetched from.
struct Nowhere;

impl Retrieve for Nowhere {
    fn retrieve(&self, _: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err("nothing outside of the schema is fetched".into())
    }
}

fn start(work: impl FnOnce() + Send + 'static) -> Result<(), ValidationError> {
    let thread = thread::Builder::new().name("schema".to_owned()).stack_size(STACK);
    thread.spawn(work).map_err(|_| ValidationError::TooSlow)?;
    Ok(())
}

fn describe(side: Side, problem: &str) -> String {
    let schema = match side {
        Side::Input => "input",
        Side::Output => "output",
    };
    // It may repeat a large part of the schema.
    let problem: String = problem.chars().take(MAX_PROBLEM).collect();
    format!("{}: {problem}", does_not_compile(schema))
}

/// How the error of an item begins that has a schema of no use.
pub(crate) fn does_not_compile(schema: &str) -> String {
    format!("the {schema} schema does not compile")
}

/// The number of its parts, if it is of a size that can be compiled.
fn measure(schema: &Value) -> Result<usize, String> {
    let mut references = 0;
    let mut patterns = 0;
    let mut nodes = 0;
    let mut waiting = vec![(schema, 1)];
    while let Some((value, depth)) = waiting.pop() {
        nodes += 1;
        if depth > MAX_DEPTH {
            return Err(format!("it is nested more than {MAX_DEPTH} deep"));
        }
        match value {
            Value::Object(fields) => {
                references += fields.keys().filter(|key| REFERENCES.contains(&key.as_str())).count();
                patterns += usize::from(fields.get("pattern").is_some_and(Value::is_string));
                patterns += fields.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
                waiting.extend(fields.values().map(|value| (value, depth + 1)));
            }
            Value::Array(values) => waiting.extend(values.iter().map(|value| (value, depth + 1))),
            _ => {}
        }
        if references > MAX_REFERENCES || nodes > MAX_NODES || patterns > MAX_PATTERNS {
            return Err(format!(
                "it has more than {MAX_REFERENCES} references, {MAX_NODES} parts or {MAX_PATTERNS} patterns"
            ));
        }
    }
    Ok(nodes)
}
