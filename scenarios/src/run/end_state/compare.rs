//! Compares a new list from the control plane with the subject's state. Does no I/O.

use std::collections::{BTreeMap, BTreeSet};

use reports::record::{Difference, DifferenceKind, Differences, EXAMPLES_MAX};

use super::list::Item;

/// One object in the subject's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Believed {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    /// The version that the subject has; `None` if the subject has an older version, of which the revision is unknown.
    pub(super) revision: Option<String>,
}

/// Returns the counts of all differences, and the first few differences by namespace and name.
pub(super) fn compare(listed: &[Item], believed: &[Believed]) -> (Differences, Vec<Difference>) {
    let by_uid: BTreeMap<&str, &Item> = listed.iter().map(|item| (item.uid.as_str(), item)).collect();
    let by_name: BTreeMap<(&str, &str), &Item> =
        listed.iter().map(|item| ((item.namespace.as_str(), item.name.as_str()), item)).collect();
    let known: BTreeMap<&str, &Believed> = believed.iter().map(|one| (one.uid.as_str(), one)).collect();
    let mut all = Vec::new();
    let mut replaced = BTreeSet::new();
    for (uid, one) in &known {
        match by_uid.get(uid) {
            Some(item) if one.revision.as_ref() == Some(&item.revision) => {}
            Some(item) => all.push(difference(DifferenceKind::Behind, Some(one), Some(item))),
            None => match by_name.get(&(one.namespace.as_str(), one.name.as_str())) {
                Some(item) if !known.contains_key(item.uid.as_str()) => {
                    replaced.insert(item.uid.as_str());
                    all.push(difference(DifferenceKind::Replaced, Some(one), Some(item)));
                }
                _ => all.push(difference(DifferenceKind::Gone, Some(one), None)),
            },
        }
    }
    for item in listed {
        let uid = item.uid.as_str();
        if !known.contains_key(uid) && !replaced.contains(uid) {
            all.push(difference(DifferenceKind::Unknown, None, Some(item)));
        }
    }
    let mut counts = Differences::default();
    for one in &all {
        *match one.kind {
            DifferenceKind::Gone => &mut counts.gone,
            DifferenceKind::Unknown => &mut counts.unknown,
            DifferenceKind::Behind => &mut counts.behind,
            DifferenceKind::Replaced => &mut counts.replaced,
        } += 1;
    }
    all.sort_by(|a, b| (&a.namespace, &a.name, a.kind).cmp(&(&b.namespace, &b.name, b.kind)));
    all.truncate(EXAMPLES_MAX);
    (counts, all)
}

fn difference(kind: DifferenceKind, believed: Option<&Believed>, listed: Option<&Item>) -> Difference {
    let place = believed.map(|one| (&one.namespace, &one.name)).or(listed.map(|item| (&item.namespace, &item.name)));
    let (namespace, name) = place.map(|(namespace, name)| (namespace.clone(), name.clone())).unwrap_or_default();
    Difference {
        kind,
        namespace,
        name,
        believed_uid: believed.map(|one| one.uid.clone()),
        believed_revision: believed.and_then(|one| one.revision.clone()),
        listed_uid: listed.map(|item| item.uid.clone()),
        listed_revision: listed.map(|item| item.revision.clone()),
    }
}

/// The state of a subject that writes the observed generation into each object (witness `status`). `pointer` leads to
/// the observed generation.
pub(super) fn by_generation(listed: &[Item], pointer: &str) -> Vec<Believed> {
    let seen = |item: &Item| {
        let observed = facts::seek(&item.object, pointer).and_then(facts::number)?;
        Some(Believed {
            namespace: item.namespace.clone(),
            name: item.name.clone(),
            uid: item.uid.clone(),
            revision: (observed == item.generation).then(|| item.revision.clone()),
        })
    };
    listed.iter().filter_map(seen).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use DifferenceKind::{Behind, Gone, Replaced, Unknown};

    fn item(name: &str, uid: &str, revision: &str) -> Item {
        let object = json!({"metadata": {"namespace": "n", "name": name, "uid": uid, "resourceVersion": revision}});
        Item::of(object).unwrap()
    }

    fn believed(name: &str, uid: &str, revision: &str) -> Believed {
        let revision = Some(revision.to_owned());
        Believed { namespace: "n".to_owned(), name: name.to_owned(), uid: uid.to_owned(), revision }
    }

    #[test]
    fn each_kind_of_difference_is_counted_and_named() {
        let listed =
            [item("same", "1", "10"), item("moved", "2", "20"), item("new", "3", "30"), item("again", "5", "50")];
        let known = [
            believed("same", "1", "10"),
            believed("moved", "2", "19"),
            believed("gone", "9", "9"),
            believed("again", "4", "40"),
        ];
        let (counts, named) = compare(&listed, &known);
        assert_eq!(counts, Differences { gone: 1, unknown: 1, behind: 1, replaced: 1 });
        let named: Vec<_> = named.iter().map(|one| (one.name.as_str(), one.kind)).collect();
        assert_eq!(named, [("again", Replaced), ("gone", Gone), ("moved", Behind), ("new", Unknown)]);
    }

    /// If the subject still has the deleted object beside the new object of the same name, the deleted object is
    /// reported.
    #[test]
    fn an_old_object_beside_the_new_one_is_gone() {
        let known = [believed("a", "1", "10"), believed("a", "2", "20")];
        let (counts, _) = compare(&[item("a", "2", "20")], &known);
        assert_eq!(counts, Differences { gone: 1, ..Differences::default() });
    }

    #[test]
    fn generations_prove_what_they_repeat() {
        let with = |observed: serde_json::Value| {
            Item::of(json!({
                "metadata": {"name": "a", "uid": "1", "resourceVersion": "7", "generation": 3},
                "status": {"observedGeneration": observed}
            }))
            .unwrap()
        };
        let kinds = |item: Item| {
            let items = [item];
            compare(&items, &by_generation(&items, "/status/observedGeneration")).0
        };
        assert_eq!(kinds(with(json!(3))), Differences::default());
        assert_eq!(kinds(with(json!(2))), Differences { behind: 1, ..Differences::default() });
        assert_eq!(kinds(with(json!(null))), Differences { unknown: 1, ..Differences::default() });
    }

    proptest! {
        /// Each missing, invented or outdated object is reported, and no other object.
        #[test]
        fn what_was_spoilt_is_what_differs(fates in proptest::collection::vec(0u8..4, 0..60)) {
            let (mut listed, mut known, mut planted) = (Vec::new(), Vec::new(), Differences::default());
            for (number, fate) in fates.into_iter().enumerate() {
                let (name, uid) = (format!("o{number}"), format!("u{number}"));
                match fate {
                    0 => { listed.push(item(&name, &uid, "2")); known.push(believed(&name, &uid, "2")); }
                    1 => { listed.push(item(&name, &uid, "2")); known.push(believed(&name, &uid, "1")); planted.behind += 1; }
                    2 => { listed.push(item(&name, &uid, "2")); planted.unknown += 1; }
                    _ => { known.push(believed(&name, &uid, "2")); planted.gone += 1; }
                }
            }
            let (counts, named) = compare(&listed, &known);
            prop_assert_eq!(counts, planted);
            let total = planted.behind + planted.unknown + planted.gone;
            prop_assert_eq!(named.len() as u64, total.min(EXAMPLES_MAX as u64));
        }
    }
}
