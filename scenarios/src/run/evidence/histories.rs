//! The latest writes of all objects, and the latest reports of the subject about them.
//!
//! Owns one bounded history of all objects, which drops the oldest entries first.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use facts::{Change, Observation, Revision, Uid};
use reports::record::{CommitEvent, ReadOn, Step};

/// Maximum number of writes and reports kept for all objects together: 6 MiB, or ten minutes of 50 changes per second.
const MOMENTS_MAX: usize = 65_536;
/// Maximum number of reports kept to prove that the subject still received events.
const REPORTS_MAX: usize = 8192;
/// Maximum number of entries of one object that are shown before and after a version.
const AROUND: usize = 7;

/// The latest writes and the subject's latest reports, by object.
#[derive(Debug, Default)]
pub(super) struct Histories {
    by_uid: HashMap<Uid, VecDeque<Moment>>,
    /// The object of each entry, the oldest entry first.
    arrivals: VecDeque<Uid>,
    /// The resource of each object with a recently written version.
    resources: HashMap<Uid, Arc<str>>,
    /// The subject's latest reports whose resource is known, oldest first.
    reports: VecDeque<Report>,
}

#[derive(Debug)]
struct Report {
    t_ms: u64,
    revision: u64,
    resource: Arc<str>,
}

#[derive(Debug)]
struct Moment {
    t_ms: u64,
    revision: Revision,
    change: Change,
    is_report: bool,
}

impl Histories {
    pub(super) fn committed(&mut self, CommitEvent { t_ms, commit }: &CommitEvent) {
        let (revision, change) = (commit.revision.clone(), commit.change);
        if !self.resources.contains_key(&commit.uid) {
            self.resources.insert(commit.uid.clone(), commit.resource.clone());
        }
        self.push(&commit.uid, Moment { t_ms: *t_ms, revision, change, is_report: false });
    }

    pub(super) fn reported(&mut self, seen: &Observation) {
        if let (Some(resource), Some(revision)) = (self.resources.get(&seen.uid), seen.revision.number()) {
            if self.reports.len() == REPORTS_MAX {
                self.reports.pop_front();
            }
            self.reports.push_back(Report { t_ms: seen.t_ms, revision, resource: resource.clone() });
        }
        let (revision, change) = (seen.revision.clone(), seen.change);
        self.push(&seen.uid, Moment { t_ms: seen.t_ms, revision, change, is_report: true });
    }

    fn push(&mut self, uid: &Uid, moment: Moment) {
        if self.arrivals.len() >= MOMENTS_MAX
            && let Some(oldest) = self.arrivals.pop_front()
            && let Some(moments) = self.by_uid.get_mut(&oldest)
        {
            moments.pop_front();
            if moments.is_empty() {
                self.by_uid.remove(&oldest);
                self.resources.remove(&oldest);
            }
        }
        self.arrivals.push_back(uid.clone());
        self.by_uid.entry(uid.clone()).or_default().push_back(moment);
    }

    /// The first report of a later version of the resource, and the number of such reports. Reports of later versions
    /// prove that the subject's watch passed the version.
    pub(super) fn read_on(&self, resource: &str, revision: &str) -> Option<ReadOn> {
        let revision: u64 = revision.parse().ok()?;
        let later = self.reports.iter().filter(|report| report.revision > revision && *report.resource == *resource);
        let mut later = later.map(|report| report.t_ms);
        let t_ms = later.next()?;
        Some(ReadOn { t_ms, times: 1 + later.count() as u64 })
    }

    /// The time at which a version was written, or first reported if the write is not known.
    pub(super) fn begin_ms(&self, uid: &str, revision: &str) -> Option<u64> {
        let moments = self.by_uid.get(uid)?;
        let of = |is_report: bool| {
            moments.iter().find(|moment| moment.revision.as_str() == revision && moment.is_report == is_report)
        };
        of(false).or_else(|| of(true)).map(|moment| moment.t_ms)
    }

