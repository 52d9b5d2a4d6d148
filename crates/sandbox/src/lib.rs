//! One guest invocation: engine, linker, WASI, limits.
//!
//! The only crate that creates a `Store`, and the only one in which guest code runs. Every call gets a fresh instance with nothing
//! granted: no file, host, variable or argument, and no share of our stdout; its time, memory and output are bounded. Whatever the
//! guest does ends as a value or a [`CallError`], and never touches the next call.
//!
//! It knows no JSON, no MCP, and nothing of where a component came from.

mod bytes;
mod capture;
mod code;
mod engine;
mod error;
mod guest;
mod http;
mod imports;
mod invoke;
mod ticker;

pub use code::{CodeError, CodeKey, Compiled, Program};
pub use error::CallError;
pub use imports::unknown_imports;

use std::sync::{Arc, OnceLock};

use component2json::{Argument, Returned};
use policy::Limits;
use tokio::sync::Semaphore;

use crate::engine::Runtime;

/// Where guests run. One for the whole process.
#[derive(Debug)]
pub struct Sandbox {
    limits: Limits,
    permits: Arc<Semaphore>,
    /// Most components: without component-model concurrency a call is cheaper and there is less that can go wrong.
    plain: OnceLock<Result<Runtime, CodeError>>,
    /// `async func`, streams, WASI 0.3.
    concurrent: OnceLock<Result<Runtime, CodeError>>,
    guests: GuestThreads,
}

impl Sandbox {
    /// Nothing heavy happens here: engines start when the first component needs one.
    pub fn new(limits: Limits) -> std::io::Result<Self> {
        Ok(Self {
            permits: Arc::new(Semaphore::new(engine::concurrent_calls(&limits) as usize)),
            limits,
            plain: OnceLock::new(),
            concurrent: OnceLock::new(),
            guests: GuestThreads::start()?,
        })
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    fn runtime(&self, concurrency: bool) -> Result<&Runtime, CodeError> {
        let cell = if concurrency { &self.concurrent } else { &self.plain };
        cell.get_or_init(|| Runtime::new(concurrency, &self.limits))
            .as_ref()
            .map_err(Clone::clone)
    }

    /// Calls a function of a program in a fresh instance. Dropping the future stops the guest.
    ///
    /// `function` is the index of the function among the exports that the program was linked with.
    pub async fn call(
        &self,
        program: &Arc<Program>,
        function: usize,
        arguments: Vec<Argument>,
    ) -> Result<Option<Returned>, CallError> {
        // The semaphore is never closed, so there is always a permit to wait for.
        let permit = Arc::clone(&self.permits)
            .acquire_owned()
            .await
            .map_err(|_| CallError::Stopped)?;
        let runtime = self.runtime(program.concurrency())?;
        let ticking = runtime.ticker.start();
        let program = Arc::clone(program);
        let limits = self.limits.clone();
        let task = self.guests.spawn(async move {
            let result = invoke::invoke(&program, function, arguments, &limits).await;
            drop((permit, ticking));
            result
        });
        task.await
    }
}

/// Threads that only guests run on, so that a busy guest never keeps the protocol waiting.
#[derive(Debug)]
struct GuestThreads(Option<tokio::runtime::Runtime>);

impl GuestThreads {
    fn start() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("guest")
            .enable_all()
            .build()?;
        Ok(Self(Some(runtime)))
    }

    /// Runs a call as a task of its own: a panic in it is one failed call, and dropping the future aborts it.
    fn spawn<T: Send + 'static>(
        &self,
        call: impl Future<Output = Result<T, CallError>> + Send + 'static,
    ) -> impl Future<Output = Result<T, CallError>> {
        let task = self.0.as_ref().map(|runtime| AbortOnDrop(runtime.spawn(call)));
        async move {
            let Some(mut task) = task else {
                return Err(CallError::Stopped);
            };
            match (&mut task.0).await {
                Ok(result) => result,
                Err(error) if error.is_panic() => Err(CallError::HostPanic),
                Err(_) => Err(CallError::Stopped),
            }
        }
    }
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
