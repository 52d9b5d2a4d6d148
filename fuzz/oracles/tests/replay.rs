//! Every input that is kept, the starting points of the fuzzers and what they found, through the function that its target is made of.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as the tests do")]

use std::fs;
use std::path::Path;

use fuzz_oracles::{Broken, component_to_tools, help_to_tree, json_round_trip, policy_decision};

/// Looks at all inputs of a target, so that one that fails does not hide the next.
fn replay(target: &str, check: fn(&[u8]) -> Result<(), Broken>) {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut broken = Vec::new();
    for kept in ["seeds", "regressions"] {
        let folder = fuzz.join(kept).join(target);
        // A target that never failed has no folder for it.
        let entries = fs::read_dir(&folder).into_iter().flatten();
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(kept == "regressions" || !files.is_empty(), "{} is empty", folder.display());
        for file in files {
            let bytes = fs::read(&file).unwrap();
            let what = match std::panic::catch_unwind(|| check(&bytes)) {
                Ok(Ok(())) => continue,
                Ok(Err(what)) => what.to_string(),
                // The panic itself has been printed; which input it was has not.
                Err(_) => "it panicked".to_owned(),
            };
            broken.push(format!(
                "{kept}/{target}/{}: {what}",
                file.file_name().unwrap().to_string_lossy()
            ));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn components_become_tools() {
    replay("component_to_tools", component_to_tools);
}

#[test]
fn help_becomes_a_tree() {
    replay("help_to_tree", help_to_tree);
}

#[test]
fn json_comes_back() {
    replay("json_round_trip", json_round_trip);
}

#[test]
fn policies_decide() {
    replay("policy_decision", policy_decision);
}
