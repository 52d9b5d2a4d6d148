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

/// What is kept of each stream.
const KEPT: usize = 64 << 10;

/// What a guest may hand over in one write.
const WRITE: usize = 1 << 20;

/// One captured stream; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Capture(Arc<Mutex<Captured>>);

#[derive(Debug, Default)]
struct Captured {
    text: Vec<u8>,
    dropped: u64,
}

impl Capture {
    fn push(&self, bytes: &[u8]) {
        let mut captured = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = KEPT.saturating_sub(captured.text.len()).min(bytes.len());
        let (kept, dropped) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        captured.text.extend_from_slice(kept);
        captured.dropped += dropped.len() as u64;
    }

    /// What was printed, with a mark where it was cut; `None` if nothing was.
    pub(crate) fn text(&self) -> Option<String> {
        let captured = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if captured.text.is_empty() {
            return None;
        }
        let mut text = String::from_utf8_lossy(&captured.text).into_owned();
        if captured.dropped > 0 {
            text.push_str(&format!("… [{} more bytes]", captured.dropped));
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
        let capture = Capture::default();
        assert_eq!(capture.text(), None);
        for _ in 0..100 {
            capture.push(&[b'x'; 1000]);
        }
        let text = capture.text().unwrap();
        assert!(text.len() < KEPT + 100);
        assert!(
            text.ends_with(&format!("… [{} more bytes]", 100_000 - KEPT)),
            "{}",
            &text[KEPT..]
        );
    }
}
