//! Tests of shared batches over a store, without sockets.

use serde_json::json;

use super::*;
use crate::{Expect, Facts, Identity, Limits, Store};

const RESOURCE: ResourceId = ResourceId(1);

fn store() -> Store {
    Store::new(Limits {
        history_max_events: 1000,
        history_max_bytes: usize::MAX,
        history_max_age_us: u64::MAX,
        commits_max: 9,
    })
}

fn write(store: &mut Store, namespace: &str, name: &str, bytes: usize) {
    let identity = Arc::new(Identity {
        resource: RESOURCE,
        resource_name: "things".into(),
        namespace: namespace.into(),
        name: name.into(),
        uid: name.into(),
    });
    let mut value = json!({"metadata": {"namespace": namespace, "name": name}, "data": "x".repeat(bytes)});
    store.put(&identity, Expect::Absent, &mut value, Facts::default(), 0).unwrap();
}

/// Everything sent to one watch, and the number of reads of the log.
fn follow(
    batches: &Batches,
    store: &Store,
    namespace: Option<&str>,
    mut cursor: Cursor,
    through: u64,
) -> (Vec<Arc<Batch>>, usize) {
    let (mut sent, mut asked) = (Vec::new(), 0);
    loop {
        let pull = |cursor: &mut Cursor, most, events: &mut Vec<Arc<Event>>| {
            asked += 1;
            store.pull_within(RESOURCE, cursor, most, through, events)
        };
        match batches.next(pull, RESOURCE, namespace, &mut cursor, through).unwrap() {
            Next::Batch(batch) => sent.push(batch),
            Next::Nothing => return (sent, asked),
        }
    }
}

fn revisions(sent: &[Arc<Batch>]) -> Vec<u64> {
    sent.iter().flat_map(|batch| batch.revisions().to_vec()).collect()
}

#[test]
fn the_second_watch_is_sent_what_was_made_for_the_first() {
    let (batches, mut store) = (Batches::default(), store());
    let start = store.cursor(RESOURCE, store.revision()).unwrap();
    for name in ["a", "b", "c"] {
        write(&mut store, "one", name, 10);
    }
    let through = store.revision();
    let (first, asked) = follow(&batches, &store, None, start, through);
    assert_eq!((revisions(&first), asked), (vec![2, 3, 4], 2));
    let (second, asked) = follow(&batches, &store, None, start, through);
    assert!(Arc::ptr_eq(&first[0], &second[0]));
    assert_eq!(asked, 1, "only whether there is more");
    let text = std::str::from_utf8(first[0].bytes()).unwrap();
    assert_eq!(text.lines().count(), 3);
    let lines: Vec<_> =
        first[0].lines().map(|(revision, line)| (revision, std::str::from_utf8(line).unwrap())).collect();
    assert_eq!(lines.iter().map(|(_, line)| *line).collect::<String>(), text);
    assert!(lines.iter().all(|(revision, line)| line.contains(&format!(r#""resourceVersion":"{revision}""#))));
}

#[test]
fn other_ends_and_other_namespaces_are_other_batches() {
    let (batches, mut store) = (Batches::default(), store());
    let start = store.cursor(RESOURCE, store.revision()).unwrap();
    for (namespace, name) in [("one", "a"), ("two", "b"), ("one", "c")] {
        write(&mut store, namespace, name, 10);
    }
    let sent = |namespace, through| revisions(&follow(&batches, &store, namespace, start, through).0);
    assert_eq!(sent(Some("one"), 4), [2, 4]);
    assert_eq!(sent(Some("two"), 4), [3]);
    assert_eq!(sent(None, 4), [2, 3, 4]);
    assert_eq!(sent(None, 3), [2, 3]);
    assert_eq!(sent(Some("none"), 4), Vec::<u64>::new());
}

#[test]
fn a_batch_ends_at_its_size_and_nothing_is_left_out() {
    let (batches, mut store) = (Batches::default(), store());
    let start = store.cursor(RESOURCE, store.revision()).unwrap();
    for index in 0..600 {
        write(&mut store, "one", &format!("small-{index}"), 10);
    }
    for index in 0..3 {
        write(&mut store, "one", &format!("large-{index}"), 200 * 1024);
    }
    let (sent, _) = follow(&batches, &store, None, start, store.revision());
    assert_eq!(revisions(&sent), (2..605).collect::<Vec<_>>());
    assert_eq!(sent.iter().map(|batch| batch.revisions().len()).collect::<Vec<_>>(), [256, 256, 90, 1]);
}

#[test]
fn a_restored_store_is_not_followed_by_what_was_made_before() {
    let (batches, mut store) = (Batches::default(), store());
    write(&mut store, "one", "a", 10);
    let start = store.cursor(RESOURCE, store.revision()).unwrap();
    write(&mut store, "one", "b", 10);
    assert_eq!(revisions(&follow(&batches, &store, None, start, 3).0), [3]);
    store.rewind(2, 0).unwrap();
    batches.forget();
    assert_eq!(revisions(&follow(&batches, &store, None, start, 3).0), Vec::<u64>::new());
}
