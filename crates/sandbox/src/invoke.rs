//! One call: a fresh store and instance, the call itself, and what became of it.

use std::sync::Arc;

use component2json::{Argument, Returned};
use policy::{Limits, Secrets};
use wasmtime::component::{Instance, ResourceTableError, Val};
use wasmtime::{Engine, Store, Trap, UpdateDeadline};
use wasmtime_wasi::I32Exit;

use crate::capture::Captured;
use crate::client::{Client, Missing, Nobody, Paused};
use crate::code::{Executable, Main, Program};
use crate::confinement::{Confinement, Sharing};
use crate::denials::{Denials, Denied};
use crate::error::CallError;
use crate::guest::{Guest, ModuleGuest, Refused, Start, Watch, Watched};
use crate::ticker::TICK;
use crate::waiting::{Backstage, Ready, Used};

/// What is shown of what a failed guest printed.
const SHOWN_OUTPUT: usize = 1_000;

/// A dynamic value takes this much of the room for what comes from a guest, whatever is in it.
const VAL_SIZE: usize = size_of::<Val>();

/// The shortest JSON for an element of a list, with its comma.
const SHORTEST_ELEMENT: usize = 2;

/// How a call ended, and what it was refused meanwhile.
#[derive(Debug)]
pub struct Finished<T> {
    pub result: Result<T, CallError>,
    /// Whatever the guest made of it.
    pub denied: Vec<Denied>,
}

impl<T> From<CallError> for Finished<T> {
    fn from(error: CallError) -> Self {
        Self {
            result: Err(error),
            denied: Vec::new(),
        }
    }
}

/// What a function returned, and the instance that it was called in, if that is yet to be taken apart.
pub(crate) struct Invoked {
    pub(crate) returned: Option<Returned>,
    pub(crate) used: Option<Used>,
}

/// Calls a function of a component.
pub(crate) async fn invoke(
    program: &Program,
    function: usize,
    arguments: Vec<Argument>,
    confinement: &Arc<Confinement>,
    client: Arc<dyn Client>,
    backstage: &Backstage,
) -> Finished<Invoked> {
    if program.reads_files_anew() && confinement.directories.have_holes() {
        return CallError::Holes.into();
    }
    let (mut store, known, room) = match program.waiting.take(confinement) {
        Some(Ready {
            mut store,
            instance,
            room,
            ..
        }) => {
            store.data_mut().renew(client);
            // The clock has gone on while it waited.
            store.set_epoch_deadline(1);
            (store, Some(instance), room)
        }
        None => match Guest::new(confinement, client) {
            Ok(guest) => (store(program.engine(), guest), None, None),
            Err(error) => return error.into(),
        },
    };
    let limits = &confinement.limits;
    let result = within_limits(&mut store, limits, async |store| {
        let instance = match known {
            Some(instance) => instance,
            None => program.instantiate(store).await?,
        };
        let returned = call(program, store, instance, function, arguments, limits).await?;
        Ok((instance, returned))
    })
    .await;
    let watch = store.data().watch();
    log_output(watch, &confinement.secrets);
    let denied = denials(&store.data().denials, &confinement.secrets);
    let result = match result {
        Ok((instance, returned)) => {
            let used = match confinement.sharing {
                Sharing::Shared => {
                    // Whoever called is of no interest to the next.
                    store.data_mut().renew(Arc::new(Nobody));
                    program.waiting.put(Ready::new(store, instance, None));
                    None
                }
                Sharing::Fresh => backstage.leave(program, store, room),
            };
            Ok(Invoked { returned, used })
        }
        Err(error) => Err(with_stderr(error, watch, &confinement.secrets)),
    };
    Finished { result, denied }
}

/// How a program ended, and what it printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exited {
    pub exit_code: i32,
    pub stdout: Captured,
    pub stderr: Captured,
}

