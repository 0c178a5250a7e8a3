//! See `reports::fuzz::lines`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| reports::fuzz::lines(bytes));
