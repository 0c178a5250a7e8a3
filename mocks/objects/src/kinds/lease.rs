//! `Lease`: the holder of a lock, and the time until which the lock is held.

use serde_json::Value;

use super::causes::at_least;
use super::print::Printer;
use super::{Causes, Generation, Kind};

pub(super) const LEASE: Kind = Kind {
    about: "Who holds something for how long; leaders are elected with it.",
    messages: &[
        "Lease 1:metadata:ObjectMeta 2:spec:LeaseSpec",
        "LeaseSpec 1:holderIdentity:s? 2:leaseDurationSeconds:i? 3:acquireTime:U 4:renewTime:U 5:leaseTransitions:i? \
         6:strategy:s? 7:preferredHolder:s?",
    ],
    printer: Printer {
        columns: "Name, Holder, Age",
        cells: |row| vec![row.name(), row.text("/spec/holderIdentity").into(), row.age()],
    },
    plain_finalizers: true,
    check,
    generation: Generation::None,
    needs_revision: true,
    created_by_update: true,
    ..Kind::namespaced("coordination.k8s.io", &["v1"], "leases", "Lease")
};

fn check(value: &Value, causes: &mut Causes) {
    at_least(value, "/spec/leaseDurationSeconds", "spec.leaseDurationSeconds", 1, causes);
    at_least(value, "/spec/leaseTransitions", "spec.leaseTransitions", 0, causes);
}
