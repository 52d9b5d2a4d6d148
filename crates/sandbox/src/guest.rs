//! What a guest sees of the world, and what it has used up of it: the data of its store.

use std::sync::Arc;
use std::time::Duration;

use policy::Limits;
use wasmtime::ResourceLimiter;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::p1::WasiP1Ctx;
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_config::WasiConfigVariables;
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::capture::Capture;
use crate::client::{Client, MAX_WAIT};
use crate::confinement::Confinement;
use crate::deadline::Deadline;
use crate::denials::Denials;
use crate::error::CallError;
use crate::network::{Outgoing, Sockets};

/// What the headers of one request may take.
const MAX_HEADERS: usize = 16 << 10;

/// What an element of a table costs us.
const TABLE_ELEMENT: usize = size_of::<usize>();

/// What a program is started with.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// The name of the program first.
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    /// What it can read; then comes the end of the file.
    pub stdin: Vec<u8>,
}

/// What is watched of a guest while it runs.
pub(crate) struct Watch {
    pub(crate) usage: Usage,
    pub(crate) stdout: Capture,
    pub(crate) stderr: Capture,
    pub(crate) deadline: Deadline,
    /// What is left of the time that it may compute.
    pub(crate) cpu: Duration,
}

impl Watch {
    /// The guest's time starts now. What it prints is for the log.
    fn new(limits: &Limits) -> Self {
        let room = usize::try_from(limits.max_stdio.bytes()).unwrap_or(usize::MAX);
        Self {
            usage: Usage::new(limits),
            stdout: Capture::with_room(room),
            stderr: Capture::with_room(room),
            deadline: Deadline::after(limits.timeout.duration()),
            cpu: limits.max_cpu.duration(),
        }
    }

    /// What the guest prints is its result, and the client hears how much of it there is.
    fn of_program(limits: &Limits, client: &Arc<dyn Client>) -> Self {
        let room = usize::try_from(limits.max_output.bytes()).unwrap_or(usize::MAX);
        Self {
            stdout: Capture::with_room(room).told_to(client),
            ..Self::new(limits)
        }
    }

    /// Another call begins in the same instance.
    fn renew(&mut self, limits: &Limits) {
        self.stdout.take();
        self.stderr.take();
        self.usage.refused = None;
        self.deadline = Deadline::after(limits.timeout.duration());
        self.cpu = limits.max_cpu.duration();
    }
}

/// The data of a store, whatever kind of guest is in it.
pub(crate) trait Watched: Send + 'static {
    fn watch(&self) -> &Watch;
    fn watch_mut(&mut self) -> &mut Watch;
}

/// The data of a component's store.
pub(crate) struct Guest {
    wasi: WasiCtx,
    table: ResourceTable,
    http: WasiHttpCtx,
    pub(crate) config: WasiConfigVariables,
    pub(crate) confinement: Arc<Confinement>,
    /// Whether something is denied inside of a granted directory.
    pub(crate) has_holes: bool,
    pub(crate) sockets: Sockets,
    outgoing: Outgoing,
    pub(crate) denials: Denials,
    /// Who called.
    pub(crate) client: Arc<dyn Client>,
    /// How long it may still wait for answers.
    pub(crate) patience: Duration,
    watch: Watch,
}

impl Guest {
    /// A guest that has only what is granted. Its time starts now.
    pub(crate) fn new(confinement: &Arc<Confinement>, client: Arc<dyn Client>) -> Result<Self, CallError> {
        let watch = Watch::new(&confinement.limits);
        let wasi = wasi(&watch, confinement)?;
        Ok(Self::with(wasi, watch, confinement, client))
    }

    /// A component that is run as a program.
    pub(crate) fn program(confinement: &Arc<Confinement>, start: Start, client: Arc<dyn Client>) -> Result<Self, CallError> {
        let watch = Watch::of_program(&confinement.limits, &client);
        let wasi = program_wasi(&watch, confinement, start)?;
        Ok(Self::with(wasi, watch, confinement, client))
    }

    fn with(mut wasi: WasiCtxBuilder, watch: Watch, confinement: &Arc<Confinement>, client: Arc<dyn Client>) -> Self {
        let denials = Denials::default();
        let sockets = Sockets::new(Arc::clone(confinement), denials.clone());
        sockets.allow(&mut wasi);
        let mut table = ResourceTable::new();
        table.set_max_capacity(max_handles(&confinement.limits));
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(MAX_HEADERS);
        Self {
            wasi: wasi.build(),
            table,
            http,
            config: confinement.environment.iter().cloned().collect(),
            has_holes: confinement.directories.have_holes(),
            sockets,
            outgoing: Outgoing::new(Arc::clone(confinement), denials.clone()),
            denials,
            confinement: Arc::clone(confinement),
            client,
            patience: MAX_WAIT,
            watch,
        }
    }

    /// How long the call may still take.
    pub(crate) fn deadline(&self) -> Deadline {
        self.watch.deadline.clone()
    }

    /// Another call begins in the same instance, with all the time and room that a call has.
    pub(crate) fn renew(&mut self, client: Arc<dyn Client>) {
        self.client = client;
        self.patience = MAX_WAIT;
        self.watch.renew(&self.confinement.limits);
        self.outgoing.renew();
        self.sockets.renew();
        self.denials.take();
    }
}

fn max_handles(limits: &Limits) -> usize {
    limits.max_handles.get() as usize
}

