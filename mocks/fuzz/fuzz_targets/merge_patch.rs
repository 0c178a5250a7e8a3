//! See `mocks::kube::fuzz::merge_patch`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mocks::kube::fuzz::merge_patch(bytes));
