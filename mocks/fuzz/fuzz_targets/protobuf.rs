//! See `mocks::kube::fuzz::protobuf`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mocks::kube::fuzz::protobuf(bytes));
