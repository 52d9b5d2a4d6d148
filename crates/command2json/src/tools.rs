//! Commands as tool definitions: one tool for each, or one for the whole program.

use component2json::{
    ArgumentError, ArgumentErrors, NameParts, ToolAnnotations, ToolMetadata, ToolName, clean_text_within, nearest_first,
};
use serde_json::{Value, json};

use crate::argv::{CommandLine, MAX_SUGGESTED, json_to_argv};
use crate::input_schema::{Object, input_schema};
use crate::output_schema::output_schema;
use crate::plan::{self, Choice, Plan, PlannedFlag, Plans};
use crate::select::Patterns;
use crate::tree::{Command, Effect, Format, Output};

/// What a description may be at most; some clients cut or refuse longer ones.
const MAX_DESCRIPTION: usize = 4_000;

const MAX_TITLE: usize = 100;

/// What a bundle says of the program, and of its commands.
const MAX_ABOUT: usize = 1_000;
const MAX_LIST: usize = 12_000;

/// What one of several commands prints: anything, parsed or not.
const ANY_OUTPUT: Output = Output {
    format: Some(Format::Json),
    schema: None,
    force: vec![],
};

/// How the commands of a program are offered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offer {
    pub commands: Patterns,
    pub flags: Patterns,
    /// One tool for the whole program.
    pub bundle: bool,
    /// Flags and positionals side by side at the root of the input, where no two have one name.
    pub flat: bool,
    /// Pass the program's own flag for JSON output where it has one.
    pub json: bool,
    /// What a person says of certain commands, by pattern; over what the description says.
    pub annotations: Vec<(Patterns, ToolAnnotations)>,
    /// Which tools are offered, by their names: of programs and of all other components.
    pub tools: Patterns,
}

/// A tool that runs a command.
#[derive(Clone, Debug)]
pub struct CommandTool {
    /// What its name is made of.
    pub name: NameParts,
    title: String,
    description: String,
    input_schema: Value,
    output_schema: Value,
    annotations: Option<ToolAnnotations>,
    pub target: Target,
}

/// What a call of a tool runs.
#[derive(Clone, Debug)]
pub enum Target {
    Command(Box<Plan>),
    /// The command that the call names.
    Bundle(Vec<Plan>),
}

impl CommandTool {
    /// What clients see of it, under a given name.
    pub fn definition(&self, name: ToolName) -> ToolMetadata {
        ToolMetadata {
            name,
            title: self.title.clone(),
            description: self.description.clone(),
            input_schema: self.input_schema.clone(),
            output_schema: Some(structured_output::wrap_schema_in_result(self.output_schema.clone())),
            annotations: self.annotations.clone(),
            icons: Vec::new(),
        }
    }
}

impl Target {
    /// The command that a call is for, and its command line.
    pub fn command_line(&self, arguments: &Value) -> Result<(&Plan, CommandLine), ArgumentErrors> {
        match self {
            Self::Command(plan) => Ok((plan, json_to_argv(plan, arguments)?)),
            Self::Bundle(_) => {
                let plan = self.chosen(arguments)?;
                let mut rest = arguments.as_object().cloned().unwrap_or_default();
                rest.shift_remove("command");
                Ok((plan, json_to_argv(plan, &Value::Object(rest))?))
            }
        }
    }

    /// All commands that a call may run.
    pub fn plans(&self) -> &[Plan] {
        match self {
            Self::Command(plan) => std::slice::from_ref(plan),
            Self::Bundle(plans) => plans,
        }
    }

    /// The command that a call is for.
    pub(crate) fn chosen(&self, arguments: &Value) -> Result<&Plan, ArgumentErrors> {
        let wrong = |problem: String| {
            ArgumentErrors::new(vec![ArgumentError {
                path: "$.command".to_owned(),
                problem,
            }])
        };
        let plans = match self {
            Self::Command(plan) => return Ok(plan),
            Self::Bundle(plans) => plans,
        };
        let Some(name) = arguments.get("command").and_then(Value::as_str) else {
            return Err(wrong("is required, as a string".to_owned()));
        };
        plans.iter().find(|plan| bundled_name(plan) == name).ok_or_else(|| {
            let names: Vec<String> = plans.iter().map(bundled_name).collect();
            let nearest: Vec<String> = nearest_first(name, names.iter().map(String::as_str))
                .into_iter()
                .take(MAX_SUGGESTED)
                .map(|name| format!("`{name}`"))
                .collect();
            wrong(format!("there is no such command; there is {}", nearest.join(", ")))
        })
    }
}

