//! The rows of `requests.jsonl`: each request of the subject to the control plane.
//!
//! Owns the fields of these rows, and the rule that turns lines of the file into one row for each request. Only a
//! control plane that reports the author of each request (the mock) has such rows. A record without `requests.jsonl` is
//! valid.
//!
//! A watch has two lines with the same `id`: one when it is answered, and a second complete one when it has ended.
//! Therefore the record of a killed run still shows the watches that were open. A request that was never answered has a
//! line only after its end.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of lines of single requests in `requests.jsonl`: 8 MB, or twice as much if each request is refused
/// with a message. Requests beyond this number are only counted, see [`RequestSummary`].
pub const REQUEST_LINES_MAX: u64 = 20_000;
/// Maximum number of lines of requests that are neither list nor watch. Lines beyond this number are reserved for lists
/// and watches, so that a subject with a normal rate of lists and watches has a line for each, however many other
/// requests it sends.
pub const OTHER_LINES_MAX: u64 = REQUEST_LINES_MAX / 4 * 3;

/// The resource of Leases, by which processes elect a leader.
pub const LEASES: &str = "leases.coordination.k8s.io";

/// One line of `requests.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RequestLine {
    /// One request of the subject.
    Request(Box<RequestRow>),
    /// Counts of requests that have no line.
    Summary(RequestSummary),
}

/// The kind of a request, as in Kubernetes' authorization attributes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// Reads all objects of a resource, or one page of them.
    List,
    /// Watches changes of objects.
    Watch,
    /// Reads one object.
    Get,
    /// Creates an object.
    Create,
    /// Replaces an object.
    Update,
    /// Changes some fields of an object.
    Patch,
    /// Deletes one object.
    Delete,
    /// Deletes many objects.
    DeleteCollection,
    /// A request that concerns no resource: discovery, versions, probes.
    #[default]
    Other,
}

/// The program that ended a request or watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EndedBy {
    /// The control plane ended the request, with a complete answer or the clean end of a stream.
    Server,
    /// The control plane broke off the stream or connection.
    Reset,
    /// The client closed the request, or its connection was lost.
    Client,
}

/// One request of the subject.
#[serde_with::apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestRow {
    /// The number of the request, in the order of arrival.
    pub id: u64,
    /// When the request arrived; 0 if that was before the warm-up.
    pub t_ms: u64,
    /// The HTTP method: `GET`, `POST`, …
    pub method: String,
    /// The kind of the request.
    pub verb: Verb,
    /// The resource, such as `packages.longhaul.dev`; empty for a request that concerns no resource.
    pub resource: String,
    /// The namespace in the path; empty for all namespaces and for cluster-wide objects.
    pub namespace: String,
    /// The object's name; empty for a collection. For a creation this is the name in the answer, if the answer has a
    /// name.
    pub name: String,
    /// The path of a request that concerns no resource, at most 512 bytes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The query parameter `resourceVersion`, as the subject sent it.
    pub revision: Option<String>,
    /// The query parameter `resourceVersionMatch`, as the subject sent it.
    pub revision_match: Option<String>,
    /// The query parameter `limit`.
    pub limit: Option<u64>,
    /// The query parameter `continue`, at most 80 characters.
    #[serde(rename = "continue")]
    pub continues: Option<String>,
    /// The query parameter `labelSelector`.
    pub labels: Option<String>,
    /// The query parameter `fieldSelector`.
    pub fields: Option<String>,
    /// The query parameter `allowWatchBookmarks`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bookmarks: bool,
    /// The query parameter `sendInitialEvents`.
    pub send_initial_events: Option<bool>,
    /// The query parameter `timeoutSeconds`.
    pub timeout_s: Option<u64>,
    /// The `User-Agent`, at most 256 bytes.
    pub user_agent: String,
    /// The number of the connection that carried the request.
    pub connection: u64,
    /// The HTTP version: 1 or 2.
    pub http: u8,
    /// The status of the answer; 0 if the request was never answered.
    pub status: u16,
    /// The `code` of an `ERROR` event, in the answer or in the stream.
    pub error_code: Option<u16>,
    /// When the request ended; none for a watch that was open when its line was written.
    #[serde_with(skip_apply)]
    pub ended_ms: Option<u64>,
    /// Whether the client or the control plane ended the request.
    #[serde_with(skip_apply)]
    pub ended_by: Option<EndedBy>,
    /// Object versions that were sent on a watch, or items in a list.
    pub objects: u64,
    /// The newest revision in the answer: of a list, of the read or written object, or of the objects sent on a watch.
    #[serde_with(skip_apply)]
    pub last_revision: Option<u64>,
    /// The newest revision of a bookmark on a watch.
    pub last_bookmark: Option<u64>,
    /// When the first object version was sent on a watch.
    pub first_object_ms: Option<u64>,
    /// The number of a watch that was accepted. The evidence of anomalies uses the same number.
    pub watch: Option<u64>,
    /// When the newest object version was sent on a watch.
    pub last_object_ms: Option<u64>,
    /// The reason of a refusal, at most 400 bytes.
    pub message: Option<String>,
}

