//! Tests over the output of real cosign (`fixtures/`), over forgeries of each link, and over changes to both; and the
//! same questions to sigstore's own client.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as the tests do")]

mod fixtures;
mod forge;
mod forged;
mod golden;
mod mutated;
mod mutation;
mod second_opinion;
mod theirs;
