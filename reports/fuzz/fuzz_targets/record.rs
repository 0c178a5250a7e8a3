//! See `reports::fuzz::record`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| reports::fuzz::record(bytes));
