//! Usage specs (<https://usage.jdx.dev>), which some programs print about themselves, as descriptions.
//!
//! The library that reads them follows `include` and `schema file=` into the file system. Both are refused before it sees a text, and
//! so is what its parser cannot cope with. Nothing is run: a `mount` is left alone.

use std::thread::{self, ScopedJoinHandle};

use serde_json::{Value, json};
use usage::error::UsageErr;
use usage::kdl::{KdlDocument, KdlNode};
use usage::miette::SourceSpan;
use usage::spec::cmd::SpecExample;
use usage::{
    Framing, Selector, Spec, SpecArg, SpecChoices, SpecCommand, SpecCommandEffect, SpecDoubleDashChoices, SpecFlag, SpecFlagAction,
    SpecOutput, effective_outputs_ref, effective_select_ref,
};

use crate::description::{DescriptionError, Given, MAX_COMMANDS};
use crate::kdl;
use crate::schema::{MAX_PROBLEM, compile, one_line};
use crate::tree::{Command, Effect, Flag, Format, MAX_DEPTH, Output, Pass, Positional, ValueType};

/// How long a spec may be. That of mise, with some 150 commands, has 120 KB.
const MAX_BYTES: usize = 2 << 20;
/// How deep blocks may nest: commands, and a flag with its argument and its choices in the last one.
const MAX_NESTING: usize = MAX_DEPTH + 3;
/// For each level the parser takes some 100 KB of stack when it is not optimized, and so more than a thread usually has.
const STACK_BYTES: usize = 8 << 20;

/// Reads a usage spec. It is a whole description: what it leaves out does not exist.
pub fn read_usage_kdl(text: &str) -> Result<Given, DescriptionError> {
    let refuse = |reason: &str| Err(DescriptionError::NotUsage(reason.to_owned()));
    if text.len() > MAX_BYTES {
        return refuse("it is longer than 2 MiB");
    }
    if let Err((at, what)) = kdl::check(text, MAX_NESTING) {
        return refuse(&format!("line {}: {what}", line_of(text, at)));
    }
    let read = thread::scope(|scope| {
        let reader = thread::Builder::new().stack_size(STACK_BYTES);
        reader.spawn_scoped(scope, || read(text)).map(ScopedJoinHandle::join)
    });
    match read {
        Ok(Ok(read)) => Given::whole(read?),
        Ok(Err(_)) => refuse("its reader failed on it"),
        Err(error) => refuse(&format!("its reader could not be started: {error}")),
    }
}

fn read(text: &str) -> Result<Command, DescriptionError> {
    let document: KdlDocument = text.parse().map_err(|error| usage_error(text, &UsageErr::KdlError(error)))?;
    refuse_files(text, &document)?;
    let spec: Spec = text.parse().map_err(|error| usage_error(text, &error))?;
    Tree {
        spec: &spec,
        left: MAX_COMMANDS,
    }
    .program()
}

fn refuse_files(text: &str, document: &KdlDocument) -> Result<(), DescriptionError> {
    for node in document.nodes() {
        let refused = |named| DescriptionError::OtherFile {
            line: line_of(text, node.span().offset()),
            node: named,
        };
        match node.name().value() {
            "include" => return Err(refused("include")),
            "schema" if names_file(node) => return Err(refused("schema file=")),
            _ => {}
        }
        if let Some(children) = node.children() {
            refuse_files(text, children)?;
        }
    }
    Ok(())
}

fn names_file(node: &KdlNode) -> bool {
    let named = |entry: &usage::kdl::KdlEntry| entry.name().is_some_and(|name| name.value() == "file");
    node.entries().iter().any(named)
}

fn usage_error(text: &str, error: &UsageErr) -> DescriptionError {
    let at = |span: SourceSpan, reason: &str| format!("line {}: {}", line_of(text, span.offset()), one_line(reason, MAX_PROBLEM));
    DescriptionError::NotUsage(match error {
        UsageErr::InvalidInput(reason, span, _) => at(*span, reason),
        UsageErr::KdlError(error) => match error.diagnostics.first() {
            Some(found) => at(
                found.span,
                found
                    .message
                    .as_deref()
                    .or(found.label.as_deref())
                    .unwrap_or("this is no KDL"),
            ),
            None => "this is no KDL".to_owned(),
        },
        other => one_line(&other.to_string(), MAX_PROBLEM),
    })
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

/// The spec on its way to a tree.
struct Tree<'a> {
    spec: &'a Spec,
    /// How many more commands there may be: flags are copied for each, so they are counted before.
    left: usize,
}

