//! Paged lists and watches of the small Kubernetes API in the tests, and their faults.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::{Request, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::kube::State;
use crate::server::{Body, respond};

#[derive(Default)]
pub struct Watches {
    /// Revision and line of each event, except those of namespaces.
    events: Vec<(u64, String)>,
    /// The oldest revision from which a watch may start; older ones get 410.
    pub oldest: u64,
    /// Revisions of the events that are never sent.
    pub swallowed: BTreeSet<u64>,
    /// The number of bytes after which each watch is cut, even inside a line.
    pub cut_after_bytes: Option<usize>,
    pub opened: usize,
    /// Lines that are sent next on a watch, once each.
    pub inject: Vec<String>,
    /// Number of watches that send only one line, which is no event.
    pub nonsense: usize,
    /// How often a second page of a list gets 410.
    pub expired_pages: usize,
    /// The page sizes that clients requested.
    pub limits: Vec<usize>,
    rest: BTreeMap<String, (u64, Vec<Value>)>,
    changed: Arc<Notify>,
}

impl Watches {
    pub fn push(&mut self, revision: u64, sort: &str, object: &Value) {
        if object["kind"] != "Namespace" {
            self.events.push((revision, format!("{}\n", json!({"type": sort, "object": object}))));
            self.changed.notify_waiters();
        }
    }

    /// Wakes every watch after a change of the state.
    pub fn wake(&self) {
        self.changed.notify_waiters();
    }

    /// A page of a list; later pages keep the revision of the first page.
    pub fn page(&mut self, query: &BTreeMap<String, String>, revision: u64, items: Vec<Value>) -> (u16, Value) {
        let limit = query.get("limit").and_then(|text| text.parse().ok()).unwrap_or(usize::MAX);
        self.limits.push(limit);
        let (revision, mut items) = match query.get("continue") {
            Some(_) if self.expired_pages > 0 => {
                self.expired_pages -= 1;
                return (410, json!({"kind": "Status", "code": 410, "message": "the continue token is too old"}));
            }
            Some(token) => self.rest.remove(token).unwrap_or_default(),
            None => (revision, items),
        };
        let rest = items.split_off(limit.min(items.len()));
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if !rest.is_empty() {
            // With characters that a query cannot contain unencoded.
            let token = format!("{revision}+&={}", rest.len());
            metadata["continue"] = json!(token);
            self.rest.insert(token, (revision, rest));
        }
        (200, json!({"metadata": metadata, "items": items}))
    }

    /// The next line after a revision, and its revision.
    fn after(&self, revision: u64) -> Option<(u64, String)> {
        let at = self.events.partition_point(|(each, _)| *each <= revision);
        let found = self.events[at..].iter().find(|(revision, _)| !self.swallowed.contains(revision));
        found.cloned()
    }
}

/// The query of a request, with `%xx` decoded.
pub fn query(request: &Request<Incoming>) -> BTreeMap<String, String> {
    let query = request.uri().query().unwrap_or_default();
    let decoded = |text: &str| {
        let mut parts = text.split('%');
        let mut decoded = parts.next().unwrap().to_owned();
        for part in parts {
            decoded.push(char::from(u8::from_str_radix(&part[..2], 16).unwrap()));
            decoded.push_str(&part[2..]);
        }
        decoded
    };
    query.split('&').filter_map(|pair| pair.split_once('=')).map(|(key, value)| (key.into(), decoded(value))).collect()
}

/// The stream of all events after a revision, as the answer to a watch.
pub fn serve(shared: &Arc<Mutex<State>>, state: &mut State, revision: u64) -> Response<Body> {
    let watches = &mut state.watches;
    watches.opened += 1;
    if revision < watches.oldest {
        let gone = json!({"kind": "Status", "code": 410, "message": "too old resource version"});
        return respond(410, "application/json", gone.to_string());
    }
    if watches.nonsense > 0 {
        watches.nonsense -= 1;
        return respond(200, "application/json", "{\"type\":\"PUT\",\"object\":{}}\n");
    }
    let left = watches.cut_after_bytes.unwrap_or(usize::MAX);
    let (shared, changed) = (Arc::clone(shared), Arc::clone(&watches.changed));
    let frames = stream::unfold((revision, left), move |(revision, left)| {
        let (shared, changed) = (Arc::clone(&shared), Arc::clone(&changed));
        async move {
            if left == 0 {
                return None;
            }
            loop {
                let waiting = changed.notified();
                let next = {
                    let mut state = shared.lock();
                    if state.watches.inject.is_empty() {
                        state.watches.after(revision)
                    } else {
                        Some((revision, state.watches.inject.remove(0)))
                    }
                };
                if let Some((revision, mut line)) = next {
                    line.truncate(left);
                    let left = left - line.len();
                    return Some((Ok(Frame::data(Bytes::from(line))), (revision, left)));
                }
                waiting.await;
            }
        }
    });
    Response::new(StreamBody::new(frames).boxed())
}
