//! One guest invocation: engine, linker, WASI, limits.
//!
//! The only crate that creates a `Store`, and the only one in which guest code runs. A component runs within a [`Confinement`]: it has
//! the files, hosts and variables that are granted, no share of our stdout, and so much time, memory and output. Whatever the guest does
//! ends as a value or a [`CallError`], and never touches the next call.
//!
//! It knows no MCP, JSON only as a text that a guest may pass on, and nothing of where a component came from.

mod bytes;
mod capture;
mod client;
mod code;
mod confinement;
mod deadline;
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
mod pace;
mod threads;
mod ticker;
mod waiting;

pub use capture::Captured;
pub use client::{
    Answer, Call, Capabilities, Change, Client, Elicitation, Elicited, Later, Level, MAX_URI, Nobody, Question, Report, Role, Root,
    Sampled, Sampling, SamplingMessage, Unanswered,
};
pub use code::{CodeError, CodeKey, CodeKind, Compiled, Executable, Program};
pub use confinement::{Confinement, Sharing};
pub use denials::Denied;
pub use engine::settings;
pub use error::CallError;
pub use guest::Start;
pub use imports::{unknown_imports, unknown_module_imports};
pub use invoke::{Exited, Finished};
pub use network::{Network, Resolver};

use std::sync::{Arc, OnceLock};

use component2json::{Argument, Returned};
use policy::Limits;
use tokio::sync::Semaphore;

use crate::client::Bounded;
use crate::engine::Runtime;
use crate::gate::Gate;
use crate::invoke::Invoked;
use crate::pace::Pace;
use crate::threads::GuestThreads;
use crate::waiting::Backstage;

/// Where guests run. One for the whole process.
#[derive(Debug)]
pub struct Sandbox {
    limits: Limits,
    gate: Gate,
    /// Calls of all components that may wait for answers at the same time: the other places are for those who do not.
    waiting_for_answers: Arc<Semaphore>,
    /// Most components: without component-model concurrency a call is cheaper and there is less that can go wrong.
    plain: OnceLock<Result<Runtime, CodeError>>,
    /// `async func`, streams, WASI 0.3.
    concurrent: OnceLock<Result<Runtime, CodeError>>,
    guests: GuestThreads,
    backstage: Arc<Backstage>,
}

impl Sandbox {
    /// Nothing heavy happens here: engines start when the first component needs one.
    pub fn new(limits: Limits) -> std::io::Result<Self> {
        let running = engine::all_calls(&limits);
        Ok(Self {
            gate: Gate::new(running, &limits),
            waiting_for_answers: Arc::new(Semaphore::new((running / 4).max(1) as usize)),
            limits,
            plain: OnceLock::new(),
            concurrent: OnceLock::new(),
            guests: GuestThreads::start()?,
            backstage: Arc::default(),
        })
    }

    /// Starts the engine that most components need, elsewhere and while nobody waits for it.
    pub fn warm_up(self: &Arc<Self>) {
        let sandbox = Arc::clone(self);
        if let Some(runtime) = self.guests.runtime() {
            // Why it cannot be started is told to whoever needs it.
            runtime.spawn_blocking(move || drop(sandbox.runtime(false)));
        }
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether the next call would have to come back later.
    pub fn is_full(&self) -> bool {
        self.gate.is_full()
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
        client: Arc<dyn Client>,
    ) -> Finished<Option<Returned>> {
        let Some(pace) = program.pace(function) else {
            return CallError::Stopped.into();
        };
        let (called, walls, client) = (Arc::clone(program), Arc::clone(confinement), self.bounded(client));
        let backstage = Arc::clone(&self.backstage);
        let call = Box::pin(async move { invoke::invoke(&called, function, arguments, &walls, client, &backstage).await });
        let Finished { result, denied } = self.guest(program.concurrency(), confinement, pace, call).await;
        let result = result.map(|Invoked { returned, used }| {
            if let Some(guests) = self.guests.runtime() {
                self.backstage.after_call(guests.handle(), program, confinement, used);
            }
            returned
        });
        Finished { result, denied }
    }

    /// Runs a program in a fresh instance, from its start to its end. Dropping the future stops it.
    pub async fn run(
        &self,
        executable: &Arc<Executable>,
        start: Start,
        confinement: &Arc<Confinement>,
        client: Arc<dyn Client>,
    ) -> Finished<Exited> {
        let (called, walls, client) = (Arc::clone(executable), Arc::clone(confinement), self.bounded(client));
        let run = Box::pin(async move { invoke::execute(&called, start, &walls, client).await });
        self.guest(executable.concurrency(), confinement, &executable.pace, run).await
    }

    /// Runs a program that is granted nothing, and waits for its end. For threads that may block.
    pub fn run_blocking(self: &Arc<Self>, executable: &Arc<Executable>, start: Start, limits: Limits) -> Result<Exited, CallError> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let (sandbox, executable) = (Arc::clone(self), Arc::clone(executable));
        let Some(runtime) = self.guests.runtime() else {
            return Err(CallError::Stopped);
        };
        runtime.spawn(async move {
            let confinement = Arc::new(Confinement::bare(limits));
            let finished = sandbox.run(&executable, start, &confinement, Arc::new(Nobody)).await;
            // Who asked may be gone.
            let _ = sender.send(finished.result);
        });
        receiver.recv().unwrap_or(Err(CallError::HostPanic))
    }

    /// A client of which no more guests wait for answers than may.
    fn bounded(&self, client: Arc<dyn Client>) -> Arc<dyn Client> {
        let places = Arc::clone(&self.waiting_for_answers);
        Arc::new(Bounded { client, places })
    }

    /// Lets a guest run when there is room for one more: first among its own calls, then among all. The work is moved from hand to hand
    /// here, so it should be in a box.
    async fn guest<T: Send + 'static>(
        &self,
        concurrency: bool,
        confinement: &Confinement,
        pace: &Pace,
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
        let call = async move {
            let finished = work.await;
            drop(entered);
            finished
        };
        self.guests.run(pace, || self.gate.is_alone(), call).await
    }
}
