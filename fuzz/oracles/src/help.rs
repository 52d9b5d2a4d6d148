//! Help text → command tree → tools → command lines.

use std::collections::HashSet;

use command2json::{
    Answer, Command, CommandTool, Description, DescriptionError, Discovered, Offer, Patterns, Plan, Target, discover, parse_help,
    read_cli_json, tools,
};
use component2json::{DEFAULT_MAX_TOOL_NAME, ToolName, tool_names, without_hidden};
use serde_json::{Map, Value};

use crate::json::check_errors;
use crate::{Broken, ensure, schema};

/// What one help text may become.
const MAX_LIST: usize = 500;
const MAX_COMMAND: usize = 4 << 20;

const MAX_TITLE: usize = 100;
const MAX_DESCRIPTION: usize = 13_000;

/// Of a program with many commands, these many tools are looked at closely.
const MAX_CLOSELY: usize = 5;

/// A word that no command is called by, and one that would be a flag if it stood alone.
const HARMLESS: &str = "zq9";
const SMUGGLED: &str = "-zq9";

/// The bytes are what a program answers when it is asked for help: the first time, the second time, and so on, with a form feed
/// between two answers. What starts with a bell goes to stderr, with an exit code that says it is an error.
pub fn help_to_tree(bytes: &[u8]) -> Result<(), Broken> {
    let text = String::from_utf8_lossy(bytes);
    let answers: Vec<&str> = text.split('\u{c}').collect();
    for answer in &answers {
        check_answer(answer)?;
    }
    let found = discovered(&answers);
    let again = discovered(&answers);
    ensure!(
        (&found.command, found.understood, &found.notes) == (&again.command, again.understood, &again.notes),
        "the same answers give another tree the second time"
    );
    check_description(&found.command)?;
    let pattern = Patterns::from(vec!["!*delete*".to_owned()]);
    let offers = [
        Offer::default(),
        Offer {
            bundle: true,
            ..Offer::default()
        },
        Offer {
            flat: true,
            json: true,
            ..Offer::default()
        },
        Offer {
            commands: pattern.clone(),
            flags: pattern,
            ..Offer::default()
        },
    ];
    offers.iter().try_for_each(|offer| check_tools(&found.command, offer))
}

fn check_answer(text: &str) -> Result<(), Broken> {
    let Some(help) = parse_help(text, &["prog", "sub"]) else {
        return Ok(());
    };
    let command = &help.command;
    let args = command.args.as_ref().map_or(0, Vec::len);
    ensure!(
        command.flags.len() <= MAX_LIST && command.commands.len() <= MAX_LIST && args <= MAX_LIST,
        "{} flags, {} commands, {args} positionals",
        command.flags.len(),
        command.commands.len()
    );
    let size = serde_json::to_string(command).map_or(0, |text| text.len());
    ensure!(size <= MAX_COMMAND, "a command of {size} bytes");
    Ok(())
}

fn discovered(answers: &[&str]) -> Discovered {
    let mut answers = answers.iter();
    discover("prog", &mut |_| match answers.next() {
        None => Answer::Failed {
            reason: "it says no more".to_owned(),
            is_slow: true,
        },
        Some(answer) => match answer.strip_prefix('\u{7}') {
            Some(error) => Answer::Printed {
                stdout: String::new(),
                stderr: error.to_owned(),
                exit_code: 2,
            },
            None => Answer::Printed {
                stdout: (*answer).to_owned(),
                stderr: String::new(),
                exit_code: 0,
            },
        },
    })
}

/// What is known of a program can be written down as a description of it, which is then read like any other.
fn check_description(command: &Command) -> Result<(), Broken> {
    let description = Description {
        complete: true,
        command: command.clone(),
    };
    let text = serde_json::to_string(&description).map_err(|error| Broken(format!("a tree that cannot be written: {error}")))?;
    let given = match read_cli_json(&text) {
        Ok(given) => given,
        // Who writes a description has to say where the one that takes many ends; `find [PATH...] [EXPRESSION]` does not.
        Err(DescriptionError::VariadicNotLast { .. }) => return Ok(()),
        Err(error) => return Err(Broken(format!("its own description is refused: {error}"))),
    };
    // What nobody sees is left out of a description, and stays in a tree until it is shown.
    ensure!(
        given.command() == command || without_hidden(&text) != text,
        "its own description says something else: {:?} instead of {command:?}",
        given.command()
    );
    Ok(())
}

