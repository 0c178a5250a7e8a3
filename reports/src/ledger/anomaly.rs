//! What the ledger tells of an outcome that is neither observed nor coalesced.

use facts::{Change, Order};

use crate::record::{AnomalyRow, Outcome};

/// An outcome that is neither observed nor coalesced, with what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anomaly {
    /// When it was decided, in milliseconds of the run.
    pub t_ms: u64,
    /// What became of the version or observation.
    pub outcome: Outcome,
    /// The resource; empty if the ledger does not know.
    pub resource: String,
    /// The object's namespace; empty if cluster-wide or not known.
    pub namespace: String,
    /// The object's name; empty if not known.
    pub name: String,
    /// The object's uid.
    pub uid: String,
    /// The version's resourceVersion.
    pub revision: String,
    /// The kind of change.
    pub change: Change,
    /// The version's place in the order of commits, if it was committed: finds its stream lines.
    pub order: Option<Order>,
    /// When it was committed, if it was.
    pub committed_ms: Option<u64>,
    /// When it, or what superseded it, was observed, if it was.
    pub observed_ms: Option<u64>,
    /// More for people.
    pub detail: Option<String>,
}

impl From<Anomaly> for AnomalyRow {
    /// Without delivery and stream lines: these only the control plane knows.
    fn from(anomaly: Anomaly) -> Self {
        Self {
            t_ms: anomaly.t_ms,
            outcome: anomaly.outcome,
            resource: anomaly.resource,
            namespace: anomaly.namespace,
            name: anomaly.name,
            uid: anomaly.uid,
            revision: anomaly.revision,
            change: anomaly.change,
            committed_ms: anomaly.committed_ms,
            observed_ms: anomaly.observed_ms,
            delivery: None,
            wire: Vec::new(),
            detail: anomaly.detail,
            evidence: None,
        }
    }
}
