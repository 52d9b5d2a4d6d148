//! Blocks of content, as short to write as the tools here need them.

use crate::host::mcp::content::{Block, Content, MediaBlock, ResourceBlock, ResourceBody, ResourceContents, TextBlock};

pub const RED_PIXEL: &[u8] = include_bytes!("../media/red-pixel.png");
pub const SILENCE: &[u8] = include_bytes!("../media/silence.wav");

/// An answer of one line.
pub fn text(text: impl Into<String>) -> Content {
    answer(vec![text_block(text)])
}

pub fn answer(blocks: Vec<Block>) -> Content {
    Content {
        blocks,
        structured: None,
    }
}

pub fn text_block(text: impl Into<String>) -> Block {
    Block::Text(TextBlock {
        text: text.into(),
        annotations: None,
    })
}

pub fn image_block() -> Block {
    Block::Image(MediaBlock {
        data: RED_PIXEL.to_vec(),
        mime_type: "image/png".to_owned(),
        annotations: None,
    })
}

pub fn audio_block() -> Block {
    Block::Audio(MediaBlock {
        data: SILENCE.to_vec(),
        mime_type: "audio/wav".to_owned(),
        annotations: None,
    })
}

pub fn resource_block(uri: &str, mime_type: &str, text: &str) -> Block {
    Block::Embedded(ResourceBlock {
        resource: ResourceContents {
            uri: uri.to_owned(),
            mime_type: Some(mime_type.to_owned()),
            body: ResourceBody::Text(text.to_owned()),
        },
        annotations: None,
    })
}
