//! A component that is being served: its bytes, what is known of them, and its code from the first call on.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use policy::{Limits, Timeout};
use sandbox::{CodeError, CodeKind, Compiled, Confinement, Executable, Program, Sandbox};
use sources::Digest;
use tokio::sync::OnceCell;

use crate::cache::CodeName;
use crate::compile::{self, CompileWorker, Slots};
use crate::error::ExecuteError;
use crate::files;
use crate::id::ComponentId;
use crate::metadata::{Interface, Metadata};
use crate::progress::{Event, Progress};
use crate::store::{Entry, Store};

/// A component under its id, with what it may use.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) id: ComponentId,
    pub(crate) origin: Origin,
    /// What it may use, and how much of it.
    pub(crate) confinement: Arc<Confinement>,
    pub(crate) revision: Arc<Revision>,
}

/// Why a component is served.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Origin {
    /// It was added to the store.
    Added(Arc<Entry>),
    /// Its file was named, or lies in a directory that was.
    File(PathBuf),
}

impl Origin {
    /// The id that it has by itself, and by which the config file knows it.
    pub(crate) fn id(&self) -> ComponentId {
        match self {
            Self::Added(entry) => entry.id.clone(),
            Self::File(path) => ComponentId::from_file(path),
        }
    }
}

/// Certain bytes. Calls that run keep the revision that they began with, whatever replaces it.
#[derive(Debug)]
pub(crate) struct Revision {
    /// The file that they are in.
    pub(crate) file: PathBuf,
    pub(crate) metadata: Metadata,
    /// Of what lies beside the file and had a part in the metadata.
    pub(crate) beside: Digest,
    /// Linked code, from the first call on; or why there is none and never will be.
    code: OnceCell<Result<Code, CodeError>>,
}

/// What runs when a tool is called.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    Functions(Arc<Program>),
    Program(Arc<Executable>),
}

impl Revision {
    pub(crate) fn new(file: PathBuf, metadata: Metadata, beside: Digest) -> Self {
        Self {
            file,
            metadata,
            beside,
            code: OnceCell::new(),
        }
    }

    /// The code: linked already, or mapped from the cache, or compiled. Concurrent calls wait for one of them, and a call that is
    /// cancelled meanwhile leaves it running for the next.
    pub(crate) async fn code(self: &Arc<Self>, compiler: &Compiler, limits: &Limits) -> Result<Code, ExecuteError> {
        if let Some(code) = self.code.get() {
            return Ok(code.clone()?);
        }
        let (compiler, revision) = (compiler.clone(), Arc::clone(self));
        let within = limits.compile_timeout;
        let loading = tokio::spawn(async move {
            let make = async || {
                let (compiler, revision) = (compiler.clone(), Arc::clone(&revision));
                let made = tokio::task::spawn_blocking(move || revision.link(&compiler, within)).await;
                match made? {
                    Ok(code) => Ok(Ok(code)),
                    Err(ExecuteError::Code(error)) if error.lasts() => Ok(Err(error)),
                    Err(passing) => Err(passing),
                }
            };
            Ok(revision.code.get_or_try_init(make).await?.clone()?)
        });
        loading.await?
    }

    /// The code, if it is linked already.
    pub(crate) fn linked(&self) -> Option<&Code> {
        self.code.get()?.as_ref().ok()
    }

    fn link(&self, compiler: &Compiler, within: Timeout) -> Result<Code, ExecuteError> {
        let compiled = compiler.compiled(&self.metadata.digest, self.metadata.interface.code_kind(), within, || {
            self.bytes()
        })?;
        let sandbox = &compiler.sandbox;
        Ok(match &self.metadata.interface {
            Interface::Functions { exports, .. } => Code::Functions(Arc::new(sandbox.link(&compiled, exports)?)),
            Interface::Program(program) => {
                let executable = sandbox.link_executable(&compiled, self.metadata.interface.code_kind(), &program.exports)?;
                Code::Program(Arc::new(executable))
            }
        })
    }

    /// Whether its code is kept. Whether it is intact is seen when it is mapped.
    pub(crate) fn is_compiled(&self, compiler: &Compiler) -> bool {
        let (Some(store), Ok(key)) = (
            &compiler.store,
            compiler.sandbox.code_key(self.metadata.interface.code_kind()),
        ) else {
            return false;
        };
        store.cache.has_code(&CodeName::new(&self.metadata.digest, &key))
    }

    /// Compiles it, unless its code is kept already: then nothing is read, and nothing is mapped before the first call.
    pub(crate) async fn compile_ahead(self: &Arc<Self>, compiler: &Compiler, limits: &Limits) -> Result<(), ExecuteError> {
        if compiler.store.is_none() {
            // What is not kept is of use only where it is.
            return self.code(compiler, limits).await.map(|_| ());
        }
        let (compiler, revision) = (compiler.clone(), Arc::clone(self));
        let within = limits.compile_timeout;
        let compiling = tokio::task::spawn_blocking(move || {
            let Metadata { digest, interface, .. } = &revision.metadata;
            compiler.compile_once(digest, interface.code_kind(), within, || revision.bytes())
        });
        compiling.await?
    }

