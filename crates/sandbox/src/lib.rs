//! One guest invocation: engine, linker, WASI, limits.
//!
//! The only crate that creates a `Store`, and the only one in which guest code runs. A component runs within a [`Confinement`]: it has
//! the files, hosts and variables that are granted, no share of our stdout, and so much time, memory and output. Whatever the guest does
//! ends as a value or a [`CallError`], and never touches the next call.
//!
//! It knows no JSON, no MCP, and nothing of where a component came from.

mod bytes;
mod capture;
mod code;
mod confinement;
mod denials;
mod directories;
mod engine;
mod error;
mod files;
mod gate;
mod guest;
mod http;
mod imports;
mod invoke;
mod network;
mod ticker;

pub use capture::Captured;
pub use code::{CodeError, CodeKey, CodeKind, Compiled, Executable, Program};
pub use confinement::{Confinement, Sharing};
pub use denials::Denied;
pub use error::CallError;
pub use guest::Start;
pub use imports::{unknown_imports, unknown_module_imports};
pub use invoke::{Exited, Finished};
pub use network::{Network, Resolver};

use std::sync::{Arc, OnceLock};

use component2json::{Argument, Returned};
use policy::Limits;

use crate::engine::Runtime;
use crate::gate::Gate;

/// Where guests run. One for the whole process.
#[derive(Debug)]
pub struct Sandbox {
    limits: Limits,
    gate: Gate,
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
            gate: Gate::new(engine::all_calls(&limits), &limits),
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

    /// Calls a function of a program within its walls. Dropping the future stops the guest.
    ///
    /// `function` is the index of the function among the exports that the program was linked with.
    pub async fn call(
        &self,
        program: &Arc<Program>,
        function: usize,
        arguments: Vec<Argument>,
        confinement: &Arc<Confinement>,
    ) -> Finished<Option<Returned>> {
        let (program, walls) = (Arc::clone(program), Arc::clone(confinement));
        let concurrency = program.concurrency();
        self.guest(concurrency, confinement, async move {
            invoke::invoke(&program, function, arguments, &walls).await
        })
        .await
    }

    /// Runs a program in a fresh instance, from its start to its end. Dropping the future stops it.
    pub async fn run(&self, executable: &Arc<Executable>, start: Start, confinement: &Arc<Confinement>) -> Finished<Exited> {
        let (executable, walls) = (Arc::clone(executable), Arc::clone(confinement));
        let concurrency = executable.concurrency();
        self.guest(concurrency, confinement, async move {
            invoke::execute(&executable, start, &walls).await
        })
        .await
    }

    /// Runs a program that is granted nothing, and waits for its end. For threads that may block.
    pub fn run_blocking(self: &Arc<Self>, executable: &Arc<Executable>, start: Start, limits: Limits) -> Result<Exited, CallError> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let (sandbox, executable) = (Arc::clone(self), Arc::clone(executable));
        let Some(runtime) = &self.guests.0 else {
            return Err(CallError::Stopped);
        };
        runtime.spawn(async move {
            let confinement = Arc::new(Confinement::bare(limits));
            let finished = sandbox.run(&executable, start, &confinement).await;
            // Who asked may be gone.
            let _ = sender.send(finished.result);
        });
        receiver.recv().unwrap_or(Err(CallError::HostPanic))
    }

    /// Lets a guest run on its own threads when there is room for one more: first among its own calls, then among all.
    async fn guest<T: Send + 'static>(
        &self,
        concurrency: bool,
        confinement: &Confinement,
        work: impl Future<Output = Finished<T>> + Send + 'static,
    ) -> Finished<T> {
        let enter = async {
            let own = confinement.gate.enter(&confinement.limits).await?;
            let common = self.gate.enter(&confinement.limits).await?;
            let ticking = self.runtime(concurrency)?.ticker.start();
            Ok::<_, CallError>((own, common, ticking))
        };
        let entered = match enter.await {
            Ok(entered) => entered,
            Err(error) => return error.into(),
        };
        let task = self.guests.spawn(async move {
            let finished = work.await;
            drop(entered);
            finished
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
        call: impl Future<Output = Finished<T>> + Send + 'static,
    ) -> impl Future<Output = Finished<T>> {
        let task = self.0.as_ref().map(|runtime| AbortOnDrop(runtime.spawn(call)));
        async move {
            let Some(mut task) = task else {
                return CallError::Stopped.into();
            };
            match (&mut task.0).await {
                Ok(finished) => finished,
                Err(error) if error.is_panic() => CallError::HostPanic.into(),
                Err(_) => CallError::Stopped.into(),
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
