//! Finds hot loops, which repeat requests without a pause, and separates them from polls, which pause.
//!
//! A suite that waits for a state polls this state (Gomega: every 10 ms), mostly with its manager's client. A poll
//! pauses between two requests and writes nothing. A controller in a hot loop does not pause, or writes. A loop that is
//! as slow as a poll is not reported. Does no I/O.

use std::collections::{BTreeMap, BTreeSet};

use mock_envtest::{Manager, RequestLine};

use super::planes::{Plane, ResourcePath};

/// Number of writes of one object within a second that count as a hot loop.
const HOT_WRITES: usize = 20;
/// Number of equal requests within a second that count as a hot loop.
const HOT_REQUESTS: usize = 60;
const SECOND_US: u64 = 1_000_000;
/// Maximum number of requests per second of a poll. A poll every 10 ms, the shortest usual interval with Gomega and `wait.Poll`, comes a
/// hundred times a second, or slightly more often if the first request was late.
const POLLS: usize = 110;
/// Maximum number of entries in a list of hot loops or polls.
const ROWS_MAX: usize = 1000;

/// Requests that were repeated in hot loops or polls, with the highest number per second.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hot {
    pub loops: BTreeMap<String, usize>,
    pub polls: BTreeMap<String, usize>,
}

/// The second in which one request or object was most frequent.
#[derive(Debug, Clone, Copy)]
struct Busiest {
    times: usize,
    from_us: u64,
    to_us: u64,
}

impl Hot {
    /// Adds the requests that were repeated at one control plane.
    pub fn add(&mut self, plane: &Plane, manager: &Manager) {
        let own: BTreeSet<u64> = plane
            .requests
            .iter()
            .filter(|request| request.method != "GET" && is_of(manager, request))
            .filter_map(|request| request.revision)
            .collect();
        let written = plane
            .commits
            .iter()
            .filter(|commit| commit.change == "modified" && (!manager.is_known() || own.contains(&commit.revision)));
        let written = written.map(|commit| {
            let place = [commit.resource.as_str(), &commit.namespace, &commit.name].join(" ");
            (format!("writes of {place}"), commit.at_us)
        });
        for (what, busiest) in busiest(written) {
            if busiest.times > HOT_WRITES {
                note(&mut self.loops, what, busiest.times);
            }
        }
        let asked = plane.requests.iter().filter(|request| counts(request, manager));
        let by = |request: &RequestLine| format!("{} {} by {}", request.method, request.path, request.user_agent);
        for (what, busiest) in busiest(asked.map(|request| (by(request), request.at_us))) {
            if busiest.times <= HOT_REQUESTS {
                continue;
            }
            let is_loop = !what.starts_with("GET ") || manager.is_known() || !waits(&what, &busiest, &plane.requests);
            note(if is_loop { &mut self.loops } else { &mut self.polls }, what, busiest.times);
        }
    }
}

/// Stores the number of repetitions of a request. If several control planes got the request, the highest number is
/// kept.
fn note(rows: &mut BTreeMap<String, usize>, what: String, times: usize) {
    if rows.len() < ROWS_MAX || rows.contains_key(&what) {
        let most = rows.entry(what).or_default();
        *most = (*most).max(times);
    }
}

/// Whether the manager sent a request, as far as known.
pub(super) fn is_of(manager: &Manager, request: &RequestLine) -> bool {
    manager.agent.as_deref().is_none_or(|agent| request.user_agent.contains(agent))
        && manager.user.as_deref().is_none_or(|user| request.user == user)
}

/// Whether a request may be part of a hot loop. Each successful creation or deletion concerns another object, so many
/// creations or deletions are no loop.
fn counts(request: &RequestLine, manager: &Manager) -> bool {
    let is_anothers =
        matches!(request.method.as_str(), "POST" | "DELETE") && request.status < 400 && !manager.is_known();
    request.path.starts_with("/api") && !request.query.contains("watch=") && !is_anothers && is_of(manager, request)
}

/// Whether frequent reads are polls with pauses, or each read concerns another object.
fn waits(what: &str, busiest: &Busiest, requests: &[RequestLine]) -> bool {
    if busiest.times <= POLLS {
        return true;
    }
    let Some(place) = what.split(' ').nth(1).and_then(ResourcePath::of) else { return false };
    let during = |request: &&RequestLine| (busiest.from_us..=busiest.to_us).contains(&request.at_us);
    let changes = requests.iter().filter(during).filter(|request| {
        matches!(request.method.as_str(), "POST" | "DELETE")
            && request.status < 400
            && ResourcePath::of(&request.path).is_some_and(|other| {
                (other.plural, other.group, other.namespace) == (place.plural, place.group, place.namespace)
            })
    });
    // Tests that recreate an object under one name read the object about as often as it changes.
    changes.count() * 4 >= busiest.times
}

