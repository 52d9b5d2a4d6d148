//! Logs: to stderr, because stdout is the protocol.

use std::io::IsTerminal;

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

#[derive(Args)]
pub(crate) struct LogOptions {
    /// What to log: error, warn, info, debug, or a filter such as `warn,guest=info`
    #[arg(long, global = true, env = "HOST_LOG", default_value = "warn", value_name = "FILTER", value_parser = filter)]
    log: String,
    /// How to log
    #[arg(long, global = true, default_value = "text", value_name = "FORMAT")]
    log_format: LogFormat,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

/// `EnvFilter` itself cannot be cloned, as clap wants its values to be, so its text is checked here.
fn filter(text: &str) -> Result<String, tracing_subscriber::filter::ParseError> {
    EnvFilter::try_new(text).map(|_| text.to_owned())
}

impl LogOptions {
    pub(crate) fn start(&self) {
        // rmcp logs whole messages at `debug`, and with them the values of arguments, which are nobody's business in a log.
        // A connection that breaks is an error of ours to tell, once and in our words.
        let quiet = if self.log.contains("rmcp") {
            ""
        } else {
            ",rmcp=error,rmcp::service=off,rmcp::transport::worker=off"
        };
        let filter = EnvFilter::new(format!("{}{quiet}", self.log));
        let logs = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .with_ansi(std::io::stderr().is_terminal());
        match self.log_format {
            LogFormat::Text => logs.without_time().with_target(false).init(),
            LogFormat::Json => logs.json().init(),
        }
        // A panic ends one call or one file and is reported there; what it says is for the log.
        std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
    }
}
