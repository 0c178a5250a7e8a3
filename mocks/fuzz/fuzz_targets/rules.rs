//! See `mocks::kube::fuzz::rules`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mocks::kube::fuzz::rules(bytes));
