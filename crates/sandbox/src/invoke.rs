//! One call: a fresh store and instance, the call itself, and what became of it.

use std::time::Instant;

use component2json::{Argument, Returned};
use policy::{Grants, Limits};
use wasmtime::component::Val;
use wasmtime::{Engine, Store, Trap, UpdateDeadline};
use wasmtime_wasi::I32Exit;

use crate::capture::Captured;
use crate::code::{Executable, Main, Program};
use crate::error::CallError;
use crate::guest::{Guest, ModuleGuest, Start, Watch, Watched};

/// What is shown of what a failed guest printed.
const SHOWN_OUTPUT: usize = 1_000;

/// A dynamic value takes this much of the room for what comes from a guest, whatever is in it.
const VAL_SIZE: usize = size_of::<Val>();

/// The shortest JSON for an element of a list, with its comma.
const SHORTEST_ELEMENT: usize = 2;

/// Calls a function of a component.
pub(crate) async fn invoke(
    program: &Program,
    function: usize,
    arguments: Vec<Argument>,
    limits: &Limits,
    grants: &Grants,
) -> Result<Option<Returned>, CallError> {
    let mut store = store(program.engine(), Guest::new(limits, grants)?);
    let result = within_limits(&mut store, limits, async |store| {
        call(program, store, function, arguments, limits).await
    })
    .await;
    log_output(store.data().watch());
    result.map_err(|error| with_stderr(error, store.data().watch()))
}

/// How a program ended, and what it printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exited {
    pub exit_code: i32,
    pub stdout: Captured,
    pub stderr: Captured,
}

/// Runs a program from its start to its end.
pub(crate) async fn execute(executable: &Executable, start: Start, limits: &Limits, grants: &Grants) -> Result<Exited, CallError> {
    match &executable.0 {
        Main::Component { instance, run, .. } => {
            let mut store = store(instance.engine(), Guest::program(limits, grants, start)?);
            let result = within_limits(&mut store, limits, async |store| {
                let instance = instance.instantiate_async(&mut *store).await?;
                let run = instance.get_typed_func::<(), (Result<(), ()>,)>(&mut *store, run)?;
                let ended = run.call_async(&mut *store, ()).await;
                exit_code(ended.map(|(result,)| i32::from(result.is_err())))
            })
            .await;
            exited(result, store.data().watch())
        }
        Main::Module(instance) => {
            let guest = ModuleGuest::program(limits, grants, start)?;
            let mut store = store(instance.module().engine(), guest);
            let result = within_limits(&mut store, limits, async |store| {
                let instance = instance.instantiate_async(&mut *store).await?;
                let start = instance.get_typed_func::<(), ()>(&mut *store, "_start")?;
                exit_code(start.call_async(&mut *store, ()).await.map(|()| 0))
            })
            .await;
            exited(result, store.data().watch())
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

fn exited(result: Result<i32, CallError>, watch: &Watch) -> Result<Exited, CallError> {
    Ok(Exited {
        exit_code: result.map_err(|error| with_output(error, watch))?,
        stdout: watch.stdout.take(),
        stderr: watch.stderr.take(),
    })
}

/// Does something in a store, for as long as its guest may take. Epochs stop a guest that computes; the timer stops one that waits.
async fn within_limits<T: Watched, R>(
    store: &mut Store<T>,
    limits: &Limits,
    work: impl AsyncFnOnce(&mut Store<T>) -> Result<R, wasmtime::Error>,
) -> Result<R, CallError> {
    match tokio::time::timeout(limits.timeout.duration(), work(&mut *store)).await {
        Ok(result) => result.map_err(|error| explain(&error, store.data(), limits)),
        Err(_) => Err(CallError::Deadline(limits.timeout)),
    }
}

fn log_output(watch: &Watch) {
    for (name, text) in [("stdout", watch.stdout.text()), ("stderr", watch.stderr.text())] {
        if let Some(text) = text {
            tracing::info!(target: "guest", stream = name, text = text.escape_debug().to_string());
        }
    }
}

fn store<T: Watched>(engine: &Engine, guest: T) -> Store<T> {
    let mut store = Store::new(engine, guest);
    store.limiter(|guest| guest.usage());
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|context| {
        if Instant::now() >= context.data().watch().deadline {
            return Err(OutOfTime.into());
        }
        // A plain yield may be polled again at once; tokio's own goes to the end of the queue.
        Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
    });
    store
}

async fn call(
    program: &Program,
    store: &mut Store<Guest>,
    function: usize,
    arguments: Vec<Argument>,
    limits: &Limits,
) -> Result<Option<Returned>, wasmtime::Error> {
    let callable = program
        .functions
        .get(function)
        .ok_or_else(|| wasmtime::format_err!("no such function"))?;
    let instance = program.instance.instantiate_async(&mut *store).await?;
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

/// Why the guest stopped, in words for a person. Limits come first: what they do to a guest looks like many other things.
fn explain(error: &wasmtime::Error, guest: &impl Watched, limits: &Limits) -> CallError {
    if error.is::<OutOfTime>() {
        return CallError::Deadline(limits.timeout);
    }
    if guest.watch().usage.refused {
        return CallError::Memory(limits.max_memory);
    }
    if error.is::<wasmtime::PoolConcurrencyLimitError>() {
        return CallError::Busy;
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
    if let Some(what) = guest.denied() {
        return CallError::Denied { what: what.to_owned() };
    }
    match error.downcast_ref::<Trap>() {
        Some(trap) => CallError::Trap(trap.to_string()),
        None => CallError::Trap(format!("{error:#}")),
    }
}

/// A guest that fails often says why on its stderr.
fn with_stderr(error: CallError, watch: &Watch) -> CallError {
    let tells_enough = matches!(error, CallError::Deadline(_) | CallError::Memory(_) | CallError::Output(_));
    let text = watch.stderr.text().filter(|_| !tells_enough);
    shown(error, "stderr of the component", text)
}

/// A program that does not come to its end may have said something before: a question that it waits for an answer to, for example.
fn with_output(error: CallError, watch: &Watch) -> CallError {
    let error = shown(error, "stdout of the program", watch.stdout.text());
    shown(error, "stderr of the program", watch.stderr.text())
}

fn shown(error: CallError, stream: &'static str, text: Option<String>) -> CallError {
    match text.and_then(|text| component2json::clean_text(&text)) {
        Some(text) => CallError::WithOutput {
            error: Box::new(error),
            stream,
            text: text.chars().take(SHOWN_OUTPUT).collect(),
        },
        None => error,
    }
}
