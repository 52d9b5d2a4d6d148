//! What a guest sees of the world, and what it has used up of it: the data of its store.

use std::time::Instant;

use policy::Limits;
use wasmtime::ResourceLimiter;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_config::WasiConfigVariables;
use wasmtime_wasi_http::{RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks, WasiHttpView};

use crate::capture::Capture;

/// Open handles of all kinds that a guest may have at a time.
const MAX_HANDLES: usize = 10_000;

/// The largest table that a guest may have.
pub(crate) const MAX_TABLE_ELEMENTS: usize = 100_000;

/// What an element of a table costs us.
const TABLE_ELEMENT: usize = size_of::<usize>();

/// The data of a guest's store.
pub(crate) struct Guest {
    wasi: WasiCtx,
    table: ResourceTable,
    http: WasiHttpCtx,
    pub(crate) config: WasiConfigVariables,
    denials: Denials,
    pub(crate) usage: Usage,
    pub(crate) stdout: Capture,
    pub(crate) stderr: Capture,
    pub(crate) deadline: Instant,
}

impl Guest {
    /// A guest to whom nothing is granted. Its time starts now.
    pub(crate) fn new(limits: &Limits) -> Self {
        let (stdout, stderr) = (Capture::default(), Capture::default());
        let wasi = WasiCtx::builder().stdout(stdout.clone()).stderr(stderr.clone()).build();
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_HANDLES);
        Self {
            wasi,
            table,
            http: WasiHttpCtx::new(),
            config: WasiConfigVariables::new(),
            denials: Denials::default(),
            usage: Usage {
                limit: usize::try_from(limits.max_memory.bytes()).unwrap_or(usize::MAX),
                used: 0,
                refused: false,
            },
            stdout,
            stderr,
            deadline: Instant::now() + limits.timeout.duration(),
        }
    }

    /// What the guest asked for and did not get.
    pub(crate) fn denied(&self) -> Option<&str> {
        self.denials.0.as_deref()
    }
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
        self.0 = Some(format!("the network: {host}"));
        Box::new(async { Err(wasmtime_wasi_http::Error::HttpRequestDenied) })
    }
}

/// Memory and tables together, over all instances of the guest.
#[derive(Debug)]
pub(crate) struct Usage {
    limit: usize,
    used: usize,
    /// Whether more was asked for. A guest that is refused usually traps soon, for no reason that its trap would tell.
    pub(crate) refused: bool,
}

impl Usage {
    fn grow(&mut self, current: usize, desired: usize) -> bool {
        let used = self.used.saturating_add(desired.saturating_sub(current));
        if used > self.limit {
            self.refused = true;
            return false;
        }
        self.used = used;
        true
    }
}

impl ResourceLimiter for Usage {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(self.grow(current, desired))
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        // The pool refuses a larger table after we were asked, so it has to be remembered here.
        self.refused |= desired > MAX_TABLE_ELEMENTS;
        Ok(self.grow(current.saturating_mul(TABLE_ELEMENT), desired.saturating_mul(TABLE_ELEMENT)))
    }
}
