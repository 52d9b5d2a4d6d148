//! One connection.

use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::yield_now;
use tokio::time::{Instant, Sleep, sleep};

use super::endpoint::{Endpoint, Seat};
use crate::lull::Lull;

/// How long the head of a request may take, and how long a connection may wait for one.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);

/// Likewise where there is no room.
const SPARE_HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// Ids of sessions and parameters that are headers have room in this.
const MAX_HEAD: usize = 32 << 10;

/// What of an answer is kept for a client that reads slowly.
const MAX_BUFFER: usize = 128 << 10;

/// How long a client may read nothing of what is sent to it. Events of its own come every 15 seconds.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Serves a connection to its end. Once the server shuts down, that is the end of the request that is being answered.
pub(super) async fn serve(stream: TcpStream, endpoint: Arc<Endpoint>, is_spare: bool) {
    let Ok(local) = prepare(&stream) else {
        return;
    };
    let seat = Seat { local, is_spare };
    let service = service_fn(|request: Request<Incoming>| {
        let endpoint = Arc::clone(&endpoint);
        async move { Ok::<_, Infallible>(endpoint.answer(request, seat).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(if is_spare { SPARE_HEAD_TIMEOUT } else { HEAD_TIMEOUT })
        .max_header_size(MAX_HEAD)
        .max_buf_size(MAX_BUFFER)
        .keep_alive(!is_spare)
        .serve_connection(TokioIo::new(Attentive::new(stream, WRITE_TIMEOUT)), service);
    let mut connection = std::pin::pin!(connection);
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = endpoint.shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended badly");
    }
}

/// Sees to it that small writes do not wait for what the other side acknowledges late. Gives the address that was reached.
fn prepare(stream: &TcpStream) -> io::Result<IpAddr> {
    stream.set_nodelay(true)?;
    Ok(stream.local_addr()?.ip())
}

/// A stream whose other side has to read now and then, and need not wake anybody if it asks again at once.
struct Attentive<T> {
    stream: T,
    patience: Duration,
    /// Since when nothing can be written.
    stuck: Option<Pin<Box<Sleep>>>,
    lull: Lull,
}

impl<T> Attentive<T> {
    fn new(stream: T, patience: Duration) -> Self {
        Self {
            stream,
            patience,
            stuck: None,
            lull: Lull::new(),
        }
    }

    fn wrote(&mut self, written: Poll<io::Result<usize>>, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.lull.begin(Instant::now());
        }
        self.watched(written, context)
    }

    fn watched<R>(&mut self, written: Poll<io::Result<R>>, context: &mut Context<'_>) -> Poll<io::Result<R>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(self.patience)));
        stuck.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Attentive<T> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let now = Instant::now();
        if read.is_ready() {
            self.lull.end(now);
        } else if self.lull.is_watched(now) {
            // Looks again when all others had their turn: its first poll only sees to that.
            let _not_yet = pin!(yield_now()).poll(context);
        }
        read
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Attentive<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(written, context)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.wrote(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.watched(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn what_is_written_is_sent_at_once() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let local = prepare(&stream).unwrap();
        assert!(local.is_loopback() && stream.nodelay().unwrap());
    }

    #[tokio::test]
    async fn whoever_reads_nothing_is_given_up() {
        let (stream, _other_side) = tokio::io::duplex(16);
        let mut stream = Attentive::new(stream, Duration::from_millis(1));
        stream.write_all(&[0; 16]).await.unwrap();
        let error = stream.write_all(&[0]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
