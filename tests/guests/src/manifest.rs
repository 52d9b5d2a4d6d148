//! `manifest.json` says of which sources each checked-in component was compiled, so that a stale one is noticed without
//! its toolchain.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Per component what it was made of.
pub type Manifest = BTreeMap<String, Entry>;

/// One compiled component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The versions of the tools that compiled it: to be read by people, not checked.
    pub tools: Vec<String>,
    /// SHA-256 of each source file, by its path below `test-components/`.
    pub sources: BTreeMap<String, String>,
    /// SHA-256 of the component.
    pub wasm: String,
    /// SHA-256 of the core module beside it, for programs that are there in both forms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
}

/// Where the manifest is.
pub fn path() -> PathBuf {
    crate::folder().join("manifest.json")
}

/// Reads the manifest.
pub fn read() -> Result<Manifest> {
    Ok(serde_json::from_slice(&crate::read(&path())?)?)
}

/// The folders whose component is compiled by `rebuild.sh`: those in Rust and in C.
pub fn compiled() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(crate::folder())? {
        let folder = entry?.path();
        if folder.join("Cargo.toml").is_file() || holds_c(&folder)? {
            names.push(name_of(&folder));
        }
    }
    names.sort();
    Ok(names)
}

/// What the entry of this component must be now, tools left out.
pub fn current(name: &str) -> Result<Entry> {
    let root = crate::folder();
    let folder = root.join(name);
    let mut files = Vec::new();
    collect(&folder, &mut files)?;
    // What is not compiled in: the component itself, what is read beside it, the calls that tests make, and texts for people.
    let wasm = folder.join(format!("{name}.wasm"));
    let module = folder.join(format!("{name}{}.wasm", crate::MODULE));
    let not_compiled_in = [
        wasm.clone(),
        module.clone(),
        folder.join(format!("{name}.tools.json")),
        folder.join("calls.json"),
    ];
    files.retain(|file| !not_compiled_in.contains(file) && file.extension().is_none_or(|extension| extension != "md"));
    if folder.join("Cargo.toml").is_file() {
        files.extend([root.join("Cargo.toml"), root.join("Cargo.lock")]);
    }

    let mut sources = BTreeMap::new();
    for file in files {
        let parts: Vec<String> = file
            .strip_prefix(&root)?
            .iter()
            .map(|part| part.to_string_lossy().into())
            .collect();
        sources.insert(parts.join("/"), sha256(&crate::read(&file)?));
    }
    Ok(Entry {
        tools: Vec::new(),
        sources,
        wasm: sha256(&crate::read(&wasm)?),
        module: if module.is_file() {
            Some(sha256(&crate::read(&module)?))
        } else {
            None
        },
    })
}

/// Sets the entry of one component to what is on disk now.
pub fn update(name: &str, tools: Vec<String>) -> Result<()> {
    let mut manifest = if path().is_file() { read()? } else { Manifest::new() };
    manifest.insert(name.to_owned(), Entry { tools, ..current(name)? });
    let mut text = serde_json::to_vec_pretty(&manifest)?;
    text.push(b'\n');
    crate::write(&path(), &text)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

fn holds_c(folder: &Path) -> Result<bool> {
    if !folder.is_dir() {
        return Ok(false);
    }
    for entry in fs::read_dir(folder)? {
        if entry?.path().extension().is_some_and(|extension| extension == "c") {
            return Ok(true);
        }
    }
    Ok(false)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
