//! The fuzz target for login challenges: see `service::fuzz::challenge`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| service::fuzz::challenge(bytes));
