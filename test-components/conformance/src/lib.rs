//! What the official conformance suite of MCP wants of a server: tools, resources, prompts and completions that say and ask
//! everything that a component can.
//!
//! The texts, names and keys are those of the descriptions of the suite's scenarios. State that a client carries between
//! two rounds is sealed by the host, so nothing of it is seen here.

mod answers;
mod blocks;
mod calls;
mod completions;
mod prompts;
mod questions;
mod resources;

wit_bindgen::generate!({ path: "wit", generate_all });

struct Conformance;

impl Guest for Conformance {
    fn test_simple_text() -> Content {
        answers::simple_text()
    }

    fn test_image_content() -> Content {
        answers::image()
    }

    fn test_audio_content() -> Content {
        answers::audio()
    }

    fn test_embedded_resource() -> Content {
        answers::embedded_resource()
    }

    fn test_multiple_content_types() -> Content {
        answers::several()
    }

    fn test_error_handling() -> Result<Content, String> {
        Err("This tool intentionally returns an error for testing".to_owned())
    }

    fn test_tool_with_progress() -> Content {
        calls::with_progress()
    }

    fn test_tool_with_logging() -> Content {
        calls::with_logging()
    }

    fn test_logging_tool() -> Content {
        calls::logging()
    }

    fn test_reconnection() -> Content {
        calls::reconnection()
    }

    fn test_trigger_tool_change() -> Content {
        calls::tool_change()
    }

    fn test_trigger_prompt_change() -> Content {
        calls::prompt_change()
    }

    fn test_trigger_resource_change() -> Content {
        calls::resource_change()
    }

    fn test_missing_capability() -> Content {
        calls::missing_capability()
    }

    fn test_sampling(prompt: String) -> Result<Content, String> {
        questions::sampling(prompt)
    }

    fn test_elicitation(message: String) -> Result<Content, String> {
        questions::elicitation(&message)
    }

    fn test_elicitation_sep1034_defaults() -> Result<Content, String> {
        questions::defaults()
    }

    fn test_elicitation_sep1330_enums() -> Result<Content, String> {
        questions::enums()
    }

    fn test_streaming_elicitation() -> Result<Content, String> {
        questions::confirmation("Please go on")
    }

    fn test_input_required_result_elicitation() -> Result<Content, String> {
        questions::name()
    }

    fn test_input_required_result_sampling() -> Result<Content, String> {
        questions::capital()
    }

    fn test_input_required_result_list_roots() -> Result<Content, String> {
        questions::folders()
    }

    fn test_input_required_result_request_state() -> Result<Content, String> {
        questions::confirmation("Please confirm")
    }

    fn test_input_required_result_multiple_inputs() -> Result<Content, String> {
        questions::all_at_once()
    }

    fn test_input_required_result_multi_round() -> Result<Content, String> {
        questions::two_rounds()
    }

    fn test_input_required_result_tampered_state() -> Result<Content, String> {
        questions::confirmation("Please confirm")
    }

    fn test_input_required_result_capabilities() -> Result<Content, String> {
        questions::whatever_is_possible()
    }

    fn json_schema(
        name: Option<String>,
        address: Option<Address>,
        contact_method: Option<ContactMethod>,
        phone: Option<String>,
        email: Option<String>,
    ) -> Content {
        blocks::text(format!("{name:?}, {address:?}, {contact_method:?}, {phone:?}, {email:?}"))
    }

    fn test_header(region: String) -> Content {
        blocks::text(format!("Region: {region}"))
    }
}

export!(Conformance);
