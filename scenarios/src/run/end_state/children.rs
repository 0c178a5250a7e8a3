//! Compares children with their parents: number, version, and whether an edit by the harness remains. Does no I/O.

use std::collections::{BTreeMap, BTreeSet};

use reports::record::{ChildProblem, ChildProblemKind, ChildrenState, EXAMPLES_MAX};
use serde_json::{Map, Value};

use super::list::Item;
use crate::run::unowned::hints;
use crate::scenario::{By, Children};
use crate::witness::is_grandchild;

#[derive(Debug, PartialEq, Eq)]
enum Parent<'a> {
    /// The parent exists and has this uid.
    Of(&'a str),
    /// The parent does not exist.
    Gone,
    Nobodys,
}

/// Compares children and parents. Skips parents that are being deleted, with all their children. Without a garbage
/// collector (`is_collected` is false), skips children of deleted owners, because only a collector would remove them.
pub(super) fn compare(
    keys: &Children,
    edits: &[Map<String, Value>],
    resource: &str,
    parents: &[Item],
    children: &[Item],
    is_collected: bool,
) -> ChildrenState {
    let leaving = |item: &Item| item.object.pointer("/metadata/deletionTimestamp").is_some_and(|at| !at.is_null());
    let left_alone: BTreeSet<&str> =
        parents.iter().filter(|item| leaving(item)).map(|item| item.uid.as_str()).collect();
    let known = Known::of(resource, parents);
    let (mut of_parent, mut problems) = (BTreeMap::<&str, Vec<&Item>>::new(), Vec::new());
    let mut unowned = BTreeMap::<&str, &Item>::new();
    let mut state = ChildrenState {
        resource: loadgen::churn::names(&keys.resource).map_or_else(String::new, |(name, _)| name),
        ..ChildrenState::default()
    };
    for child in children {
        match known.parent(&keys.by, child) {
            Parent::Of(uid) => of_parent.entry(uid).or_default().push(child),
            Parent::Gone if !is_collected && !owners(child).is_empty() => continue,
            Parent::Gone => {
                let (wanted, found) = ("no child".to_owned(), "a child whose parent is gone".to_owned());
                problems.push(ChildProblem {
                    kind: ChildProblemKind::Orphan,
                    object: child.place(),
                    child: None,
                    wanted,
                    found,
                });
            }
            Parent::Nobodys => {
                if let Some(uid) = known.resembling(&keys.by, child) {
                    unowned.entry(uid).or_insert(child);
                }
                continue;
            }
        }
        state.found += 1;
    }
    for parent in parents.iter().filter(|parent| !left_alone.contains(parent.uid.as_str())) {
        let mine = of_parent.get(parent.uid.as_str()).map(Vec::as_slice).unwrap_or_default();
        let wanted = wanted(keys, parent);
        state.parents += 1;
        state.wanted += wanted;
        let found = mine.len() as u64;
        let problem = |kind, child: Option<&Item>, wanted: String, found: String| ChildProblem {
            kind,
            object: parent.place(),
            child: child.map(|child| child.name.clone()),
            wanted,
            found,
        };
        if found != wanted {
            let kind = if found < wanted { ChildProblemKind::Lacking } else { ChildProblemKind::Surplus };
            let nobodys = unowned.get(parent.uid.as_str()).filter(|_| kind == ChildProblemKind::Lacking);
            state.unowned += u64::from(nobodys.is_some());
            let found = match nobodys {
                Some(child) => {
                    format!("{} ({} exists, but without an owner reference)", children_of(found), child.place())
                }
                None => children_of(found),
            };
            problems.push(problem(kind, None, children_of(wanted), found));
        }
        for child in mine {
            if let Some((wanted, found)) = stale(keys, parent, child) {
                problems.push(problem(ChildProblemKind::Stale, Some(child), wanted, found));
            }
            if edits.iter().any(|edit| holds(&child.object, edit)) {
                let (wanted, found) = ("as the subject made it".to_owned(), "as the harness edited it".to_owned());
                problems.push(problem(ChildProblemKind::Edited, Some(child), wanted, found));
            }
        }
    }
    for problem in &problems {
        *match problem.kind {
            ChildProblemKind::Lacking => &mut state.lacking,
            ChildProblemKind::Surplus => &mut state.surplus,
            ChildProblemKind::Stale => &mut state.stale,
            ChildProblemKind::Edited => &mut state.edited,
            ChildProblemKind::Orphan => &mut state.orphans,
        } += 1;
    }
    problems.sort_by(|a, b| (&a.object, a.kind, &a.child).cmp(&(&b.object, b.kind, &b.child)));
    problems.truncate(EXAMPLES_MAX);
    state.examples = problems;
    state
}