/// Runs a program from its start to its end.
pub(crate) async fn execute(
    executable: &Executable,
    start: Start,
    confinement: &Arc<Confinement>,
    client: Arc<dyn Client>,
) -> Finished<Exited> {
    let limits = &confinement.limits;
    match &executable.main {
        Main::Component { instance, run, .. } => {
            if executable.reads_files_anew && confinement.directories.have_holes() {
                return CallError::Holes.into();
            }
            let mut store = match Guest::program(confinement, start, client) {
                Ok(guest) => store(instance.engine(), guest),
                Err(error) => return error.into(),
            };
            let result = within_limits(&mut store, limits, async |store| {
                let instance = instance.instantiate_async(&mut *store).await?;
                let run = instance.get_typed_func::<(), (Result<(), ()>,)>(&mut *store, run)?;
                let ended = run.call_async(&mut *store, ()).await;
                exit_code(ended.map(|(result,)| i32::from(result.is_err())))
            })
            .await;
            Finished {
                result: exited(result, store.data().watch(), &confinement.secrets),
                denied: denials(&store.data().denials, &confinement.secrets),
            }
        }
        Main::Module(instance) => {
            let mut store = match ModuleGuest::program(confinement, start, &client) {
                Ok(guest) => store(instance.module().engine(), guest),
                Err(error) => return error.into(),
            };
            let result = within_limits(&mut store, limits, async |store| {
                let instance = instance.instantiate_async(&mut *store).await?;
                let start = instance.get_typed_func::<(), ()>(&mut *store, "_start")?;
                exit_code(start.call_async(&mut *store, ()).await.map(|()| 0))
            })
            .await;
            Finished {
                result: exited(result, store.data().watch(), &confinement.secrets),
                denied: Vec::new(),
            }
        }
    }
}

/// To exit is how a program ends, whatever else happened before.
fn exit_code(ended: wasmtime::Result<i32>) -> wasmtime::Result<i32> {
    ended.or_else(|error| match error.downcast_ref::<I32Exit>() {
        Some(exit) => Ok(exit.0),
        None => Err(error),
    })
}

fn exited(result: Result<i32, CallError>, watch: &Watch, secrets: &Secrets) -> Result<Exited, CallError> {
    Ok(Exited {
        exit_code: result.map_err(|error| with_output(error, watch, secrets))?,
        stdout: whole(watch.stdout.take(), secrets),
        stderr: whole(watch.stderr.take(), secrets),
    })
}

/// What was printed, without a secret that was cut in the middle and could not be found any more.
fn whole(mut captured: Captured, secrets: &Secrets) -> Captured {
    if captured.dropped > 0 {
        let cut = secrets.cut_at_the_end(&captured.bytes);
        captured.bytes.truncate(captured.bytes.len() - cut);
        captured.dropped += cut as u64;
    }
    captured
}

/// Does something in a store, for as long as its guest may take. Epochs stop a guest that computes; the timer stops one that waits.
async fn within_limits<T: Watched, R>(
    store: &mut Store<T>,
    limits: &Limits,
    work: impl AsyncFnOnce(&mut Store<T>) -> Result<R, wasmtime::Error>,
) -> Result<R, CallError> {
    let deadline = store.data().watch().deadline.clone();
    tokio::select! {
        // Most calls end before they wait for anything, and need no timer.
        biased;
        result = work(&mut *store) => result.map_err(|error| explain(&error, store.data(), limits)),
        () = deadline.passed() => Err(CallError::Deadline(limits.timeout)),
    }
}

/// What was refused, with no secret in it: a guest can ask for a host of any name. Names of hosts have no capital letters.
fn denials(denials: &Denials, secrets: &Secrets) -> Vec<Denied> {
    let mut all = denials.take();
    for denied in &mut all {
        let shown = |text: &str| secrets.without_case(text).into_owned();
        let remedy = denied.remedy.as_ref().map(ToString::to_string);
        // A rule with a secret in it helps nobody.
        if remedy.is_some_and(|remedy| shown(&remedy) != remedy) {
            denied.remedy = None;
        }
        denied.what = shown(&denied.what);
        tracing::info!(what = denied.what.escape_debug().to_string(), "denied");
    }
    all
}

fn log_output(watch: &Watch, secrets: &Secrets) {
    for (name, text) in [("stdout", watch.stdout.text()), ("stderr", watch.stderr.text())] {
        if let Some(text) = text {
            let text = secrets.redact(&text);
            tracing::info!(target: "guest", stream = name, text = text.escape_debug().to_string());
        }
    }
}

pub(crate) fn store<T: Watched>(engine: &Engine, guest: T) -> Store<T> {
    let mut store = Store::new(engine, guest);
    store.limiter(|guest| &mut guest.watch_mut().usage);
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|mut context| {
        let watch = context.data_mut().watch_mut();
        if watch.deadline.has_passed() {
            return Err(OutOfTime.into());
        }
        // A guest that waits is not interrupted, so every interruption is a tick in which it computed.
        match watch.cpu.checked_sub(TICK) {
            Some(left) => watch.cpu = left,
            None => return Err(OutOfCpu.into()),
        }
        // A plain yield may be polled again at once; tokio's own goes to the end of the queue.
        Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
    });
    store
}

