//! The two engines, and what they offer to guests.

use std::sync::OnceLock;

use policy::Limits;
use wasmtime::component::Linker;
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};
use wasmtime_wasi::I32Exit;
use wasmtime_wasi_config::WasiConfig;

use crate::client;
use crate::code::CodeError;
use crate::files;
use crate::guest::{Guest, ModuleGuest};
use crate::http;
use crate::imports::PREVIEW1;
use crate::network;
use crate::ticker::Ticker;
use crate::waiting::MAX_AHEAD;

/// An engine with everything linked that a guest may import.
pub(crate) struct Runtime {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<Guest>,
    /// For core modules that are programs, once there is one.
    modules: OnceLock<Result<wasmtime::Linker<ModuleGuest>, CodeError>>,
    pub(crate) ticker: Ticker,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").finish_non_exhaustive()
    }
}

impl Runtime {
    pub(crate) fn new(concurrency: bool, limits: &Limits) -> Result<Self, CodeError> {
        let engine = engine(concurrency, limits)?;
        let linker = linker(&engine, concurrency).map_err(CodeError::engine)?;
        let ticker = Ticker::new(&engine).map_err(|error| CodeError::Engine(error.to_string()))?;
        Ok(Self {
            engine,
            linker,
            modules: OnceLock::new(),
            ticker,
        })
    }

    pub(crate) fn modules(&self) -> Result<&wasmtime::Linker<ModuleGuest>, CodeError> {
        let linker = self
            .modules
            .get_or_init(|| module_linker(&self.engine).map_err(CodeError::engine));
        linker.as_ref().map_err(Clone::clone)
    }
}

/// The settings of the engine that calls run on, its pool included. For whoever wants to measure the engine alone.
pub fn settings(concurrency: bool, limits: &Limits) -> Config {
    let mut config = config(concurrency);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(limits)));
    config
}

/// Instances come from a pool. Where the machine does not give the address space for one (`ulimit -v`), they are made on demand.
fn engine(concurrency: bool, limits: &Limits) -> Result<Engine, CodeError> {
    let mut config = settings(concurrency, limits);
    Engine::new(&config).or_else(|error| {
        tracing::info!(%error, "no memory pool; instances are allocated on demand");
        config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
        Engine::new(&config).map_err(CodeError::engine)
    })
}

/// An engine that compiles the same code, and has no room to run it.
pub(crate) fn compiler(concurrency: bool) -> Result<Engine, CodeError> {
    Engine::new(&config(concurrency)).map_err(CodeError::engine)
}

fn config(concurrency: bool) -> Config {
    let mut config = Config::new();
    config.concurrency_support(concurrency);
    config.wasm_component_model_map(true);
    config.wasm_component_model_fixed_length_lists(true);
    config.epoch_interruption(true);
    // Addresses of the guest's code mean nothing to the person who reads the error. Without what leads back to them code is a fifth
    // smaller, and all of it is read before the first call.
    config.wasm_backtrace_max_frames(None);
    config.generate_address_map(false);
    config.debug_symbols(false);
    #[cfg(unix)]
    config.native_unwind_info(false);
    config
}

/// How many calls of all components run at a time: twice what one component may have, so that none can take the places of all others.
pub(crate) fn all_calls(limits: &Limits) -> u32 {
    limits.max_concurrent_calls.get().min(MAX_CALLS / 2) * 2
}

/// What a pool can be made for.
const MAX_CALLS: u32 = 1_000;

/// A pool with room for as many calls of the largest components as may run at a time and for instances that are made ahead, so that no
/// call takes another's place. Room
/// is address space; memory is used only by what runs.
fn pool(limits: &Limits) -> PoolingAllocationConfig {
    let calls = all_calls(limits) + MAX_AHEAD;
    let (instances, memories, tables) = (limits.max_instances.get(), limits.max_memories.get(), limits.max_tables.get());
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(calls)
        .total_core_instances(calls.saturating_mul(instances))
        .max_core_instances_per_component(instances)
        .max_component_instance_size(4 << 20)
        .max_core_instance_size(4 << 20)
        .total_memories(calls.saturating_mul(memories))
        .max_memories_per_component(memories)
        .max_memories_per_module(memories)
        .total_tables(calls.saturating_mul(tables))
        .max_tables_per_component(tables)
        .max_tables_per_module(tables)
        .table_elements(limits.max_table_elements as usize)
        .total_stacks(calls)
        // Pages that a call touched are wiped and kept for the next one: giving them back costs more than it saves.
        .linear_memory_keep_resident(512 << 10)
        .table_keep_resident(64 << 10)
        .pagemap_scan(Enabled::Auto);
    pool
}

fn linker(engine: &Engine, concurrency: bool) -> wasmtime::Result<Linker<Guest>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    wasmtime_wasi_config::add_to_linker(&mut linker, |guest: &mut Guest| WasiConfig::new(&guest.config))?;
    if concurrency {
        wasmtime_wasi::p3::add_to_linker(&mut linker)?;
        wasmtime_wasi_http::p3::add_to_linker(&mut linker)?;
    }
    client::add_to_linker(&mut linker)?;
    http::bound_requests(&mut linker, concurrency)?;
    network::check_lookups(&mut linker, concurrency)?;
    files::check_paths(&mut linker)?;
    Ok(linker)
}

/// What a core module may import: WASI as it was before components.
fn module_linker(engine: &Engine) -> wasmtime::Result<wasmtime::Linker<ModuleGuest>> {
    let mut linker = wasmtime::Linker::new(engine);
    wasmtime_wasi::p1::add_to_linker_async(&mut linker, |guest: &mut ModuleGuest| &mut guest.wasi)?;
    // wasmtime-wasi takes a code from 126 on for a mistake, but programs do exit with such codes.
    linker.allow_shadowing(true);
    linker.func_wrap(PREVIEW1, "proc_exit", |code: i32| -> wasmtime::Result<()> {
        Err(I32Exit(code).into())
    })?;
    Ok(linker)
}
