//! Bodies: what is read of a client, within limits of size, time and room; and what is sent to it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// How long the next piece of a body may take.
const PIECE_TIMEOUT: Duration = Duration::from_secs(30);

/// How fast a body has to come, after the time of one piece: one that drips is as bad as one that does not come.
const MIN_BYTES_PER_SECOND: u64 = 16 << 10;

/// What of each body takes no part of the room for all: whatever the others send, a usual request gets in.
const FREE: usize = 64 << 10;

/// How long a client may go on sending what is not wanted, so that it sees the answer.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Room for all bodies that are worked on at the same time.
#[derive(Clone, Debug)]
pub(super) struct Room {
    max_body: usize,
    budget: Arc<Semaphore>,
}

/// Part of the room, until it is dropped.
pub(super) type Taken = Option<OwnedSemaphorePermit>;

#[derive(Debug)]
pub(super) enum BodyError {
    TooLarge,
    NoRoom,
    Slow,
    Broken(hyper::Error),
}

impl Room {
    /// Room for some bodies of the largest size.
    pub(super) fn new(max_body: usize, total: usize) -> Self {
        Self {
            max_body,
            budget: Arc::new(Semaphore::new(total.max(max_body).min(Semaphore::MAX_PERMITS))),
        }
    }

    pub(super) fn max_body(&self) -> usize {
        self.max_body
    }

    pub(super) async fn read(&self, mut body: Incoming) -> Result<(Bytes, Taken), BodyError> {
        let read = self.read_within(&mut body).await;
        if let Err(BodyError::TooLarge | BodyError::NoRoom) = &read {
            drain(&mut body).await;
        }
        read
    }

    async fn read_within(&self, body: &mut Incoming) -> Result<(Bytes, Taken), BodyError> {
        let announced = body.size_hint().lower();
        if announced > self.max_body as u64 {
            return Err(BodyError::TooLarge);
        }
        let begun = Instant::now();
        let mut collected = BytesMut::new();
        let mut taken: Taken = None;
        loop {
            let by_rate = Duration::from_secs(collected.len() as u64 / MIN_BYTES_PER_SECOND);
            let deadline = (Instant::now() + PIECE_TIMEOUT).min(begun + PIECE_TIMEOUT + by_rate);
            let frame = match timeout_at(deadline, body.frame()).await {
                Err(_) => return Err(BodyError::Slow),
                Ok(None) => return Ok((collected.freeze(), taken)),
                Ok(Some(frame)) => frame.map_err(BodyError::Broken)?,
            };
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if data.len() > self.max_body - collected.len() {
                return Err(BodyError::TooLarge);
            }
            let before = collected.len().max(FREE);
            let after = (collected.len() + data.len()).max(FREE);
            self.take(&mut taken, after - before)?;
            collected.extend_from_slice(&data);
        }
    }

    fn take(&self, taken: &mut Taken, more: usize) -> Result<(), BodyError> {
        if more == 0 {
            return Ok(());
        }
        let more = u32::try_from(more).map_err(|_| BodyError::TooLarge)?;
        let permit = Arc::clone(&self.budget)
            .try_acquire_many_owned(more)
            .map_err(|_| BodyError::NoRoom)?;
        match taken {
            Some(taken) => taken.merge(permit),
            None => *taken = Some(permit),
        }
        Ok(())
    }
}

/// Reads what a client still sends, for a while: a connection that is closed before takes the answer with it.
async fn drain(body: &mut Incoming) {
    let deadline = Instant::now() + DRAIN_TIMEOUT;
    while let Ok(Some(Ok(_))) = timeout_at(deadline, body.frame()).await {}
}

/// What is sent.
pub(super) struct Outgoing {
    body: BoxBody<Bytes, Infallible>,
    /// What would go on for ever ends then.
    until: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    /// The request takes its room until it is answered in whole.
    _taken: Option<Arc<OwnedSemaphorePermit>>,
}

impl Outgoing {
    pub(super) fn new(body: BoxBody<Bytes, Infallible>) -> Self {
        Self {
            body,
            until: None,
            _taken: None,
        }
    }

    pub(super) fn until(mut self, end: CancellationToken) -> Self {
        self.until = Some(Box::pin(end.cancelled_owned()));
        self
    }

    pub(super) fn holding(mut self, taken: Option<Arc<OwnedSemaphorePermit>>) -> Self {
        self._taken = taken;
        self
    }
}

impl<T: Into<Bytes>> From<T> for Outgoing {
    fn from(bytes: T) -> Self {
        Self::new(Full::new(bytes.into()).boxed())
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(until) = &mut self.until
            && until.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
