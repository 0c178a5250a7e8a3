//! Tests with cosign's output (`fixtures/`), with forgeries of each link, and with random changes of both. Some tests
//! compare the results with sigstore's own client.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as the tests do")]

mod fixtures;
mod forge;
mod forged;
mod golden;
mod mutated;
mod mutation;
mod second_opinion;
mod theirs;
