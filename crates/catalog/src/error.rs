//! What can go wrong with a connection.

use std::io;
use std::time::Duration;

/// Why a server could not be reached, or could not answer.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("`{program}` could not be started: {problem}{}", if problem.kind() == io::ErrorKind::NotFound { "\nhint: is it installed, and in PATH?" } else { "\nhint: is it a program that may be run?" })]
    Start { program: String, problem: io::Error },
    #[error("the server ended{status}{}", last_words(.stderr))]
    Ended { status: String, stderr: String },
    #[error("the server did not answer within {} s{}\nhint: `--timeout` gives it more time; `--era legacy` helps with a server that passes over what it does not know", .limit.as_secs_f64(), last_words(.stderr))]
    Timeout { limit: Duration, stderr: String },
    #[error("`{url}` could not be reached: {problem}\nhint: is the server running, and the address right?")]
    Unreachable { url: String, problem: String },
    #[error(
        "`{url}` asks for authorization\nhint: give a token with `--token-file FILE` or `--token-env NAME`, or a header with `--header`"
    )]
    Unauthorized { url: String },
    #[error("`{url}` refuses to answer (403 Forbidden){}\nhint: a token may be missing (`--token-file`, `--header`), or the server may want another name for itself", quoted(.body))]
    Forbidden { url: String, body: String },
    #[error("`{url}` answered {status}, not as an MCP server does{}\nhint: is this the address of its endpoint, such as `…/mcp`?", quoted(.body))]
    Status { url: String, status: String, body: String },
    #[error("`{url}` leads to another server, `{to}`\nhint: name that one, if you trust it; headers and tokens are not sent on")]
    Redirect { url: String, to: String },
    #[error("the server sent a message of more than {} MiB", .limit >> 20)]
    TooLarge { limit: usize },
    #[error("the server sent a message that is nested too deeply to be read")]
    TooDeep,
    #[error("the server sent a message that cannot be read: {problem}")]
    Unreadable { problem: String },
    #[error("the server does not keep to the protocol: {problem}")]
    Protocol { problem: String },
    #[error("no connection can be made: {0}")]
    Setup(String),
}

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error(transparent)]
    Connection(#[from] ConnectError),
    #[error("the server refused the call: {message} (code {code})")]
    Refused { code: i64, message: String },
    #[error("the answer of the server is not one of the protocol: {0}")]
    Answer(String),
    #[error("{0}")]
    Endless(String),
    #[error("the tool asks for input that cannot be given here; call it from a client that can ask you")]
    InputRequired,
}

fn last_words(stderr: &str) -> String {
    let stderr = crate::plain(stderr);
    match stderr.trim() {
        "" => String::new(),
        words => format!("; its last words:\n{words}"),
    }
}

fn quoted(body: &str) -> String {
    match crate::plain_line(body).as_str() {
        "" => String::new(),
        body => format!(": {body}"),
    }
}
