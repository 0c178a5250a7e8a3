//! The record of churn's successful writes, which is compared with the harness's watch of a real control plane.
//!
//! Owns this bounded record, and reads the written version from an answer. [`crate::audit::Agreement`] compares the
//! recorded writes.

use std::collections::VecDeque;
use std::time::Instant;

use serde::Deserialize;

use super::api::Reply;
use crate::failure::Failure;
use facts::Change;

/// Maximum number of writes between two reads of the record: half a minute at 2,000 writes a second, about 10 MiB. A
/// reader that reads the record each second leaves it far below this number.
const RECORD_MAX: usize = 1 << 16;

/// A write that the API server confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The time at which the answer was complete, which is after the commit.
    pub at: Instant,
    pub namespace: String,
    pub name: String,
    /// The object's uid; `None` if the answer to a deletion contains none.
    pub uid: Option<String>,
    /// The written resourceVersion; `None` for a deletion, whose answer contains none.
    pub resource_version: Option<String>,
    /// The kind of change; the deletion of an object with finalizers counts as a modification.
    pub change: Change,
}

/// The writes since the last read of the record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Writes {
    /// The writes in the order of their answers.
    pub writes: Vec<Write>,
    /// Number of successful writes that are missing in `writes`: the record was not read in time, or the answer named
    /// no object.
    pub lost: u64,
}

/// Collects writes until the record is read.
#[derive(Debug, Default)]
pub(crate) struct Record {
    writes: VecDeque<Write>,
    lost: u64,
}

impl Record {
    /// Adds a write. If the record is full, the oldest write in it is dropped and counted.
    pub(crate) fn note(&mut self, write: Option<Write>) {
        let Some(write) = write else {
            self.lost += 1;
            return;
        };
        if self.writes.len() == RECORD_MAX {
            self.writes.pop_front();
            self.lost += 1;
        }
        self.writes.push_back(write);
    }

    pub(crate) fn take(&mut self) -> Writes {
        Writes { writes: std::mem::take(&mut self.writes).into(), lost: std::mem::take(&mut self.lost) }
    }
}

/// The write that the answer to a create or patch confirms; `None` if the answer is no object.
pub(crate) fn written(change: Change, (namespace, name): (String, String), reply: &Reply) -> Option<Write> {
    let metadata = reply.metadata().ok()?;
    let (uid, resource_version) = (Some(metadata.uid), Some(metadata.resource_version));
    Some(Write { at: Instant::now(), namespace, name, uid, resource_version, change })
}

/// The write that the answer to a deletion confirms. The answer is a `Status` if the object is deleted, else the
/// object, which waits for its finalizers (Kubernetes API reference, "Delete").
pub(crate) fn deleted((namespace, name): (String, String), reply: &Reply) -> Option<Write> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(default)]
        kind: String,
        metadata: Option<Metadata>,
        details: Option<Details>,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Metadata {
        uid: Option<String>,
        resource_version: Option<String>,
        deletion_timestamp: Option<String>,
        deletion_grace_period_seconds: Option<i64>,
        finalizers: Vec<String>,
    }
    #[derive(Deserialize)]
    struct Details {
        uid: Option<String>,
    }
    let answer: Answer = serde_json::from_slice(&reply.body).ok()?;
    let gone = |uid| Write {
        at: Instant::now(),
        namespace: namespace.clone(),
        name: name.clone(),
        uid,
        resource_version: None,
        change: Change::Deleted,
    };
    if answer.kind == "Status" {
        return Some(gone(answer.details.and_then(|details| details.uid)));
    }
    let metadata = answer.metadata?;
    // With no grace period left and no finalizer, the object was marked and removed in one step; newer servers answer
    // with the revision of the removal.
    let at_once = metadata.deletion_grace_period_seconds == Some(0) && metadata.finalizers.is_empty();
    if metadata.deletion_timestamp.is_none() || at_once {
        return Some(gone(metadata.uid));
    }
    let (uid, resource_version) = (Some(metadata.uid?), Some(metadata.resource_version?));
    Some(Write { uid, resource_version, change: Change::Modified, ..gone(None) })
}

/// An object that was deleted together with its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Collected {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// Whether the object waits for its finalizers.
    pub waits: bool,
}

