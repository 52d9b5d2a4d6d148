//! The store through the real binary: killed, on a full disk, damaged, used by several processes at once, and with sources that change.

#![cfg(test)]

mod support;

#[path = "store/damage.rs"]
mod damage;
#[path = "store/drift.rs"]
mod drift;
#[cfg(target_os = "linux")]
#[path = "store/interrupted.rs"]
mod interrupted;
#[cfg(target_os = "linux")]
#[path = "store/mounts.rs"]
mod mounts;
#[path = "store/processes.rs"]
mod processes;
#[path = "store/scene.rs"]
mod scene;
