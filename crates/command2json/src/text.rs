//! Arguments as a person types them: `name=value`, read by the type of the flag or positional.

use component2json::{UnknownParameter, nearest_first};
use serde_json::{Map, Value};

use crate::argv::{find_flag, find_positional};
use crate::plan::Plan;
use crate::tools::Target;
use crate::tree::ValueType;

/// Adds one argument to those of a call. What can be given several times is collected.
pub fn add_argument(target: &Target, arguments: &mut Map<String, Value>, name: &str, text: &str) -> Result<(), UnknownParameter> {
    let plan = match target {
        Target::Command(plan) => plan,
        Target::Bundle(_) if name == "command" => {
            arguments.insert(name.to_owned(), text.into());
            return Ok(());
        }
        Target::Bundle(plans) => match target.chosen(&Value::Object(arguments.clone())) {
            Ok(plan) => plan,
            Err(_) => return Err(unknown(name, plans.iter().map(|_| "command").take(1))),
        },
    };
    let input = Input::find(plan, name).ok_or_else(|| unknown(name, Input::names(plan)))?;
    let object = match input.section.filter(|_| !plan.flat) {
        None => arguments,
        Some(section) => match arguments.entry(section).or_insert_with(|| Value::Object(Map::new())) {
            Value::Object(object) => object,
            // `--args` said something else already, which is for the conversion to complain about.
            _ => return Ok(()),
        },
    };
    let slot = object.entry(input.key).or_insert(Value::Null);
    input.form.add(slot, text);
    Ok(())
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> UnknownParameter {
    UnknownParameter {
        name: name.to_owned(),
        parameters: nearest_first(name, known).into_iter().map(str::to_owned).collect(),
    }
}

/// Something that a command takes.
struct Input<'a> {
    key: &'a str,
    /// The object that it is in, unless the plan is flat.
    section: Option<&'static str>,
    form: Form,
}

/// How words become a value.
#[derive(Clone, Copy)]
struct Form {
    ty: ValueType,
    is_list: bool,
}

impl<'a> Input<'a> {
    fn find(plan: &'a Plan, name: &str) -> Option<Self> {
        let text = |is_list| Form {
            ty: ValueType::String,
            is_list,
        };
        if name == "stdin" && plan.stdin {
            return Some(Self {
                key: "stdin",
                section: None,
                form: text(false),
            });
        }
        let of_args = || match &plan.args {
            None => (name == "args").then_some(Self {
                key: "args",
                section: None,
                form: text(true),
            }),
            Some(named) => {
                let planned = find_positional(named, name.strip_prefix("args.").unwrap_or(name))?;
                Some(Self {
                    key: &planned.key,
                    section: Some("args"),
                    form: Form {
                        ty: planned.positional.ty,
                        is_list: planned.positional.variadic,
                    },
                })
            }
        };
        let of_flags = || {
            let index = find_flag(&plan.flags, name.strip_prefix("flags.").unwrap_or(name))?;
            let planned = plan.flags.get(index)?;
            Some(Self {
                key: &planned.key,
                section: Some("flags"),
                form: Form {
                    ty: planned.flag.ty,
                    is_list: planned.flag.repeated,
                },
            })
        };
        of_flags().or_else(of_args)
    }

    fn names(plan: &Plan) -> impl Iterator<Item = &str> {
        let args: Vec<&str> = match &plan.args {
            None => vec!["args"],
            Some(named) => named.iter().map(|planned| planned.key.as_str()).collect(),
        };
        let flags = plan.flags.iter().map(|planned| planned.key.as_str());
        flags.chain(args).chain(plan.stdin.then_some("stdin"))
    }
}

impl Form {
    fn add(self, slot: &mut Value, text: &str) {
        let json = || serde_json::from_str::<Value>(text).ok();
        match self.ty {
            ValueType::Map | ValueType::IntegerMap => match (text.split_once('='), json()) {
                (_, Some(object @ Value::Object(_))) => *slot = object,
                (Some((key, value)), _) => {
                    let value = match self.ty {
                        ValueType::IntegerMap => serde_json::from_str(value).unwrap_or_else(|_| value.into()),
                        _ => value.into(),
                    };
                    match slot {
                        Value::Object(object) => {
                            object.insert(key.to_owned(), value);
                        }
                        other => *other = Value::Object([(key.to_owned(), value)].into_iter().collect()),
                    }
                }
                (None, _) => *slot = text.into(),
            },
            _ if self.is_list => match (json(), slot) {
                (Some(list @ Value::Array(_)), slot) => *slot = list,
                (_, Value::Array(list)) => list.push(self.one(text)),
                (_, slot) => *slot = Value::Array(vec![self.one(text)]),
            },
            _ => *slot = self.one(text),
        }
    }

    /// Text as it is, where the value is a text; else as JSON, and what is none is left for the conversion to complain about.
    fn one(self, text: &str) -> Value {
        let is_json = matches!(
            self.ty,
            ValueType::Bool | ValueType::Count | ValueType::Integer | ValueType::Unsigned | ValueType::Number | ValueType::Json
        );
        let parsed = serde_json::from_str(text).ok().filter(|_| is_json);
        parsed.unwrap_or_else(|| text.into())
    }
}
