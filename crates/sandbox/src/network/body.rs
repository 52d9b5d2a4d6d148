//! A response as it comes in: counted, and not waited for without end.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use policy::ByteSize;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep};
use wasmtime_wasi_http::Error;

use crate::denials::{Denials, Denied};

/// What a call may still receive; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Allowance {
    left: Arc<AtomicU64>,
    whole: u64,
}

impl Allowance {
    pub(crate) fn new(bytes: u64) -> Self {
        Self {
            left: Arc::new(AtomicU64::new(bytes)),
            whole: bytes,
        }
    }

    /// Whether there was room for so many bytes more.
    fn take(&self, bytes: u64) -> bool {
        let taken = self
            .left
            .try_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(bytes));
        taken.is_ok()
    }
}

/// The body of a response. Its connection ends with it.
pub(super) struct Received {
    pub(super) incoming: Incoming,
    pub(super) allowance: Allowance,
    pub(super) denials: Denials,
    /// What may pass between two pieces.
    pub(super) patience: Duration,
    pub(super) waiting: Pin<Box<Sleep>>,
    /// Only there to be dropped.
    pub(super) _connection: Connection,
}

/// Drives a connection until it is dropped.
pub(super) struct Connection(pub(super) JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Body for Received {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = match Pin::new(&mut self.incoming).poll_frame(cx) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                ready!(self.waiting.as_mut().poll(cx));
                return Poll::Ready(Some(Err(Error::ConnectionReadTimeout)));
            }
        };
        let next = Instant::now() + self.patience;
        self.waiting.as_mut().reset(next);
        Poll::Ready(match frame {
            Some(Ok(frame)) => {
                let size = frame.data_ref().map_or(0, |data| data.len() as u64);
                if self.allowance.take(size) {
                    Some(Ok(frame))
                } else {
                    self.denials.add(Denied {
                        what: format!(
                            "to receive more than {} over HTTP in one call; `--max-received` allows more",
                            ByteSize::from_bytes(self.allowance.whole)
                        ),
                        remedy: None,
                    });
                    Some(Err(Error::HttpResponseBodySize(Some(self.allowance.whole))))
                }
            }
            Some(Err(error)) => Some(Err(error.into())),
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
