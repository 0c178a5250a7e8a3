//! The rows of `requests.jsonl`: the subject's requests to the control plane, one at a time.
//!
//! Owns their fields, and how the lines of the file become one row for each request. It must not judge. Only a
//! control plane that reports the author of each request (the mock) has such rows; a record without the file is equally
//! valid.
//!
//! A watch has two lines: one when it is answered and one, complete again and under the same `id`, when it ended. So a
//! killed run still shows the watches that were open. A request that was never answered has a line only once it ended.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lines of single requests in `requests.jsonl`: 8 MB at most, and twice as much if each is refused with a message.
/// Further requests of a subject are only counted, see [`RequestSummary`].
pub const REQUEST_LINES_MAX: u64 = 20_000;
/// Lines of requests that are neither list nor watch. The other lines are reserved for lists and watches: if the
/// subject lists and watches at a sane rate, all of these are recorded, however many other requests it sends.
pub const OTHER_LINES_MAX: u64 = REQUEST_LINES_MAX / 4 * 3;

/// The resource by which processes elect a leader.
pub const LEASES: &str = "leases.coordination.k8s.io";

/// One line of `requests.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RequestLine {
    /// One request of the subject.
    Request(Box<RequestRow>),
    /// Counts of requests that have no line of their own.
    Summary(RequestSummary),
}

/// The purpose of a request, in the words of Kubernetes' authorization attributes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// All objects of a kind, or one page of them.
    List,
    /// A stream of changes.
    Watch,
    /// One object.
    Get,
    /// A new object.
    Create,
    /// An object replaced.
    Update,
    /// An object changed in part.
    Patch,
    /// One object deleted.
    Delete,
    /// Many objects deleted.
    DeleteCollection,
    /// A request for no resource: discovery, versions, probes.
    #[default]
    Other,
}

/// The side that ended a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EndedBy {
    /// The control plane, with a complete answer or the clean end of a stream.
    Server,
    /// The control plane, by breaking off the stream or connection.
    Reset,
    /// The client went away, or the connection to it was lost.
    Client,
}

/// One request of the subject.
#[serde_with::apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestRow {
    /// The number of the request, rising in the order of arrival.
    pub id: u64,
    /// When it arrived; 0 if that was before the warm-up.
    pub t_ms: u64,
    /// `GET`, `POST`, …
    pub method: String,
    /// The purpose of the request.
    pub verb: Verb,
    /// The resource, such as `packages.longhaul.dev`; empty for a request that is not about a resource.
    pub resource: String,
    /// The namespace in the path; empty for all of them and for cluster-wide objects.
    pub namespace: String,
    /// The object's name; empty for a collection. For a creation it is the name in the answer, if the answer has one.
    pub name: String,
    /// The path, at most 512 bytes, of a request that is not about a resource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// `resourceVersion` as it was sent.
    pub revision: Option<String>,
    /// `resourceVersionMatch` as it was sent.
    pub revision_match: Option<String>,
    /// `limit`.
    pub limit: Option<u64>,
    /// `continue`, at most 80 characters.
    #[serde(rename = "continue")]
    pub continues: Option<String>,
    /// `labelSelector`.
    pub labels: Option<String>,
    /// `fieldSelector`.
    pub fields: Option<String>,
    /// `allowWatchBookmarks`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bookmarks: bool,
    /// `sendInitialEvents`.
    pub send_initial_events: Option<bool>,
    /// `timeoutSeconds`.
    pub timeout_s: Option<u64>,
    /// The `User-Agent`, at most 256 bytes.
    pub user_agent: String,
    /// The number of the connection.
    pub connection: u64,
    /// The HTTP version: 1 or 2.
    pub http: u8,
    /// The status of the answer; 0 if it was never answered.
    pub status: u16,
    /// The `code` of an `ERROR` event, as the answer or inside the stream.
    pub error_code: Option<u16>,
    /// When it ended; none for a watch that was open when the line was written.
    #[serde_with(skip_apply)]
    pub ended_ms: Option<u64>,
    /// The side that ended it.
    #[serde_with(skip_apply)]
    pub ended_by: Option<EndedBy>,
    /// Object versions that were sent on a watch, or items of a list.
    pub objects: u64,
    /// The revision of a list, of the object that was read or written, or the newest one of an object that was sent on a watch.
    #[serde_with(skip_apply)]
    pub last_revision: Option<u64>,
    /// The newest revision of a bookmark on a watch.
    pub last_bookmark: Option<u64>,
    /// When the first object version was sent on a watch.
    pub first_object_ms: Option<u64>,
    /// The number of a watch that was accepted: the same one as in the evidence of anomalies.
    pub watch: Option<u64>,
    /// When the newest object version was sent on a watch.
    pub last_object_ms: Option<u64>,
    /// The reason of a refusal, at most 400 bytes.
    pub message: Option<String>,
}

