//! Manifests: which part of an artifact is the WebAssembly, and how one is written.
//!
//! Pure. Whatever a registry sends is read leniently and believed in nothing: digests and sizes are checked where bytes arrive.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::Digest;

pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// What is asked for. Docker's older forms have the same fields.
pub(crate) const ACCEPTED: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json";
const WASM: &str = "application/wasm";
const WASM_CONFIG: &str = "application/vnd.wasm.config.v0+json";
const TITLE: &str = "org.opencontainers.image.title";

pub(crate) type Annotations = BTreeMap<String, String>;

/// A manifest, or an index of manifests.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    schema_version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<Descriptor>,
    #[serde(default)]
    pub(crate) layers: Vec<Descriptor>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) manifests: Vec<Descriptor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) annotations: Option<Annotations>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    pub(crate) media_type: String,
    pub(crate) digest: String,
    pub(crate) size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    annotations: Option<Annotations>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    platform: Option<Platform>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Platform {
    architecture: String,
    os: String,
}

/// A part of an artifact that is not its WebAssembly: to be shown, never to be applied. All its texts are the publisher's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    pub media_type: String,
    pub title: Option<String>,
    /// As the manifest says.
    pub digest: String,
    pub size: u64,
    /// What is in it, if it is a short text.
    pub text: Option<String>,
}

/// Why nothing was found, and what there is instead.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unclear {
    pub(crate) problem: &'static str,
    pub(crate) contents: String,
    pub(crate) hint: &'static str,
}

impl Manifest {
    /// The one layer that is WebAssembly.
    pub(crate) fn wasm_layer(&self) -> Result<&Descriptor, Unclear> {
        let unclear = |problem, hint| Unclear {
            problem,
            contents: listed(self.layers.iter().map(Descriptor::shown)),
            hint,
        };
        let mut wasm = self.layers.iter().filter(|layer| layer.is_wasm());
        match (wasm.next(), wasm.next()) {
            (Some(layer), None) => Ok(layer),
            (None, _) => Err(unclear(
                "no WebAssembly",
                "push the component as a layer of type `application/wasm`, as `wkg oci push` and `host push` do",
            )),
            (Some(_), Some(_)) => Err(unclear(
                "more than one WebAssembly layer",
                "push each component as an artifact of its own",
            )),
        }
    }

    /// The one manifest of an index that is for WebAssembly.
    pub(crate) fn wasm_manifest(&self) -> Result<&Descriptor, Unclear> {
        let unclear = |problem| Unclear {
            problem,
            contents: listed(self.manifests.iter().map(Descriptor::shown)),
            hint: "name one of them by its digest, `REPOSITORY@sha256:…`",
        };
        let for_wasm = |entry: &&Descriptor| entry.platform.as_ref().is_some_and(Platform::is_wasm);
        // Who pushes one artifact under an index may say nothing about platforms.
        let for_anything = |entry: &&Descriptor| entry.platform.is_none();
        let found: Vec<&Descriptor> = self.manifests.iter().filter(for_wasm).collect();
        let candidates = if found.is_empty() {
            self.manifests.iter().filter(for_anything).collect()
        } else {
            found
        };
        match candidates.as_slice() {
            [one] => Ok(one),
            [] => Err(unclear("no variant for WebAssembly")),
            _ => Err(unclear("more than one variant for WebAssembly")),
        }
    }

    pub(crate) fn is_index(&self) -> bool {
        self.layers.is_empty() && !self.manifests.is_empty()
    }
}

impl Platform {
    fn is_wasm(&self) -> bool {
        let is = |text: &str, known: &[&str]| known.contains(&text);
        is(&self.architecture, &["wasm", "wasm32"]) || is(&self.os, &["wasi", "wasip1", "wasip2"])
    }
}

