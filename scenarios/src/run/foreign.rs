//! Wrong changes of the subject to objects of other clients: the subject recreated an object that another client had
//! deleted, or deleted an object whose deletion nobody had requested.
//!
//! Owns the record of which client created an object, if the control plane records requests. The subject created an
//! object if an answer to the subject says so. Reads commits with its own cursor, and handles commits before requests
//! of the same time. The memory is bounded: beyond the limit, further objects are not tracked, and only the newest
//! deleted objects are kept. A judge decides whether the subject made too many wrong changes.

mod memory;

use std::collections::BTreeSet;
use std::sync::Arc;

use facts::Change;
use mock_kube::{Entry, RequestFact};
use reports::record::{self, DEEDS_MAX, ForeignRequest, Read, RequestRow, Verb};

use self::memory::{Gone, Key, Memory};
use crate::scenario::Scenario;

/// Kinds that the mock's workload controllers create for other clients' objects, so the creator is not the owner.
const MADE_BY_CONTROLLERS: [&str; 5] = [
    "pods",
    "replicasets.apps",
    "persistentvolumeclaims",
    "controllerrevisions.apps",
    "endpointslices.discovery.k8s.io",
];

/// The subject's changes to objects of other clients, for all judged or churned resources.
pub(super) struct Foreign {
    resources: BTreeSet<String>,
    memory: Memory,
    found: record::Foreign,
}

/// A request of the subject: its row in the record, and facts that the row lacks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) row: &'a RequestRow,
    pub(super) path: &'a str,
    /// Times of arrival and end, in microseconds on the control plane's clock.
    pub(super) at_us: u64,
    pub(super) ended_us: u64,
    /// Whether the request is a dry run, which stores no object.
    pub(super) is_rehearsal: bool,
}

impl<'a> Request<'a> {
    pub(super) fn of(fact: &'a RequestFact, row: &'a RequestRow) -> Self {
        let is_rehearsal = fact.record.query.contains("dryRun");
        let ended_us = fact.ended.map_or(u64::MAX, |(ended_us, _)| ended_us);
        Self { row, path: &fact.record.path, at_us: fact.record.at_us, ended_us, is_rehearsal }
    }
}

/// Source of the times at which watches delivered versions of an object to the subject.
pub(super) trait Wire {
    /// Time and revision of the last delivery of any of these versions before a given time.
    fn sent(&self, resource: &str, revisions: &[u64], before_us: u64) -> Option<(u64, u64)>;
    /// Converts a time of the control plane into a time of the run.
    fn at_ms(&self, at_us: u64) -> u64;
}

impl Foreign {
    /// A state without any changes. `None` if the subject watches nothing, or the run writes nothing.
    pub(super) fn of(scenario: &Scenario) -> Option<Self> {
        let resources = scenario.judged_resources().into_iter().map(|(name, _)| name);
        let mut resources: BTreeSet<String> =
            resources.chain(super::end_state::all_churned(scenario).into_iter().map(|(name, _)| name)).collect();
        if scenario.control_plane.workloads.is_some() {
            resources.retain(|resource| !MADE_BY_CONTROLLERS.contains(&&**resource));
        }
        (!resources.is_empty() && !scenario.subject.watches_nothing()).then(|| Self::over(resources))
    }

    fn over(resources: BTreeSet<String>) -> Self {
        let found = record::Foreign { resources: resources.iter().cloned().collect(), ..record::Foreign::default() };
        Self { resources, memory: Memory::default(), found }
    }

    /// Marks the result as incomplete, because some commits or requests are unknown from now on.
    pub(super) fn lost(&mut self, why: String) {
        self.found.unread.get_or_insert(why);
    }

    /// Records a commit; commits come before the requests of the same moment.
    pub(super) fn commit(&mut self, entry: &Entry) {
        let commit = &entry.commit;
        if !self.resources.contains(&*commit.resource) {
            return;
        }
        let key: Key = (commit.resource.clone(), commit.namespace.clone(), commit.name.clone());
        match commit.change {
            Change::Added => self.memory.added(key, entry.revision, entry.at_us),
            Change::Modified => self.memory.modified(&key, entry.revision, entry.at_us, entry.progress.leaving),
            Change::Deleted => {
                let is_foreign = self.memory.deleted(key, entry.revision, entry.at_us);
                self.found.gone += u64::from(is_foreign);
            }
        }
    }

