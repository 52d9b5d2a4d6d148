//! One guest invocation: engine, linker, WASI, limits.
//!
//! The only crate that creates a `Store`, and the only one in which guest code runs. Every call gets a fresh instance with
//! nothing but what is granted: no file, host, variable or argument, and no share of our stdout; its time, memory and output are bounded. Whatever the
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

pub use capture::Captured;
pub use code::{CodeError, CodeKey, CodeKind, Compiled, Executable, Program};
pub use error::CallError;
pub use guest::Start;
pub use imports::{unknown_imports, unknown_module_imports};
pub use invoke::Exited;

use std::sync::{Arc, OnceLock};

use component2json::{Argument, Returned};
use policy::{Grants, Limits};
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
        grants: &Arc<Grants>,
    ) -> Result<Option<Returned>, CallError> {
        let (program, limits, grants) = (Arc::clone(program), self.limits.clone(), Arc::clone(grants));
        let concurrency = program.concurrency();
        self.guest(concurrency, async move {
            invoke::invoke(&program, function, arguments, &limits, &grants).await
        })
        .await
    }

    /// Runs a program in a fresh instance, from its start to its end. Dropping the future stops it.
    pub async fn run(&self, executable: &Arc<Executable>, start: Start, grants: &Arc<Grants>) -> Result<Exited, CallError> {
        self.run_within(executable, start, grants, self.limits.clone()).await
    }

    /// Runs a program with limits of its own, and waits for its end. For threads that may block.
    pub fn run_blocking(self: &Arc<Self>, executable: &Arc<Executable>, start: Start, limits: Limits) -> Result<Exited, CallError> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let (sandbox, executable) = (Arc::clone(self), Arc::clone(executable));
        let Some(runtime) = &self.guests.0 else {
            return Err(CallError::Stopped);
        };
        runtime.spawn(async move {
            let result = sandbox.run_within(&executable, start, &Arc::default(), limits).await;
            // Who asked may be gone.
            let _ = sender.send(result);
        });
        receiver.recv().unwrap_or(Err(CallError::HostPanic))
    }

    async fn run_within(
        &self,
        executable: &Arc<Executable>,
        start: Start,
        grants: &Arc<Grants>,
        limits: Limits,
    ) -> Result<Exited, CallError> {
        let (executable, grants) = (Arc::clone(executable), Arc::clone(grants));
        let concurrency = executable.concurrency();
        self.guest(concurrency, async move {
            invoke::execute(&executable, start, &limits, &grants).await
        })
        .await
    }

    /// Lets a guest run on its own threads when there is room for one more.
    async fn guest<T: Send + 'static>(
        &self,
        concurrency: bool,
        work: impl Future<Output = Result<T, CallError>> + Send + 'static,
    ) -> Result<T, CallError> {
        // The semaphore is never closed, so there is always a permit to wait for.
        let permit = Arc::clone(&self.permits)
            .acquire_owned()
            .await
            .map_err(|_| CallError::Stopped)?;
        let ticking = self.runtime(concurrency)?.ticker.start();
        let task = self.guests.spawn(async move {
            let result = work.await;
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
