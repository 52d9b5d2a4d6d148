//! Prompts: plain, with arguments, with a resource, with an image, and one that asks the user first.

use crate::Conformance;
use crate::blocks::{image_block, resource_block, text_block};
use crate::exports::host::mcp::prompts::{Argument, Error, Filled, Guest, Message, Prompt};
use crate::host::mcp::content::{Block, Role};
use crate::questions::{ask_user, field, form_of};

pub const WITH_ARGUMENTS: &str = "test_prompt_with_arguments";
const SIMPLE: &str = "test_simple_prompt";
const WITH_RESOURCE: &str = "test_prompt_with_embedded_resource";
const WITH_IMAGE: &str = "test_prompt_with_image";
const ASKS: &str = "test_input_required_result_prompt";

impl Guest for Conformance {
    fn list() -> Vec<Prompt> {
        vec![
            prompt(SIMPLE, "A prompt without arguments", &[]),
            prompt(
                WITH_ARGUMENTS,
                "A prompt with two arguments",
                &[("arg1", "First test argument"), ("arg2", "Second test argument")],
            ),
            prompt(
                WITH_RESOURCE,
                "A prompt with a resource in it",
                &[("resourceUri", "URI of the resource to embed")],
            ),
            prompt(WITH_IMAGE, "A prompt with an image in it", &[]),
            prompt(ASKS, "A prompt that asks the user first", &[]),
        ]
    }

    fn get(name: String, arguments: Vec<(String, String)>) -> Result<Filled, Error> {
        let blocks = match name.as_str() {
            SIMPLE => vec![text_block("This is a simple prompt for testing.")],
            WITH_ARGUMENTS => {
                let (arg1, arg2) = (argument(&arguments, "arg1")?, argument(&arguments, "arg2")?);
                vec![text_block(format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"))]
            }
            WITH_RESOURCE => vec![
                resource_block(
                    argument(&arguments, "resourceUri")?,
                    "text/plain",
                    "Embedded resource content for testing.",
                ),
                text_block("Please process the embedded resource above."),
            ],
            WITH_IMAGE => vec![image_block(), text_block("Please analyze the image above.")],
            ASKS => {
                let done = ask_user("user_context", "What context should the prompt use?", &form_of("context"));
                let context = field(&done.map_err(Error::Failed)?, "context");
                vec![text_block(format!("The context is: {context}"))]
            }
            _ => return Err(Error::NotFound),
        };
        Ok(Filled {
            description: None,
            messages: blocks.into_iter().map(from_user).collect(),
        })
    }
}

/// A prompt, and its arguments with their descriptions.
fn prompt(name: &str, description: &str, arguments: &[(&str, &str)]) -> Prompt {
    let arguments = arguments.iter().map(|(name, description)| Argument {
        name: (*name).to_owned(),
        title: None,
        description: Some((*description).to_owned()),
        required: true,
    });
    Prompt {
        name: name.to_owned(),
        title: None,
        description: Some(description.to_owned()),
        arguments: arguments.collect(),
    }
}

fn argument<'a>(arguments: &'a [(String, String)], name: &str) -> Result<&'a str, Error> {
    let given = arguments.iter().find(|(given, _)| given == name);
    given
        .map(|(_, value)| value.as_str())
        .ok_or_else(|| Error::Invalid(format!("`{name}` is missing")))
}

fn from_user(content: Block) -> Message {
    Message {
        role: Role::User,
        content,
    }
}
