//! What is counted while a server runs, for `/metrics`.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// The format of what [`Metrics::text`] gives.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// From the time of a small function to that of the longest calls.
const BUCKETS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0,
];

/// Tools that are told apart. Components come and go, and what was counted stays.
const MAX_TOOLS: usize = 2000;
const OTHER_TOOLS: &str = "other";

/// Clones share what they count.
#[derive(Clone, Default)]
pub(crate) struct Metrics(Arc<Counts>);

#[derive(Default)]
struct Counts {
    requests: Family<RequestLabels, Counter>,
    calls: Family<CallLabels, Counter>,
    tools: Mutex<HashSet<String>>,
    durations: Durations,
    running: Gauge,
    connections: Gauge,
    sessions: Gauge,
}

struct Durations(Histogram);

impl Default for Durations {
    fn default() -> Self {
        Self(Histogram::new(BUCKETS))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    path: &'static str,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    tool: String,
    outcome: &'static str,
}

impl Metrics {
    /// An answered request.
    pub(crate) fn request(&self, path: &'static str, status: u16) {
        self.0.requests.get_or_create(&RequestLabels { path, status }).inc();
    }

    pub(crate) fn connection(&self) -> Open {
        Open::new(&self.0.connections)
    }

    pub(crate) fn session(&self) -> Open {
        Open::new(&self.0.sessions)
    }

    /// A call of a tool that exists: names that clients think up must not become labels.
    pub(crate) fn call(&self, tool: &str) -> Running {
        let tool = {
            let mut tools = self.0.tools.lock().unwrap_or_else(PoisonError::into_inner);
            let is_known = tools.contains(tool) || tools.len() < MAX_TOOLS && tools.insert(tool.to_owned());
            if is_known { tool } else { OTHER_TOOLS }
        };
        Running {
            metrics: self.clone(),
            tool: tool.to_owned(),
            outcome: "cancelled",
            begun: Instant::now(),
            _running: Open::new(&self.0.running),
        }
    }

    /// Everything, as text.
    pub(crate) fn text(&self) -> Result<String, fmt::Error> {
        let counts = &*self.0;
        let mut registry = Registry::with_prefix("host");
        registry.register("http_requests", "Requests that were answered", counts.requests.clone());
        registry.register("http_connections", "Open connections", counts.connections.clone());
        registry.register("http_sessions", "Sessions that this process holds", counts.sessions.clone());
        registry.register("calls", "Calls of tools that ended", counts.calls.clone());
        registry.register("calls_running", "Calls of tools that run", counts.running.clone());
        let durations = counts.durations.0.clone();
        registry.register_with_unit("call_duration", "How long calls of tools took", Unit::Seconds, durations);
        let mut process = Registry::with_prefix("process");
        if let Some(bytes) = resident_memory() {
            let memory: Gauge = Gauge::default();
            memory.set(bytes);
            process.register_with_unit("resident_memory", "Memory that this process has", Unit::Bytes, memory);
        }
        let mut text = String::new();
        prometheus_client::encoding::text::encode_registry(&mut text, &process)?;
        encode(&mut text, &registry)?;
        Ok(text)
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// Something that is there as long as this is.
#[derive(Debug)]
pub(crate) struct Open(Gauge);

impl Open {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// A call that runs. One that is dropped before it ended was cancelled.
#[derive(Debug)]
pub(crate) struct Running {
    metrics: Metrics,
    tool: String,
    outcome: &'static str,
    begun: Instant,
    _running: Open,
}

impl Running {
    pub(crate) fn ended(mut self, outcome: &'static str) {
        self.outcome = outcome;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let labels = CallLabels {
            tool: std::mem::take(&mut self.tool),
            outcome: self.outcome,
        };
        self.metrics.0.calls.get_or_create(&labels).inc();
        self.metrics.0.durations.0.observe(self.begun.elapsed().as_secs_f64());
    }
}

#[cfg(target_os = "linux")]
fn resident_memory() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Other systems have no file for it.
#[cfg(not(target_os = "linux"))]
fn resident_memory() -> Option<i64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_tool_and_outcome() {
        let metrics = Metrics::default();
        metrics.call("add").ended("ok");
        metrics.call("add").ended("ok");
        metrics.call("add").ended("error");
        drop(metrics.call("wait"));
        let running = metrics.call("wait");
        let text = metrics.text().unwrap();
        for line in [
            r#"host_calls_total{tool="add",outcome="ok"} 2"#,
            r#"host_calls_total{tool="add",outcome="error"} 1"#,
            r#"host_calls_total{tool="wait",outcome="cancelled"} 1"#,
            "host_calls_running 1",
            "host_call_duration_seconds_count 4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
        running.ended("ok");
        assert!(metrics.text().unwrap().contains("host_calls_running 0"));
    }

    #[test]
    fn there_are_only_so_many_labels() {
        let metrics = Metrics::default();
        for number in 0..MAX_TOOLS + 100 {
            metrics.call(&format!("tool_{number}")).ended("ok");
        }
        let text = metrics.text().unwrap();
        let counted = text.lines().filter(|line| line.starts_with("host_calls_total")).count();
        assert_eq!(counted, MAX_TOOLS + 1);
        assert!(text.contains(r#"host_calls_total{tool="other",outcome="ok"} 100"#));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_is_told_where_it_is_known() {
        assert!(resident_memory().unwrap() > 1 << 20);
        assert!(Metrics::default().text().unwrap().contains("process_resident_memory_bytes "));
    }
}
