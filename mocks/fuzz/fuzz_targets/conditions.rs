//! See `mocks::kube::fuzz::conditions`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mocks::kube::fuzz::conditions(bytes));
