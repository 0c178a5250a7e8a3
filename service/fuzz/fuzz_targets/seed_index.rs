//! See `service_seed::fuzz::index`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| service_seed::fuzz::index(bytes));
