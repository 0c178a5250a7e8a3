//! The server's own endpoints: `/metrics`, and `/longhaul/…` for faults, history and statistics.
//!
//! Owns what somebody without the Rust API needs to drive faults by hand. Only members of `system:masters` may use
//! `/longhaul`. It must not do anything that the API of [`super::Server`] cannot.

use std::fmt::Write as _;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::handler::Answer;
use super::status::Failure;
use super::store::Store;
use super::users::Who;
use crate::faults::{Fault, FaultId};

/// `POST /longhaul/faults`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    id: u32,
    /// Users whose watches are touched; those of before when it is left out.
    #[serde(default)]
    users: Option<Vec<String>>,
    fault: Fault,
}

/// `POST /longhaul/compact`; everything without a revision.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Compact {
    revision: Option<u64>,
}

/// Whether a path is answered here.
pub(super) fn is_admin(path: &str) -> bool {
    path == "/metrics" || path.starts_with("/longhaul/")
}

pub(super) fn answer(
    cluster: &Cluster,
    who: &Who,
    method: &Method,
    path: &str,
    body: &Bytes,
) -> Result<Answer, Failure> {
    if path == "/metrics" {
        return Ok(Answer::text(StatusCode::OK, metrics(cluster)));
    }
    if !who.groups.iter().any(|group| group == "system:masters") {
        let message = format!("User \"{}\" cannot use path \"{path}\"", who.name);
        return Err(Failure::new(StatusCode::FORBIDDEN, "Forbidden", message));
    }
    let wrong = |error: serde_json::Error| Failure::bad_request(format!("failed to read the request: {error}"));
    let parts: Vec<&str> = path.trim_matches('/').split('/').skip(1).collect();
    match (method.as_str(), parts.as_slice()) {
        ("GET", ["state"]) => Ok(Answer::value(StatusCode::OK, &state(cluster))),
        ("POST", ["compact"]) => {
            let compact: Compact =
                if body.is_empty() { Compact::default() } else { serde_json::from_slice(body).map_err(wrong)? };
            cluster.compact(compact.revision.unwrap_or_else(|| cluster.revision()));
            Ok(Answer::value(StatusCode::OK, &state(cluster)))
        }
        ("GET", ["faults"]) => Ok(Answer::value(StatusCode::OK, &faults(cluster))),
        ("POST", ["faults"]) => {
            let begin: Begin = serde_json::from_slice(body).map_err(wrong)?;
            if let Some(users) = begin.users {
                cluster.faults.target_users(users);
            }
            let begun = cluster.faults.begin(FaultId(begin.id), &begin.fault);
            begun.map_err(|error| Failure::bad_request(error.to_string()))?;
            Ok(Answer::value(StatusCode::CREATED, &faults(cluster)))
        }
        ("DELETE", ["faults", id]) => {
            let id = id.parse().map_err(|_| Failure::bad_request(format!("`{id}` is not the number of a fault")))?;
            cluster.faults.end(FaultId(id));
            Ok(Answer::value(StatusCode::OK, &faults(cluster)))
        }
        _ => Err(Failure::no_such_path()),
    }
}

fn state(cluster: &Cluster) -> Value {
    let (revision, objects, events) =
        cluster.read(|store| (store.revision(), store.object_count(), store.history_len()));
    let now_us = cluster.now_us();
    let users: serde_json::Map<String, Value> = cluster
        .books
        .all()
        .into_iter()
        .map(|(user, book)| {
            let traffic = book.traffic(now_us);
            let shown = json!({
                "requests": traffic.requests, "lists": traffic.lists, "watchesOpened": traffic.watches_opened,
                "watchesOpen": traffic.watches_open, "goneHttp": traffic.gone_http,
                "goneStream": traffic.gone_stream, "goneRepeated": traffic.gone_repeated,
            });
            (user.to_string(), shown)
        })
        .collect();
    json!({"revision": revision, "objects": objects, "historyEvents": events, "users": users})
}

fn faults(cluster: &Cluster) -> Value {
    let faults = cluster.faults.all();
    faults
        .into_iter()
        .map(|(id, fault, active, hits)| json!({"id": id.0, "fault": fault, "active": active, "hits": hits}))
        .collect()
}

/// Prometheus' text format. The admission metrics have the names of the real server.
fn metrics(cluster: &Cluster) -> String {
    let mut out = String::new();
    let mut gauge = |name: &str, help: &str, value: u64| {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
    };
    gauge("longhaul_mock_revision", "Newest revision of the store.", cluster.revision());
    gauge("longhaul_mock_objects", "Objects in the store.", cluster.read(Store::object_count) as u64);
    gauge("longhaul_mock_history_events", "Events kept for watches.", cluster.read(Store::history_len) as u64);
    gauge("longhaul_mock_history_bytes", "Bytes of these events.", cluster.read(Store::history_bytes) as u64);
    let now_us = cluster.now_us();
    let mut family = |name: &str, kind: &str, rows: Vec<(String, u64)>| {
        let _ = writeln!(out, "# TYPE {name} {kind}");
        for (labels, value) in rows {
            let _ = writeln!(out, "{name}{{{labels}}} {value}");
        }
    };
    let users: Vec<_> =
        cluster.books.all().into_iter().map(|(user, book)| (label("user", &user), book.traffic(now_us))).collect();
    let rows = |pick: fn(&super::Traffic) -> u64| users.iter().map(|(user, t)| (user.clone(), pick(t))).collect();
    family("longhaul_mock_requests_total", "counter", rows(|t| t.requests));
    family("longhaul_mock_watches_opened_total", "counter", rows(|t| t.watches_opened));
    family("longhaul_mock_watches_open", "gauge", rows(|t| t.watches_open));
    family("longhaul_mock_gone_total", "counter", rows(|t| t.gone_http + t.gone_stream));
    let hooks = cluster.admission.counters.lock().by_hook.clone();
    let rows = |pick: fn(&super::admission::HookCounters) -> u64| {
        hooks.iter().map(|(name, counters)| (label("name", name), pick(counters))).collect()
    };
    family("apiserver_admission_webhook_request_total", "counter", rows(|c| c.calls));
    family("apiserver_admission_webhook_rejection_count", "counter", rows(|c| c.rejected));
    family("apiserver_admission_webhook_fail_open_count", "counter", rows(|c| c.failed_open));
    family("longhaul_mock_admission_webhook_failed_total", "counter", rows(|c| c.failed));
    family("longhaul_mock_admission_webhook_duration_us_sum", "counter", rows(|c| c.duration_us_sum));
    family("longhaul_mock_admission_webhook_duration_us_max", "gauge", rows(|c| c.duration_us_max));
    out
}

fn label(name: &str, value: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{name}=\"{escaped}\"")
}
