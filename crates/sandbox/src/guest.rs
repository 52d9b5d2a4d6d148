//! What a guest sees of the world, and what it has used up of it: the data of its store.

use std::time::Instant;

use policy::{Access, DirectoryGrant, Grants, Limits};
use wasmtime::ResourceLimiter;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::p1::WasiP1Ctx;
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_config::WasiConfigVariables;
use wasmtime_wasi_http::{RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks, WasiHttpView};

use crate::capture::Capture;
use crate::error::CallError;

/// Open handles of all kinds that a guest may have at a time.
const MAX_HANDLES: usize = 1_000;

/// What the headers of one request may take.
const MAX_HEADERS: usize = 16 << 10;

/// What is shown of a host that a guest asked for.
const SHOWN_HOST: usize = 100;

/// What is kept of what a program prints to its stderr.
const MAX_STDERR: usize = 1 << 20;

/// The largest table that a guest may have.
pub(crate) const MAX_TABLE_ELEMENTS: usize = 100_000;

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
    pub(crate) deadline: Instant,
}

impl Watch {
    /// The guest's time starts now. What it prints is for the log.
    fn new(limits: &Limits) -> Self {
        Self {
            usage: Usage::new(limits),
            stdout: Capture::default(),
            stderr: Capture::default(),
            deadline: Instant::now() + limits.timeout.duration(),
        }
    }

    /// What the guest prints is its result.
    fn of_program(limits: &Limits) -> Self {
        let room = usize::try_from(limits.max_output.bytes()).unwrap_or(usize::MAX);
        Self {
            stdout: Capture::with_room(room),
            stderr: Capture::with_room(room.min(MAX_STDERR)),
            ..Self::new(limits)
        }
    }
}

/// The data of a store, whatever kind of guest is in it.
pub(crate) trait Watched: Send + 'static {
    fn watch(&self) -> &Watch;
    fn usage(&mut self) -> &mut Usage;
    /// What the guest asked for and did not get.
    fn denied(&self) -> Option<&str>;
}

/// The data of a component's store.
pub(crate) struct Guest {
    wasi: WasiCtx,
    table: ResourceTable,
    http: WasiHttpCtx,
    pub(crate) config: WasiConfigVariables,
    denials: Denials,
    watch: Watch,
}

impl Guest {
    /// A guest that has only what is granted. Its time starts now.
    pub(crate) fn new(limits: &Limits, grants: &Grants) -> Result<Self, CallError> {
        let watch = Watch::new(limits);
        let wasi = wasi(&watch, grants)?.build();
        Ok(Self::with(wasi, watch))
    }

    /// A component that is run as a program.
    pub(crate) fn program(limits: &Limits, grants: &Grants, start: Start) -> Result<Self, CallError> {
        let watch = Watch::of_program(limits);
        let wasi = program_wasi(&watch, grants, start)?.build();
        Ok(Self::with(wasi, watch))
    }

    fn with(wasi: WasiCtx, watch: Watch) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_HANDLES);
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(MAX_HEADERS);
        Self {
            wasi,
            table,
            http,
            config: WasiConfigVariables::new(),
            denials: Denials::default(),
            watch,
        }
    }
}

impl Watched for Guest {
    fn watch(&self) -> &Watch {
        &self.watch
    }

    fn usage(&mut self) -> &mut Usage {
        &mut self.watch.usage
    }

    fn denied(&self) -> Option<&str> {
        self.denials.0.as_deref()
    }
}

/// The data of a core module's store.
pub(crate) struct ModuleGuest {
    pub(crate) wasi: WasiP1Ctx,
    watch: Watch,
}

impl ModuleGuest {
    pub(crate) fn program(limits: &Limits, grants: &Grants, start: Start) -> Result<Self, CallError> {
        let watch = Watch::of_program(limits);
        let mut wasi = program_wasi(&watch, grants, start)?.build_p1();
        wasi.ctx().table.set_max_capacity(MAX_HANDLES);
        Ok(Self { wasi, watch })
    }
}

impl Watched for ModuleGuest {
    fn watch(&self) -> &Watch {
        &self.watch
    }

    fn usage(&mut self) -> &mut Usage {
        &mut self.watch.usage
    }

    fn denied(&self) -> Option<&str> {
        None
    }
}

