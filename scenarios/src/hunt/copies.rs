//! Copies of a parent's version: labels and annotations that a child has from the version of its parent that it was made
//! from.
//!
//! Owns which values of children depend on the moment of their creation. Does no I/O.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::audit::{Audit, Object};

/// The maps of an object whose values a child may have from its parent.
const MAPS: [&str; 2] = ["annotations", "labels"];
/// Longest chain of owners.
const OWNERS_MAX: usize = 4;

/// The resources and paths of such values. The subject changes the value of the parent, and gives a child the present
/// value when it creates the child, but never later. So another value only says that the child was made from another
/// version of its parent. All other fields of the child are still compared. A value that the subject keeps up to date in
/// the child is no such copy.
pub(super) fn copies(plays: &[Audit]) -> BTreeSet<(String, String)> {
    let mut changed: BTreeSet<(&str, &str)> = BTreeSet::new();
    for write in plays.iter().flat_map(|play| &play.writes).filter(|write| write.verb != "create") {
        changed.extend(write.fields.iter().map(|field| (write.resource.as_str(), field.as_str())));
    }
    let is_changed = |resource: &str, path: &str| {
        // A write may name a whole map.
        let map = path.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
        changed.contains(&(resource, path)) || changed.contains(&(resource, map.as_str()))
    };
    let mut copies = BTreeSet::new();
    for play in plays {
        let by_uid: BTreeMap<&str, &Object> =
            play.objects.iter().filter_map(|one| Some((uid(&one.object)?, one))).collect();
        for child in &play.objects {
            for owner in owners(child, &by_uid) {
                for map in MAPS {
                    let Some(values) = child.object["metadata"][map].as_object() else { continue };
                    for key in values.keys().filter(|key| owner.object["metadata"][map].get(*key).is_some()) {
                        let path = format!("metadata.{map}.{key}");
                        if is_changed(&owner.resource, &path) && !is_changed(&child.resource, &path) {
                            copies.insert((child.resource.clone(), path));
                        }
                    }
                }
            }
        }
    }
    copies
}

fn uid(object: &Value) -> Option<&str> {
    object["metadata"]["uid"].as_str()
}

/// The owners of an object, and their owners.
fn owners<'a>(object: &'a Object, by_uid: &BTreeMap<&str, &'a Object>) -> Vec<&'a Object> {
    let mut all: Vec<&Object> = Vec::new();
    let mut now = vec![object];
    for _ in 0..OWNERS_MAX {
        let references = now.iter().filter_map(|one| one.object["metadata"]["ownerReferences"].as_array()).flatten();
        let found = references.filter_map(|reference| by_uid.get(reference["uid"].as_str()?).copied());
        now = found.collect();
        all.extend(&now);
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::audit::Write;
    use super::super::compare::signs;
    use super::super::reference::Reference;
    use super::*;

    /// A play of a parent whose hash the subject updates, and of a child with the hash and a size.
    fn play(hash: &str, size: u8, updates: &[&str]) -> Audit {
        let parent = json!({"metadata": {"name": "p", "uid": "1", "annotations": {"x/hash": "b"}}});
        let owner = json!([{"kind": "Pool", "name": "p", "uid": "1"}]);
        let metadata = json!({"name": "c", "uid": "2", "ownerReferences": owner, "annotations": {"x/hash": hash, "x/other": hash}});
        let child = json!({"metadata": metadata, "spec": {"size": size}});
        let object = |resource: &str, object: Value| Object { resource: resource.to_owned(), object };
        let write = |resource: &&str| Write {
            verb: "update".to_owned(),
            resource: (*resource).to_owned(),
            fields: vec!["metadata.annotations.x/hash".to_owned()],
            status: 200,
            ..Write::default()
        };
        Audit {
            objects: vec![object("pools.x", parent), object("claims.x", child)],
            writes: updates.iter().map(write).collect(),
            ..Audit::default()
        }
    }

    fn fields(updates: &[&str], trial: &Audit) -> Vec<String> {
        let reference = Reference::of(&[play("b", 1, updates), play("b", 1, updates)]);
        signs(&reference, trial).into_iter().filter_map(|sign| sign.field).collect()
    }

    /// A child that was made from an earlier version of its parent keeps the hash of that version. All else that differs
    /// is a sign.
    #[test]
    fn the_version_of_the_parent_in_a_child_is_no_difference() {
        let pools = ["pools.x"];
        assert_eq!(fields(&pools, &play("a", 1, &[])), ["metadata.annotations.x/other"]);
        let other = "metadata.annotations.x/other";
        assert_eq!(fields(&pools, &play("a", 2, &[])), [other, "spec.size"], "the child itself is stale");
    }

    /// A hash that the subject keeps up to date in the child must be up to date, and a constant that parent and child
    /// share must be there.
    #[test]
    fn a_copy_that_is_kept_up_to_date_is_a_difference() {
        let both = ["metadata.annotations.x/hash", "metadata.annotations.x/other"];
        assert_eq!(fields(&["pools.x", "claims.x"], &play("a", 1, &[])), both);
        assert_eq!(fields(&[], &play("a", 1, &[])), both);
        let mut lost = play("b", 1, &[]);
        lost.objects[1].object["metadata"]["annotations"] = json!({"x/other": "b"});
        assert_eq!(fields(&["pools.x"], &lost), ["metadata.annotations.x/hash"], "a missing copy");
    }
}
