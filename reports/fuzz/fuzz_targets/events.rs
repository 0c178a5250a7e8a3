//! See `reports::fuzz::events`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| reports::fuzz::events(bytes));
