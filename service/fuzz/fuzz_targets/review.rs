//! The fuzz target for admission reviews: see `service::fuzz::review`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| service::fuzz::review(bytes));
