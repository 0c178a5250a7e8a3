//! See `mocks::kube::fuzz::query`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mocks::kube::fuzz::query(bytes));
