//! The fuzz target for configurations: see `service::fuzz::config`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| service::fuzz::config(bytes));
