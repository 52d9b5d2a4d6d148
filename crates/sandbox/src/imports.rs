//! Which imports this host can satisfy, told from their names alone: no engine is needed to refuse a component.

/// The interfaces of WASI 0.2 that are linked. A component may ask for any patch of them.
const WASI_0_2: &[&str] = &[
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:http/outgoing-handler",
    "wasi:http/types",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
    "wasi:sockets/instance-network",
    "wasi:sockets/ip-name-lookup",
    "wasi:sockets/network",
    "wasi:sockets/tcp",
    "wasi:sockets/tcp-create-socket",
    "wasi:sockets/udp",
    "wasi:sockets/udp-create-socket",
];

/// The interfaces of WASI 0.3.0 that are linked.
const WASI_0_3: &[&str] = &[
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:cli/types",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/system-clock",
    "wasi:clocks/types",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:http/client",
    "wasi:http/types",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
    "wasi:sockets/ip-name-lookup",
    "wasi:sockets/types",
];

/// The interfaces of our own package that are linked.
const MCP: &[&str] = &[
    "host:mcp/cancelled",
    "host:mcp/changes",
    "host:mcp/content",
    "host:mcp/context",
    "host:mcp/elicit",
    "host:mcp/log",
    "host:mcp/progress",
    "host:mcp/questions",
    "host:mcp/roots",
    "host:mcp/sample",
];

/// A draft, so only this very version.
const WASI_CONFIG: &str = "wasi:config/store@0.2.0-rc.1";

/// What core modules import WASI from.
pub(crate) const PREVIEW1: &str = "wasi_snapshot_preview1";

/// The imports of a core module, as `module.name`, that nothing here implements.
pub fn unknown_module_imports(imports: &[String]) -> Vec<&str> {
    let is_wasi = |import: &str| import.split_once('.').is_some_and(|(module, _)| module == PREVIEW1);
    imports.iter().map(String::as_str).filter(|import| !is_wasi(import)).collect()
}

/// The imports that nothing here implements.
pub fn unknown_imports(imports: &[String]) -> Vec<&str> {
    imports
        .iter()
        .map(String::as_str)
        .filter(|import| !is_offered(import))
        .collect()
}

fn is_offered(import: &str) -> bool {
    if import == WASI_CONFIG {
        return true;
    }
    let Some((interface, version)) = import.split_once('@') else {
        return false;
    };
    let is_patch = |version: &str| version.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(patch) = version.strip_prefix("0.1.") {
        return is_patch(patch) && MCP.contains(&interface);
    }
    match version.strip_prefix("0.2.") {
        Some(patch) => is_patch(patch) && WASI_0_2.contains(&interface),
        None => version == "0.3.0" && WASI_0_3.contains(&interface),
    }
}

#[cfg(test)]
mod tests {
    use policy::Limits;
    use wasmtime::component::Component;

    use super::*;
    use crate::engine::Runtime;

    #[test]
    fn what_is_not_linked_is_named() {
        let offered = ["wasi:cli/stdout@0.2.3", "wasi:http/types@0.3.0", WASI_CONFIG];
        assert_eq!(unknown_imports(&offered.map(str::to_owned)), [""; 0]);
        let unknown = [
            "acme:secret/vault",
            "open",
            "wasi:cli/nothing@0.2.0",
            "wasi:io/poll@0.3.0",
            "wasi:io/poll@0.2.0-rc-2023-11-10",
            "wasi:config/store@0.2.0-draft",
        ];
        assert_eq!(unknown_imports(&unknown.map(str::to_owned)), unknown);
    }

    /// A component that imports one function of each interface links, so that the table promises nothing that is not there.
    #[test]
    fn what_is_named_here_is_linked() {
        let runtime = Runtime::new(true, &Limits::default()).unwrap();
        let of_mcp = MCP.iter().map(|name| format!("{name}@0.1.0"));
        let of_0_2 = WASI_0_2.iter().map(|name| format!("{name}@0.2.0"));
        let of_0_3 = WASI_0_3.iter().map(|name| format!("{name}@0.3.0"));
        for name in of_mcp.chain(of_0_2).chain(of_0_3).chain([WASI_CONFIG.to_owned()]) {
            // An instance that must have something that it has not tells by its error whether the instance is there at all.
            let text = format!(r#"(component (import "{name}" (instance (export "no-such-function" (func)))))"#);
            let component = Component::new(&runtime.engine, wat::parse_str(text).unwrap()).unwrap();
            let error = match runtime.linker.instantiate_pre(&component) {
                Ok(_) => panic!("{name} has everything"),
                Err(error) => format!("{error:#}"),
            };
            assert!(error.contains("no-such-function"), "{name}: {error}");
        }
    }
}
