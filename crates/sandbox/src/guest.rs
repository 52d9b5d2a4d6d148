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
const MAX_HANDLES: usize = 1_000;

/// What the headers of one request may take.
const MAX_HEADERS: usize = 16 << 10;

/// What is shown of a host that a guest asked for.
const SHOWN_HOST: usize = 100;

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
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(MAX_HEADERS);
        Self {
            wasi,
            table,
            http,
            config: WasiConfigVariables::new(),
            denials: Denials::default(),
            usage: Usage::new(limits),
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
