//! See `mock_kube::fuzz::server_side`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mock_kube::fuzz::server_side(bytes));