/// The uid of a child's parent, if the child has a parent. Also used by drift, which changes children.
pub(in crate::run) fn parent_of<'a>(keys: &Children, known: &Known<'a>, child: &Item) -> Option<&'a str> {
    match known.parent(&keys.by, child) {
        Parent::Of(uid) => Some(uid),
        Parent::Gone | Parent::Nobodys => None,
    }
}

/// Parents, indexed by uid and by name, as children refer to them.
pub(in crate::run) struct Known<'a> {
    uids: BTreeSet<&'a str>,
    names: BTreeMap<(&'a str, &'a str), &'a str>,
    /// The API group of the parents, as in owner references; empty for the core group.
    group: &'a str,
}

impl<'a> Known<'a> {
    /// Indexes the parents. `resource` is the resource of the parents, such as `packages.longhaul.dev`.
    pub(in crate::run) fn of(resource: &'a str, parents: &'a [Item]) -> Self {
        Self {
            uids: parents.iter().map(|item| item.uid.as_str()).collect(),
            names: parents
                .iter()
                .map(|item| ((item.namespace.as_str(), item.name.as_str()), item.uid.as_str()))
                .collect(),
            group: resource.split_once('.').map_or("", |(_, group)| group),
        }
    }

    /// The parent of a child without an owner reference, found by the child's name or labels. `None` unless the
    /// scenario recognizes children by owner references.
    fn resembling(&self, by: &By, child: &Item) -> Option<&'a str> {
        if *by != By::Owner || !owners(child).is_empty() {
            return None;
        }
        hints(&child.name, &child.object["metadata"]["labels"]).into_iter().find_map(|hint| {
            let named = || self.names.get(&(child.namespace.as_str(), hint.text)).copied();
            self.uids.get(hint.text).copied().or_else(named)
        })
    }

    fn parent(&self, by: &By, child: &Item) -> Parent<'a> {
        let found = |uid: &str| self.uids.get(uid).copied();
        let named = |key: &str| child.object["metadata"]["labels"].get(key).and_then(Value::as_str);
        let owners_of = &child.object["metadata"]["ownerReferences"];
        match by {
            By::Label(key) if is_grandchild(owners_of, named(key)) => return Parent::Nobodys,
            By::Name(_) if is_grandchild(owners_of, None) => return Parent::Nobodys,
            _ => {}
        }
        match by {
            By::Owner => {
                let group = |owner: &Value| {
                    let version = owner["apiVersion"].as_str().unwrap_or_default();
                    version.split_once('/').map_or("", |(group, _)| group).to_owned()
                };
                let owners = owners(child).iter().filter(|owner| group(owner) == self.group);
                let uids: Vec<&str> = owners.filter_map(|owner| owner["uid"].as_str()).collect();
                match uids.iter().find_map(|uid| found(uid)) {
                    Some(uid) => Parent::Of(uid),
                    None if uids.is_empty() => Parent::Nobodys,
                    None => Parent::Gone,
                }
            }
            By::Label(key) => match child.object["metadata"]["labels"].get(key).and_then(Value::as_str) {
                Some(uid) => found(uid).map_or(Parent::Gone, Parent::Of),
                None => Parent::Nobodys,
            },
            By::Name(pattern) => {
                let (before, behind) = Children::name_parts(pattern);
                let name = child.name.strip_prefix(before).and_then(|rest| rest.strip_suffix(behind));
                match name.filter(|name| !name.is_empty()) {
                    Some(name) => {
                        let uid = self.names.get(&(child.namespace.as_str(), name)).copied();
                        uid.map_or(Parent::Gone, Parent::Of)
                    }
                    None => Parent::Nobodys,
                }
            }
        }
    }
}

fn owners(child: &Item) -> &[Value] {
    let owners = child.object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.map(Vec::as_slice).unwrap_or_default()
}

fn children_of(number: u64) -> String {
    if number == 1 { "1 child".to_owned() } else { format!("{number} children") }
}

fn wanted(keys: &Children, parent: &Item) -> u64 {
    match &keys.per_entry {
        Some(pointer) => parent.object.pointer(pointer).and_then(Value::as_array).map_or(0, |list| list.len() as u64),
        None => keys.per_parent.unwrap_or(1).into(),
    }
}