/// Requests of one interval without a line of their own, because there were [`REQUEST_LINES_MAX`] lines before, or
/// [`OTHER_LINES_MAX`] that are neither list nor watch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestSummary {
    /// Start of the time that it covers: the first request without a line, or the start of the interval in which some
    /// were lost.
    pub start_ms: u64,
    /// End of the time that it covers.
    pub end_ms: u64,
    /// Requests that were answered, or ended without an answer.
    pub requests: u64,
    /// Lists among the requests.
    pub lists: u64,
    /// Watches among the requests.
    pub watches: u64,
    /// Requests that were refused: a status of 400 or above, or an `ERROR` event.
    pub refused: u64,
    /// Requests that are not counted above, because the harness fell behind.
    pub lost: u64,
}

/// The requests of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests {
    /// One row for each request, in the order of arrival.
    pub rows: Vec<RequestRow>,
    /// Counts of requests without a row, in order.
    pub summaries: Vec<RequestSummary>,
    /// Whether the control plane reports the author of each request.
    pub told: bool,
}

impl Verb {
    /// The Kubernetes name of the verb.
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
    /// Whether it was answered with success, and not with an `ERROR` event.
    pub fn succeeded(&self) -> bool {
        (200..300).contains(&self.status) && self.error_code.is_none()
    }

    /// Whether the answer says that its revision is gone, in either form.
    pub fn gone(&self) -> bool {
        self.status == 410 || self.error_code == Some(410)
    }

    /// `resourceVersion` as a number; none if it was not sent, empty or not a number.
    pub fn revision_number(&self) -> Option<u64> {
        self.revision.as_deref()?.parse().ok()
    }

    /// Whether it asked for the present state and not a cached one: no `resourceVersion`.
    pub fn is_consistent(&self) -> bool {
        self.revision.is_none() && self.continues.is_none()
    }

    /// Whether it changes an object.
    pub fn writes(&self) -> bool {
        matches!(self.verb, Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection)
    }

    /// Whether it is about the subject itself and not about an object of the run: its Lease, or an event about its
    /// work.
    pub fn is_aside(&self) -> bool {
        matches!(self.resource.as_str(), LEASES | "events" | "events.events.k8s.io")
    }

    /// Whether it is a list or watch, which is how a client follows a resource.
    pub fn follows(&self) -> bool {
        matches!(self.verb, Verb::List | Verb::Watch)
    }
}

impl RequestSummary {
    /// Counts one more request.
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
    /// One row for each request: a later line of the same id replaces the earlier one.
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

    /// The time until which every request has its row: the rows say nothing about later requests.
    pub fn complete_until_ms(&self) -> Option<u64> {
        self.summaries.first().map(|summary| summary.start_ms)
    }

    /// The time until which every list and watch has its row.
    pub fn follows_until_ms(&self) -> Option<u64> {
        let left_out = |summary: &&RequestSummary| summary.lists + summary.watches + summary.lost > 0;
        self.summaries.iter().find(left_out).map(|summary| summary.start_ms)
    }

    /// Requests of which only the number is known, because the harness fell behind: start, end, and number.
    pub fn lost(&self) -> Option<(u64, u64, u64)> {
        let mut lost = self.summaries.iter().filter(|summary| summary.lost > 0);
        let first = lost.next()?;
        let rest = |(from_ms, to_ms, number): (u64, u64, u64), summary: &RequestSummary| {
            (from_ms, to_ms.max(summary.end_ms), number + summary.lost)
        };
        Some(lost.fold((first.start_ms, first.end_ms, first.lost), rest))
    }
}

/// Decides which requests get a line of their own.
#[derive(Debug, Default)]
pub(super) struct Cap {
    lines: u64,
    /// Lines of requests that are neither list nor watch.
    others: u64,
    /// Watches whose second line has not been written; no more than there are lines.
    open: BTreeSet<u64>,
    summary: RequestSummary,
    /// The start of this interval.
    interval_ms: u64,
}

impl Cap {
    /// Whether the row gets a line; if not, it is counted. A watch that has its first line always gets its second one,
    /// so the file has at most twice the lines.
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

    /// The line of the interval that ends now, if any request was counted.
    pub fn close(&mut self, end_ms: u64) -> Option<RequestSummary> {
        let summary = std::mem::take(&mut self.summary);
        self.interval_ms = end_ms;
        (!summary.is_empty()).then_some(RequestSummary { end_ms, ..summary })
    }
}
