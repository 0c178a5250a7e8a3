//! See `mocks::kube::fuzz::strategic_patch`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mocks::kube::fuzz::strategic_patch(bytes));
