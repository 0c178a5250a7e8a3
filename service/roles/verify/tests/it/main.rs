//! Tests of the verifier with cosign's signatures (`fixtures/`), with forgeries of each link of the proof, and with
//! random changes of signatures. Some tests compare the verifier's results with the results of sigstore's own client.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as the tests do")]

mod fixtures;
mod forge;
mod forged;
mod golden;
mod mutated;
mod mutation;
mod second_opinion;
mod theirs;
