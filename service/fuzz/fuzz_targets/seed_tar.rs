//! See `service_seed::fuzz::tar`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| service_seed::fuzz::tar(bytes));