impl Descriptor {
    fn of(media_type: &str, bytes: &[u8]) -> Self {
        Self {
            media_type: media_type.to_owned(),
            digest: Digest::of(bytes).to_string(),
            size: bytes.len() as u64,
            annotations: None,
            platform: None,
        }
    }

    fn title(&self) -> Option<&str> {
        Some(self.annotations.as_ref()?.get(TITLE)?.as_str())
    }

    /// `application/wasm`, `application/vnd.wasm.content.layer.v1+wasm`, `application/vnd.bytecodealliance.wasm.component.layer.v0+wasm`,
    /// or a file of that name pushed by `oras`.
    fn is_wasm(&self) -> bool {
        self.media_type == WASM || self.media_type.ends_with("+wasm") || self.title().is_some_and(|title| title.ends_with(".wasm"))
    }

    /// Policies, interfaces, read-me files.
    pub(crate) fn is_text(&self) -> bool {
        let ends_like_text = |name: &str| {
            let endings = ["yaml", "yml", "json", "toml", "wit", "md", "txt"];
            name.rsplit(['.', '+', '/']).next().is_some_and(|end| endings.contains(&end))
        };
        self.media_type.starts_with("text/") || ends_like_text(&self.media_type) || self.title().is_some_and(ends_like_text)
    }

    pub(crate) fn layer(&self, text: Option<String>) -> Layer {
        Layer {
            media_type: self.media_type.clone(),
            title: self.title().map(str::to_owned),
            digest: self.digest.clone(),
            size: self.size,
            text,
        }
    }

    fn shown(&self) -> String {
        let name = match (&self.platform, self.title()) {
            (Some(platform), _) => format!("{}/{} {}", platform.os, platform.architecture, self.digest),
            (None, Some(title)) => format!("{} ({title})", self.media_type),
            (None, None) => self.media_type.clone(),
        };
        // It is a stranger's text in a message of ours.
        let plain = name.chars().filter(|c| matches!(c, ' '..='~') && *c != '`').take(120);
        format!("`{}`", plain.collect::<String>())
    }
}

fn listed(parts: impl ExactSizeIterator<Item = String>) -> String {
    const SHOWN: usize = 8;
    let rest = parts.len().saturating_sub(SHOWN);
    let shown: Vec<String> = parts.take(SHOWN).collect();
    match (shown.is_empty(), rest) {
        (true, _) => "no layers at all".to_owned(),
        (false, 0) => shown.join(", "),
        (false, rest) => format!("{} and {rest} more", shown.join(", ")),
    }
}

/// What is said about WebAssembly that is pushed.
#[derive(Clone, Debug)]
pub struct Published {
    /// The interfaces of a component; none for a core module.
    pub component: Option<Interfaces>,
    pub author: Option<String>,
    pub created: SystemTime,
    /// The name under which other clients write it to a file.
    pub title: String,
    /// For the manifest, as `org.opencontainers.image.description`.
    pub annotations: BTreeMap<String, String>,
}

/// The names of what a component exports and imports, as in `wasi:cli/run@0.2.0`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Interfaces {
    pub exports: Vec<String>,
    pub imports: Vec<String>,
    /// The world that it was built for.
    pub target: Option<String>,
}

/// The config of the form that the CNCF's working group wrote down, and `wkg` writes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WasmConfig<'a> {
    created: String,
    author: Option<&'a str>,
    architecture: &'static str,
    os: &'static str,
    layer_digests: [Digest; 1],
    component: Option<&'a Interfaces>,
}

