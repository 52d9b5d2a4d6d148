//! The baseline: wasmtime alone. The same component and the same engine settings as in `host`, a fresh store and a pooled instance for
//! every call; no JSON, no limits, no MCP.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use policy::Limits;
use tokio::runtime::Runtime;
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Linker, ResourceTable, Val};
use wasmtime::{Engine, Store};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks, WasiHttpView};

use crate::executed::spread;
use crate::road::Road;

/// Nobody counts epochs here, so this is never reached. Without any, a guest would be stopped at once.
const NEVER: u64 = 1 << 40;

struct State {
    wasi: WasiCtx,
    http: WasiHttpCtx,
    no_requests: NoRequests,
    table: ResourceTable,
}

/// Some guests import `wasi:http`, and none uses it here.
struct NoRequests;

type Sent = Box<dyn Future<Output = Result<(), Error>> + Send>;
type Answered = Result<(http::Response<WasiBody>, Sent), Error>;

impl WasiHttpHooks for NoRequests {
    fn send_request(
        &mut self,
        _: http::Request<WasiBody>,
        _: Option<RequestOptions>,
        _: Sent,
    ) -> Box<dyn Future<Output = Answered> + Send> {
        Box::new(std::future::ready(Err(Error::HttpRequestDenied)))
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl WasiHttpView for State {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView {
            hooks: &mut self.no_requests,
            table: &mut self.table,
            ctx: &mut self.http,
        }
    }
}

/// What all calls share.
struct Prepared {
    engine: Engine,
    instance: InstancePre<State>,
    function: ComponentExportIndex,
    arguments: Vec<Val>,
}

impl Prepared {
    async fn call(&self) -> anyhow::Result<Val> {
        let state = State {
            wasi: WasiCtx::default(),
            http: WasiHttpCtx::new(),
            no_requests: NoRequests,
            table: ResourceTable::new(),
        };
        let mut store = Store::new(&self.engine, state);
        store.set_epoch_deadline(NEVER);
        let instance = self.instance.instantiate_async(&mut store).await?;
        let function = instance.get_func(&mut store, self.function).context("it was found before")?;
        let mut results = [Val::Bool(false)];
        function.call_async(&mut store, &self.arguments, &mut results).await?;
        let [result] = results;
        Ok(result)
    }
}

pub(crate) struct Bare {
    runtime: Arc<Runtime>,
    prepared: Arc<Prepared>,
}

impl Bare {
    /// `function` is its name in the WIT, with the interface before it if it is in one.
    pub(crate) fn new(
        runtime: &Arc<Runtime>,
        file: &Path,
        (interface, function): (Option<&str>, &str),
        arguments: Vec<Val>,
        expected: &Val,
    ) -> anyhow::Result<Self> {
        let engine = Engine::new(&sandbox::settings(false, &Limits::default()))?;
        let component = Component::from_file(&engine, file)?;
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
        wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
        let interface = interface
            .map(|name| component.get_export_index(None, name).context("no such interface"))
            .transpose()?;
        let function = component
            .get_export_index(interface.as_ref(), function)
            .context("no such function")?;
        let prepared = Arc::new(Prepared {
            instance: linker.instantiate_pre(&component)?,
            engine,
            function,
            arguments,
        });
        let result = runtime.block_on(prepared.call())?;
        anyhow::ensure!(result == *expected, "bare: {result:?} is not what was expected");
        Ok(Self {
            runtime: Arc::clone(runtime),
            prepared,
        })
    }
}

impl Road for Bare {
    fn name(&self) -> &'static str {
        "wasmtime alone"
    }

    fn call(&mut self) -> anyhow::Result<()> {
        self.runtime.block_on(self.prepared.call())?;
        Ok(())
    }

    fn calls(&mut self, count: usize, in_flight: usize) -> anyhow::Result<()> {
        let prepared = Arc::clone(&self.prepared);
        spread(&self.runtime, count, in_flight, move || {
            let prepared = Arc::clone(&prepared);
            async move { prepared.call().await.map(drop) }
        })
    }
}
