//! See `reports::fuzz::slices`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| reports::fuzz::slices(bytes));
