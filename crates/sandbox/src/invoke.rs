//! One call: a fresh store and instance, the call itself, and what became of it.

use std::time::Instant;

use component2json::{Argument, Returned};
use policy::Limits;
use wasmtime::component::Val;
use wasmtime::{Store, Trap, UpdateDeadline};
use wasmtime_wasi::I32Exit;

use crate::code::Program;
use crate::error::CallError;
use crate::guest::Guest;

/// What is shown of a failed guest's stderr.
const SHOWN_STDERR: usize = 1_000;

/// A dynamic value takes this much of the room for what comes from a guest, whatever is in it.
const VAL_SIZE: usize = size_of::<Val>();

/// The shortest JSON for an element of a list, with its comma.
const SHORTEST_ELEMENT: usize = 2;

pub(crate) async fn invoke(
    program: &Program,
    function: usize,
    arguments: Vec<Argument>,
    limits: &Limits,
) -> Result<Option<Returned>, CallError> {
    let mut store = store(program, limits);
    // Epochs stop a guest that computes; the timer stops one that waits.
    let timeout = limits.timeout.duration();
    let result = match tokio::time::timeout(timeout, run(program, &mut store, function, arguments, limits)).await {
        Ok(result) => result.map_err(|error| explain(&error, &store, limits)),
        Err(_) => Err(CallError::Deadline(limits.timeout)),
    };
    let guest = store.data();
    for (name, text) in [("stdout", guest.stdout.text()), ("stderr", guest.stderr.text())] {
        if let Some(text) = text {
            tracing::info!(target: "guest", stream = name, text = text.escape_debug().to_string());
        }
    }
    result.map_err(|error| with_stderr(error, guest.stderr.text()))
}

fn store(program: &Program, limits: &Limits) -> Store<Guest> {
    let mut store = Store::new(program.engine(), Guest::new(limits));
    store.limiter(|guest| &mut guest.usage);
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|context| {
        if Instant::now() >= context.data().deadline {
            return Err(OutOfTime.into());
        }
        // A plain yield may be polled again at once; tokio's own goes to the end of the queue.
        Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
    });
    store
}

async fn run(
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
fn explain(error: &wasmtime::Error, store: &Store<Guest>, limits: &Limits) -> CallError {
    let guest = store.data();
    if error.is::<OutOfTime>() {
        return CallError::Deadline(limits.timeout);
    }
    if guest.usage.refused {
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
fn with_stderr(error: CallError, stderr: Option<String>) -> CallError {
    let tells_enough = matches!(error, CallError::Deadline(_) | CallError::Memory(_) | CallError::Output(_));
    match stderr.and_then(|text| component2json::clean_text(&text)) {
        Some(text) if !tells_enough => {
            let stderr: String = text.chars().take(SHOWN_STDERR).collect();
            CallError::WithStderr {
                error: Box::new(error),
                stderr,
            }
        }
        _ => error,
    }
}
