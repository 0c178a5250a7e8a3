//! The points of a subject: the kinds of writes that it makes in every reference play.
//!
//! Owns when two writes are the same point. Does no I/O.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::audit::{Audit, Write, is_ignored};

/// Number of parts of a field's path that distinguish two points.
const DEPTH: usize = 3;
/// Maximum number of fields that distinguish two points.
const FIELDS_MAX: usize = 4;
/// Maximum number of points; a subject with more has its most frequent ones disturbed.
const POINTS_MAX: usize = 64;
/// Maximum number of occurrences of one point that a hunt distinguishes.
const OCCURRENCES_MAX: u64 = 4;

/// The properties that equal writes share.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Signature {
    pub(crate) verb: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) fields: Vec<String>,
}

/// A signature that every reference has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) signature: Signature,
    /// The lowest number of such writes in a reference, at most [`OCCURRENCES_MAX`].
    pub(crate) occurrences: u64,
    /// The lowest number of such writes in a reference.
    pub(crate) last: u64,
}

impl Signature {
    pub(crate) fn of(write: &Write) -> Self {
        let shortened = |field: &String| field.split('.').take(DEPTH).collect::<Vec<_>>().join(".");
        let mut fields: Vec<String> = write.fields.iter().map(shortened).collect();
        fields.sort_unstable();
        fields.dedup();
        fields.truncate(FIELDS_MAX);
        let Write { verb, resource, subresource, .. } = write.clone();
        Self { verb, resource, subresource, fields }
    }

    /// The point as a trigger of a scenario.
    pub(crate) fn trigger(&self, occurrence: u64, side: &str) -> Value {
        let mut write = json!({"verb": self.verb, "resource": self.resource, "subresource": self.subresource});
        if !self.fields.is_empty() {
            write["fields"] = json!(self.fields);
        }
        json!({"write": write, "occurrence": occurrence, "side": side})
    }

    /// For example `update of caches/status (status.conditions)`.
    pub(crate) fn describe(&self) -> String {
        let plural = self.resource.split('.').next().unwrap_or_default();
        let sub = if self.subresource.is_empty() { String::new() } else { format!("/{}", self.subresource) };
        let fields = if self.fields.is_empty() { String::new() } else { format!(" ({})", self.fields.join(", ")) };
        format!("{} of {plural}{sub}{fields}", self.verb)
    }
}

/// The successful writes of a play by signature. Writes of ignored resources are left out.
pub(crate) fn counted(audit: &Audit) -> BTreeMap<Signature, u64> {
    let mut counts = BTreeMap::new();
    for write in audit.writes.iter().filter(|write| write.status < 300 && !is_ignored(&write.resource)) {
        *counts.entry(Signature::of(write)).or_default() += 1;
    }
    counts
}

/// The points that all references have, the most frequent first, and the number of signatures that only some have.
pub(crate) fn points(references: &[Audit]) -> (Vec<Point>, usize) {
    shared_by(&references.iter().map(counted).collect::<Vec<_>>())
}

/// The points that all plays have, from the number of writes by signature of each play.
pub(crate) fn shared_by(plays: &[BTreeMap<Signature, u64>]) -> (Vec<Point>, usize) {
    let Some(first) = plays.first() else { return (Vec::new(), 0) };
    let least = |signature: &Signature| plays.iter().map(|play| play.get(signature).copied().unwrap_or(0)).min();
    let mut all: Vec<(u64, Point)> = Vec::new();
    for signature in first.keys() {
        let Some(count) = least(signature).filter(|count| *count > 0) else { continue };
        let point = Point { signature: signature.clone(), occurrences: count.min(OCCURRENCES_MAX), last: count };
        all.push((count, point));
    }
    let known: std::collections::BTreeSet<&Signature> = plays.iter().flat_map(BTreeMap::keys).collect();
    let unsteady = known.len() - all.len();
    all.sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.signature.cmp(&other.signature)));
    all.truncate(POINTS_MAX);
    (all.into_iter().map(|(_, point)| point).collect(), unsteady)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(verb: &str, resource: &str, fields: &[&str], status: u16) -> Write {
        Write {
            verb: verb.into(),
            resource: resource.into(),
            fields: fields.iter().map(ToString::to_string).collect(),
            status,
            ..Write::default()
        }
    }

    fn play(writes: Vec<Write>) -> Audit {
        Audit { writes, ..Audit::default() }
    }

    /// Two writes of the same fields are one point; a refused write and a write that only some plays have are none.
    #[test]
    fn points_are_what_every_reference_has() {
        let one = play(vec![
            write("create", "pods", &[], 201),
            write("update", "caches.x", &["spec.a.b.c", "spec.a.b.d"], 200),
            write("update", "caches.x", &["spec.a.b"], 200),
            write("update", "caches.x", &["spec.q"], 409),
            write("update", "leases.coordination.k8s.io", &["spec.renewTime"], 200),
        ]);
        let two = play(vec![
            write("update", "caches.x", &["spec.a.b.c"], 200),
            write("create", "pods", &[], 201),
            write("create", "pods", &[], 201),
            write("delete", "pods", &[], 200),
        ]);
        let (points, unsteady) = points(&[one, two]);
        let told: Vec<(String, u64)> =
            points.iter().map(|point| (point.signature.describe(), point.occurrences)).collect();
        let wanted = [("create of pods".to_owned(), 1), ("update of caches (spec.a.b)".to_owned(), 1)];
        assert_eq!((told.as_slice(), unsteady), (wanted.as_slice(), 1));
    }

    #[test]
    fn a_point_is_a_trigger() {
        let signature = Signature::of(&write("update", "caches.x", &["spec.a"], 200));
        let trigger = signature.trigger(2, "before");
        assert_eq!(
            trigger,
            json!({"write": {"verb": "update", "resource": "caches.x", "subresource": "", "fields": ["spec.a"]}, "occurrence": 2, "side": "before"})
        );
        let fault = json!({"name": "watch-reset", "when": trigger});
        serde_json::from_value::<mock_faults::Fault>(fault).unwrap().check().unwrap();
    }
}
