//! See `mock_kube::fuzz::rules`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mock_kube::fuzz::rules(bytes));
