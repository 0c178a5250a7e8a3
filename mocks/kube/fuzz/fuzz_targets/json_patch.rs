//! See `mock_kube::fuzz::json_patch`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mock_kube::fuzz::json_patch(bytes));