/// Counts of requests in one interval that have no line in `requests.jsonl`. Requests have no line after
/// [`REQUEST_LINES_MAX`] lines, or after [`OTHER_LINES_MAX`] lines of requests that are neither list nor watch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestSummary {
    /// Start of the counted time: the first request without a line, or the start of the interval in which the record of
    /// requests was lost.
    pub start_ms: u64,
    /// End of the counted time.
    pub end_ms: u64,
    /// Requests that were answered, or that ended without an answer.
    pub requests: u64,
    /// Number of lists among the requests.
    pub lists: u64,
    /// Number of watches among the requests.
    pub watches: u64,
    /// Number of requests that were refused: a status of 400 or above, or an `ERROR` event.
    pub refused: u64,
    /// Requests that are not counted above, because the harness fell behind the control plane.
    pub lost: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests {
    /// One row for each recorded request, in the order of arrival.
    pub rows: Vec<RequestRow>,
    /// Counts of requests without a row, in order.
    pub summaries: Vec<RequestSummary>,
    /// Whether the control plane reports the author of each request.
    pub told: bool,
}

impl Verb {
    pub fn word(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Watch => "watch",
            Self::Get => "get",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Other => "request",
        }
    }
}

impl RequestRow {
    /// Whether the request was answered with success, and not with an `ERROR` event.
    pub fn succeeded(&self) -> bool {
        (200..300).contains(&self.status) && self.error_code.is_none()
    }

    /// Whether the answer says that the request's revision is gone: status 410, or an `ERROR` event with code 410.
    pub fn gone(&self) -> bool {
        self.status == 410 || self.error_code == Some(410)
    }

    /// `resourceVersion` as a number; none if it was not sent, is empty or is not a number.
    pub fn revision_number(&self) -> Option<u64> {
        self.revision.as_deref()?.parse().ok()
    }

    /// Whether the request asks for the present state and not for a cached one: it has no `resourceVersion`.
    pub fn is_consistent(&self) -> bool {
        self.revision.is_none() && self.continues.is_none()
    }

    /// Whether the request changes an object.
    pub fn writes(&self) -> bool {
        matches!(self.verb, Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection)
    }

    /// Whether the server refused the request with a status after which a right client tries again: a conflict, too many
    /// requests, or an error of the server.
    pub fn is_refused_for_now(&self) -> bool {
        matches!(self.status, 409 | 429 | 500..)
    }

    /// Whether the request concerns the subject itself and not an object of the run: its Lease, or an event about its
    /// work.
    pub fn is_aside(&self) -> bool {
        matches!(self.resource.as_str(), LEASES | "events" | "events.events.k8s.io")
    }

    /// Whether the request is a list or watch: the requests by which a client follows a resource.
    pub fn follows(&self) -> bool {
        matches!(self.verb, Verb::List | Verb::Watch)
    }
}

