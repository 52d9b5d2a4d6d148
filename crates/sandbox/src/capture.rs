//! What a guest prints: kept up to a bound, never passed on to our own stdout, and never an error for the guest. A pipe that
//! closes when it is full would make a harmless `println!` panic.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use crate::client::Client;

/// What is shown or logged of a stream.
const SHOWN: usize = 64 << 10;

/// What a guest may hand over in one write.
const WRITE: usize = 1 << 20;

/// One captured stream; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Capture {
    captured: Arc<Mutex<Captured>>,
    room: usize,
    /// Who hears how much was printed.
    client: Option<Arc<dyn Client>>,
}

/// What a guest printed to one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    pub bytes: Vec<u8>,
    /// How many more bytes there were.
    pub dropped: u64,
}

impl Capture {
    /// Keeps this many bytes.
    pub(crate) fn with_room(room: usize) -> Self {
        Self {
            captured: Arc::default(),
            room,
            client: None,
        }
    }

    pub(crate) fn told_to(self, client: &Arc<dyn Client>) -> Self {
        Self {
            client: Some(Arc::clone(client)),
            ..self
        }
    }

    fn push(&self, bytes: &[u8]) {
        if let Some(client) = &self.client {
            client.printed(bytes.len());
        }
        let mut captured = self.captured.lock().unwrap_or_else(PoisonError::into_inner);
        let room = self.room.saturating_sub(captured.bytes.len()).min(bytes.len());
        let (kept, dropped) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        captured.bytes.extend_from_slice(kept);
        captured.dropped += dropped.len() as u64;
    }

    /// All that was kept. The stream is empty afterwards.
    pub(crate) fn take(&self) -> Captured {
        std::mem::take(&mut self.captured.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What was printed, with a mark where it was cut; `None` if nothing was.
    pub(crate) fn text(&self) -> Option<String> {
        let captured = self.captured.lock().unwrap_or_else(PoisonError::into_inner);
        if captured.bytes.is_empty() {
            return None;
        }
        // No more is ever shown or logged of it.
        let shown = captured.bytes.get(..SHOWN).unwrap_or(&captured.bytes);
        let mut text = String::from_utf8_lossy(shown).into_owned();
        let more = captured.dropped + (captured.bytes.len() - shown.len()) as u64;
        if more > 0 {
            text.push_str(&format!("… [{more} more bytes]"));
        }
        Some(text)
    }
}

impl IsTerminal for Capture {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Capture {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Pollable for Capture {
    async fn ready(&mut self) {}
}

impl OutputStream for Capture {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.push(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WRITE)
    }
}

impl AsyncWrite for Capture {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.push(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_and_marked() {
        let capture = Capture::with_room(SHOWN);
        assert_eq!(capture.text(), None);
        for _ in 0..100 {
            capture.push(&[b'x'; 1000]);
        }
        let text = capture.text().unwrap();
        assert!(text.len() < SHOWN + 100);
        assert!(
            text.ends_with(&format!("… [{} more bytes]", 100_000 - SHOWN)),
            "{}",
            &text[SHOWN..]
        );
    }
}