    /// The object's creation if known, then its events around a version and its last events.
    pub(super) fn steps(&self, uid: &str, revision: &str, until_ms: u64) -> Vec<Step> {
        let Some(moments) = self.by_uid.get(uid) else { return Vec::new() };
        let moments: Vec<&Moment> = moments.iter().filter(|moment| moment.t_ms <= until_ms).collect();
        let own = |moment: &&Moment| moment.revision.as_str() == revision;
        let middle = moments.iter().position(own).unwrap_or(moments.len());
        let last = moments.iter().rposition(own).unwrap_or(middle);
        let near = |index: usize| {
            (middle.saturating_sub(AROUND)..=middle + AROUND).contains(&index)
                || (last.saturating_sub(2)..=last).contains(&index)
        };
        let told = moments.iter().enumerate().filter(|(index, moment)| {
            let ends = moment.change == Change::Deleted || (moment.change == Change::Added && !moment.is_report);
            *index == 0 || ends || near(*index) || own(moment)
        });
        told.map(|(_, moment)| moment.step()).collect()
    }
}

impl Moment {
    fn step(&self) -> Step {
        let (t_ms, revision, change) = (self.t_ms, self.revision.to_string(), self.change);
        if self.is_report {
            Step::Reported { t_ms, revision, change }
        } else {
            Step::Committed { t_ms, revision, change }
        }
    }
}

#[cfg(test)]
mod tests {
    use facts::{Commit, Order};

    use super::*;

    fn event(t_ms: u64, uid: &str, change: Change) -> CommitEvent {
        let commit = Commit {
            order: Order::of_numbered(t_ms),
            resource: "packages".into(),
            namespace: "default".into(),
            name: uid.into(),
            uid: uid.into(),
            revision: Revision::of_number(t_ms),
            change,
        };
        CommitEvent { t_ms, commit }
    }

    /// All objects share one bound of memory, and the oldest entries are dropped first.
    #[test]
    fn the_oldest_moments_are_forgotten() {
        let mut histories = Histories::default();
        histories.committed(&event(1, "old", Change::Added));
        for t_ms in 2..=MOMENTS_MAX as u64 + 1 {
            histories.committed(&event(t_ms, if t_ms % 2 == 0 { "a" } else { "b" }, Change::Modified));
        }
        assert_eq!(histories.arrivals.len(), MOMENTS_MAX);
        assert!(histories.steps("old", "1", u64::MAX).is_empty() && !histories.by_uid.contains_key("old"));
        assert_eq!(histories.by_uid.values().map(VecDeque::len).sum::<usize>(), MOMENTS_MAX);
    }

    #[test]
    fn a_later_report_proves_that_the_subject_read_on() {
        let mut histories = Histories::default();
        let report = |t_ms, uid: &str, revision| Observation {
            t_ms,
            uid: uid.into(),
            revision: Revision::of_number(revision),
            change: Change::Modified,
        };
        histories.committed(&event(10, "a", Change::Added));
        histories.committed(&event(20, "b", Change::Added));
        histories.reported(&report(15, "a", 10));
        assert_eq!(histories.read_on("packages", "10"), None);
        histories.reported(&report(25, "b", 20));
        assert_eq!(histories.read_on("packages", "10"), Some(ReadOn { t_ms: 25, times: 1 }));
        assert_eq!((histories.read_on("packages", "20"), histories.read_on("pods", "10")), (None, None));
    }

    #[test]
    fn the_creation_the_deletion_and_what_is_round_a_version_is_told() {
        let mut histories = Histories::default();
        histories.committed(&event(1, "a", Change::Added));
        (2..100).for_each(|t_ms| histories.committed(&event(t_ms, "a", Change::Modified)));
        histories.committed(&event(100, "a", Change::Deleted));
        let told: Vec<u64> = histories.steps("a", "50", u64::MAX).iter().map(Step::t_ms).collect();
        assert_eq!(told, [vec![1], (43..=57).collect(), vec![100]].concat());
        assert!(histories.steps("a", "50", 60).iter().all(|step| step.t_ms() <= 60));
        assert_eq!(histories.begin_ms("a", "50"), Some(50));
    }
}
