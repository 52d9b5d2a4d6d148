//! Downloads and compilations, shown to a person who waits. Nothing is shown where stderr is no terminal.

use std::io::IsTerminal;

use lifecycle::{Event, Progress};

use crate::output;

pub(crate) fn on_terminal() -> Progress {
    if !std::io::stderr().is_terminal() {
        return Progress::default();
    }
    Progress::new(|event| match event {
        Event::Downloading { received, total } => {
            let of = total.map(|total| format!(" of {}", output::size(total))).unwrap_or_default();
            output::transient(&format!("downloading: {}{of}", output::size(*received)));
        }
        Event::Compiling { size } => output::transient(&format!("compiling {} …", output::size(*size))),
        Event::Downloaded | Event::Compiled => output::transient(""),
    })
}
