//! Tests over what real cosign made (`fixtures/`), and over changes to it.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as the tests do")]

mod fixtures;
mod golden;
mod mutated;
mod mutation;