/// For each request or object, the second in which it was most frequent.
fn busiest(things: impl Iterator<Item = (String, u64)>) -> BTreeMap<String, Busiest> {
    let mut times: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (thing, at_us) in things {
        times.entry(thing).or_default().push(at_us);
    }
    let busiest = |times: &mut Vec<u64>| {
        times.sort_unstable();
        let (mut first, mut best) = (0, (0, 0));
        for (last, at_us) in times.iter().enumerate() {
            while at_us - times[first] > SECOND_US {
                first += 1;
            }
            if last - first > best.1 - best.0 {
                best = (first, last);
            }
        }
        let within = &times[best.0..=best.1];
        Busiest { times: within.len(), from_us: within[0], to_us: within[within.len() - 1] }
    };
    times.into_iter().map(|(thing, mut times)| (thing, busiest(&mut times))).collect()
}

#[cfg(test)]
mod tests {
    use mock_envtest::CommitLine;

    use super::*;

    const PATH: &str = "/api/v1/namespaces/d/pods/x";

    fn request(at_us: u64, method: &str, path: &str, status: u16) -> RequestLine {
        RequestLine {
            at_us,
            method: method.to_owned(),
            path: path.to_owned(),
            query: String::new(),
            user: "admin".to_owned(),
            user_agent: "suite.test".to_owned(),
            status,
            revision: None,
        }
    }

    fn hot(requests: Vec<RequestLine>, manager: &Manager) -> Hot {
        let mut hot = Hot::default();
        hot.add(&Plane { requests, ..Plane::default() }, manager);
        hot
    }

    fn every(us: u64, count: u64, method: &str, status: u16) -> Vec<RequestLine> {
        (0..count).map(|number| request(number * us, method, PATH, status)).collect()
    }

    /// A poll is no hot loop. Gomega's `Eventually` polls every 10 ms, a little later each time. A ticker that is late
    /// once is in time again at its next tick.
    #[test]
    fn a_poll_is_no_loop() {
        let late = (0..400).map(|tick| request(tick * 10_000 + tick % 3 * 4_000, "GET", PATH, 200)).collect();
        assert!(hot(late, &Manager::default()).loops.is_empty());
        let hot = hot(every(10_400, 400, "GET", 200), &Manager::default());
        assert!(hot.loops.is_empty(), "{hot:?}");
        assert_eq!(hot.polls.values().copied().collect::<Vec<_>>(), [97]);
    }

    #[test]
    fn who_reads_and_waits_for_nothing_is_in_a_loop() {
        let hot = hot(every(1_500, 200, "GET", 200), &Manager::default());
        assert_eq!(hot.loops.values().copied().collect::<Vec<_>>(), [200]);
        assert!(hot.polls.is_empty());
    }

    /// A write that is refused each time is a hot loop even if it is slow.
    #[test]
    fn writes_again_and_again_are_a_loop() {
        for (method, status) in [("PUT", 409), ("PATCH", 200), ("POST", 409)] {
            let hot = hot(every(11_000, 100, method, status), &Manager::default());
            assert_eq!(hot.loops.len(), 1, "{method} {status}");
        }
        assert_eq!(hot(every(2_000, 100, "POST", 201), &Manager::default()), Hot::default(), "a hundred new objects");
    }

    /// A suite that creates, reads and deletes an object of one name a hundred times in a second is no hot loop.
    #[test]
    fn specs_of_one_name_are_no_loop() {
        let spec = |number: u64| {
            let at_us = number * 6_000;
            let [made, gone] = [("POST", "/api/v1/namespaces/d/pods", 201), ("DELETE", PATH, 200)];
            let reads = [1, 2].map(|step| request(at_us + step * 1_500, "GET", PATH, 200)).into_iter();
            let writes = [(0, made), (4_500, gone)];
            reads.chain(writes.map(|(after, (method, path, status))| request(at_us + after, method, path, status)))
        };
        let hot = hot((0..100).flat_map(spec).collect(), &Manager::default());
        assert!(hot.loops.is_empty(), "{hot:?}");
    }

    /// If the manager's user agent is known, requests of the suite itself do not count as hot loops.
    #[test]
    fn a_known_manager_is_looked_at_alone() {
        let manager = Manager { agent: Some("manager".to_owned()), user: None };
        let requests = every(1_500, 200, "GET", 200);
        assert_eq!(hot(requests.clone(), &manager), Hot::default());
        let own = |request| RequestLine { user_agent: "manager/v1".to_owned(), ..request };
        assert_eq!(hot(requests.into_iter().map(own).collect(), &manager).loops.len(), 1);
    }

    #[test]
    fn writes_of_one_object_are_a_loop() {
        let commit = |number: u64| CommitLine {
            at_us: number * 20_000,
            revision: number,
            change: "modified".to_owned(),
            resource: "pods".to_owned(),
            namespace: "d".to_owned(),
            name: "x".to_owned(),
        };
        let mut hot = Hot::default();
        let plane = Plane { commits: (0..40).map(commit).collect(), ..Plane::default() };
        hot.add(&plane, &Manager::default());
        assert_eq!(hot.loops.get("writes of pods d x"), Some(&40));
        let mut other = Hot::default();
        other.add(&plane, &Manager { agent: Some("manager".to_owned()), user: None });
        assert_eq!(other, Hot::default(), "they are not the manager's");
    }
}
