use super::*;

const AGENT: &str = "suite-manager";

fn commit(at_ms: u64, revision: u64, change: &str, resource: &str, name: &str) -> CommitLine {
    let text = str::to_owned;
    CommitLine {
        at_us: at_ms * 1000,
        revision,
        change: text(change),
        resource: text(resource),
        namespace: text("default"),
        name: text(name),
    }
}

fn shown(at_ms: u64, by: ShownBy, through: u64) -> ShownLine {
    ShownLine {
        at_us: at_ms * 1000,
        user: "admin".to_owned(),
        user_agent: AGENT.to_owned(),
        watch: 5,
        resource: "secrets".to_owned(),
        namespace: None,
        through,
        by,
    }
}

fn write(at_ms: u64, method: &str, path: &str, status: u16, revision: Option<u64>) -> RequestLine {
    RequestLine {
        at_us: at_ms * 1000,
        method: method.to_owned(),
        path: path.to_owned(),
        query: String::new(),
        user: "admin".to_owned(),
        user_agent: AGENT.to_owned(),
        status,
        revision,
    }
}

fn known() -> Manager {
    Manager { agent: Some(AGENT.to_owned()), user: None }
}

fn behind(plane: &Plane, manager: &Manager) -> Behind {
    let mut behind = Behind::default();
    behind.add(plane, manager);
    behind
}

/// A child is created, its event is delayed, and another child is created for the same parent.
fn two_children(second: RequestLine) -> Plane {
    const SECRETS: &str = "/api/v1/namespaces/default/secrets";
    Plane {
        commits: vec![
            commit(100, 10, "added", "secrets", "parent-3-bcdfg"),
            commit(202, 11, "added", "secrets", "parent-3-hjklm"),
        ],
        shown: vec![shown(50, ShownBy::Begun, 9), shown(300, ShownBy::Event, 11)],
        requests: vec![write(99, "POST", SECRETS, 201, Some(10)), second],
        ..Plane::default()
    }
}

#[test]
fn the_read_that_was_behind_is_named() {
    let plane = two_children(write(201, "POST", "/api/v1/namespaces/default/secrets", 201, Some(11)));
    for manager in [known(), Manager::default()] {
        let behind = behind(&plane, &manager);
        assert_eq!((behind.writes, behind.late_by.clone()), (2, BTreeMap::from([(1, 1)])));
        let culprit = behind.culprit(0, u64::MAX).unwrap();
        assert_eq!(
            culprit.sentence(),
            "the write `create secrets default/parent-3-hjklm` by `suite-manager` was based on a read 1 version behind: its cache of secrets did not have `secrets default/parent-3-bcdfg` yet (added at revision 10, 101 ms before, by itself)"
        );
        assert_eq!(behind.culprit(0, 150_000), None, "it is told of the test that ran then");
    }
}

/// A write that was based on a stale read and was refused by the server did no harm.
#[test]
fn a_refused_write_did_no_harm() {
    let plane = two_children(write(201, "POST", "/api/v1/namespaces/default/secrets", 409, None));
    let behind = behind(&plane, &known());
    assert_eq!((behind.late_by.values().sum::<u64>(), behind.culprit(0, u64::MAX)), (1, None));
    assert_eq!(
        behind.proven(1, 4),
        "safe with a cache 1 version behind: 1 of 2 writes in 4 runs came while a cache was behind, and every run passed"
    );
    assert!(behind.proven(3, 1).ends_with("; no write came while one was 3 versions behind"));
}

/// A version that was delivered in time, or is still in transit to every client, makes no read stale.
#[test]
fn a_cache_that_was_shown_everything_is_not_behind() {
    let mut plane = two_children(write(201, "POST", "/api/v1/namespaces/default/secrets", 201, Some(11)));
    plane.shown.push(shown(101, ShownBy::Event, 10));
    let seen = behind(&plane, &known());
    assert_eq!((seen.writes, seen.late_by.len(), seen.suspects.len()), (2, 0, 0));
    assert!(seen.proven(3, 2).contains("not decided: none of the suite's 2 writes"), "{}", seen.proven(3, 2));
    let young = two_children(write(103, "POST", "/api/v1/namespaces/default/secrets", 201, Some(11)));
    assert_eq!(behind(&young, &known()).late_by.len(), 0);
}

/// If a test creates objects one after the other with the manager's client, its writes are not blamed for versions that
/// the manager's cache lacks.
#[test]
fn a_test_that_makes_objects_is_not_accused() {
    let mut plane = two_children(write(201, "POST", "/api/v1/namespaces/default/secrets", 201, Some(11)));
    (plane.commits[0].name, plane.commits[1].name) = ("object-1".to_owned(), "object-2".to_owned());
    assert_eq!(behind(&plane, &Manager::default()).culprit(0, u64::MAX), None);
    assert_eq!(behind(&plane, &known()).culprit(0, u64::MAX).unwrap().weight, Weight::Beside);
}

/// A patch that overwrites changes unknown to its client is reported, because a patch does not state its base version.
#[test]
fn a_patch_of_what_had_changed_is_named() {
    let plane = Plane {
        commits: vec![
            commit(100, 10, "modified", "secrets", "one"),
            commit(150, 11, "modified", "secrets", "one"),
            commit(202, 12, "modified", "secrets", "one"),
        ],
        shown: vec![shown(50, ShownBy::Snapshot, 9)],
        requests: vec![write(201, "PATCH", "/api/v1/namespaces/default/secrets/one", 200, Some(12))],
        ..Plane::default()
    };
    let behind = behind(&plane, &Manager::default());
    let culprit = behind.culprit(0, u64::MAX).unwrap();
    assert_eq!((culprit.versions, culprit.revision, culprit.was_own), (2, 11, false));
}

/// A stopped manager has no stale cache. A cache after a list contains the state that was listed.
#[test]
fn a_cache_ends_with_its_client_and_begins_with_its_list() {
    let mut plane = two_children(write(201, "POST", "/api/v1/namespaces/default/secrets", 201, Some(11)));
    plane.shown.insert(1, shown(101, ShownBy::Event, 10));
    plane.shown.insert(2, shown(150, ShownBy::Left, 0));
    assert_eq!(behind(&plane, &known()).writes, 1);
    plane.shown[2] = shown(150, ShownBy::Snapshot, 9);
    assert_eq!(behind(&plane, &known()).late_by.len(), 1);
}

#[test]
fn names_that_the_server_made_have_a_prefix() {
    assert!(are_siblings("parent-3-bcdfg", "parent-3-xz245"));
    for (one, other) in [("parent-7", "parent-8"), ("a-bcdfg", "b-bcdfg"), ("a-bcdfg", "a-bcdfg"), ("x", "y")] {
        assert!(!are_siblings(one, other), "{one} {other}");
    }
}
