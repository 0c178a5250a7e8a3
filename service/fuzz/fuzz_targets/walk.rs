//! See `service::fuzz::walk`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| service::fuzz::walk(bytes));
