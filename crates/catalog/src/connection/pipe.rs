//! MCP over a pair of pipes, one message a line, as a client.

use std::io;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

use super::wire::{MAX_MESSAGE, Wire};
use crate::ConnectError;

/// The transport. rmcp drops the future of `receive` whenever something else is ready first, so all progress is kept here.
pub(crate) struct Pipe<R, W> {
    read: BufReader<R>,
    line: Vec<u8>,
    write: Arc<Mutex<Option<W>>>,
    wire: Wire,
}

impl<R: AsyncRead + Unpin, W> Pipe<R, W> {
    pub(crate) fn new(read: R, write: W, wire: Wire) -> Self {
        Self {
            read: BufReader::with_capacity(64 << 10, read),
            line: Vec::new(),
            write: Arc::new(Mutex::new(Some(write))),
            wire,
        }
    }

    /// Reads up to the end of a line into `self.line`. `false` at the end of the input.
    async fn read_line(&mut self) -> bool {
        loop {
            let available = match self.read.fill_buf().await {
                Ok(available) => available,
                Err(error) => {
                    tracing::debug!(%error, "the server could not be read");
                    return false;
                }
            };
            if available.is_empty() {
                return false;
            }
            let newline = available.iter().position(|byte| *byte == b'\n');
            let taken = newline.map_or(available.len(), |newline| newline + 1);
            if self.line.len() + taken > MAX_MESSAGE {
                self.wire.fail(ConnectError::TooLarge { limit: MAX_MESSAGE });
                return false;
            }
            self.line.extend_from_slice(available.get(..taken).unwrap_or_default());
            self.read.consume(taken);
            if newline.is_some() {
                return true;
            }
        }
    }
}

impl<R, W> Transport<RoleClient> for Pipe<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: TxJsonRpcMessage<RoleClient>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.wire.sending(&message);
        let write = Arc::clone(&self.write);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut write = write.lock().await;
            let write = write.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
            write.write_all(&line).await?;
            write.flush().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        while self.read_line().await {
            let message = self.wire.message(&self.line);
            if message.is_none() && !self.line.trim_ascii().is_empty() {
                // Servers print to stdout by mistake, most of them when they start.
                tracing::debug!(line = %String::from_utf8_lossy(&self.line), "the server sent what is no message");
            }
            self.line.clear();
            // A large message should not hold its memory for ever.
            self.line.shrink_to(64 << 10);
            if message.is_some() || self.wire.is_broken() {
                return message;
            }
        }
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        // Its end of input is how a server learns that it can go.
        if let Some(mut write) = self.write.lock().await.take() {
            write.shutdown().await?;
        }
        Ok(())
    }
}
