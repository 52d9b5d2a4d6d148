//! `execute_component_call` in this process: validate, convert, a fresh instance within its limits, the call, convert, the envelope.
//! No MCP and no pipes.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use lifecycle::{Caller, Config, LifecycleManager, Tool};
use policy::{ByteSize, LimitSettings};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::road::Road;

struct Prepared {
    manager: LifecycleManager,
    tool: Arc<Tool>,
    arguments: Value,
    caller: Caller,
}

impl Prepared {
    async fn call(&self) -> Result<Value> {
        let outcome = self
            .manager
            .execute_component_call(&self.tool, &self.arguments, &self.caller)
            .await?;
        ensure!(!outcome.is_error, "the call failed");
        outcome.structured.context("there is a result")
    }
}

pub(crate) struct Executed {
    runtime: Arc<Runtime>,
    prepared: Arc<Prepared>,
}

impl Executed {
    /// `home` keeps compiled code, as it does for `host` itself.
    pub(crate) fn new(
        runtime: &Arc<Runtime>,
        home: &Path,
        file: &Path,
        tool: &str,
        arguments: &Value,
        expected: &Value,
    ) -> Result<Self> {
        let _inside = runtime.enter();
        let manager = LifecycleManager::new(Config {
            home: Some(home.to_owned()),
            // Room for the largest string that is measured.
            limits: LimitSettings {
                max_output: Some(ByteSize::from_mib(32)),
                ..LimitSettings::default()
            },
            ..Config::default()
        })?;
        manager.ensure_component_loaded(file)?;
        let prepared = Arc::new(Prepared {
            tool: manager.tool(tool)?,
            manager,
            arguments: arguments.clone(),
            caller: Caller::default(),
        });
        let result = runtime.block_on(prepared.call())?;
        ensure!(
            result["result"] == *expected,
            "`execute_component_call` gives something else than expected"
        );
        Ok(Self {
            runtime: Arc::clone(runtime),
            prepared,
        })
    }
}

impl Road for Executed {
    fn name(&self) -> &'static str {
        "`execute_component_call`"
    }

    fn call(&mut self) -> Result<()> {
        self.runtime.block_on(self.prepared.call())?;
        Ok(())
    }

    fn calls(&mut self, count: usize, in_flight: usize) -> Result<()> {
        let prepared = Arc::clone(&self.prepared);
        spread(&self.runtime, count, in_flight, move || {
            let prepared = Arc::clone(&prepared);
            async move { prepared.call().await.map(drop) }
        })
    }
}

/// Makes so many calls on the threads of a runtime: so many tasks, each of which makes one after the other.
pub(crate) fn spread<F: Future<Output = Result<()>> + Send + 'static>(
    runtime: &Runtime,
    count: usize,
    in_flight: usize,
    call: impl Fn() -> F + Clone + Send + 'static,
) -> Result<()> {
    runtime.block_on(async {
        let tasks: Vec<_> = (0..in_flight)
            .map(|_| {
                let call = call.clone();
                tokio::spawn(async move {
                    for _ in 0..count / in_flight {
                        call().await?;
                    }
                    Ok::<_, anyhow::Error>(())
                })
            })
            .collect();
        for task in tasks {
            task.await??;
        }
        Ok(())
    })
}
