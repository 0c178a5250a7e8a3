//! Some thousands of changes to what cosign signed, at every run of the tests. `examples/mutate.rs` does as many as one likes.

use crate::fixtures::Fixtures;
use crate::mutation::{compared, golden, run};

/// Changes of one run of the tests.
const TRIES: u64 = 3000;
/// The same under two opinions.
const COMPARED_TRIES: u64 = 3000;

#[test]
fn no_change_of_a_bound_fact_is_accepted() {
    let fixtures = Fixtures::read();
    let golden = golden(&fixtures);
    assert!(golden.len() > 40, "{} golden pieces", golden.len());
    let tally = run(&golden, fixtures.now(), 7, TRIES);
    assert!(tally.forged.is_empty(), "{:#?}", tally.forged);
    // A fuzzer that only breaks what cannot be read, or only touches what is not bound, would find nothing.
    assert!(tally.refused > TRIES / 2 && tally.harmless > TRIES / 100, "{tally:?}");
}

/// What we accept of a changed bundle sigstore's own client accepts too, but for what a list says.
#[test]
fn no_changed_bundle_is_accepted_by_us_alone() {
    let fixtures = Fixtures::read();
    let readable = compared::readable(&fixtures, golden(&fixtures));
    assert!(readable.len() >= 30, "{} bundles that both read", readable.len());
    let tally = compared::run(&readable, fixtures.now(), 7, COMPARED_TRIES);
    assert!(tally.only_ours.is_empty(), "{:#?}", tally.only_ours);
    // Both must see good bundles and bad ones, and the list must not swallow what the comparison is for.
    let excepted: u64 = tally.excepted.values().sum();
    assert!(tally.both > COMPARED_TRIES / 50 && tally.neither > COMPARED_TRIES / 2, "{tally:?}");
    assert!(excepted < COMPARED_TRIES / 50, "{tally:?}");
}
