//! WIT text beside a component: finding it, and taking its docs.

use std::fs;
use std::path::{Path, PathBuf};

use component2json::{Docs, Exports};
use wit_parser::Resolve;

use crate::error::LoadError;
use crate::files;

/// WIT of more files or bytes than this is not read: it would be no documentation.
const MAX_FILES: usize = 1_000;
const MAX_BYTES: u64 = 8 << 20;

/// A WIT file or folder that may describe a component.
#[derive(Debug)]
pub(crate) struct SideWit {
    path: PathBuf,
    /// Whether the person named it, or its name says that it is meant for the component.
    meant: bool,
}

impl SideWit {
    /// Where docs for a component may be, best first.
    pub(crate) fn candidates(component: &Path, given: Option<&Path>) -> Vec<Self> {
        if let Some(path) = given {
            return vec![Self {
                path: path.to_owned(),
                meant: true,
            }];
        }
        let folder = component.parent().unwrap_or(Path::new(""));
        let mut found = vec![Self {
            path: component.with_extension("wit"),
            meant: true,
        }];
        found.push(Self {
            path: folder.join("wit"),
            meant: false,
        });
        found.push(Self {
            path: folder.join("..").join("wit"),
            meant: false,
        });
        found.retain(|candidate| candidate.path.exists());
        found
    }

    /// What the docs depend on: the texts of all the files. More than would be parsed is not read.
    pub(crate) fn fingerprint(candidates: &[Self]) -> Vec<u8> {
        let mut texts = Vec::new();
        let mut left = MAX_BYTES;
        for candidate in candidates {
            let mut files = Vec::new();
            wit_files(&candidate.path, 0, &mut files);
            for file in files {
                let size = file.metadata().map_or(0, |metadata| metadata.len());
                texts.extend_from_slice(format!("{}\0{size}\0", file.display()).as_bytes());
                left = left.saturating_sub(size);
                if left > 0 {
                    texts.extend_from_slice(&fs::read(&file).unwrap_or_default());
                }
            }
        }
        texts
    }

    /// The docs of the first candidate that describes the component. A wrong one is reported and passed over.
    pub(crate) fn docs(candidates: &[Self], exports: &Exports, warnings: &mut Vec<String>) -> Option<Docs> {
        for candidate in candidates {
            let path = candidate.path.display();
            let problem = match parse(&candidate.path) {
                Ok(docs) if docs.describes(exports) => return Some(docs),
                Ok(_) => format!("`{path}` describes none of the component's exports; its docs were ignored"),
                Err(error) => format!("the docs in `{path}` were ignored: {error}"),
            };
            if candidate.meant {
                warnings.push(problem);
            } else {
                tracing::info!("{problem}");
            }
        }
        None
    }
}

/// All WIT files below a path, in a fixed order.
fn wit_files(path: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    if depth > 8 || files.len() >= MAX_FILES {
        return;
    }
    if path.is_file() {
        files.push(path.to_owned());
        return;
    }
    let Ok(entries) = fs::read_dir(path) else { return };
    let mut entries: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir()
            || entry
                .extension()
                .is_some_and(|extension| extension == "wit" || extension == "wasm")
        {
            wit_files(&entry, depth + 1, files);
        }
    }
}

fn parse(path: &Path) -> Result<Docs, String> {
    let mut files = Vec::new();
    wit_files(path, 0, &mut files);
    let bytes: u64 = files.iter().filter_map(|file| Some(file.metadata().ok()?.len())).sum();
    if bytes > MAX_BYTES {
        return Err(format!("it has {bytes} bytes of WIT; {MAX_BYTES} is the limit"));
    }
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(path).map_err(|error| format!("{error:#}"))?;
    Ok(Docs::from_wit(&resolve, package))
}

/// Puts the docs of a WIT into a component file. Returns how many bytes the file grew by.
pub fn embed_docs(component: &Path, wit: &Path, output: &Path) -> Result<u64, EmbedError> {
    if output == component {
        files::check_binary(component)?;
    }
    let bytes = files::read_component(component)?;
    let read_error = |error| LoadError::Component {
        path: component.to_owned(),
        error,
    };
    let (exports, _) = component2json::read_exports(&bytes, None).map_err(read_error)?;
    let mut docs = parse(wit).map_err(|error| EmbedError::Wit {
        path: wit.to_owned(),
        error,
    })?;
    if !docs.describes(&exports) {
        return Err(EmbedError::Wit {
            path: wit.to_owned(),
            error: format!("it describes none of the exports of `{}`", component.display()),
        });
    }
    docs.retain_interfaces(&component2json::interface_names(&bytes).map_err(read_error)?);
    if docs.is_empty() {
        return Err(EmbedError::Wit {
            path: wit.to_owned(),
            error: "it has no docs (`///` comments) for the exports".into(),
        });
    }
    let with_docs = component2json::embed_docs(&bytes, &docs).map_err(read_error)?;
    files::write_atomically(output, &with_docs).map_err(|error| EmbedError::Write {
        path: output.to_owned(),
        error,
    })?;
    Ok((with_docs.len() as u64).saturating_sub(bytes.len() as u64))
}

/// Why docs were not put into a component. The component is as it was.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("the WIT in `{path}` cannot be used: {error}")]
    Wit { path: PathBuf, error: String },
    #[error("`{path}` could not be written: {error}")]
    Write { path: PathBuf, error: std::io::Error },
}
