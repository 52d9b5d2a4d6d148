//! A server as a child process, ended with all that it started.

use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

#[cfg(windows)]
use process_wrap::tokio::JobObject;
#[cfg(unix)]
use process_wrap::tokio::ProcessGroup;
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use crate::{ConnectError, ServerCommand};

/// How long a server may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);
/// How much of its stderr is kept: enough for a stack trace.
const MAX_STDERR: usize = 4 << 10;

pub(crate) struct Process {
    child: Box<dyn ChildWrapper>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
}

impl Process {
    pub(crate) fn start(command: &ServerCommand) -> Result<(Self, ChildStdout, ChildStdin), ConnectError> {
        let failed = |problem| ConnectError::Start {
            program: command.program.clone(),
            problem,
        };
        let mut wrapped = CommandWrap::with_new(&command.program, |process| {
            process.args(&command.arguments).envs(command.environment.iter().cloned());
            process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            if let Some(directory) = &command.directory {
                process.current_dir(directory);
            }
        });
        // `npx`, `uvx` and shells run the server as a child of theirs.
        #[cfg(unix)]
        wrapped.wrap(ProcessGroup::leader());
        #[cfg(windows)]
        wrapped.wrap(JobObject);
        wrapped.wrap(KillOnDrop);
        let mut child = wrapped.spawn().map_err(failed)?;
        let pipes = (child.stdout().take(), child.stdin().take(), child.stderr().take());
        let (Some(stdout), Some(stdin), Some(stderr)) = pipes else {
            return Err(failed(std::io::Error::other("it has no pipes")));
        };
        let kept = Arc::default();
        tokio::spawn(keep_the_end(stderr, Arc::clone(&kept)));
        Ok((Self { child, stderr: kept }, stdout, stdin))
    }

    pub(crate) fn stderr(&self) -> String {
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let (a, b) = stderr.as_slices();
        String::from_utf8_lossy(&[a, b].concat()).into_owned()
    }

    /// How it ended, if it does so within a moment.
    pub(crate) async fn status(&mut self) -> String {
        let status = tokio::time::timeout(GRACE, self.child.wait()).await;
        // What it wrote last is read by another task.
        tokio::time::sleep(Duration::from_millis(50)).await;
        match status {
            Ok(Ok(status)) => match status.code() {
                Some(code) => format!(" with exit code {code}"),
                None => format!(" ({status})"),
            },
            _ => " its output".to_owned(),
        }
    }

    /// Waits until it has ended, for a while.
    pub(crate) async fn end(mut self) {
        let _ = tokio::time::timeout(GRACE, self.child.wait()).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Whatever it started and left behind ends now as well. There is nothing to do about one that cannot be ended.
        let _ = self.child.start_kill();
    }
}

async fn keep_the_end(mut stderr: ChildStderr, kept: Arc<Mutex<VecDeque<u8>>>) {
    let mut buffer = vec![0; 4 << 10];
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        let bytes = buffer.get(..read).unwrap_or_default();
        tracing::debug!(stderr = %String::from_utf8_lossy(bytes).trim_end(), "the server says");
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(bytes);
        let excess = kept.len().saturating_sub(MAX_STDERR);
        kept.drain(..excess);
    }
}
