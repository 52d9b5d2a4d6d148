//! Which imports this host can satisfy, told from their names alone: no engine is needed to refuse a component.

/// The packages that are linked, each as a whole.
const OFFERED: [&str; 8] = [
    "wasi:cli/",
    "wasi:clocks/",
    "wasi:config/",
    "wasi:filesystem/",
    "wasi:http/",
    "wasi:io/",
    "wasi:random/",
    "wasi:sockets/",
];

/// The imports that nothing here implements.
pub fn unknown_imports(imports: &[String]) -> Vec<&str> {
    imports
        .iter()
        .map(String::as_str)
        .filter(|import| !OFFERED.iter().any(|package| import.starts_with(package)) || !is_offered_version(import))
        .collect()
}

fn is_offered_version(import: &str) -> bool {
    import
        .rsplit_once('@')
        .is_some_and(|(_, version)| version.starts_with("0.2.") || version == "0.3.0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_linked_is_named() {
        let imports = [
            "wasi:cli/stdout@0.2.3",
            "wasi:http/types@0.3.0",
            "acme:secret/vault",
            "open",
            "wasi:io/poll@0.3.0-rc-1",
        ];
        let imports = imports.map(str::to_owned);
        assert_eq!(
            unknown_imports(&imports),
            ["acme:secret/vault", "open", "wasi:io/poll@0.3.0-rc-1"]
        );
    }
}