impl<'a> Tree<'a> {
    fn program(mut self) -> Result<Command, DescriptionError> {
        let spec = self.spec;
        let mut command = self.command(&spec.cmd, &[])?;
        let about = texts(spec.about.as_deref(), spec.about_long.as_deref().or(spec.about_md.as_deref()));
        command.summary = about.0.or(command.summary);
        command.description = about.1.or(command.description);
        command.examples.extend(spec.examples.iter().map(example));
        if let Some(name) = [&spec.bin, &spec.name].into_iter().find(|name| !name.is_empty()) {
            command.name.clone_from(name);
        }
        Ok(command)
    }

    fn command(&mut self, spec: &'a SpecCommand, path: &[&'a SpecCommand]) -> Result<Command, DescriptionError> {
        self.left = self.left.checked_sub(1).ok_or(DescriptionError::TooManyCommands)?;
        let (summary, description) = texts(spec.help.as_deref(), spec.help_long.as_deref().or(spec.help_md.as_deref()));
        let commands = spec.subcommands.values().map(|child| {
            let path: Vec<_> = path.iter().copied().chain([child]).collect();
            self.command(child, &path)
        });
        let commands = commands.collect::<Result<_, _>>()?;
        Ok(Command {
            name: spec.name.clone(),
            summary,
            description,
            examples: spec.examples.iter().map(example).collect(),
            hidden: spec.hide,
            deprecated: spec.deprecated.is_some(),
            runnable: (!spec.subcommands.is_empty()).then_some(!spec.subcommand_required),
            flags: spec.flags.iter().map(flag).filter(|flag| !flag.names.is_empty()).collect(),
            args: positionals(spec),
            output: self.output(path),
            effect: effect_with(spec.effect, spec.args.iter().filter_map(|arg| arg.effect).max()),
            commands,
            ..Command::default()
        })
    }

    /// JSON, if the command can print it: as it always does, or with the flag that asks for it.
    fn output(&self, path: &[&'a SpecCommand]) -> Option<Output> {
        let outputs = effective_outputs_ref(self.spec, path.iter().copied());
        let select = effective_select_ref(self.spec, path);
        let is_default = |output: &SpecOutput| output.default || outputs.len() == 1;
        let selector = |output: &SpecOutput| match (&output.select, &select) {
            (Some(flag), _) => Some(Selector::Present { flag: flag.clone() }),
            (None, Some(flag)) => Some(Selector::Value {
                flag: flag.clone(),
                value: output.name.clone(),
            }),
            (None, None) => None,
        };
        let readable = outputs.iter().filter(|output| output.framing != Framing::Text);
        let chosen = readable
            .filter(|output| is_default(output) || selector(output).is_some())
            .min_by_key(|output| (!is_default(output), output.framing))?;
        Some(Output {
            format: Some(match chosen.framing {
                Framing::Jsonl => Format::Jsonl,
                _ => Format::Json,
            }),
            schema: chosen
                .schema
                .as_deref()
                .and_then(|schema| schema_of_all(schema, chosen.framing)),
            force: match selector(chosen) {
                Some(selector) if !is_default(chosen) => forced(&selector),
                _ => Vec::new(),
            },
        })
    }
}

/// The schema of all that is printed, unless it is none. For output in lines the given one is about a line; one with references is
/// left out then, for they name places from its root.
fn schema_of_all(text: &str, framing: Framing) -> Option<Value> {
    let schema: Value = serde_json::from_str(text).ok()?;
    compile(&schema).ok()?;
    match framing {
        Framing::Jsonl => (!text.contains("$ref")).then(|| json!({"type": "array", "items": schema})),
        _ => Some(schema),
    }
}

fn forced(selector: &Selector) -> Vec<String> {
    match selector {
        Selector::Value { flag, value } if flag.starts_with("--") => vec![format!("{flag}={value}")],
        other => other.argv(),
    }
}