/// The path without the program, as `remote add`; the program itself has its own name, and what is called like it the whole path.
fn bundled_name(plan: &Plan) -> String {
    let below = plan.path.get(1..).unwrap_or_default().join(" ");
    if below.is_empty() || plan.path.first() == Some(&below) {
        plan.name()
    } else {
        below
    }
}

/// The tools of a program, in the order of its tree, and what a person should know about how they were chosen.
pub fn tools(root: &Command, offer: &Offer) -> (Vec<CommandTool>, Vec<String>) {
    let choice = Choice {
        commands: Some(&offer.commands),
        flags: Some(&offer.flags),
        flat: offer.flat && !offer.bundle,
        json: offer.json,
    };
    let Plans {
        offered: plans,
        unsure,
        cut,
        ..
    } = plan::plans(root, &choice);
    let mut warnings = idle_patterns(root, offer);
    warnings.extend(unsure.iter().map(|name| {
        format!("`{name}` is left out: nothing is known of its flags and commands, so that none can be excluded; describe it to offer it")
    }));
    if cut {
        warnings.push(format!(
            "`{}` has more commands and flags than can be offered; the last ones are left out: choose with `--commands` and `--flags`",
            root.name
        ));
    }
    let tools = if offer.bundle && !plans.is_empty() {
        vec![bundle(root, plans, offer)]
    } else {
        plans
            .into_iter()
            .map(|(plan, command)| single(plan, command, offer))
            .collect()
    };
    (tools, warnings)
}

fn single(plan: Plan, command: &Command, offer: &Offer) -> CommandTool {
    let annotations = annotations(&plan, command, offer);
    CommandTool {
        name: NameParts::of_path(&plan.path),
        title: title(&plan, command, annotations.as_ref()),
        description: description(&plan, command),
        input_schema: input_schema(&plan),
        output_schema: output_schema(plan.output.as_ref()),
        annotations,
        target: Target::Command(Box::new(plan)),
    }
}

fn bundle(root: &Command, plans: Vec<(Plan, &Command)>, offer: &Offer) -> CommandTool {
    let mut input = Object::default();
    let names: Vec<String> = plans.iter().map(|(plan, _)| bundled_name(plan)).collect();
    input.add(
        "command",
        json!({"type": "string", "enum": names, "description": "The command to run"}),
        true,
    );
    input.add(
        "flags",
        json!({"type": "object", "description": "The flags of the command, by their long names in snake_case, without dashes"}),
        false,
    );
    input.add(
        "args",
        json!({
            "anyOf": [{"type": "object"}, {"type": "array", "items": {"type": "string"}}],
            "description": "The positionals of the command: an object where they have names, else an array of strings",
        }),
        false,
    );
    if plans.iter().any(|(plan, _)| plan.stdin) {
        input.add(
            "stdin",
            json!({"type": "string", "description": "What the program reads from its standard input"}),
            false,
        );
    }
    let all: Vec<Option<ToolAnnotations>> = plans
        .iter()
        .map(|(plan, command)| annotations(plan, command, offer))
        .collect();
    let about = about(root).and_then(|text| clean_text_within(&text, MAX_ABOUT));
    let about = about.map(|text| format!("{text}\n\n")).unwrap_or_default();
    CommandTool {
        name: NameParts::of_path(std::slice::from_ref(&root.name)),
        title: root
            .title
            .as_ref()
            .and_then(|title| clean_text_within(title, MAX_TITLE))
            .unwrap_or_else(|| capitalized(&root.name)),
        description: format!("{about}{}", list_of(&plans, &root.name)),
        input_schema: input.schema(),
        output_schema: output_schema(Some(&ANY_OUTPUT)),
        annotations: ToolAnnotations::of_all(&all),
        target: Target::Bundle(plans.into_iter().map(|(plan, _)| plan).collect()),
    }
}

/// What a bundle says of its commands: with their flags and summaries if there is room, else less. The names are in the schema as well.
fn list_of(plans: &[(Plan, &Command)], program: &str) -> String {
    // What all commands take would otherwise fill the text.
    let common = |flag: &&PlannedFlag| plans.len() > 1 && plans.iter().all(|(plan, _)| plan.has_flag(&flag.key));
    let first = plans.first().map_or(&[][..], |(plan, _)| &plan.flags);
    let common: Vec<&PlannedFlag> = first.iter().filter(common).collect();
    let all_take = match common.as_slice() {
        [] => String::new(),
        common => format!(
            "All of them take {}.\n",
            common.iter().map(|flag| flag.usage()).collect::<Vec<_>>().join(" ")
        ),
    };
    let summary = |command: &Command| command.summary.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
    let whole =
        |(plan, command): &(Plan, &Command)| format!("- {}{}\n", plan.usage_as(bundled_name(plan), &common), summary(command));
    let short = |(plan, command): &(Plan, &Command)| format!("- {}{}\n", bundled_name(plan), summary(command));
    let bare = |(plan, _): &(Plan, &Command)| format!("- {}\n", bundled_name(plan));
    let texts = [
        plans.iter().map(whole).collect::<String>() + &all_take,
        plans.iter().map(short).collect(),
        plans.iter().map(bare).collect(),
    ];
    let fits = |text: &&String| text.len() <= MAX_LIST;
    let list = texts.iter().find(fits).cloned().unwrap_or_default();
    let text = format!("Runs one of the commands of `{program}`:\n{list}");
    clean_text_within(&text, MAX_LIST + MAX_ABOUT).unwrap_or_default()
}

