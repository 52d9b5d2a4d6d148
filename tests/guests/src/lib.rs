//! The components in `test-components/`, ready to be loaded.
//!
//! A folder there holds its component in one of three forms: `NAME.wasm`, compiled by `rebuild.sh` and checked in;
//! `NAME.wat`, the text of a component; `NAME.core.wat` with `wit/`, the text of a core module that is lifted here.
//! A few more are computed, because as text they would be long and say nothing. None of them needs a toolchain at
//! test time.
//!
//! The programs, `cli-…`, may be core modules instead, as a binary or as text. One that exists in both forms has the
//! core module as `NAME-module.wasm` in the same folder, and that is its name here too.

pub mod generate;
pub mod manifest;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use wasi_preview1_component_adapter_provider::{WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER};
use wit_component::{ComponentEncoder, StringEncoding};
use wit_parser::Resolve;

/// What the name of a program ends in that is there as a core module besides being there as a component.
const MODULE: &str = "-module";

/// The folder with all test components: of the checkout that the caller stands in, as cargo's tests do, because two checkouts may
/// share a target directory and with it this very binary; else of the one that this was compiled in.
pub fn folder() -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let beside = here.ancestors().map(|folder| folder.join("test-components"));
    let compiled_in = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-components");
    beside
        .into_iter()
        .find(|folder| folder.join("manifest.json").is_file())
        .unwrap_or_else(compiled_in)
}

/// Names of all components that can be had without a further toolchain, sorted; without those of which loading alone is the attack,
/// which [`path`] and [`bytes`] know all the same.
pub fn all() -> Result<Vec<String>> {
    let mut names: Vec<String> = generate::NAMES.map(String::from).into();
    for entry in fs::read_dir(folder())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let module = format!("{name}{MODULE}");
        names.extend([name, module].into_iter().filter(|name| Form::of(name).is_some()));
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// Whether this is a program with a command line, so with `main` instead of functions to call.
pub fn is_program(name: &str) -> bool {
    name.starts_with("cli-")
}

/// A file with this component that the host can load.
///
/// What is built here is put beside the running executable, so inside the target directory.
pub fn path(name: &str) -> Result<PathBuf> {
    if let Some(Form::Binary(path) | Form::Text(path)) = Form::of(name) {
        return Ok(path);
    }
    let executable = std::env::current_exe()?;
    let built = executable
        .parent()
        .context("an executable is in a directory")?
        .join("test-guests");
    let path = built.join(format!("{name}.wasm"));
    write(&path, &bytes(name)?)?;
    Ok(path)
}

/// The binary of this component.
pub fn bytes(name: &str) -> Result<Vec<u8>> {
    match Form::of(name) {
        Some(Form::Binary(path)) => read(&path),
        Some(Form::Text(path)) => Ok(wat::parse_file(path)?),
        Some(Form::Core { module, wit }) => lift(&module, &wit),
        None => generate::by_name(name).with_context(|| format!("there is no test component {name:?}"))?,
    }
    .with_context(|| format!("test component {name:?}"))
}

/// The file with calls to replay, for components whose answers are known. A program answers alike in both of its forms.
pub fn calls(name: &str) -> Option<PathBuf> {
    Some(folder_of(name).join("calls.json")).filter(|path| path.is_file())
}

/// Makes a component of a core module that carries its own WIT, as `wit-bindgen c` and its linker leave it.
pub fn componentize(module: &[u8]) -> Result<Vec<u8>> {
    ComponentEncoder::default().module(module)?.validate(true).encode()
}

/// Makes a component of a program for WASI 0.1, which is a core module: an adapter answers its imports by those of WASI
/// 0.2, and calls its `_start` for `wasi:cli/run`.
pub fn componentize_program(module: &[u8]) -> Result<Vec<u8>> {
    ComponentEncoder::default()
        .module(module)?
        .adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER)?
        .validate(true)
        .encode()
}

/// Writes a file so that others see either nothing or all of it: tests run side by side and build the same files.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let Some(directory) = path.parent() else {
        bail!("{} is no file", path.display())
    };
    fs::create_dir_all(directory)?;
    let mut builder = tempfile::Builder::new();
    // As any other file: what is checked in must not be readable by its owner alone.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    let mut file = builder.tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

/// How a folder holds its component or program.
enum Form {
    Binary(PathBuf),
    Text(PathBuf),
    Core { module: PathBuf, wit: PathBuf },
}

impl Form {
    fn of(name: &str) -> Option<Form> {
        let folder = folder_of(name);
        let file = |extension: &str| Some(folder.join(format!("{name}.{extension}"))).filter(|path| path.is_file());
        file("wasm")
            .map(Form::Binary)
            .or_else(|| file("wat").map(Form::Text))
            .or_else(|| {
                file("core.wat").map(|module| Form::Core {
                    module,
                    wit: folder.join("wit"),
                })
            })
    }
}

/// Where the files of this component are. Programs that are there in both forms have one folder.
fn folder_of(name: &str) -> PathBuf {
    folder().join(name.strip_suffix(MODULE).unwrap_or(name))
}

fn lift(module: &Path, wit: &Path) -> Result<Vec<u8>> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(wit)?;
    let world = resolve.select_world(&[package], None)?;
    let mut module = wat::parse_file(module)?;
    wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    componentize(&module)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| path.display().to_string())
}