impl RequestSummary {
    /// Counts one more request that has no line.
    pub fn add(&mut self, row: &RequestRow) {
        self.requests += 1;
        self.lists += u64::from(row.verb == Verb::List);
        self.watches += u64::from(row.verb == Verb::Watch);
        self.refused += u64::from(!row.succeeded());
    }

    fn is_empty(&self) -> bool {
        self.requests == 0 && self.lost == 0
    }
}

impl Requests {
    /// One row for each request: a later line with the same id replaces the earlier line.
    pub fn from_lines(lines: Vec<RequestLine>, told: bool) -> Self {
        let mut rows = BTreeMap::new();
        let mut summaries = Vec::new();
        for line in lines {
            match line {
                RequestLine::Request(row) => drop(rows.insert(row.id, *row)),
                RequestLine::Summary(summary) => summaries.push(summary),
            }
        }
        Self { rows: rows.into_values().collect(), summaries, told }
    }

    /// The time until which every request of the subject has its row. Some later requests have no row.
    pub fn complete_until_ms(&self) -> Option<u64> {
        self.summaries.first().map(|summary| summary.start_ms)
    }

    /// The time until which every list and watch of the subject has its row.
    pub fn follows_until_ms(&self) -> Option<u64> {
        let left_out = |summary: &&RequestSummary| summary.lists + summary.watches + summary.lost > 0;
        self.summaries.iter().find(left_out).map(|summary| summary.start_ms)
    }

    /// Requests of which only the number is known, because the harness fell behind: start and end of the time, and the
    /// number of requests.
    pub fn lost(&self) -> Option<(u64, u64, u64)> {
        let mut lost = self.summaries.iter().filter(|summary| summary.lost > 0);
        let first = lost.next()?;
        let rest = |(from_ms, to_ms, number): (u64, u64, u64), summary: &RequestSummary| {
            (from_ms, to_ms.max(summary.end_ms), number + summary.lost)
        };
        Some(lost.fold((first.start_ms, first.end_ms, first.lost), rest))
    }
}

/// Decides which requests get a line.
#[derive(Debug, Default)]
pub(super) struct Cap {
    lines: u64,
    /// Number of lines, so far, of requests that are neither list nor watch.
    others: u64,
    /// Watches whose second line is not written yet; at most as many as there are lines.
    open: BTreeSet<u64>,
    summary: RequestSummary,
    /// The start of the current interval.
    interval_ms: u64,
}

impl Cap {
    /// Whether the request gets a line in `requests.jsonl`; if not, it is counted. A watch with a first line always
    /// gets its second line, so the file has at most twice [`REQUEST_LINES_MAX`] lines.
    pub fn admits(&mut self, row: &RequestRow) -> bool {
        if row.ended_ms.is_some() && self.open.remove(&row.id) {
            return true;
        }
        if self.lines < REQUEST_LINES_MAX && (row.follows() || self.others < OTHER_LINES_MAX) {
            self.lines += 1;
            self.others += u64::from(!row.follows());
            if row.ended_ms.is_none() {
                self.open.insert(row.id);
            }
            return true;
        }
        // A watch without a line was counted when it was answered.
        if row.verb != Verb::Watch || row.ended_ms.is_none() || row.status == 0 {
            // A hot loop fills all lines within an interval: its requests until then are judged.
            if self.summary.is_empty() {
                self.summary.start_ms = self.interval_ms.max(row.t_ms);
            }
            self.summary.add(row);
        }
        false
    }

    pub fn lost(&mut self, requests: u64) {
        if requests > 0 {
            // The time of these requests is unknown.
            self.summary.start_ms = self.interval_ms;
        }
        self.summary.lost += requests;
    }

    /// The counts of requests without a line in the interval that ends now; none if every request had a line.
    pub fn close(&mut self, end_ms: u64) -> Option<RequestSummary> {
        let summary = std::mem::take(&mut self.summary);
        self.interval_ms = end_ms;
        (!summary.is_empty()).then_some(RequestSummary { end_ms, ..summary })
    }
}
