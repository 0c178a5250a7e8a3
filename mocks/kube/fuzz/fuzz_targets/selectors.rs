//! See `mock_kube::fuzz::selectors`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mock_kube::fuzz::selectors(bytes));
