//! The subject's latest lists and watches.
//!
//! Owns a bounded history of lists and watches, which always keeps open watches. [`Follows::add_to`] selects requests
//! for the history of an anomaly.

use std::collections::{BTreeMap, BTreeSet};

use reports::record::{EndedBy, RequestRow, Step, Verb};

use super::About;

/// Maximum number of ended lists and watches kept: 1 MiB.
const OVER_MAX: usize = 4096;
/// Maximum number of open watches kept; no client has more.
const OPEN_MAX: usize = 1024;
/// Maximum number of requests shown before the time of an anomaly.
const BEFORE: usize = 4;
const AFTER: usize = 8;

/// The subject's latest lists and watches.
#[derive(Debug, Default)]
pub(crate) struct Follows {
    /// Open requests by their number, which rises with time.
    open: BTreeMap<u64, Follow>,
    over: BTreeMap<u64, Follow>,
}

#[derive(Debug, Clone)]
struct Follow {
    t_ms: u64,
    is_list: bool,
    resource: String,
    namespace: String,
    status: u16,
    error_code: Option<u16>,
    from: Option<String>,
    initial: bool,
    watch: Option<u64>,
    revision: Option<u64>,
    bookmark: Option<u64>,
    objects: u64,
    further: bool,
    ended: Option<(u64, EndedBy)>,
}

impl Follows {
    /// Records a list or a watch that was answered or has ended; skips other requests.
    pub(crate) fn note(&mut self, row: &RequestRow) {
        if !row.follows() {
            return;
        }
        self.open.remove(&row.id);
        let (into, max) = match row.ended_ms {
            None => (&mut self.open, OPEN_MAX),
            Some(_) => (&mut self.over, OVER_MAX),
        };
        into.insert(row.id, Follow::of(row));
        if into.len() > max {
            into.pop_first();
        }
    }

    /// Adds the subject's requests for an object's resource to the history of an anomaly. Selects requests around the
    /// time of the anomaly, watches that were open at that time, and the first requests that could deliver the version.
    /// Returns the number of omitted requests.
    pub(super) fn add_to(&self, steps: &mut Vec<Step>, about: &About<'_>) -> u64 {
        let all: BTreeMap<u64, &Follow> =
            self.over.iter().chain(&self.open).map(|(id, follow)| (*id, follow)).collect();
        let all: Vec<&Follow> = all.into_values().filter(|follow| follow.concerns(about)).collect();
        let middle = all.partition_point(|follow| follow.t_ms <= about.from_ms);
        let (before, after) = all.split_at(middle);
        let mut told: BTreeSet<usize> = (middle.saturating_sub(BEFORE)..middle + AFTER.min(after.len())).collect();
        // The requests that were open at the moment, and the watch that ended last before it.
        told.extend(before.iter().enumerate().filter(|(_, follow)| follow.open_at(about.from_ms)).map(|(at, _)| at));
        let ended = |(at, follow): (usize, &&Follow)| Some((follow.ended?.0, at)).filter(|_| follow.watch.is_some());
        told.extend(before.iter().enumerate().filter_map(ended).max().map(|(_, at)| at));
        let revision = about.revision.parse().ok();
        let brings = |follow: &&Follow| follow.is_list && follow.is_answered() && follow.revision >= revision;
        told.extend(after.iter().position(brings).map(|at| middle + at));
        let resumes = |follow: &&Follow| !follow.is_list && follow.watch.is_some() && follow.is_answered();
        told.extend(after.iter().position(resumes).map(|at| middle + at));
        told.extend(all.len().checked_sub(1));
        for at in &told {
            all[*at].add_to(steps, about.until_ms);
        }
        (all.len() - told.len()) as u64
    }
}

impl Follow {
    fn of(row: &RequestRow) -> Self {
        Self {
            t_ms: row.t_ms,
            is_list: row.verb == Verb::List,
            resource: row.resource.clone(),
            namespace: row.namespace.clone(),
            status: row.status,
            error_code: row.error_code,
            from: row.revision.clone(),
            initial: row.send_initial_events == Some(true),
            watch: row.watch,
            revision: row.last_revision,
            bookmark: row.last_bookmark,
            objects: row.objects,
            further: row.continues.is_some(),
            ended: row.ended_ms.map(|t_ms| (t_ms, row.ended_by.unwrap_or(EndedBy::Server))),
        }
    }

