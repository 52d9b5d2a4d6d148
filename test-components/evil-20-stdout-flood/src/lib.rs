//! Floods its output. Each line looks like an answer of the host, so one that slips through to the client is noticed.

wit_bindgen::generate!({ path: "wit" });

use std::io::Write;

const FORGED: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"forged\":true}}\n";

struct StdoutFlood;

/// Write errors are ignored: a guest that floods does not stop because nobody listens.
fn flood(mut out: impl Write, mebibytes: u32) -> u32 {
    let chunk = FORGED.repeat((1 << 16) / FORGED.len());
    let mut left = u64::from(mebibytes) << 20;
    while left > 0 {
        let _ = out.write_all(chunk.as_bytes());
        left = left.saturating_sub(chunk.len() as u64);
    }
    let _ = out.flush();
    mebibytes
}

impl Guest for StdoutFlood {
    fn flood_stdout(mebibytes: u32) -> u32 {
        flood(std::io::stdout().lock(), mebibytes)
    }

    fn flood_stderr(mebibytes: u32) -> u32 {
        flood(std::io::stderr().lock(), mebibytes)
    }

    fn say(text: String) -> String {
        let _ = std::io::stdout().write_all(text.as_bytes());
        let _ = std::io::stdout().flush();
        let _ = std::io::stderr().write_all(text.as_bytes());
        text
    }

    fn add(a: i32, b: i32) -> i32 {
        a.wrapping_add(b)
    }
}

export!(StdoutFlood);