fn title(plan: &Plan, command: &Command, annotations: Option<&ToolAnnotations>) -> String {
    let given = annotations
        .and_then(|annotations| annotations.title.as_ref())
        .or(command.title.as_ref());
    let given = given.and_then(|title| clean_text_within(title, MAX_TITLE));
    given.unwrap_or_else(|| capitalized(&plan.name()))
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string());
    let title = first.unwrap_or_default() + chars.as_str();
    clean_text_within(&title, MAX_TITLE).unwrap_or_default()
}

/// The path, the long text, the examples.
fn description(plan: &Plan, command: &Command) -> String {
    let what = match about(command) {
        Some(text) => format!("`{}`: {text}", plan.name()),
        None => format!("Runs `{}`.", plan.usage()),
    };
    let examples = match command.examples.as_slice() {
        [] => String::new(),
        examples => format!("\n\nExamples:\n{}", examples.join("\n")),
    };
    capped(&(what + &examples))
}

/// The summary and the long text, without saying anything twice.
fn about(command: &Command) -> Option<String> {
    match (&command.summary, &command.description) {
        (Some(summary), Some(long)) if long.starts_with(summary.trim_end_matches('.')) => Some(long.clone()),
        (Some(summary), Some(long)) => Some(format!("{summary}\n\n{long}")),
        (summary, long) => summary.clone().or_else(|| long.clone()),
    }
}

fn capped(text: &str) -> String {
    clean_text_within(text, MAX_DESCRIPTION).unwrap_or_default()
}

/// What the description says of the effects, and over it what the person says.
fn annotations(plan: &Plan, command: &Command, offer: &Offer) -> Option<ToolAnnotations> {
    // A flag that destroys makes the tool one that may.
    let flags = plan.flags.iter().filter_map(|planned| planned.flag.effect);
    let effect = match command.effect {
        Some(own) => flags.chain([own]).max(),
        None => flags.max().filter(|most| *most == Effect::Destructive),
    };
    let mut annotations = ToolAnnotations {
        title: None,
        read_only_hint: effect.map(|effect| effect == Effect::Read),
        destructive_hint: effect.map(|effect| effect == Effect::Destructive),
        idempotent_hint: command.idempotent,
        open_world_hint: command.open_world,
    };
    let path: Vec<&str> = plan.path.iter().map(String::as_str).collect();
    for (_, given) in offer.annotations.iter().filter(|(patterns, _)| patterns.admit_command(&path)) {
        annotations.update(given);
    }
    (annotations != ToolAnnotations::default()).then_some(annotations)
}

/// Patterns that match nothing are most likely misspelt.
fn idle_patterns(root: &Command, offer: &Offer) -> Vec<String> {
    let none = Patterns::default();
    if offer.commands == none && offer.flags == none && offer.annotations.is_empty() {
        return vec![];
    }
    let all = plan::plans(root, &Choice::default()).offered;
    let paths: Vec<Vec<&str>> = all
        .iter()
        .map(|(plan, _)| plan.path.iter().map(String::as_str).collect())
        .collect();
    let flags: Vec<&[String]> = all
        .iter()
        .flat_map(|(plan, _)| plan.flags.iter().map(|planned| planned.flag.names.as_slice()))
        .collect();
    let commands = offer
        .commands
        .without_a_command(&paths)
        .map(|pattern| format!("`--commands '{pattern}'` matches no command of `{}`", root.name));
    let annotations = offer.annotations.iter().flat_map(|(patterns, _)| {
        patterns
            .without_a_command(&paths)
            .map(|pattern| format!("the annotations for `{pattern}` match no command of `{}`", root.name))
    });
    let flags = offer
        .flags
        .without_a_flag(&flags)
        .map(|pattern| format!("`--flags '{pattern}'` matches no flag of `{}`", root.name));
    commands.chain(flags).chain(annotations).collect()
}
