//! Tools that just answer, with every kind of content.

use crate::blocks::{answer, audio_block, image_block, resource_block, text, text_block};
use crate::host::mcp::content::Content;

pub fn simple_text() -> Content {
    text("This is a simple text response for testing.")
}

pub fn image() -> Content {
    answer(vec![image_block()])
}

pub fn audio() -> Content {
    answer(vec![audio_block()])
}

pub fn embedded_resource() -> Content {
    answer(vec![resource_block(
        "test://embedded-resource",
        "text/plain",
        "This is an embedded resource content.",
    )])
}

pub fn several() -> Content {
    answer(vec![
        text_block("Multiple content types test:"),
        image_block(),
        resource_block(
            "test://mixed-content-resource",
            "application/json",
            r#"{"test":"data","value":123}"#,
        ),
    ])
}
