#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_oracles::json_round_trip(bytes).unwrap());
