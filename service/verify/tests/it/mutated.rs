//! Some thousands of changes to what cosign signed, at every run of the tests. `examples/mutate.rs` does as many as one likes.

use crate::fixtures::Fixtures;
use crate::mutation::{golden, run};

/// Changes of one run of the tests.
const TRIES: u64 = 3000;

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
