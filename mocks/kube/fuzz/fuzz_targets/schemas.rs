//! See `mock_kube::fuzz::schemas`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mock_kube::fuzz::schemas(bytes));
