//! Tools that say something while they run: how far they are, what they do, what changed, what they need.

use std::thread::sleep;
use std::time::Duration;

use crate::blocks::text;
use crate::host::mcp::content::Content;
use crate::host::mcp::context::Capabilities;
use crate::host::mcp::log::Level;
use crate::host::mcp::{changes, context, log, progress};
use crate::resources::WATCHED;

/// Long enough for a client to see one message before the next.
const PAUSE: Duration = Duration::from_millis(50);

pub fn with_progress() -> Content {
    progress::report(0.0, Some(100.0), None);
    sleep(PAUSE);
    progress::report(50.0, Some(100.0), None);
    sleep(PAUSE);
    progress::report(100.0, Some(100.0), None);
    text("Progress was reported.")
}

pub fn with_logging() -> Content {
    info("Tool execution started");
    sleep(PAUSE);
    info("Tool processing data");
    sleep(PAUSE);
    info("Tool execution completed");
    text("Three messages were logged.")
}

pub fn logging() -> Content {
    info("Seen by those who asked for it");
    text("A message was logged.")
}

pub fn reconnection() -> Content {
    sleep(PAUSE * 2);
    text("The call came to its end.")
}

pub fn tool_change() -> Content {
    changes::tools();
    text("The list of tools changed.")
}

pub fn prompt_change() -> Content {
    changes::prompts();
    text("The list of prompts changed.")
}

pub fn resource_change() -> Content {
    changes::resource(WATCHED);
    text("The watched resource changed.")
}

pub fn missing_capability() -> Content {
    context::require(Capabilities::SAMPLING);
    text("The client has a model.")
}

fn info(message: &str) {
    log::write(Level::Info, Some("conformance"), message);
}