async fn call(
    program: &Program,
    store: &mut Store<Guest>,
    instance: Instance,
    function: usize,
    arguments: Vec<Argument>,
    limits: &Limits,
) -> Result<Option<Returned>, wasmtime::Error> {
    let callable = program
        .functions
        .get(function)
        .ok_or_else(|| wasmtime::format_err!("no such function"))?;
    let func = instance
        .get_func(&mut *store, callable.index)
        .ok_or_else(|| wasmtime::format_err!("no such function"))?;

    let max_output = usize::try_from(limits.max_output.bytes()).unwrap_or(usize::MAX);
    if let Some(call) = callable.bytes {
        store.set_hostcall_fuel(max_output.saturating_add(1 << 20));
        return call(func, store, arguments).await;
    }
    // Bounds what a result may take before it is JSON, so that no result within the limit is refused.
    let per_byte = if callable.result_has_bytes {
        VAL_SIZE
    } else {
        VAL_SIZE / SHORTEST_ELEMENT
    };
    store.set_hostcall_fuel(max_output.saturating_mul(per_byte).saturating_add(1 << 20));
    let arguments: Vec<Val> = arguments.into_iter().map(Argument::into_val).collect();
    let mut results = vec![Val::Bool(false); usize::from(callable.has_result)];
    func.call_async(&mut *store, &arguments, &mut results).await?;
    Ok(results.pop().map(Returned::Val))
}

#[derive(Debug, thiserror::Error)]
#[error("out of time")]
struct OutOfTime;

#[derive(Debug, thiserror::Error)]
#[error("out of computing time")]
struct OutOfCpu;

/// Why the guest stopped, in words for a person. Limits come first: what they do to a guest looks like many other things.
fn explain(error: &wasmtime::Error, guest: &impl Watched, limits: &Limits) -> CallError {
    if error.is::<Paused>() {
        return CallError::Paused;
    }
    if let Some(Missing(capabilities)) = error.downcast_ref::<Missing>() {
        return CallError::Missing(*capabilities);
    }
    if error.is::<OutOfTime>() {
        return CallError::Deadline(limits.timeout);
    }
    if error.is::<OutOfCpu>() {
        return CallError::Cpu(limits.max_cpu);
    }
    if matches!(error.downcast_ref::<ResourceTableError>(), Some(ResourceTableError::Full)) {
        return CallError::Handles(limits.max_handles.get());
    }
    match guest.watch().usage.refused {
        Some(Refused::Memory) => return CallError::Memory(limits.max_memory),
        Some(Refused::TableElements) => {
            return CallError::TooMany {
                what: "elements in a table",
                limit: "max_table_elements",
            };
        }
        None => {}
    }
    if error.is::<wasmtime::PoolConcurrencyLimitError>() {
        return CallError::Busy {
            running: limits.max_concurrent_calls.get(),
        };
    }
    if let Some(exit) = error.downcast_ref::<I32Exit>() {
        return CallError::Exit(exit.0);
    }
    // wasmtime's own type for this is private, so its text has to do.
    if error
        .chain()
        .any(|cause| cause.to_string().contains("fuel allocated for hostcalls"))
    {
        return CallError::Output(limits.max_output);
    }
    if let Some(count) = error.chain().find_map(|cause| too_many(&cause.to_string())) {
        return count;
    }
    match error.downcast_ref::<Trap>() {
        Some(trap) => CallError::Trap(trap.to_string()),
        None => CallError::Trap(format!("{error:#}")),
    }
}

/// A component with more parts than it may have. wasmtime tells this in words only.
fn too_many(error: &str) -> Option<CallError> {
    let parts = [
        ("instance count too high", "instances", "max_instances"),
        ("table count too high", "tables", "max_tables"),
        ("memory count too high", "memories", "max_memories"),
    ];
    let (_, what, limit) = parts.into_iter().find(|(words, ..)| error.contains(words))?;
    Some(CallError::TooMany { what, limit })
}

/// A guest that fails often says why on its stderr.
fn with_stderr(error: CallError, watch: &Watch, secrets: &Secrets) -> CallError {
    let text = watch.stderr.text().filter(|_| !error.is_a_limit());
    shown(error, "stderr of the component", text, secrets)
}

/// A program that does not come to its end may have said something before: a question that it waits for an answer to, for example.
fn with_output(error: CallError, watch: &Watch, secrets: &Secrets) -> CallError {
    let error = shown(error, "stdout of the program", watch.stdout.text(), secrets);
    shown(error, "stderr of the program", watch.stderr.text(), secrets)
}

fn shown(error: CallError, stream: &'static str, text: Option<String>, secrets: &Secrets) -> CallError {
    match text.and_then(|text| component2json::clean_text(&secrets.redact(&text))) {
        Some(text) => CallError::WithOutput {
            error: Box::new(error),
            stream,
            text: text.chars().take(SHOWN_OUTPUT).collect(),
        },
        None => error,
    }
}
