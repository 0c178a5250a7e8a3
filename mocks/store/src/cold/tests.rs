//! Tests of packing in the store: a packed version reads like an unpacked one.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::{Event, Expect, Facts, Identity, Limits, ResourceId, Store, Version};
use facts::Change;

const RESOURCE: ResourceId = ResourceId(2);

fn store() -> Store {
    let (history_max_bytes, history_max_age_us) = (usize::MAX, u64::MAX);
    Store::new(Limits { history_max_events: 100_000, history_max_bytes, history_max_age_us, commits_max: 10 })
}

/// About 1.2 KiB; the differences between two of them are spread over the whole.
fn object(index: usize, salt: &str) -> Value {
    let line = |line: usize| format!("{salt}.setting-{line}={}", (index * 7919 + line * 104_729) % 1_000_003);
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "one", "name": format!("o{index}")},
        "data": {"text": (0..40).map(line).collect::<Vec<_>>().join("\n")}})
}

/// Writes like the cluster, and packs the due versions.
fn write(store: &mut Store, index: usize, value: &Value) -> Arc<Event> {
    let name = format!("o{index}");
    let identity = Arc::new(Identity {
        resource: RESOURCE,
        resource_name: "things".into(),
        namespace: "one".into(),
        name: name.as_str().into(),
        uid: name.as_str().into(),
    });
    let expect = store.read(RESOURCE, "one", &name).map_or(Expect::Absent, |v| Expect::Revision(v.revision));
    let event = store.put(&identity, expect, &mut value.clone(), Facts::default(), 0).unwrap();
    if let Some(cooling) = store.cooling() {
        let (resource, worth) = cooling.run();
        store.cooled(resource, worth);
    }
    event
}

fn packed(store: &Store) -> usize {
    let page = store.list(RESOURCE, None, store.revision(), None, usize::MAX, Version::is_packed).unwrap();
    page.items.len()
}

/// Every object without its revision; all ways of reading must agree.
fn all(store: &Store) -> BTreeMap<String, Value> {
    let page = store.list(RESOURCE, None, store.revision(), None, usize::MAX, |_| true).unwrap();
    page.items
        .iter()
        .map(|version| {
            let mut value = version.value();
            assert_eq!(value["metadata"]["resourceVersion"], version.revision.to_string());
            assert_eq!(version.frame().len(), version.frame_bytes());
            assert_eq!(serde_json::from_slice::<Value>(&version.object()).unwrap(), value);
            let object = version.object();
            version.with_object(|seen| assert_eq!(seen, object));
            let line: Value = serde_json::from_slice(&version.frame()).unwrap();
            assert_eq!((&line["object"], line["type"].is_string()), (&value, true));
            value["metadata"].as_object_mut().unwrap().remove("resourceVersion");
            (version.identity.name.to_string(), value)
        })
        .collect()
}

fn expected(objects: impl Iterator<Item = (usize, Value)>) -> BTreeMap<String, Value> {
    objects.map(|(index, value)| (format!("o{index}"), value)).collect()
}

#[test]
fn old_objects_are_packed_and_read_as_they_were() {
    let mut store = store();
    let start = store.cursor(RESOURCE, store.revision()).unwrap();
    for index in 0..2000 {
        write(&mut store, index, &object(index, "a"));
    }
    let packed_first = packed(&store);
    assert!((1500..1800).contains(&packed_first), "all but the newest 384 KiB: {packed_first}");
    assert_eq!(all(&store), expected((0..2000).map(|index| (index, object(index, "a")))));
    // A watch from the beginning gets the packed ones too.
    let (mut cursor, mut events) = (start, Vec::new());
    store.pull(RESOURCE, &mut cursor, usize::MAX, u64::MAX, &mut events).unwrap();
    let mut lines = Vec::new();
    for event in &events {
        event.version.append_frame(&mut lines);
    }
    let frames: Vec<u8> = events.iter().flat_map(|event| event.version.frame()).collect();
    assert_eq!(lines, frames);
    assert_eq!(std::str::from_utf8(&lines).unwrap().lines().count(), 2000);
    // A packed object can be written again, and its old state is still there.
    let event = write(&mut store, 3, &object(3, "b"));
    assert_eq!(
        (event.change, event.previous.as_ref().unwrap().value()["data"].clone()),
        (Change::Modified, object(3, "a")["data"].clone())
    );
    assert_eq!(store.read(RESOURCE, "one", "o3").unwrap().value()["data"], object(3, "b")["data"]);
}

#[test]
fn what_is_written_all_the_time_is_not_packed() {
    let mut store = store();
    for round in 0..50 {
        for index in 0..100 {
            write(&mut store, index, &object(index, &format!("round-{round}")));
        }
    }
    assert_eq!(packed(&store), 0);
}

#[test]
fn a_restore_and_a_compaction_keep_the_count_of_what_is_warm() {
    let mut store = store();
    for index in 0..1000 {
        write(&mut store, index, &object(index, "a"));
    }
    store.rewind(600, 0).unwrap();
    store.compact(500);
    for index in 2000..4000 {
        write(&mut store, index, &object(index, "b"));
    }
    let (old, new) = ((0..599).map(|i| (i, object(i, "a"))), (2000..4000).map(|i| (i, object(i, "b"))));
    assert_eq!(all(&store), expected(old.chain(new)));
    let warm = store.object_count() - packed(&store);
    assert!((200..1000).contains(&warm), "{warm}");
    // An object may stay when its history goes, and is packed all the same.
    store.compact(store.revision());
    for index in 5000..7000 {
        write(&mut store, index, &object(index, "c"));
    }
    assert_eq!(store.object_count(), 599 + 2000 + 2000);
    let warm = store.object_count() - packed(&store);
    assert!((200..1000).contains(&warm), "{warm}");
}

#[test]
fn objects_that_share_nothing_stay_as_they_are_until_others_come() {
    let mut store = store();
    let noise = |index: usize| {
        let byte = |at: usize| {
            char::from(
                b'!' + u8::try_from((((index * 31 + at * at * 7 + at / 3 * index) * 2_654_435_761) >> 9) & 63).unwrap(),
            )
        };
        (0..1200).map(byte).filter(|c| !matches!(c, '"' | '\\')).collect::<String>()
    };
    for index in 0..1000 {
        write(
            &mut store,
            index,
            &json!({"metadata": {"namespace": "one", "name": format!("o{index}")}, "n": noise(index)}),
        );
    }
    let poor = packed(&store);
    for index in 1000..3000 {
        write(&mut store, index, &object(index, "a"));
    }
    let good = packed(&store) - poor;
    assert!(good > 1400, "a new dictionary is made: {poor} {good}");
}
