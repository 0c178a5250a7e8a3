//! The fuzz target for Docker configurations: see `service::fuzz::keyring`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| service::fuzz::keyring(bytes));