/// The config and the manifest for this WebAssembly, as bytes.
pub(crate) fn written(wasm: &[u8], about: &Published) -> serde_json::Result<(Vec<u8>, Vec<u8>)> {
    let config = serde_json::to_vec(&WasmConfig {
        created: humantime::format_rfc3339_seconds(about.created).to_string(),
        author: about.author.as_deref(),
        architecture: "wasm",
        os: if about.component.is_some() { "wasip2" } else { "wasip1" },
        layer_digests: [Digest::of(wasm)],
        component: about.component.as_ref(),
    })?;
    let manifest = serde_json::to_vec(&Manifest {
        schema_version: 2,
        media_type: Some(MANIFEST.to_owned()),
        config: Some(Descriptor::of(WASM_CONFIG, &config)),
        layers: vec![Descriptor {
            annotations: Some(BTreeMap::from([(TITLE.to_owned(), about.title.clone())])),
            ..Descriptor::of(WASM, wasm)
        }],
        manifests: Vec::new(),
        annotations: Some(about.annotations.clone()).filter(|annotations| !annotations.is_empty()),
    })?;
    Ok((config, manifest))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn layer(media_type: &str, title: Option<&str>) -> Value {
        let annotations = title.map(|title| json!({TITLE: title}));
        json!({"mediaType": media_type, "digest": "sha256:0", "size": 1, "annotations": annotations})
    }

    fn manifest(layers: &[Value]) -> Manifest {
        serde_json::from_value(json!({"schemaVersion": 2, "layers": layers})).unwrap()
    }

    #[test]
    fn the_wasm_layer_is_found() {
        for wasm in [
            layer("application/wasm", None),
            layer("application/vnd.wasm.content.layer.v1+wasm", None),
            layer("application/vnd.bytecodealliance.wasm.component.layer.v0+wasm", Some("x")),
            layer("application/octet-stream", Some("tool.wasm")),
        ] {
            let others = [
                layer("application/vnd.wassette.policy+yaml", Some("policy.yaml")),
                wasm.clone(),
            ];
            let manifest = manifest(&others);
            assert_eq!(manifest.wasm_layer().unwrap().media_type, wasm["mediaType"]);
            assert!(manifest.layers[0].is_text() && !manifest.layers[1].is_text());
        }
    }

    #[test]
    fn what_is_unclear_is_listed() {
        let problem = |layers: &[Value]| manifest(layers).wasm_layer().unwrap_err();
        let wasm = layer("application/wasm", None);
        assert_eq!(problem(&[]).contents, "no layers at all");
        assert_eq!(problem(&[wasm.clone(), wasm]).problem, "more than one WebAssembly layer");
        let tar = layer("application/vnd.oci.image.layer.v1.tar+gzip", Some("a\u{1b}\u{202e}`b"));
        assert_eq!(
            problem(std::slice::from_ref(&tar)).contents,
            "`application/vnd.oci.image.layer.v1.tar+gzip (ab)`"
        );
        assert!(problem(&vec![tar; 10]).contents.ends_with(" and 2 more"));
    }

    #[test]
    fn the_wasm_manifest_of_an_index_is_found() {
        let entry = |platform: Option<(&str, &str)>, digest: &str| {
            let platform = platform.map(|(os, architecture)| json!({"os": os, "architecture": architecture}));
            json!({"mediaType": MANIFEST, "digest": digest, "size": 1, "platform": platform})
        };
        let find = |entries: &[Value]| {
            let index: Manifest = serde_json::from_value(json!({"schemaVersion": 2, "manifests": entries})).unwrap();
            assert!(index.is_index());
            let found = index.wasm_manifest().map(|found| found.digest.clone());
            found.map_err(|unclear| unclear.problem)
        };
        let (linux, wasi) = (
            entry(Some(("linux", "amd64")), "linux"),
            entry(Some(("wasi", "wasm")), "wasi"),
        );
        let (p1, p2) = (entry(Some(("wasip1", "wasm")), "p1"), entry(Some(("wasip2", "wasm")), "p2"));
        assert_eq!(find(&[linux.clone(), wasi]).unwrap(), "wasi");
        assert_eq!(find(&[entry(None, "only"), linux.clone()]).unwrap(), "only");
        assert_eq!(find(&[linux]), Err("no variant for WebAssembly"));
        assert_eq!(find(&[p1, p2]), Err("more than one variant for WebAssembly"));
    }
}
