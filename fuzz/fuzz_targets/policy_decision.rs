#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_oracles::policy_decision(bytes).unwrap());
