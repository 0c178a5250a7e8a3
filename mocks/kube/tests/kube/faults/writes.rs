//! Tests of faults that begin with a write, of lost answers, and of the log of writes.

use mock_faults::{Fault, FaultId, On};
use serde_json::{Value, json};

use super::write;
use crate::client::{Client, Protocol, World};
use crate::{PACKAGES, package};

const ID: FaultId = FaultId(3);

fn fault(keys: Value) -> Fault {
    let fault: Fault = serde_json::from_value(keys).unwrap();
    fault.check().unwrap();
    fault
}

async fn subject(world: &World) -> Client {
    world.client(Protocol::Http1, "subject").await
}

/// The path of a package, and the package with another label as its content for a replacement.
async fn labelled(client: &mut Client, name: &str, label: &str) -> (String, Value) {
    let path = format!("{PACKAGES}/{name}");
    let (_, mut object) = client.get(&path).await;
    object["metadata"]["labels"] = json!({"a": label});
    (path, object)
}

/// With `side: before`, the awaited write itself meets the fault; with `side: after` only later requests do. Writes of
/// other fields and of other users are not counted.
#[tokio::test]
async fn a_fault_meets_the_write_that_it_waits_for() {
    for (side, wanted) in [("before", [200, 200, 503, 503]), ("after", [200, 200, 200, 503])] {
        let world = World::aimed().await;
        write(&world, "a").await;
        let of = json!({"verb": "update", "resource": "packages", "name": "a", "fields": ["metadata.labels"]});
        let when = json!({"write": of, "occurrence": 2, "side": side});
        world
            .server
            .faults()
            .await_writes([(ID, fault(json!({"name": "http-error", "status": 503, "on": "update", "when": when})))]);
        let (mut client, mut harness) = (subject(&world).await, world.client(Protocol::Http1, "harness").await);
        let mut seen = Vec::new();
        for label in ["one", "one", "two", "three"] {
            let (path, object) = labelled(&mut client, "a", label).await;
            seen.push(client.put(&path, &object).await.0);
            for label in ["of the harness", label] {
                let (path, object) = labelled(&mut harness, "a", &label.replace(' ', "-")).await;
                assert_eq!(harness.put(&path, &object).await.0, 200);
            }
        }
        assert_eq!(seen, wanted, "{side}");
        assert_eq!(world.server.faults().take_fired().len(), 1);
    }
}

/// If an answer is lost, its write was carried out: the object is there although the client got an error.
#[tokio::test]
async fn an_answer_is_lost_and_its_write_is_not() {
    for status in [None, Some(504)] {
        let world = World::aimed().await;
        let lost = fault(json!({"name": "answer-lost", "on": "create", "count": 1, "status": status}));
        world.server.faults().begin(ID, &lost).unwrap();
        let mut client = subject(&world).await;
        let sent = client.try_send(http::Method::POST, PACKAGES, package("a").to_string()).await;
        assert_eq!(sent.ok().map(|answer| answer.status().as_u16()), status);
        let mut client = subject(&world).await;
        assert_eq!(client.get(&format!("{PACKAGES}/a")).await.0, 200);
        assert_eq!(world.server.faults().hits(ID), 1);
        // A refused request has no answer to lose.
        let (refused, _) = client.post(PACKAGES, &package("a")).await;
        assert_eq!((refused, world.server.faults().hits(ID)), (409, 1));
    }
}

/// The log has the changed fields of each write of target users, and the results.
#[tokio::test]
async fn writes_are_noted_with_their_fields() {
    let world = World::aimed().await;
    write(&world, "unseen").await;
    world.server.note_writes();
    write(&world, "a").await;
    let mut client = subject(&world).await;
    let mut generated = package("x");
    generated["metadata"] = json!({"generateName": "g-"});
    assert_eq!(client.post(PACKAGES, &generated).await.0, 201);
    let (path, object) = labelled(&mut client, "a", "x").await;
    assert_eq!(client.put(&path, &object).await.0, 200);
    let merge = json!({"metadata": {"annotations": {"b": "c"}}, "spec": {"payload": "p"}});
    assert_eq!(client.patch(&path, "application/merge-patch+json", &merge).await.0, 200);
    assert_eq!(client.patch(&path, "application/merge-patch+json", &merge).await.0, 200);
    assert_eq!(client.delete(&format!("{PACKAGES}/none")).await.0, 404);
    let (writes, lost) = world.server.take_writes();
    let told: Vec<(On, &str, Vec<&str>, u16)> = writes
        .iter()
        .map(|write| {
            let fields = write.fields.iter().map(String::as_str).collect();
            (write.verb, write.name.as_str(), fields, write.status)
        })
        .collect();
    let wanted = [
        (On::Create, "", vec![], 201),
        (On::Update, "a", vec!["metadata.labels.a"], 200),
        (On::Patch, "a", vec!["metadata.annotations.b", "spec.payload"], 200),
        (On::Patch, "a", vec![], 200),
        (On::Delete, "none", vec![], 404),
    ];
    assert_eq!((told.as_slice(), lost), (wanted.as_slice(), 0));
    assert!(world.server.take_writes().0.is_empty());
}