    /// Records a finished request of the subject. Must be called after the commits of the same time were recorded.
    pub(super) fn request(&mut self, request: Request<'_>, wire: &impl Wire) {
        let row = request.row;
        if !self.resources.contains(&row.resource) {
            return;
        }
        match row.verb {
            Verb::Get if !row.name.is_empty() => self.memory.got(key(row), row.ended_ms.unwrap_or(row.t_ms), row),
            Verb::List => self.memory.listed(row),
            // A creation is answered with 201. A write without a change is answered with 200 and the stored version,
            // which may be another client's first one.
            Verb::Create | Verb::Update | Verb::Patch if row.status == 201 => self.wrote(request, wire),
            // It may have succeeded all the same.
            Verb::Create | Verb::Update | Verb::Patch if row.status == 0 || row.status >= 500 => {
                self.memory.may_be_own(&row.resource, &row.namespace, (request.at_us, request.ended_us));
            }
            Verb::Delete if row.succeeded() && !request.is_rehearsal => self.deleted(request, wire),
            _ => {}
        }
    }

    /// Returns the subject's changes to objects of other clients so far, and leaves an empty result.
    pub(super) fn take(&mut self) -> record::Foreign {
        std::mem::take(&mut self.found)
    }

    /// Records a write of the subject. An object that the subject created counts as the subject's own from then on.
    fn wrote(&mut self, request: Request<'_>, wire: &impl Wire) {
        let Some((key, made_us)) = request.row.last_revision.and_then(|revision| self.memory.made(revision)) else {
            return;
        };
        if self.memory.is_full() {
            self.lost("the subject made more objects of the judged kinds than the harness remembers".to_owned());
        }
        match self.memory.own(&key, made_us) {
            // It was deleted again before its creator was known.
            Some(gone) if gone.at_us > made_us => self.found.gone -= u64::from(gone.is_foreign),
            Some(gone) if gone.is_foreign && self.found.unread.is_none() => {
                self.found.made_again += 1;
                if self.found.again.len() < DEEDS_MAX {
                    let read = self.read(&key, Some(&gone), request.at_us, wire);
                    let gone_ms = Some(wire.at_ms(gone.at_us));
                    self.found.again.push(ForeignRequest { gone_ms, ..deed(request, &key, read) });
                }
            }
            _ => {}
        }
    }

    /// Records a deletion by the subject. The deletion is wrong if nobody had requested it before and another client
    /// created the object.
    fn deleted(&mut self, request: Request<'_>, wire: &impl Wire) {
        let key = key(request.row);
        if self.found.unread.is_some() || !self.memory.takes(&key, request.at_us) {
            return;
        }
        self.found.deleted += 1;
        let gone = self.memory.gone(&key).cloned();
        if gone.as_ref().is_some_and(|gone| gone.is_foreign) {
            self.found.gone -= 1;
        }
        if self.found.deletions.len() < DEEDS_MAX {
            let read = self.read(&key, None, request.at_us, wire);
            self.found.deletions.push(deed(request, &key, read));
        }
        self.memory.taken(&key);
    }

    /// The subject's reads of an object, the newest last.
    fn read(&self, key: &Key, gone: Option<&Gone>, before_us: u64, wire: &impl Wire) -> Vec<Read> {
        let mut read = self.memory.read(key, gone);
        let versions = self.memory.versions(key, gone);
        let revisions: Vec<u64> = versions.iter().map(|(revision, _)| *revision).collect();
        if let Some((at_us, revision)) = wire.sent(&key.0, &revisions, before_us) {
            let what = versions.iter().find(|(one, _)| *one == revision).map(|(_, what)| *what);
            read.extend(what.map(|what| Read::Sent { t_ms: wire.at_ms(at_us), revision, what }));
        }
        read.sort_by_key(|read| read.t_ms());
        read
    }
}

fn key(row: &RequestRow) -> Key {
    (Arc::from(&*row.resource), Arc::from(&*row.namespace), Arc::from(&*row.name))
}

fn deed(Request { row, path, .. }: Request<'_>, key: &Key, read: Vec<Read>) -> ForeignRequest {
    let object = if key.1.is_empty() { key.2.to_string() } else { format!("{}/{}", key.1, key.2) };
    ForeignRequest {
        resource: key.0.to_string(),
        object,
        t_ms: row.t_ms,
        method: row.method.clone(),
        path: path.to_owned(),
        user_agent: row.user_agent.clone(),
        gone_ms: None,
        read,
    }
}

#[cfg(test)]
mod tests;
