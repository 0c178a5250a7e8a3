//! The server's own endpoints: `/metrics`, and `/longhaul/…` for faults, history and statistics.
//!
//! Owns HTTP access to faults and to the server's state, for users without the Rust API. Only members of
//! `system:masters` may use `/longhaul`. The endpoints must not do more than the methods of [`super::Server`].
//! `docs/mock-kube.md` describes every endpoint.

mod metrics;
mod report;
mod roles;

use bytes::Bytes;
use http::{Method, StatusCode};
use mock_faults::{Fault, FaultId, Newer, Watches};
use mock_objects::status::Failure;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::Answer;
use super::authorization::Authorization;
use super::cluster::Cluster;
use super::path;
use super::rbac;
use super::users::Who;

/// Default number of entries in an answer, if the query names no limit.
const LIMIT: usize = 100;
/// Maximum number of entries in one answer of an endpoint.
const LIMIT_MAX: usize = 10_000;

/// The body of `POST /longhaul/faults`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    id: u32,
    /// The users whose requests and watches faults may hit; if absent, the users of the previous call stay.
    #[serde(default)]
    users: Option<Vec<String>>,
    fault: Fault,
}

/// The body of `POST /longhaul/compact`; without a revision, the whole history is compacted.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Compact {
    revision: Option<u64>,
}

/// The body of `POST /longhaul/rewind`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Back {
    revision: u64,
    #[serde(default)]
    newer: Option<Newer>,
    #[serde(default)]
    watches: Option<Watches>,
}

/// The conditions in a query string that select entries of an answer.
struct Filter(Vec<(String, String)>);

pub(super) fn is_admin(path: &str) -> bool {
    path == "/metrics" || path.starts_with("/longhaul/")
}

pub(super) fn answer(
    cluster: &Cluster,
    who: &Who,
    method: &Method,
    (path, query): (&str, &str),
    body: &Bytes,
) -> Result<Answer, Failure> {
    if path == "/metrics" {
        if cluster.authorization == Authorization::Rbac {
            rbac::allows_path(cluster, who, path, "get")
                .map_err(|why| Failure::new(StatusCode::FORBIDDEN, "Forbidden", format!("forbidden: {why}")))?;
        }
        return Ok(Answer::text(StatusCode::OK, metrics::text(cluster)));
    }
    if !who.groups.iter().any(|group| group == "system:masters") {
        let message = format!("User \"{}\" cannot use path \"{path}\"", who.name);
        return Err(Failure::new(StatusCode::FORBIDDEN, "Forbidden", message));
    }
    let wrong = |error: serde_json::Error| Failure::bad_request(format!("failed to read the request: {error}"));
    let parts: Vec<&str> = path.trim_matches('/').split('/').skip(1).collect();
    match (method.as_str(), parts.as_slice()) {
        ("GET", ["state"]) => Ok(Answer::value(StatusCode::OK, &report::state(cluster))),
        ("GET", ["stats"]) => Ok(Answer::value(StatusCode::OK, &report::stats(cluster))),
        ("GET", ["history"]) => {
            let filter = Filter::parse(query, &["limit", "resource", "namespace", "name"])?;
            Ok(Answer::value(StatusCode::OK, &report::history(cluster, &filter)))
        }
        ("GET", ["requests"]) => {
            let filter = Filter::parse(query, &["limit", "user", "userAgent", "path"])?;
            Ok(Answer::value(StatusCode::OK, &report::requests(cluster, &filter)))
        }
        ("GET", ["rbac"]) => {
            let filter = Filter::parse(query, &["user", "userAgent"])?;
            let text = roles::yaml(cluster, filter.text("user"), filter.text("userAgent"))?;
            Ok(Answer { content_type: "application/yaml", ..Answer::text(StatusCode::OK, text) })
        }
        ("POST", ["compact"]) => {
            let compact: Compact =
                if body.is_empty() { Compact::default() } else { serde_json::from_slice(body).map_err(wrong)? };
            cluster.compact(compact.revision.unwrap_or_else(|| cluster.revision()));
            Ok(Answer::value(StatusCode::OK, &report::state(cluster)))
        }
        ("POST", ["rewind"]) => {
            let back: Back = serde_json::from_slice(body).map_err(wrong)?;
            let (newer, watches) = (back.newer.unwrap_or(Newer::Silent), back.watches.unwrap_or(Watches::Kept));
            let rewound = cluster.rewind(back.revision, newer, watches);
            let rewound = rewound.map_err(|error| Failure::bad_request(error.to_string()))?;
            let done = json!({"from": rewound.from, "to": rewound.to, "undone": rewound.undone,
                              "timeline": rewound.timeline});
            Ok(Answer::value(StatusCode::OK, &done))
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

/// The minimal roles for all users that the server has seen, as YAML.
pub(super) fn least_roles(cluster: &Cluster) -> String {
    roles::yaml(cluster, None, None).unwrap_or_default()
}

fn faults(cluster: &Cluster) -> Value {
    let faults = cluster.faults.all();
    faults
        .into_iter()
        .map(|(id, fault, active, hits)| json!({"id": id.0, "fault": fault, "active": active, "hits": hits}))
        .collect()
}

impl Filter {
    /// Parses a query. A key that the endpoint does not know is an error: if the key were ignored, the answer would
    /// contain entries that the client did not want.
    fn parse(raw: &str, known: &[&str]) -> Result<Self, Failure> {
        let pairs = path::pairs(raw);
        if let Some((key, _)) = pairs.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            let known = known.join("`, `");
            return Err(Failure::bad_request(format!("unknown parameter `{key}`; known here: `{known}`")));
        }
        let filter = Self(pairs);
        if let Some(limit) = filter.text("limit")
            && limit.parse::<usize>().is_err()
        {
            return Err(Failure::bad_request(format!("`limit={limit}` is not a number")));
        }
        Ok(filter)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// Maximum number of entries that the query requests: at most [`LIMIT_MAX`], and [`LIMIT`] if the query names no
    /// limit.
    fn limit(&self) -> usize {
        self.text("limit").and_then(|limit| limit.parse().ok()).unwrap_or(LIMIT).min(LIMIT_MAX)
    }
}
