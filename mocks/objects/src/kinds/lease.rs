//! `Lease`: the holder of a lock, and the time until which the lock is held.

use serde_json::Value;

use super::causes::at_least;
use super::{Causes, Generation, Kind};

pub(super) const LEASE: Kind = Kind {
    about: "Who holds something for how long; leaders are elected with it.",
    cells: |row| vec![row.name(), row.text("/spec/holderIdentity").into(), row.age()],
    plain_finalizers: true,
    check,
    disabled: &[("/spec", "preferredHolder"), ("/spec", "strategy")],
    generation: Generation::None,
    needs_revision: true,
    created_by_update: true,
    ..Kind::of("leases.coordination.k8s.io")
};

fn check(value: &Value, causes: &mut Causes) {
    at_least(value, "/spec/leaseDurationSeconds", "spec.leaseDurationSeconds", 1, causes);
    at_least(value, "/spec/leaseTransitions", "spec.leaseTransitions", 0, causes);
}
