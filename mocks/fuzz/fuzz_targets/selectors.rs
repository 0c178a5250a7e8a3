//! See `mocks::kube::fuzz::selectors`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mocks::kube::fuzz::selectors(bytes));
