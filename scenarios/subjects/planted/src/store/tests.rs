use super::*;

fn object(uid: &str, name: &str, revision: u32) -> Object {
    Object {
        uid: uid.into(),
        namespace: "n".into(),
        name: name.into(),
        revision: Revision::new(&revision.to_string()).unwrap(),
        generation: None,
        observed: None,
        marked: false,
    }
}

fn listing(revision: u32, items: &[Object]) -> Listing {
    Listing::of(Revision::new(&revision.to_string()).unwrap(), items.to_vec())
}

/// What was reported: change, uid, revision.
fn told(changes: &[(Change, Object)]) -> Vec<(&'static str, String, String)> {
    let line = |(change, object): &(Change, Object)| {
        (change.as_str(), object.uid.to_string(), object.revision.as_str().to_owned())
    };
    changes.iter().map(line).collect()
}

fn line(change: &'static str, uid: &str, revision: u32) -> (&'static str, String, String) {
    (change, uid.to_owned(), revision.to_string())
}

fn store(mistakes: &[Mistake]) -> Store {
    let mut store = Store::new(Mistakes::new(mistakes));
    store.replace(&listing(10, &[object("a1", "a", 5), object("b1", "b", 9)]), Trust::Newer, &mut Vec::new());
    store
}

#[test]
fn a_list_tells_what_is_new_changed_and_gone() {
    let mut changes = Vec::new();
    let list = listing(20, &[object("a1", "a", 12), object("c1", "c", 15)]);
    store(&[]).replace(&list, Trust::Newer, &mut changes);
    assert_eq!(told(&changes), [line("deleted", "b1", 9), line("modified", "a1", 12), line("added", "c1", 15)]);
}

#[test]
fn a_new_uid_under_a_name_is_a_deletion_and_an_addition() {
    let expected = [line("deleted", "a1", 5), line("added", "a2", 12)];
    let mut changes = Vec::new();
    store(&[]).replace(&listing(20, &[object("a2", "a", 12), object("b1", "b", 9)]), Trust::Newer, &mut changes);
    assert_eq!(told(&changes), expected);
    let mut changes = Vec::new();
    store(&[]).upsert(object("a2", "a", 12), &mut changes);
    assert_eq!(told(&changes), expected);
    let mut changes = Vec::new();
    store(&[Mistake::ReplacesByName]).upsert(object("a2", "a", 12), &mut changes);
    assert_eq!(told(&changes), [line("modified", "a2", 12)]);
}

#[test]
fn names_that_vanish_are_deleted_by_name_too() {
    let mut changes = Vec::new();
    let list = listing(20, &[object("a2", "a", 12)]);
    store(&[Mistake::ReplacesByName]).replace(&list, Trust::Newer, &mut changes);
    assert_eq!(told(&changes), [line("deleted", "b1", 9), line("modified", "a2", 12)]);
}

#[test]
fn what_is_older_or_known_or_buried_changes_nothing() {
    let mut store = store(&[]);
    let mut changes = Vec::new();
    store.upsert(object("b1", "b", 9), &mut changes);
    store.upsert(object("b1", "b", 7), &mut changes);
    store.delete(object("b1", "b", 8), &mut changes);
    assert_eq!(told(&changes), []);
    store.delete(object("b1", "b", 11), &mut changes);
    store.upsert(object("b1", "b", 10), &mut changes);
    store.delete(object("b1", "b", 11), &mut changes);
    assert_eq!(told(&changes), [line("deleted", "b1", 11)]);
}

#[test]
fn the_deletion_of_an_unknown_object_is_news() {
    let mut changes = Vec::new();
    store(&[]).delete(object("x1", "x", 11), &mut changes);
    assert_eq!(told(&changes), [line("deleted", "x1", 11)]);
}

#[test]
fn a_deletion_with_another_uid_leaves_the_namesake_alone() {
    let mut store = store(&[]);
    let mut changes = Vec::new();
    store.upsert(object("a2", "a", 12), &mut changes);
    changes.clear();
    store.delete(object("a1", "a", 11), &mut changes);
    assert_eq!(told(&changes), []);
    store.upsert(object("a2", "a", 13), &mut changes);
    assert_eq!(told(&changes), [line("modified", "a2", 13)]);
}

#[test]
fn an_older_list_is_believed_only_blindly() {
    let list = listing(6, &[object("a1", "a", 5), object("b1", "b", 6)]);
    let mut changes = Vec::new();
    store(&[]).replace(&list, Trust::Newer, &mut changes);
    assert_eq!(told(&changes), []);
    store(&[]).replace(&list, Trust::Blind, &mut changes);
    assert_eq!(told(&changes), [line("modified", "b1", 6)]);
}

#[test]
fn burials_are_bounded() {
    let mut store = store(&[]);
    for n in 0..=u32::try_from(BURIED_MAX).unwrap() {
        store.delete(object(&format!("u{n}"), "u", n + 20), &mut Vec::new());
    }
    assert_eq!((store.buried.len(), store.burials.len()), (BURIED_MAX, BURIED_MAX));
}
