//! See `mocks::kube::fuzz::schemas`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mocks::kube::fuzz::schemas(bytes));
