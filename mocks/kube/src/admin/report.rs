//! The server's state as JSON for people: statistics, the newest commits, the newest requests.
//!
//! Owns the fields of the JSON answers of `/longhaul`. This module must not change anything in the server.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use mock_store::RawCommit;
use serde_json::{Map, Value, json};

use super::Filter;
use crate::audit::RequestRecord;
use crate::cluster::Cluster;

/// Maximum number of open watches that the statistics list one by one.
const WATCHES_MAX: usize = 1000;
/// Estimated memory of an object in addition to its JSON: map nodes, values for selectors and reference counts.
const OBJECT_OVERHEAD_BYTES: usize = 640;
/// Estimated memory of an event in the history in addition to its JSON.
const EVENT_OVERHEAD_BYTES: usize = 160;
/// Estimated memory of a commit in the ring of commits; a commit shares the object's name and uid with the stored
/// object.
const COMMIT_BYTES: usize = 64;

/// The numbers about the store and its history that change with every write.
pub(super) fn state(cluster: &Cluster) -> Value {
    let (revision, floor, objects, events) =
        cluster.read(|store| (store.revision(), store.floor(), store.object_count(), store.history_len()));
    json!({
        "revision": revision, "floor": floor, "objects": objects, "historyEvents": events, "users": users(cluster),
    })
}

/// The numbers of [`state`], objects by resource, open watches, and an estimate of the memory.
pub(super) fn stats(cluster: &Cluster) -> Value {
    let mut out = state(cluster);
    let catalogue = cluster.catalogue();
    let counts: BTreeMap<&str, usize> = cluster.read(|store| {
        let count = |id| store.count(id, None);
        catalogue.originals().map(|resource| (&*resource.full_name, count(resource.id))).collect()
    });
    out["objectsByResource"] = counts.into_iter().filter(|(_, count)| *count > 0).map(pair).collect();
    let (objects, object_bytes, events, history_bytes, commits) = cluster.read(|store| {
        let commits = store.commits().count();
        (store.object_count(), store.object_bytes(), store.history_len(), store.history_bytes(), commits)
    });
    // A version that is both alive and in the history is one block of memory but counted in both: an upper bound.
    let estimate = object_bytes
        + history_bytes
        + objects * OBJECT_OVERHEAD_BYTES
        + events * EVENT_OVERHEAD_BYTES
        + commits * COMMIT_BYTES;
    out["memory"] = json!({
        "objectBytes": object_bytes, "historyBytes": history_bytes, "commits": commits, "estimateBytesMax": estimate,
    });
    let streams = cluster.faults.open_streams(WATCHES_MAX);
    out["watches"] = streams
        .iter()
        .map(|stream| {
            json!({"id": stream.id, "user": &*stream.user, "resource": &*stream.resource,
                   "userAgent": &*stream.user_agent})
        })
        .collect();
    out
}

/// The newest commits that the filter selects, newest first.
pub(super) fn history(cluster: &Cluster, filter: &Filter) -> Value {
    let is = |key: &str, value: &str| filter.text(key).is_none_or(|wanted| wanted == value);
    let keep = |commit: &&RawCommit| {
        let identity = &commit.identity;
        is("resource", &identity.resource_name) && is("namespace", &identity.namespace) && is("name", &identity.name)
    };
    let (commits, revision) = cluster.read(|store| {
        let commits: Vec<RawCommit> =
            store.commits().newest_first().filter(keep).take(filter.limit()).cloned().collect();
        (commits, store.revision())
    });
    let clock = Clock::now(cluster);
    let rows: Vec<Value> = commits
        .iter()
        .map(|commit| {
            let identity = &commit.identity;
            json!({
                "revision": commit.revision, "timeline": commit.timeline, "change": commit.change.event_type(), "resource": &*identity.resource_name,
                "namespace": &*identity.namespace, "name": &*identity.name, "uid": &*identity.uid,
                "at": clock.wall(commit.at_us), "atUs": commit.at_us,
            })
        })
        .collect();
    json!({"revision": revision, "commits": rows})
}

/// The newest requests that the filter selects, newest first.
pub(super) fn requests(cluster: &Cluster, filter: &Filter) -> Value {
    let keep = |record: &RequestRecord| {
        filter.text("user").is_none_or(|user| user == &*record.user)
            && filter.text("userAgent").is_none_or(|part| record.user_agent.contains(part))
            && filter.text("path").is_none_or(|start| record.path.starts_with(start))
    };
    let clock = Clock::now(cluster);
    let rows: Vec<Value> = cluster
        .audit
        .requests
        .newest_first(filter.limit(), keep)
        .iter()
        .map(|record| {
            json!({
                "at": clock.wall(record.at_us), "atUs": record.at_us, "method": record.method, "path": record.path,
                "query": record.query, "user": &*record.user, "userAgent": &*record.user_agent,
                "connection": record.connection, "httpVersion": record.http_version, "status": record.status,
            })
        })
        .collect();
    json!({ "requests": rows })
}

fn users(cluster: &Cluster) -> Value {
    let now_us = cluster.now_us();
    let users: Map<String, Value> = cluster
        .audit
        .all()
        .into_iter()
        .map(|(user, audit)| {
            let traffic = audit.traffic(now_us);
            let shown = json!({
                "requests": traffic.requests, "requestsOpen": traffic.requests_open, "lists": traffic.lists,
                "watchesOpened": traffic.watches_opened, "watchesOpen": traffic.watches_open,
                "goneHttp": traffic.gone_http, "goneStream": traffic.gone_stream,
                "goneRepeated": traffic.gone_repeated, "idleUs": traffic.idle_us,
            });
            (user.to_string(), shown)
        })
        .collect();
    Value::Object(users)
}

fn pair((name, count): (&str, usize)) -> (String, Value) {
    (name.to_owned(), Value::from(count))
}

/// Converts microseconds since the epoch into the time of day.
struct Clock {
    now: Timestamp,
    now_us: u64,
}

impl Clock {
    fn now(cluster: &Cluster) -> Self {
        Self { now: Timestamp::now(), now_us: cluster.now_us() }
    }

    fn wall(&self, at_us: u64) -> String {
        let ago = i64::try_from(self.now_us.saturating_sub(at_us)).unwrap_or(i64::MAX);
        let at = self.now.checked_sub(SignedDuration::from_micros(ago)).unwrap_or(Timestamp::UNIX_EPOCH);
        at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
    }
}
