//! Where guests run.
//!
//! They have threads of their own, so that a busy guest does not keep the protocol waiting. A call that may be short begins on the
//! thread that asks for it, and so does a longer one that is alone; if it is not at its end when the guest is first interrupted, or has to
//! wait, it goes on where guests run.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::task::yield_now;

use crate::error::CallError;
use crate::invoke::Finished;
use crate::pace::Pace;

/// A call on its way from one thread to another, which tells how long it took.
type Timed<T> = Pin<Box<dyn Future<Output = (Finished<T>, Duration)> + Send>>;

#[derive(Debug)]
pub(crate) struct GuestThreads(Option<tokio::runtime::Runtime>);

impl GuestThreads {
    pub(crate) fn start() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("guest")
            .enable_all()
            .build()?;
        Ok(Self(Some(runtime)))
    }

    pub(crate) fn runtime(&self) -> Option<&tokio::runtime::Runtime> {
        self.0.as_ref()
    }

    /// Runs a call: a panic in it is one failed call, and dropping the future ends it. `is_alone` tells whether no other runs or waits.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        pace: &Pace,
        is_alone: impl Fn() -> bool,
        call: impl Future<Output = Finished<T>> + Send + 'static,
    ) -> Finished<T> {
        let Some(runtime) = &self.0 else {
            return CallError::Stopped.into();
        };
        let mut call: Timed<T> = Box::pin(async move {
            let begun = Instant::now();
            let finished = call.await;
            (finished, begun.elapsed())
        });
        let ended = if pace.may_be_short() || pace.is_brief() && stays_alone(is_alone).await {
            match std::future::poll_fn(|context| Poll::Ready(poll_here(runtime, &mut call, context))).await {
                Poll::Ready(ended) => ended,
                Poll::Pending => {
                    pace.took(None);
                    return moved(runtime, call)
                        .await
                        .map_or_else(Finished::from, |(finished, _)| finished);
                }
            }
        } else {
            moved(runtime, call).await
        };
        match ended {
            Ok((finished, time)) => {
                pace.took(Some(time));
                finished
            }
            Err(error) => error.into(),
        }
    }
}

/// Whether a call is alone even after whatever was asked together with it had its turn.
async fn stays_alone(is_alone: impl Fn() -> bool) -> bool {
    yield_now().await;
    is_alone()
}

thread_local! {
    static IS_ASKING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is the thread that asked for the call that runs on it, and is to write its answer.
pub(crate) fn is_asking() -> bool {
    IS_ASKING.get()
}

/// Lets a call run on this thread until it first waits. Its timers and sockets belong to the guests' threads from the start.
fn poll_here<T>(
    runtime: &tokio::runtime::Runtime,
    call: &mut Timed<T>,
    context: &mut Context<'_>,
) -> Poll<Result<(Finished<T>, Duration), CallError>> {
    let _guests = runtime.enter();
    IS_ASKING.set(true);
    let polled = catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context)));
    IS_ASKING.set(false);
    match polled {
        Ok(polled) => polled.map(Ok),
        Err(_) => Poll::Ready(Err(CallError::HostPanic)),
    }
}

/// Lets a call run, or go on, on the guests' threads.
async fn moved<T: Send + 'static>(runtime: &tokio::runtime::Runtime, call: Timed<T>) -> Result<(Finished<T>, Duration), CallError> {
    let mut task = AbortOnDrop(runtime.spawn(call));
    (&mut task.0).await.map_err(|error| match error.is_panic() {
        true => CallError::HostPanic,
        false => CallError::Stopped,
    })
}

impl Drop for GuestThreads {
    /// A runtime must not wait for its threads inside an async context, and a guest in a loop would make it wait.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use policy::Limits;

    use super::*;
    use crate::gate::Gate;

    #[tokio::test]
    async fn a_panic_is_one_failed_call_wherever_it_runs() {
        let threads = GuestThreads::start().unwrap();
        let [long, unknown] = [Pace::default(), Pace::default()];
        long.took(None);
        assert!(unknown.may_be_short() && !long.may_be_short());
        for pace in [long, unknown] {
            let finished: Finished<()> = threads.run(&pace, || true, async { panic!("on purpose") }).await;
            assert!(matches!(finished.result, Err(CallError::HostPanic)), "{finished:?}");
        }
        // One that begins here and goes on there.
        let unknown = Pace::default();
        let call = async {
            tokio::task::yield_now().await;
            panic!("on purpose")
        };
        let finished: Finished<()> = threads.run(&unknown, || true, call).await;
        assert!(matches!(finished.result, Err(CallError::HostPanic)), "{finished:?}");
    }

    #[tokio::test]
    async fn a_brief_call_stays_here_while_it_is_alone() {
        let (threads, limits) = (GuestThreads::start().unwrap(), Limits::default());
        let gate = Gate::new(4, &limits);
        let pace = Pace::default();
        while !pace.is_brief() {
            pace.took(Some(Duration::from_micros(500)));
        }
        assert!(!pace.may_be_short());
        let call = async || {
            let _place = gate.enter(&limits).await.unwrap();
            let thread = async {
                Finished {
                    result: Ok(thread::current().id()),
                    denied: Vec::new(),
                }
            };
            let finished = threads.run(&pace, || gate.is_alone(), thread).await;
            finished.result.unwrap()
        };
        let here = thread::current().id();
        assert_eq!(call().await, here);
        // What comes in the turn that it gives to others has its place until both have ended.
        let (thread, _place) = tokio::join!(call(), gate.enter(&limits));
        assert_ne!(thread, here);
    }
}