    /// The bytes, which the tools that were promised belong to.
    fn bytes(&self) -> Result<Cow<'_, [u8]>, ExecuteError> {
        let bytes = files::read_component(&self.file).map_err(|error| ExecuteError::Reread {
            path: self.file.clone(),
            error: Box::new(error),
        })?;
        if Digest::of(&bytes) != self.metadata.digest {
            return Err(ExecuteError::Changed { path: self.file.clone() });
        }
        Ok(Cow::Owned(bytes))
    }
}

/// Makes code of bytes, once for all processes that share a store.
#[derive(Clone, Debug)]
pub(crate) struct Compiler {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) store: Option<Arc<Store>>,
    pub(crate) progress: Progress,
    /// Who compiles, where that is another process.
    pub(crate) worker: Option<CompileWorker>,
    pub(crate) slots: Arc<Slots>,
}

/// Code that was made just now.
enum Made {
    Here(Compiled),
    Elsewhere(Vec<u8>),
}

impl Compiler {
    /// Sees to it that code is kept. Whether it is intact is seen when it is mapped.
    pub(crate) fn compile_once<'a>(
        &self,
        digest: &Digest,
        kind: CodeKind,
        within: Timeout,
        bytes: impl FnOnce() -> Result<Cow<'a, [u8]>, ExecuteError>,
    ) -> Result<(), ExecuteError> {
        let name = CodeName::new(digest, &self.sandbox.code_key(kind)?);
        let is_kept = self.store.as_ref().is_some_and(|store| store.cache.has_code(&name));
        if !is_kept {
            self.compiled(digest, kind, within, bytes)?;
        }
        Ok(())
    }

    /// Code from the cache, or compiled now and kept.
    pub(crate) fn compiled<'a, E: From<CodeError>>(
        &self,
        digest: &Digest,
        kind: CodeKind,
        within: Timeout,
        bytes: impl FnOnce() -> Result<Cow<'a, [u8]>, E>,
    ) -> Result<Compiled, E> {
        let make = || {
            tracing::info!(%digest, "compiling");
            let bytes = bytes()?;
            compile::check_size(&bytes)?;
            let _slot = self.slots.enter();
            self.progress.tell(&Event::Compiling {
                size: bytes.len() as u64,
            });
            let made = match &self.worker {
                Some(worker) => Made::Elsewhere(worker.compile(&bytes, kind, &self.sandbox.code_key(kind)?, within)?),
                None => Made::Here(self.sandbox.compile(&bytes, kind)?),
            };
            self.progress.tell(&Event::Compiled);
            Ok::<_, E>(made)
        };
        let Some(store) = &self.store else {
            return match make()? {
                Made::Here(compiled) => Ok(compiled),
                Made::Elsewhere(code) => Ok(self.map_code(&code, kind)?),
            };
        };
        let cache = &store.cache;
        let name = CodeName::new(digest, &self.sandbox.code_key(kind)?);
        let kept = || match self.sandbox.map(&cache.code(&name)?, kind) {
            Ok(compiled) => Some(Ok(compiled)),
            // Whatever is wrong with kept code, new code is right.
            Err(error @ CodeError::Map(_)) => {
                tracing::info!("{error}; compiling again");
                None
            }
            Err(error) => Some(Err(error)),
        };
        if let Some(compiled) = kept() {
            return Ok(compiled?);
        }
        // On a store that cannot be written to, everybody compiles for himself.
        let compiling = cache.compiling(&name).ok();
        if compiling.is_some()
            && let Some(compiled) = kept()
        {
            return Ok(compiled?);
        }
        let made = make()?;
        let own;
        let code = match &made {
            Made::Here(compiled) => {
                own = compiled.code()?;
                &own
            }
            Made::Elsewhere(code) => code,
        };
        match cache.keep_code(&name, code) {
            // The mapped file is shared with other processes and costs no memory of our own.
            Ok(file) => match (self.sandbox.map(&file, kind), made) {
                // Everything in the cache may be deleted at any time, also just now.
                (Err(CodeError::Map(_)), Made::Here(compiled)) => Ok(compiled),
                (Err(CodeError::Map(_)), Made::Elsewhere(code)) => Ok(self.map_code(&code, kind)?),
                (mapped, _) => Ok(mapped?),
            },
            Err(error) => {
                tracing::warn!(%error, "compiled code is not kept for the next start");
                match made {
                    Made::Here(compiled) => Ok(compiled),
                    Made::Elsewhere(code) => Ok(self.map_code(&code, kind)?),
                }
            }
        }
    }

    /// Maps code that is kept nowhere, from a file that is gone at once.
    fn map_code(&self, code: &[u8], kind: CodeKind) -> Result<Compiled, CodeError> {
        use std::io::Write as _;
        let failed = |error: std::io::Error| CodeError::Map(error.to_string());
        let mut file = tempfile::NamedTempFile::new().map_err(failed)?;
        file.write_all(code).map_err(failed)?;
        self.sandbox.map(file.path(), kind)
    }
}
