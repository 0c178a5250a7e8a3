//! One run of a suite, as a hunt sees it: the manager's writes, the tests that failed, and the effect of the faults.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use anyhow::Result;
use mock_envtest::{HitLine, Manager, RequestLine};
use reports::exit;

use super::super::Played;
use super::super::hot::is_of;
use super::super::planes::{self, ResourcePath};
use crate::hunt::audit::is_ignored;
use crate::hunt::points::{Point, Signature, shared_by};

/// The name of the sign if the suite fails and no result file names a test.
pub(super) const SUITE: &str = "the suite";
/// Maximum number of lines of a story, and of characters of a message.
const STORY_MAX: usize = 40;
const MESSAGE_MAX: usize = 300;

/// The facts of one run.
#[derive(Debug, Clone, Default)]
pub(super) struct View {
    /// The exit code of the suite.
    pub(super) code: u8,
    /// Whether the suite was ended because it did not end in time.
    pub(super) hung: bool,
    /// The tests that failed, with their messages.
    pub(super) failed: BTreeMap<String, String>,
    /// The successful writes of the manager.
    pub(super) writes: BTreeMap<Signature, u64>,
    pub(super) watched: BTreeSet<String>,
    /// A number for the course: the kinds of requests with their answers.
    pub(super) shape: u64,
    pub(super) hits: usize,
    /// The hits of faults and the writes of the manager after the first one.
    pub(super) story: Vec<String>,
}

impl View {
    pub(super) fn of(played: &Played, manager: &Manager) -> Result<Self> {
        let (mut requests, mut hits) = (Vec::new(), Vec::new());
        for plane in planes::read(&played.record)? {
            requests.extend(plane.requests);
            hits.extend(plane.hits);
        }
        requests.retain(|request| is_of(manager, request));
        let mut view = Self::seen(&requests, &hits, played.ledger.began_us);
        view.code = played.suites;
        view.hung = played.hung;
        for test in played.ledger.tests.iter().filter(|test| test.failed) {
            view.failed.insert(test.name.clone(), shortened(test.message.as_deref().unwrap_or("no message")));
        }
        if view.code != exit::PASS && view.failed.is_empty() {
            view.failed.insert(SUITE.to_owned(), format!("exit code {}", view.code));
        }
        Ok(view)
    }

    fn seen(requests: &[RequestLine], hits: &[HitLine], began_us: u64) -> Self {
        let mut view = Self { hits: hits.len(), ..Self::default() };
        let mut courses = BTreeSet::new();
        for request in requests {
            let Some((signature, is_watch)) = signature(request) else { continue };
            if is_watch {
                view.watched.insert(signature.resource.clone());
            }
            courses.insert((signature.clone(), request.status));
            if !signature.verb.is_empty() && request.status < 300 && !is_ignored(&signature.resource) {
                *view.writes.entry(signature).or_default() += 1;
            }
        }
        let mut hasher = DefaultHasher::new();
        courses.hash(&mut hasher);
        view.shape = hasher.finish();
        view.story = story(requests, hits, began_us);
        view
    }
}

/// The points that all runs have, and the number of kinds of writes that only some have.
pub(super) fn shared(views: &[View]) -> (Vec<Point>, usize) {
    shared_by(&views.iter().map(|view| view.writes.clone()).collect::<Vec<_>>())
}

/// The kind of a request, and whether it is a watch. The verb of a read is empty. `None` if the path names no resource.
fn signature(request: &RequestLine) -> Option<(Signature, bool)> {
    let place = ResourcePath::of(&request.path)?;
    let verb = match request.method.as_str() {
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "",
    };
    let is_watch = request.method == "GET" && request.query.contains("watch=");
    let signature = Signature {
        verb: verb.to_owned(),
        resource: place.resource(),
        subresource: place.subresource.unwrap_or_default().to_owned(),
        fields: Vec::new(),
    };
    Some((signature, is_watch))
}

fn story(requests: &[RequestLine], hits: &[HitLine], began_us: u64) -> Vec<String> {
    let Some(first_us) = hits.iter().map(|hit| hit.at_us).min() else { return Vec::new() };
    let hit = hits.iter().map(|hit| (hit.at_us, format!("{} hits: {}", hit.fault, hit.detail)));
    let writes = requests.iter().filter(|request| request.method != "GET" && request.at_us >= first_us);
    let writes =
        writes.map(|request| (request.at_us, format!("{} {} → {}", request.method, request.path, request.status)));
    let mut lines: Vec<(u64, String)> = hit.chain(writes).collect();
    lines.sort();
    let seconds = |at_us: u64| at_us.saturating_sub(began_us) as f64 / 1e6;
    lines.into_iter().take(STORY_MAX).map(|(at_us, line)| format!("{:.2} s: {line}", seconds(at_us))).collect()
}

fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MESSAGE_MAX {
        line
    } else {
        line.chars().take(MESSAGE_MAX).chain("…".chars()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, path: &str, query: &str, status: u16) -> RequestLine {
        RequestLine {
            at_us: 5,
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            user: "admin".to_owned(),
            user_agent: "manager".to_owned(),
            status,
            revision: None,
        }
    }

    /// Points are successful writes by verb, resource and subresource; another answer is another course.
    #[test]
    fn a_run_has_points_and_a_course() {
        let requests = [
            request("GET", "/apis/apps/v1/deployments", "watch=true", 200),
            request("PUT", "/apis/apps/v1/namespaces/a/deployments/b/status", "", 200),
            request("POST", "/api/v1/namespaces/a/pods", "", 201),
            request("POST", "/api/v1/namespaces/a/events", "", 201),
            request("DELETE", "/api/v1/namespaces/a/pods/x", "", 404),
            request("GET", "/healthz", "", 200),
        ];
        let view = View::seen(&requests, &[], 0);
        let told: Vec<String> = view.writes.keys().map(Signature::describe).collect();
        assert_eq!(told, ["create of pods", "update of deployments/status"]);
        assert_eq!(view.watched.into_iter().collect::<Vec<_>>(), ["deployments.apps"]);
        let mut other = requests.to_vec();
        other[4].status = 200;
        assert_ne!(View::seen(&other, &[], 0).shape, view.shape);
        assert!(view.story.is_empty(), "without a hit there is no story");
    }
}
