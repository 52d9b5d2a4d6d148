#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_oracles::help_to_tree(bytes).unwrap());