fn flag(spec: &SpecFlag) -> Flag {
    let arg = spec.arg.as_ref();
    let ty = match arg {
        Some(_) => ValueType::String,
        None if spec.count => ValueType::Count,
        None => ValueType::Bool,
    };
    let repeated = ty == ValueType::String && (spec.var || arg.is_some_and(|arg| arg.var));
    let long = spec.long.iter().map(|name| format!("--{name}"));
    let short = spec.short.iter().map(|name| format!("-{name}"));
    let defaults = [Some(&spec.default), arg.map(|arg| &arg.default)];
    Flag {
        names: long.chain(short).collect(),
        ty,
        value_name: arg.map(|arg| arg.name.clone()),
        description: longest(&[&spec.help_long, &spec.help_md, &spec.help]),
        required: spec.required,
        default: defaults.into_iter().flatten().find_map(|given| default(given, ty, repeated)),
        values: arg.and_then(|arg| arg.choices.as_ref()).map(values).unwrap_or_default(),
        repeated,
        optional_value: spec.value_optional || spec.default_missing.is_some(),
        negation: spec.negate.clone(),
        inherited: spec.global,
        // A flag that prints help or a version does so instead of what the command is for. One with several values in a row has no
        // place in the tree.
        hidden: spec.hide || spec.action != SpecFlagAction::Set || arg.is_some_and(|arg| arg.value_names.len() > 1),
        deprecated: spec.deprecated.is_some(),
        pass: spec.require_equals.then_some(Pass::Equals),
        comma_separated: arg.is_some_and(|arg| arg.delimiter == Some(',')),
        jsonschema: None,
        effect: spec.effect.max(arg.and_then(|arg| arg.effect)).map(effect),
    }
}

/// The positionals, where the tree has words for them: none takes all that is left before another (`SOURCE… TARGET`), and they do not
/// repeat as a group.
fn positionals(spec: &SpecCommand) -> Option<Vec<Positional>> {
    let hidden_last = spec.args.iter().rev().take_while(|arg| arg.hide && !arg.required).count();
    let args: Vec<_> = spec.args.iter().take(spec.args.len() - hidden_last).map(positional).collect();
    let takes_all_before_last = args
        .iter()
        .zip(args.iter().skip(1))
        .any(|(arg, next)| arg.variadic && (arg.after_dashes || !next.after_dashes));
    (!takes_all_before_last && spec.clause.is_none()).then_some(args)
}

fn positional(spec: &SpecArg) -> Positional {
    Positional {
        name: spec.name.clone(),
        ty: ValueType::String,
        description: longest(&[&spec.help_long, &spec.help_md, &spec.help]),
        required: spec.required,
        variadic: spec.var,
        default: default(&spec.default, ValueType::String, spec.var),
        values: spec.choices.as_ref().map(values).unwrap_or_default(),
        after_dashes: spec.double_dash == SpecDoubleDashChoices::Required,
        jsonschema: None,
    }
}

/// The values, where they are known to be all.
fn values(spec: &SpecChoices) -> Vec<String> {
    match spec.strict && spec.run().is_none() && spec.env().is_none() {
        true => spec.choices.clone(),
        false => Vec::new(),
    }
}

fn default(given: &[String], ty: ValueType, repeated: bool) -> Option<Value> {
    let first = given.first()?;
    match ty {
        ValueType::Bool => first.parse::<bool>().ok().map(Value::from),
        ValueType::Count => first.parse::<u64>().ok().map(Value::from),
        _ if repeated => Some(Value::from(given)),
        _ => Some(Value::from(first.as_str())),
    }
}

/// An effect that is not known is not known to be harmless: only more than reading says something then.
fn effect_with(own: Option<SpecCommandEffect>, raised: Option<SpecCommandEffect>) -> Option<Effect> {
    let raised = raised.filter(|raised| own.is_some() || *raised > SpecCommandEffect::Read);
    own.max(raised).map(effect)
}

fn effect(spec: SpecCommandEffect) -> Effect {
    match spec {
        SpecCommandEffect::Read => Effect::Read,
        SpecCommandEffect::Write => Effect::Write,
        SpecCommandEffect::Destructive => Effect::Destructive,
    }
}

fn example(spec: &SpecExample) -> String {
    let said = [&spec.header, &spec.help]
        .into_iter()
        .flatten()
        .map(|text| format!("# {text}\n"));
    said.collect::<String>() + &spec.code
}

/// The summary in one line, and the long text where it says more.
fn texts(short: Option<&str>, long: Option<&str>) -> (Option<String>, Option<String>) {
    let said = |text: &&str| !text.trim().is_empty();
    let (short, long) = (short.map(str::trim).filter(said), long.map(str::trim).filter(said));
    let text = long.or(short);
    let summary = short.or(long).and_then(|text| text.lines().next()).map(str::to_owned);
    let description = text.filter(|text| Some(*text) != summary.as_deref()).map(str::to_owned);
    (summary, description)
}

fn longest(texts: &[&Option<String>]) -> Option<String> {
    let said = texts.iter().filter_map(|text| text.as_deref()).map(str::trim);
    said.max_by_key(|text| text.len())
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}
