//! Tests with some thousand random changes to cosign's signatures. The fuzzer `examples/mutate.rs` makes any number of
//! such changes.

use crate::fixtures::Fixtures;
use crate::mutation::{compared, golden, run};

/// Number of changes in one test run.
const TRIES: u64 = 3000;
/// Number of changes in one test run that are compared with sigstore's own client.
const COMPARED_TRIES: u64 = 3000;

#[test]
fn no_change_of_a_bound_fact_is_accepted() {
    let fixtures = Fixtures::read();
    let golden = golden(&fixtures);
    assert!(golden.len() > 40, "{} golden pieces", golden.len());
    let tally = run(&golden, fixtures.now(), 7, TRIES);
    assert!(tally.forged.is_empty(), "{:#?}", tally.forged);
    // A fuzzer that only makes pieces unreadable, or only touches unbound parts, would find nothing.
    assert!(tally.refused > TRIES / 2 && tally.harmless > TRIES / 100, "{tally:?}");
}

/// If the verifier accepts a changed bundle, sigstore's own client accepts the bundle too, except for a list of known
/// differences.
#[test]
fn no_changed_bundle_is_accepted_by_us_alone() {
    let fixtures = Fixtures::read();
    let readable = compared::readable(&fixtures, golden(&fixtures));
    assert!(readable.len() >= 30, "{} bundles that both read", readable.len());
    let tally = compared::run(&readable, fixtures.now(), 7, COMPARED_TRIES);
    assert!(tally.only_ours.is_empty(), "{:#?}", tally.only_ours);
    // Both must see valid and invalid bundles, and the list must not cover the cases that the comparison is for.
    let excepted: u64 = tally.excepted.values().sum();
    assert!(tally.both > COMPARED_TRIES / 50 && tally.neither > COMPARED_TRIES / 2, "{tally:?}");
    assert!(excepted < COMPARED_TRIES / 50, "{tally:?}");
}