impl Watched for Guest {
    fn watch(&self) -> &Watch {
        &self.watch
    }

    fn watch_mut(&mut self) -> &mut Watch {
        &mut self.watch
    }
}

/// The data of a core module's store.
pub(crate) struct ModuleGuest {
    pub(crate) wasi: WasiP1Ctx,
    watch: Watch,
}

impl ModuleGuest {
    pub(crate) fn program(confinement: &Confinement, start: Start, client: &Arc<dyn Client>) -> Result<Self, CallError> {
        if confinement.directories.have_holes() {
            return Err(CallError::Holes);
        }
        let watch = Watch::of_program(&confinement.limits, client);
        let mut wasi = program_wasi(&watch, confinement, start)?.build_p1();
        wasi.ctx().table.set_max_capacity(max_handles(&confinement.limits));
        Ok(Self { wasi, watch })
    }
}

impl Watched for ModuleGuest {
    fn watch(&self) -> &Watch {
        &self.watch
    }

    fn watch_mut(&mut self) -> &mut Watch {
        &mut self.watch
    }
}

/// What every guest sees: its own streams, and the directories and variables that are granted.
fn wasi(watch: &Watch, confinement: &Confinement) -> Result<WasiCtxBuilder, CallError> {
    let mut wasi = WasiCtx::builder();
    wasi.stdout(watch.stdout.clone()).stderr(watch.stderr.clone());
    confinement.directories.preopen(&mut wasi)?;
    wasi.envs(&confinement.environment);
    Ok(wasi)
}

fn program_wasi(watch: &Watch, confinement: &Confinement, start: Start) -> Result<WasiCtxBuilder, CallError> {
    let mut wasi = wasi(watch, confinement)?;
    wasi.args(&start.argv)
        .envs(&start.env)
        .stdin(MemoryInputPipe::new(start.stdin));
    Ok(wasi)
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl WasiHttpView for Guest {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView {
            hooks: &mut self.outgoing,
            table: &mut self.table,
            ctx: &mut self.http,
        }
    }
}

/// Memory and tables together, over all instances of the guest.
#[derive(Debug)]
pub(crate) struct Usage {
    limit: usize,
    table_elements: usize,
    instances: usize,
    tables: usize,
    memories: usize,
    used: usize,
    /// What the last growth added, until it is known to have worked.
    pending: usize,
    /// Whether more was asked for than there is. A guest that is refused usually traps soon, for no reason that its trap would tell.
    pub(crate) refused: Option<Refused>,
}

/// What a guest asked for too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Memory,
    TableElements,
}

impl Usage {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            limit: usize::try_from(limits.max_memory.bytes()).unwrap_or(usize::MAX),
            table_elements: limits.max_table_elements as usize,
            instances: limits.max_instances.get() as usize,
            tables: limits.max_tables.get() as usize,
            memories: limits.max_memories.get() as usize,
            used: 0,
            pending: 0,
            refused: None,
        }
    }

    /// The memory that the guest has.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    fn grow(&mut self, current: usize, desired: usize) -> bool {
        let added = desired.saturating_sub(current);
        let used = self.used.saturating_add(added);
        if used > self.limit {
            self.refused = Some(Refused::Memory);
            return false;
        }
        (self.used, self.pending) = (used, added);
        true
    }

    /// wasmtime asks before it tries; what it then could not do is not counted.
    fn take_back(&mut self) {
        self.used = self.used.saturating_sub(std::mem::take(&mut self.pending));
    }
}

impl ResourceLimiter for Usage {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        self.pending = 0;
        // Beyond its own maximum a memory never grows: that is no limit of ours.
        Ok(maximum.is_none_or(|maximum| desired <= maximum) && self.grow(current, desired))
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.take_back();
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        self.pending = 0;
        if desired > self.table_elements {
            self.refused = Some(Refused::TableElements);
            return Ok(false);
        }
        let sizes = (current.saturating_mul(TABLE_ELEMENT), desired.saturating_mul(TABLE_ELEMENT));
        Ok(maximum.is_none_or(|maximum| desired <= maximum) && self.grow(sizes.0, sizes.1))
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.take_back();
        Ok(())
    }

    fn instances(&self) -> usize {
        self.instances
    }

    fn tables(&self) -> usize {
        self.tables
    }

    fn memories(&self) -> usize {
        self.memories
    }
}

#[cfg(test)]
mod tests {
    use policy::ByteSize;

    use super::*;

    #[test]
    fn memory_is_counted_over_all_and_only_when_it_is_there() {
        let mut usage = Usage::new(&Limits {
            max_memory: ByteSize::from_bytes(1000),
            ..Limits::default()
        });
        assert!(usage.memory_growing(0, 600, None).unwrap());
        assert!(usage.memory_growing(0, 300, Some(300)).unwrap());
        assert!(!usage.memory_growing(300, 400, Some(300)).unwrap(), "beyond its own maximum");
        assert_eq!(usage.refused, None, "which is no limit of ours");
        assert!(usage.memory_growing(300, 400, None).unwrap());
        usage.memory_grow_failed(wasmtime::format_err!("no memory")).unwrap();
        assert!(usage.table_growing(0, 12, None).unwrap(), "what failed is not counted");
        assert!(!usage.memory_growing(600, 700, None).unwrap());
        assert_eq!(usage.refused, Some(Refused::Memory));
    }
}
