//! The attack table: every row is a test of its number and name. Each shows the attack on the running program, then its answer, and
//! then that nothing is left of it: the process lives, a good component beside it answers, memory and open files are where they were.
//!
//! | rows  | file            | who attacks, and with what                         |
//! |-------|-----------------|----------------------------------------------------|
//! | 1–6   | `definitions`   | a publisher, through bytes, names, docs and types  |
//! | 7–8   | `paths`         | names that are to become paths, and a guest's files |
//! | 9–12  | `network`       | a guest that wants to reach what it may not        |
//! | 14–15 | `secrets`       | a guest that wants to know, and to tell            |
//! | 16–20 | `resources`     | a guest that takes all there is                    |
//! | 21–24 | `json`          | a client, through what it writes                   |
//! | 25–26 | `loading`       | a server of components, and a component that costs |
//! | 27–30 | `store`         | damage, crashes and full disks                     |
//! | 31–33 | `session`       | lines in the log, clients that stall or storm      |
//! | 13, 34 | `http`         | a page in a browser, and whoever can connect       |
//!
//! Where a row has more variants than are worth a process each, the test beside the code has them all.

#![cfg(test)]
#![cfg(target_os = "linux")]

mod support;

#[path = "attack_table/definitions.rs"]
mod definitions;
#[path = "attack_table/http.rs"]
mod http;
#[path = "attack_table/json.rs"]
mod json;
#[path = "attack_table/loading.rs"]
mod loading;
#[path = "attack_table/network.rs"]
mod network;
#[path = "attack_table/paths.rs"]
mod paths;
#[path = "attack_table/resources.rs"]
mod resources;
#[allow(dead_code, reason = "shared with the tests of the store, which use all of it")]
#[path = "store/scene.rs"]
mod scene;
#[path = "attack_table/secrets.rs"]
mod secrets;
#[path = "attack_table/servers.rs"]
mod servers;
#[path = "attack_table/session.rs"]
mod session;
#[path = "attack_table/store.rs"]
mod store;
#[path = "attack_table/unharmed.rs"]
mod unharmed;

/// How many rows the table has.
const ROWS: u32 = 34;

/// What has the tests.
const FILES: [&str; 10] = [
    include_str!("attack_table/definitions.rs"),
    include_str!("attack_table/http.rs"),
    include_str!("attack_table/json.rs"),
    include_str!("attack_table/loading.rs"),
    include_str!("attack_table/network.rs"),
    include_str!("attack_table/paths.rs"),
    include_str!("attack_table/resources.rs"),
    include_str!("attack_table/secrets.rs"),
    include_str!("attack_table/session.rs"),
    include_str!("attack_table/store.rs"),
];

#[test]
fn every_row_has_its_test() {
    let mut tested: Vec<u32> = FILES
        .iter()
        .flat_map(|file| file.split("#[test]\nfn row_").skip(1))
        .map(|test| test[..2].parse().expect("the number of a row has two digits"))
        .collect();
    tested.sort_unstable();
    tested.dedup();
    let missing: Vec<u32> = (1..=ROWS).filter(|row| !tested.contains(row)).collect();
    assert!(missing.is_empty(), "no test for the rows {missing:?}");
    assert!(tested.iter().all(|row| (1..=ROWS).contains(row)), "{tested:?}");
}