fn check_tools(root: &Command, offer: &Offer) -> Result<(), Broken> {
    let (tools, _) = tools(root, offer);
    let parts: Vec<_> = tools.iter().map(|tool| tool.name.clone()).collect();
    let names = tool_names(&parts, None, DEFAULT_MAX_TOOL_NAME, &HashSet::new());
    ensure!(names.len() == tools.len(), "a tool has no name, or two");
    let mut seen = HashSet::new();
    for name in &names {
        let text = name.as_str();
        ensure!(
            ToolName::parse(text).is_some() && text.len() <= DEFAULT_MAX_TOOL_NAME && seen.insert(text),
            "`{text}` is no name for a tool, or the name of two"
        );
    }
    for (tool, name) in tools.iter().zip(names).take(MAX_CLOSELY) {
        check_tool(tool, name)?;
    }
    Ok(())
}

fn check_tool(tool: &CommandTool, name: ToolName) -> Result<(), Broken> {
    let definition = tool.definition(name);
    for (text, max) in [(&definition.title, MAX_TITLE), (&definition.description, MAX_DESCRIPTION)] {
        ensure!(
            !text.is_empty() && text.chars().count() <= max,
            "a tool with a bad text: {text:?}"
        );
        ensure!(without_hidden(text) == *text, "hidden characters in {text:?}");
    }
    if let Some(output) = &definition.output_schema {
        schema::check(output)?;
    }
    let input = &definition.input_schema;
    let validator = schema::checked(input)?;
    for property in properties(input).chain(input.pointer("/properties/flags").into_iter().flat_map(properties)) {
        if let Some(default) = property.get("default") {
            let fits = schema::compiled(property)?.is_valid(default);
            ensure!(fits, "a default that its own schema does not admit: {property}");
        }
    }
    for word in [HARMLESS, SMUGGLED] {
        let arguments = arguments(tool, input, word);
        let is_admitted = validator.is_valid(&arguments);
        match tool.target.command_line(&arguments) {
            Ok((plan, line)) => check_words(plan, &line.argv)?,
            Err(errors) => {
                check_errors(&errors)?;
                // The schema of several commands together leaves much open; and where words after a `--` are something else, no
                // `--` can keep the others from being read as commands.
                let plans = tool.target.plans();
                let is_open = matches!(tool.target, Target::Bundle(_)) || plans.iter().any(has_place_after_dashes);
                ensure!(
                    word != HARMLESS || !is_admitted || is_open,
                    "the schema admits it, and it is refused: {arguments}: {errors}: {input}"
                );
            }
        }
    }
    Ok(())
}

fn has_place_after_dashes(plan: &Plan) -> bool {
    let args = plan.args.as_deref().unwrap_or_default();
    args.iter().any(|planned| planned.positional.after_dashes)
}

/// The word can be a value of a flag and a positional, and never anything else.
fn check_words(plan: &Plan, argv: &[String]) -> Result<(), Broken> {
    ensure!(
        argv.first() == plan.path.first(),
        "the command line does not start with the program: {argv:?}"
    );
    let end_of_flags = argv.iter().position(|word| word == "--").unwrap_or(argv.len());
    let stray = argv.iter().take(end_of_flags).any(|word| word == SMUGGLED);
    ensure!(!stray || plan.bare, "a value became a word of its own: {argv:?}");
    ensure!(argv.iter().all(|word| !word.contains('\0')), "a NUL in {argv:?}");
    Ok(())
}

fn properties(schema: &Value) -> impl Iterator<Item = &Value> {
    schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::values)
}

/// Arguments of a tool: everything that it takes, with this text wherever a text can be.
fn arguments(tool: &CommandTool, schema: &Value, word: &str) -> Value {
    let mut arguments = value(schema, word);
    // Which command it is decides what the rest may be.
    if let (Target::Bundle(plans), Some(object)) = (&tool.target, arguments.as_object_mut()) {
        let takes_any = plans.first().is_some_and(|plan| plan.args.is_none());
        object.retain(|key, _| key == "command" || (key == "args" && takes_any));
        if takes_any {
            object.insert("args".to_owned(), Value::from(vec![word]));
        }
    }
    arguments
}

fn value(schema: &Value, word: &str) -> Value {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.first().cloned().unwrap_or_default();
    }
    if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
        return choices.first().map(|choice| value(choice, word)).unwrap_or_default();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => {
            let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
            let mut object: Map<String, Value> = properties.map(|(key, schema)| (key.clone(), value(schema, word))).collect();
            if let Some(of) = schema.get("additionalProperties").filter(|of| of.is_object()) {
                object.insert(word.to_owned(), value(of, word));
            }
            object.into()
        }
        Some("array") => vec![value(&schema["items"], word)].into(),
        Some("boolean") => true.into(),
        Some("integer" | "number") => 7.into(),
        _ if schema.get("pattern").is_some() => {
            // Each is right for one of the patterns that there are.
            let texts = ["1h30m", "10.0.0.1", "10.0.0.0/8", "00ff", "aGk="].map(Value::from);
            let fits = |text: &&Value| schema::compiled(schema).is_ok_and(|validator| validator.is_valid(text));
            texts.iter().find(fits).cloned().unwrap_or_default()
        }
        _ => word.into(),
    }
}