    /// Whether the request could deliver the object, judged by resource and namespace. A request for an unknown
    /// resource could deliver any object.
    fn concerns(&self, about: &About<'_>) -> bool {
        let resource = about.resource.is_empty() || self.resource == about.resource;
        let namespace = self.namespace.is_empty() || about.resource.is_empty() || self.namespace == about.namespace;
        resource && namespace && self.t_ms <= about.until_ms
    }

    fn is_answered(&self) -> bool {
        (200..300).contains(&self.status) && self.error_code.is_none()
    }

    fn open_at(&self, t_ms: u64) -> bool {
        !self.is_list && self.is_answered() && self.ended.is_none_or(|(ended_ms, _)| ended_ms >= t_ms)
    }

    fn add_to(&self, steps: &mut Vec<Step>, until_ms: u64) {
        let Self { t_ms, status, objects, further, revision, .. } = *self;
        if self.is_list {
            steps.push(Step::Listed { t_ms, status, revision, objects, further });
            return;
        }
        let Self { watch, initial, error_code, .. } = *self;
        steps.push(Step::Watched { t_ms, watch, from: self.from.clone(), initial, status, error_code });
        // The end of the run ends every watch, so that is no event.
        if let (Some((t_ms, by)), Some(watch)) = (self.ended.filter(|(t_ms, _)| *t_ms <= until_ms), watch) {
            steps.push(Step::WatchEnded { t_ms, watch, by, through: self.revision.max(self.bookmark) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: u64, t_ms: u64, verb: Verb, ended_ms: Option<u64>) -> RequestRow {
        let (resource, watch) = ("packages".to_owned(), (verb == Verb::Watch).then_some(id));
        let last_revision = Some(t_ms);
        RequestRow { id, t_ms, verb, resource, status: 200, ended_ms, watch, last_revision, ..RequestRow::default() }
    }

    fn follows_of(follows: &Follows, from_ms: u64) -> (Vec<u64>, u64) {
        let revision = from_ms.to_string();
        let (resource, until_ms) = ("packages", u64::MAX);
        let about =
            About { resource, namespace: "default", name: "a", uid: "u", revision: &revision, from_ms, until_ms };
        let mut steps = Vec::new();
        let left_out = follows.add_to(&mut steps, &about);
        (steps.iter().map(Step::t_ms).collect(), left_out)
    }

    /// A watch that has been open for long is shown even after many lists, and so is the list that could deliver the
    /// version.
    #[test]
    fn what_was_open_and_what_could_have_brought_it_is_told() {
        let mut follows = Follows::default();
        follows.note(&row(1, 10, Verb::Watch, None));
        (2..6000).for_each(|id| follows.note(&row(id, id * 10, Verb::List, Some(id * 10))));
        assert_eq!((follows.open.len(), follows.over.len()), (1, OVER_MAX));
        let (times, left_out) = follows_of(&follows, 50_005);
        let around: Vec<u64> = (4997..=5008).map(|id| id * 10).collect();
        assert_eq!(times, [vec![10], around, vec![59_990]].concat());
        assert_eq!(left_out, OVER_MAX as u64 + 1 - 14);
        follows.note(&row(1, 10, Verb::Watch, Some(60_000)));
        assert!(follows.open.is_empty(), "it ended");
    }

    #[test]
    fn requests_for_other_things_are_none_of_it() {
        let mut follows = Follows::default();
        follows.note(&RequestRow { resource: "pods".to_owned(), ..row(1, 10, Verb::Watch, None) });
        follows.note(&RequestRow { namespace: "other".to_owned(), ..row(2, 11, Verb::Watch, None) });
        follows.note(&row(3, 12, Verb::Get, Some(12)));
        assert_eq!(follows_of(&follows, 50), (Vec::new(), 0));
    }
}
