#![no_main]

libfuzzer_sys::fuzz_target!(
    // The hook of libFuzzer ends the process at once; but some panics are caught, and those are no findings.
    init: drop(std::panic::take_hook()),
    |bytes: &[u8]| fuzz_oracles::component_to_tools(bytes).unwrap()
);