/// The value that a child should have from its parent, and the value that it has, if they differ.
fn stale(keys: &Children, parent: &Item, child: &Item) -> Option<(String, String)> {
    let repeats = |pointer: &Option<String>, what: &str, now: String| {
        let pointer = pointer.as_ref()?;
        let found = match child.object.pointer(pointer) {
            Some(Value::String(text)) => text.clone(),
            Some(value) if !value.is_null() => value.to_string(),
            _ => "nothing".to_owned(),
        };
        (found != now).then(|| (format!("{what} {now}"), found))
    };
    repeats(&keys.generation, "generation", parent.generation.to_string())
        .or_else(|| repeats(&keys.revision, "version", parent.revision.clone()))
}

/// Whether a merge patch would change nothing in the object.
pub(in crate::run) fn holds(object: &Value, patch: &Map<String, Value>) -> bool {
    patch.iter().all(|(key, wanted)| match (object.get(key), wanted) {
        (found, Value::Null) => found.is_none_or(Value::is_null),
        (Some(found), Value::Object(inner)) => holds(found, inner),
        (Some(found), wanted) => found == wanted,
        (None, _) => false,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const OF: &str = "packages.longhaul.dev";

    fn keys(text: &str) -> Children {
        serde_saphyr::from_str(text).unwrap()
    }

    fn parent(name: &str, uid: &str, generation: i64, entries: u64) -> Item {
        let list: Vec<u64> = (0..entries).collect();
        Item::of(json!({
            "metadata": {"namespace": "n", "name": name, "uid": uid, "resourceVersion": "9", "generation": generation},
            "spec": {"list": list}
        }))
        .unwrap()
    }

    fn child(name: &str, of: &str, generation: &str) -> Item {
        Item::of(json!({
            "metadata": {
                "namespace": "n", "name": name, "uid": format!("uid-{name}"), "resourceVersion": "3",
                "labels": {"parent": of, "generation": generation}, "ownerReferences": [{"apiVersion": "longhaul.dev/v1alpha1", "uid": of}]
            },
            "data": {"a": "1"}
        }))
        .unwrap()
    }

    /// A correct state shows no problem, and each kind of problem is found without reports of other kinds.
    #[test]
    fn each_problem_is_found_alone() {
        let keys = keys(
            "{resource: configmaps/v1, by: {label: parent}, perEntry: /spec/list, generation: /metadata/labels/generation}",
        );
        let edits = [json!({"data": {"a": "drifted", "b": null}}).as_object().unwrap().clone()];
        let parents = [parent("p", "1", 4, 2), parent("q", "2", 1, 0)];
        let clean = vec![child("a", "1", "4"), child("b", "1", "4")];
        let state = compare(&keys, &[], OF, &parents, &clean, true);
        assert_eq!((state.problems(), state.parents, state.wanted, state.found), (0, 2, 2, 2));
        let wrong = |children: &[Item]| {
            let state = compare(&keys, &edits, OF, &parents, children, true);
            let counts = [state.lacking, state.surplus, state.stale, state.edited, state.orphans];
            (counts, state.examples.first().map(|first| (first.object.clone(), first.found.clone())))
        };
        let at = |object: &str, found: &str| Some((object.to_owned(), found.to_owned()));
        assert_eq!(wrong(&clean[..1]), ([1, 0, 0, 0, 0], at("n/p", "1 child")));
        let with = |more: Item| clean.iter().cloned().chain([more]).collect::<Vec<_>>();
        assert_eq!(wrong(&with(child("c", "2", "1"))), ([0, 1, 0, 0, 0], at("n/q", "1 child")));
        assert_eq!(wrong(&[clean[0].clone(), child("b", "1", "3")]), ([0, 0, 1, 0, 0], at("n/p", "3")));
        assert_eq!(wrong(&with(child("c", "9", "1"))).0, [0, 0, 0, 0, 1]);
        let mut edited = clean.clone();
        edited[1].object["data"]["a"] = json!("drifted");
        assert_eq!(wrong(&edited), ([0, 0, 0, 1, 0], at("n/p", "as the harness edited it")));
    }

    /// Without a garbage collector, children of deleted owners stay. An operator that relies on garbage collection
    /// still has a correct end state.
    #[test]
    fn without_a_garbage_collector_nobody_takes_what_has_an_owner() {
        for (by, orphans) in [("owner", 1), ("{label: parent}", 1)] {
            let keys = keys(&format!("{{resource: configmaps/v1, by: {by}}}"));
            let orphan = [child("c", "9", "1")];
            assert_eq!(compare(&keys, &[], OF, &[], &orphan, true).orphans, orphans, "{by}");
            assert_eq!(compare(&keys, &[], OF, &[], &orphan, false).problems(), 0, "{by}");
            let mut unowned = orphan[0].clone();
            unowned.object["metadata"]["ownerReferences"] = json!([]);
            let lost = u64::from(by != "owner");
            assert_eq!(
                compare(&keys, &[], OF, &[], &[unowned], false).orphans,
                lost,
                "{by}: nobody but the subject takes it"
            );
        }
    }

    #[test]
    fn a_child_is_known_by_owner_label_or_name() {
        let parents = [parent("p", "1", 1, 0)];
        let found = |by: &str, child: &Item| {
            let keys = keys(&format!("{{resource: configmaps/v1, by: {by}}}"));
            match Known::of(OF, &parents).parent(&keys.by, child) {
                Parent::Of(uid) => uid.to_owned(),
                Parent::Gone => "gone".to_owned(),
                Parent::Nobodys => "nobody's".to_owned(),
            }
        };
        for (by, mine, orphan) in [
            ("owner", child("x", "1", ""), child("x", "2", "")),
            ("{label: parent}", child("x", "1", ""), child("x", "2", "")),
            ("{name: \"the-{name}-child\"}", child("the-p-child", "", ""), child("the-q-child", "", "")),
        ] {
            assert_eq!((found(by, &mine), found(by, &orphan)), ("1".to_owned(), "gone".to_owned()), "{by}");
        }
        let stranger = Item::of(json!({"metadata": {"name": "x", "uid": "7", "resourceVersion": "1"}})).unwrap();
        for by in ["owner", "{label: parent}", "{name: \"{name}-child\"}"] {
            assert_eq!(found(by, &stranger), "nobody's");
        }
    }

    /// Pods of a Deployment have the labels of its Pod template, but only the Deployment is a child of the subject's
    /// parent.
    #[test]
    fn what_a_controller_makes_of_a_child_is_no_child() {
        let parents = [parent("p", "1", 1, 0)];
        let mut pod = child("pod", "1", "1");
        pod.object["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "uid": "7", "controller": true}]);
        let keys = keys("{resource: pods/v1, by: {label: parent}}");
        let state = compare(&keys, &[], OF, &parents, &[child("own", "1", "1"), pod.clone()], true);
        assert_eq!((state.problems(), state.found), (0, 1));
        // A Pod that the subject itself controls is its child.
        pod.object["metadata"]["ownerReferences"][0]["apiVersion"] = json!("longhaul.dev/v1alpha1");
        assert_eq!(compare(&keys, &[], OF, &parents, &[child("own", "1", "1"), pod], true).surplus, 1);
    }

    /// A child without an owner reference is reported as such, and not only as missing.
    #[test]
    fn a_child_without_an_owner_is_told_where_one_is_lacking() {
        let keys = keys("{resource: configmaps/v1, by: owner}");
        let mut unowned = child("p-config", "0", "1");
        unowned.object["metadata"]["ownerReferences"] = json!([]);
        unowned.object["metadata"]["labels"] = json!({});
        let state =
            compare(&keys, &[], OF, &[parent("p", "1", 1, 0), parent("q", "2", 1, 0)], &[unowned.clone()], true);
        assert_eq!((state.lacking, state.unowned), (2, 1));
        let found: Vec<&str> = state.examples.iter().map(|example| example.found.as_str()).collect();
        assert_eq!(found, ["0 children (n/p-config exists, but without an owner reference)", "0 children"]);
        let owned = child("p-config", "1", "1");
        let state = compare(&keys, &[], OF, &[parent("p", "1", 1, 0)], &[owned, unowned], true);
        assert_eq!((state.problems(), state.unowned), (0, 0), "nothing is lacking");
    }

    #[test]
    fn a_parent_that_is_going_owes_nothing() {
        let mut going = parent("p", "1", 1, 0);
        going.object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let state = compare(&keys("{resource: configmaps/v1, by: owner}"), &[], OF, &[going], &[], true);
        assert_eq!((state.problems(), state.parents), (0, 0));
    }
}
