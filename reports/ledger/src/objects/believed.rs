//! The objects that the subject knows, as far as its witness reported them.
//!
//! Owns the subject's view of objects, which `end-state.json` compares with the control plane.

use facts::{Revision, Uid};

use super::Objects;

/// One object that the subject reported and did not report as deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub resource: String,
    /// The object's namespace; empty for cluster-wide objects.
    pub namespace: String,
    pub name: String,
    pub uid: Uid,
    /// The version that the subject reported last; none if the ledger has forgotten the version.
    pub revision: Option<Revision>,
}

impl Objects {
    /// Every object that the subject reported and did not report as deleted, in the order of the newest commits.
    pub fn believed(&self) -> Vec<Known> {
        let mut all: Vec<_> = self
            .by_uid
            .iter()
            .filter_map(|(uid, object)| {
                let last = object.last_told?;
                let gone = object.deletion.as_ref().is_some_and(|deletion| deletion.order == last);
                let version = object.settled.iter().rev().find(|version| version.order == last);
                let believed = Known {
                    resource: object.full_name.resource.as_ref().to_owned(),
                    namespace: object.full_name.namespace.as_ref().to_owned(),
                    name: object.full_name.name.as_ref().to_owned(),
                    uid: uid.clone(),
                    revision: version.map(|version| version.revision.clone()),
                };
                let hidden = object.deletion.as_ref().is_some_and(|deletion| deletion.hidden_ms.is_some());
                (!gone && !hidden).then_some((object.newest_committed, believed))
            })
            .collect();
        all.sort_unstable_by_key(|(order, _)| *order);
        all.into_iter().map(|(_, believed)| believed).collect()
    }
}