impl Collected {
    /// The write of the object; `None` if the object waits for finalizers, because the answer does not contain its new
    /// version.
    pub(crate) fn write(self) -> Option<Write> {
        let Self { namespace, name, uid, waits } = self;
        let write = Write {
            at: Instant::now(),
            namespace,
            name,
            uid: Some(uid),
            resource_version: None,
            change: Change::Deleted,
        };
        (!waits).then_some(write)
    }
}

/// The deleted objects in the answer to the deletion of a group, in their previous state (Kubernetes API reference,
/// "Delete Collection").
pub(crate) fn collected(reply: &Reply) -> Result<Vec<Collected>, Failure> {
    #[derive(Deserialize)]
    struct List {
        items: Option<Vec<Item>>,
    }
    #[derive(Deserialize)]
    struct Item {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        #[serde(default)]
        namespace: String,
        name: String,
        uid: String,
        #[serde(default)]
        finalizers: Vec<String>,
    }
    let list: List = serde_json::from_slice(&reply.body)
        .map_err(|error| Failure::invalid(format!("the answer is no list of what was deleted: {error}")))?;
    let object = |Item { metadata: Metadata { namespace, name, uid, finalizers } }| Collected {
        namespace,
        name,
        uid,
        waits: !finalizers.is_empty(),
    };
    Ok(list.items.unwrap_or_default().into_iter().map(object).collect())
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use serde_json::{Value, json};

    use super::*;

    fn reply(body: &Value) -> Reply {
        Reply { status: StatusCode::OK, body: body.to_string().into() }
    }

    fn place() -> (String, String) {
        ("n".to_owned(), "a".to_owned())
    }

    #[test]
    fn a_delete_is_what_its_answer_says() {
        let of = |body: Value| {
            deleted(place(), &reply(&body)).map(|write| (write.uid, write.resource_version, write.change))
        };
        let uid = || Some("u".to_owned());
        assert_eq!(of(json!({"kind": "Status", "details": {"uid": "u"}})), Some((uid(), None, Change::Deleted)));
        assert_eq!(of(json!({"kind": "Status"})), Some((None, None, Change::Deleted)));
        let waiting = json!({"uid": "u", "resourceVersion": "7", "deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert_eq!(
            of(json!({"kind": "Package", "metadata": waiting.clone()})),
            Some((uid(), Some("7".to_owned()), Change::Modified))
        );
        let mut at_once = waiting.clone();
        at_once["deletionGracePeriodSeconds"] = json!(0);
        assert_eq!(of(json!({"kind": "Pod", "metadata": at_once})), Some((uid(), None, Change::Deleted)));
        at_once["finalizers"] = json!(["example.com/hold"]);
        assert_eq!(
            of(json!({"kind": "Pod", "metadata": at_once})),
            Some((uid(), Some("7".to_owned()), Change::Modified))
        );
        let gone = json!({"kind": "Package", "metadata": {"uid": "u", "resourceVersion": "7"}});
        assert_eq!(of(gone), Some((uid(), None, Change::Deleted)));
        assert_eq!(of(json!([])), None);
    }

    #[test]
    fn a_collection_is_what_was_in_it() {
        let items = json!([
            {"metadata": {"namespace": "n", "name": "a", "uid": "u"}},
            {"metadata": {"name": "b", "uid": "v", "finalizers": ["example.com/hold"]}},
        ]);
        let writes: Vec<_> = collected(&reply(&json!({"kind": "List", "items": items})))
            .unwrap()
            .into_iter()
            .map(|object| (object.name.clone(), object.write().map(|write| write.change)))
            .collect();
        assert_eq!(writes, [("a".to_owned(), Some(Change::Deleted)), ("b".to_owned(), None)]);
        assert_eq!(collected(&reply(&json!({"items": null}))).unwrap(), []);
        assert!(collected(&reply(&json!([]))).is_err());
    }

    #[test]
    fn what_is_not_drained_in_time_is_counted() {
        let mut record = Record::default();
        let object = reply(&json!({"metadata": {"uid": "u", "resourceVersion": "1"}}));
        for _ in 0..RECORD_MAX + 3 {
            record.note(written(Change::Added, place(), &object));
        }
        record.note(written(Change::Added, place(), &reply(&json!({"no": "object"}))));
        let taken = record.take();
        assert_eq!((taken.writes.len(), taken.lost), (RECORD_MAX, 4));
        assert_eq!(record.take(), Writes::default());
    }
}
