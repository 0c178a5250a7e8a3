//! The fuzz target for image manifests: see `service::fuzz::manifest`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| service::fuzz::manifest(bytes));
