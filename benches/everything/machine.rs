//! On what, with what and when it was measured.

use std::process::Command;
use std::time::SystemTime;

use serde_json::{Value, json};

pub(crate) struct Machine {
    date: String,
    commit: String,
    cpu: String,
    cores: usize,
    memory: String,
    kernel: String,
    rustc: String,
    wasmtime: String,
    rmcp: String,
}

impl Machine {
    pub(crate) fn look() -> Self {
        let lock = read("Cargo.lock");
        Self {
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            commit: commit(),
            cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory: field("/proc/meminfo", "MemTotal")
                .and_then(|size| size.trim_end_matches(" kB").parse::<f64>().ok())
                .map_or_else(unknown, |kibibytes| format!("{:.0} GB", kibibytes * 1024.0 / 1e9)),
            kernel: match std::fs::read_to_string("/proc/sys/kernel/osrelease") {
                Ok(release) => format!("Linux {}", release.trim()),
                Err(_) => std::env::consts::OS.to_owned(),
            },
            rustc: said_by("rustc", &["--version"]),
            wasmtime: version_in(&lock, "wasmtime"),
            rmcp: version_in(&lock, "rmcp"),
        }
    }

    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        vec![
            ("date", self.date.clone()),
            ("commit", self.commit.clone()),
            (
                "machine",
                format!("{}, {} cores, {}, {}", self.cpu, self.cores, self.memory, self.kernel),
            ),
            (
                "versions",
                format!("{}, wasmtime {}, rmcp {}", self.rustc, self.wasmtime, self.rmcp),
            ),
        ]
    }

    /// For the README.
    pub(crate) fn in_short(&self) -> String {
        let date = self.date.split('T').next().unwrap_or_default();
        format!("Measured on {date}, {} cores of {}, {}", self.cores, self.cpu, self.kernel)
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "date": self.date, "commit": self.commit,
            "machine": {"cpu": self.cpu, "cores": self.cores, "memory": self.memory, "kernel": self.kernel},
            "versions": {"rustc": self.rustc, "wasmtime": self.wasmtime, "rmcp": self.rmcp},
        })
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn read(file: &str) -> String {
    std::fs::read_to_string(crate::root().join(file)).unwrap_or_default()
}

/// A value in a file of lines like `name : value`.
fn field(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(found, _)| found.trim() == name)?;
    Some(value.trim().to_owned())
}

/// The commit, and whether files differ from it.
fn commit() -> String {
    let commit = said_by("git", &["rev-parse", "--short=10", "HEAD"]);
    match said_by("git", &["status", "--porcelain", "--untracked-files=no"]).as_str() {
        "" => commit,
        _ => format!("{commit} with changes"),
    }
}

fn said_by(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(crate::root()).output();
    output.map_or_else(
        |_| unknown(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

fn version_in(lock: &str, package: &str) -> String {
    let entry = format!("name = \"{package}\"\nversion = \"");
    let version = lock.split_once(&entry).and_then(|(_, rest)| rest.split('"').next());
    version.map_or_else(unknown, str::to_owned)
}
