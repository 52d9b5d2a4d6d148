//! `host` with a data directory of its own, and stores with so many components in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::guests::tiny;
use crate::http::HttpServer;
use crate::stdio::Process;

pub(crate) struct Home {
    host: PathBuf,
    pub(crate) directory: PathBuf,
}

impl Home {
    pub(crate) fn new(host: &Path, directory: PathBuf) -> Result<Self> {
        fs::create_dir_all(&directory)?;
        // `host` trusts no directory that others can write to.
        #[cfg(unix)]
        fs::set_permissions(&directory, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        Ok(Self {
            host: host.to_owned(),
            directory,
        })
    }

    /// `host` with these arguments, and nothing of the user's own configuration.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.host);
        command
            .args(arguments)
            .env("HOST_HOME", &self.directory)
            .env_remove("HOST_LOG")
            .env_remove("RUST_BACKTRACE");
        command
    }

    pub(crate) fn serve(&self, options: &[&str], components: &[&Path]) -> Result<Process> {
        Process::start(self.command(&["serve"]).args(options).args(components))
    }

    pub(crate) fn serve_http(&self, components: &[&Path]) -> Result<HttpServer> {
        HttpServer::start(self.command(&["serve", "--http", "0"]).args(components))
    }

    /// Adds a component, or all of a folder, and tells how long that took.
    pub(crate) fn add(&self, path: &Path) -> Result<Duration> {
        let begin = Instant::now();
        let output = self.command(&["add"]).arg(path).stdin(Stdio::null()).output()?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "host add {}: {stderr}", path.display());
        Ok(begin.elapsed())
    }

    /// Forgets all that was compiled, as if the components had only just been copied here.
    pub(crate) fn forget_code(&self) -> Result<()> {
        let cache = self.cache();
        match cache.exists() {
            true => fs::remove_dir_all(&cache).with_context(|| cache.display().to_string()),
            false => Ok(()),
        }
    }

    /// Puts what was compiled where `host` does not find it, and tells where that is.
    pub(crate) fn set_code_aside(&self) -> Result<PathBuf> {
        let aside = self.directory.with_extension("aside");
        fs::rename(self.cache(), &aside)?;
        Ok(aside)
    }

    pub(crate) fn bring_back(&self, aside: &Path) -> Result<()> {
        self.forget_code()?;
        Ok(fs::rename(aside, self.cache())?)
    }

    fn cache(&self) -> PathBuf {
        self.directory.join("cache")
    }
}

/// A home in which so many components are stored, each with so many tools.
pub(crate) struct Store {
    pub(crate) home: Home,
    /// How long it took to add them all.
    pub(crate) added: Duration,
}

impl Store {
    pub(crate) fn new(host: &Path, folder: &Path, components: usize, tools: usize) -> Result<Self> {
        let sources = folder.join("sources");
        fs::create_dir_all(&sources)?;
        for number in 0..components {
            fs::write(
                sources.join(format!("tiny-{number}.wasm")),
                wat::parse_str(tiny(number, tools))?,
            )?;
        }
        let home = Home::new(host, folder.join("home"))?;
        let added = home.add(&sources)?;
        Ok(Self { home, added })
    }
}