/// What every guest sees: its own streams, and the directories that are granted.
fn wasi(watch: &Watch, grants: &Grants) -> Result<WasiCtxBuilder, CallError> {
    let mut wasi = WasiCtx::builder();
    wasi.stdout(watch.stdout.clone()).stderr(watch.stderr.clone());
    // WASI has no working directory, but libcs take relative paths to be below what is called `.`, or another relative name.
    let working_directory = grants.directories.first().map(|grant| grant.directory.guest_path());
    for (index, DirectoryGrant { directory, access }) in grants.directories.iter().enumerate() {
        let perms = match access {
            Access::Read => FsPerms::ReadOnly,
            Access::Write => FsPerms::ReadWrite,
        };
        let guest = directory.guest_path();
        if index == 0 {
            wasi.initial_cwd(&guest).env("PWD", &guest);
        }
        let relative = working_directory.as_ref().and_then(|cwd| below(&guest, cwd));
        for path in [guest.as_str()].into_iter().chain(relative) {
            wasi.preopened_dir(&directory.host, path, perms)
                .map_err(|error| CallError::Directory {
                    path: directory.host.clone(),
                    error: format!("{error:#}"),
                })?;
        }
    }
    Ok(wasi)
}

/// The path relative to the working directory, where it is below that: `.` for itself.
fn below<'a>(path: &'a str, cwd: &str) -> Option<&'a str> {
    if path == "." {
        return None;
    }
    match path.strip_prefix(cwd)? {
        "" => Some("."),
        rest => rest.strip_prefix('/').filter(|rest| !rest.is_empty()),
    }
}

fn program_wasi(watch: &Watch, grants: &Grants, start: Start) -> Result<WasiCtxBuilder, CallError> {
    let mut wasi = wasi(watch, grants)?;
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
            hooks: &mut self.denials,
            table: &mut self.table,
            ctx: &mut self.http,
        }
    }
}

/// Refuses every request, and remembers the last one, so that the error can say what it was.
#[derive(Default)]
struct Denials(Option<String>);

type Sent = Box<dyn Future<Output = Result<(), wasmtime_wasi_http::Error>> + Send>;

impl WasiHttpHooks for Denials {
    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        _: Option<RequestOptions>,
        _: Sent,
    ) -> Box<dyn Future<Output = Result<(http::Response<WasiBody>, Sent), wasmtime_wasi_http::Error>> + Send> {
        let host = request
            .uri()
            .authority()
            .map_or("an unnamed host", |authority| authority.as_str());
        let host: String = host.chars().take(SHOWN_HOST).collect();
        self.0 = Some(format!("the network: {host}"));
        Box::new(async { Err(wasmtime_wasi_http::Error::HttpRequestDenied) })
    }
}

/// Memory and tables together, over all instances of the guest.
#[derive(Debug)]
pub(crate) struct Usage {
    limit: usize,
    used: usize,
    /// What the last growth added, until it is known to have worked.
    pending: usize,
    /// Whether more was asked for than there is. A guest that is refused usually traps soon, for no reason that its trap would tell.
    pub(crate) refused: bool,
}

impl Usage {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            limit: usize::try_from(limits.max_memory.bytes()).unwrap_or(usize::MAX),
            used: 0,
            pending: 0,
            refused: false,
        }
    }

    fn grow(&mut self, current: usize, desired: usize) -> bool {
        let added = desired.saturating_sub(current);
        let used = self.used.saturating_add(added);
        if used > self.limit {
            self.refused = true;
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
        if desired > MAX_TABLE_ELEMENTS {
            self.refused = true;
            return Ok(false);
        }
        let sizes = (current.saturating_mul(TABLE_ELEMENT), desired.saturating_mul(TABLE_ELEMENT));
        Ok(maximum.is_none_or(|maximum| desired <= maximum) && self.grow(sizes.0, sizes.1))
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.take_back();
        Ok(())
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
        assert!(!usage.refused, "which is no limit of ours");
        assert!(usage.memory_growing(300, 400, None).unwrap());
        usage.memory_grow_failed(wasmtime::format_err!("no memory")).unwrap();
        assert!(usage.table_growing(0, 12, None).unwrap(), "what failed is not counted");
        assert!(!usage.memory_growing(600, 700, None).unwrap());
        assert!(usage.refused);
    }
}
