//! See `service::fuzz::reference`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| service::fuzz::reference(bytes));
