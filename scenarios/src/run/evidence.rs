//! Facts about the object of an anomaly, gathered while the control plane still has these facts.
//!
//! Owns the bounded history of writes and reports ([`Histories`]), of lists and watches ([`Follows`]) and of the
//! subject's writes ([`Efforts`]). Also stores facts about overdue versions until the ledger decides about these
//! versions, because the control plane soon forgets its streams. `reports::causes` draws the conclusions.

mod efforts;
mod follows;
mod histories;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use facts::{Observation, Revision, Uid};
use mock_faults::Fault;
use mock_kube::{Sending, Wanted};
use reports::record::{AnomalyRow, CommitEvent, Evidence, RequestRow, Step};

use efforts::Efforts;
use follows::Follows;
use histories::Histories;

use super::plane::{Mock, Plane};
use crate::clock::Clock;

/// Number of events of a watch stream that are shown before and after the event of the anomaly.
const WIRE_LINES: usize = 3;
/// Maximum number of overdue versions with stored facts, about 5 KiB each. Facts about versions above this number are
/// read when the ledger decides about these versions.
const KEPT_MAX: usize = 512;
/// Maximum share of the run's time for reading facts. For one version all stored traffic is read, which takes up to a
/// tenth of a second.
const SHARE_MAX: f64 = 0.02;
/// Time for reading facts that is available from the start.
const FIRST_MAX: Duration = Duration::from_millis(500);
/// Additional time for reading facts at the end of the run. If no time is left, an anomaly only has its own row, with
/// the times of write and observation.
const END_MAX: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Requested {
    follows: Follows,
    efforts: Efforts,
}

impl Requested {
    /// Records a request that was answered or has ended.
    pub(super) fn note(&mut self, row: &RequestRow) {
        self.follows.note(row);
        self.efforts.note(row);
    }
}

/// The sources of facts about the traffic.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    pub(super) plane: &'a Plane,
    pub(super) clock: &'a Clock,
    pub(super) faults: &'a [Fault],
    /// Whether the order of commits is the order of their revisions. If commits have another order, the traffic shows
    /// nothing about a single version.
    pub(super) ordered: bool,
}

impl Sources<'_> {
    /// How versions of one resource were sent to the subject, oldest first; empty if the control plane records no
    /// traffic.
    pub(super) fn sendings(&self, resource: &str, versions: &[CommitEvent]) -> Vec<Sending> {
        let (Some(mock), true) = (self.plane.mock(), self.ordered) else { return Vec::new() };
        let mut revisions: Vec<u64> = versions.iter().filter_map(|event| event.commit.revision.number()).collect();
        revisions.sort_unstable();
        let first_ms = versions.iter().map(|event| event.t_ms).min().unwrap_or(0);
        let since_us = if first_ms > 0 { epoch_us(mock, self.clock, first_ms) } else { 0 };
        mock.server.sendings(self.plane.subject(), resource, &revisions, since_us)
    }

    /// Converts a time of the mock into a time of the run.
    pub(super) fn at_ms(&self, at_us: u64) -> u64 {
        self.plane.mock().map_or(0, |mock| self.clock.at_ms(mock.epoch + Duration::from_micros(at_us)))
    }
}

/// The stored facts about overdue versions, and the histories of all objects.
#[derive(Default)]
pub(super) struct Dossiers {
    histories: Histories,
    kept: HashMap<(Uid, Revision), VersionFacts>,
    /// Time that the run has spent on reading facts so far.
    spent: Duration,
}

/// The facts about one version.
#[derive(Default)]
struct VersionFacts {
    delivery: Option<String>,
    wire: Vec<String>,
    evidence: Evidence,
}

/// The version to which the facts belong.
struct About<'a> {
    resource: &'a str,
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
    revision: &'a str,
    /// Time in ms from which facts about the version matter.
    from_ms: u64,
    until_ms: u64,
}

impl Dossiers {
    pub(super) fn committed(&mut self, event: &CommitEvent) {
        self.histories.committed(event);
    }

    pub(super) fn reported(&mut self, observation: &Observation) {
        self.histories.reported(observation);
    }

    /// Stores the facts about versions that became overdue, until the ledger decides about these versions.
    pub(super) fn overdue(&mut self, overdue: Vec<CommitEvent>, now_ms: u64, asked: &Requested, from: Sources<'_>) {
        for CommitEvent { t_ms, commit } in overdue {
            if self.kept.len() >= KEPT_MAX || !self.may_look(now_ms, false) {
                return;
            }
            let about = About {
                resource: &commit.resource,
                namespace: &commit.namespace,
                name: &commit.name,
                uid: commit.uid.as_str(),
                revision: commit.revision.as_str(),
                from_ms: t_ms,
                until_ms: now_ms,
            };
            let dossier = self.look(&about, asked, from);
            self.kept.insert((commit.uid, commit.revision), dossier);
        }
    }

    /// Adds the known facts to an anomaly. If the time for reading is used up, adds only stored facts.
    pub(super) fn fill(
        &mut self,
        row: &mut AnomalyRow,
        end: bool,
        until_ms: u64,
        asked: &Requested,
        from: Sources<'_>,
    ) {
        let before = self.kept.remove(&(row.uid.as_str().into(), row.revision.as_str().into()));
        if !self.may_look(until_ms, end) {
            if let Some(mut before) = before {
                before.evidence.bound(&row.revision);
                (row.delivery, row.wire, row.evidence) = (before.delivery, before.wire, Some(before.evidence));
            }
            return;
        }
        let begin_ms = row.committed_ms.or_else(|| self.histories.begin_ms(&row.uid, &row.revision));
        let about = About {
            resource: &row.resource,
            namespace: &row.namespace,
            name: &row.name,
            uid: &row.uid,
            revision: &row.revision,
            from_ms: begin_ms.or(row.observed_ms).unwrap_or(row.t_ms),
            until_ms,
        };
        let mut dossier = self.look(&about, asked, from);
        if let Some(before) = before {
            dossier.add(before);
        }
        dossier.evidence.bound(&row.revision);
        (row.delivery, row.wire, row.evidence) = (dossier.delivery, dossier.wire, Some(dossier.evidence));
    }

    /// Whether time is left for reading facts, so that many anomalies cannot stop the harness.
    fn may_look(&self, now_ms: u64, end: bool) -> bool {
        let share = Duration::from_millis(now_ms).mul_f64(SHARE_MAX);
        self.spent < FIRST_MAX + share + if end { END_MAX } else { Duration::ZERO }
    }

    fn look(&mut self, about: &About<'_>, asked: &Requested, from: Sources<'_>) -> VersionFacts {
        let began = Instant::now();
        let dossier = self.gather(about, asked, from);
        self.spent += began.elapsed();
        dossier
    }

    fn gather(&self, about: &About<'_>, asked: &Requested, from: Sources<'_>) -> VersionFacts {
        let mut steps = self.histories.steps(about.uid, about.revision, about.until_ms);
        let mut dossier = VersionFacts::default();
        let mut left_out = 0;
        if let (Some(mock), true) = (from.plane.mock(), from.ordered) {
            let subject = from.plane.subject();
            left_out = asked.follows.add_to(&mut steps, about);
            asked.efforts.add_to(&mut steps, about);
            let at_ms = |us: u64| from.clock.at_ms(mock.epoch + Duration::from_micros(us));
            let since_us = since_us(mock, from.clock, &steps);
            for sending in mock.server.sendings(subject, about.resource, &revisions(&steps, about.revision), since_us) {
                steps.push(step(sending, at_ms(sending.at_us), from.faults));
            }
            if let Ok(revision) = about.revision.parse() {
                dossier.delivery = Some(delivery(&steps, about.revision));
                let at_us = epoch_us(mock, from.clock, about.from_ms);
                let wanted = Wanted { revision, name: Some(about.name), at_us };
                let lines = mock.server.wire(subject, &wanted, WIRE_LINES).into_iter();
                let lines = lines.map(|line| format!("{} ms watch {}: {}", at_ms(line.at_us), line.watch, line.text));
                dossier.wire = lines.collect();
            }
            dossier.evidence.wire = true;
        }
        steps.retain(|step| step.t_ms() <= about.until_ms);
        let read_on = self.histories.read_on(about.resource, about.revision);
        dossier.evidence = Evidence { until_ms: about.until_ms, steps, left_out, read_on, ..dossier.evidence };
        dossier
    }
}

impl VersionFacts {
    /// Adds facts that were stored earlier, because the sources may have forgotten some of them.
    fn add(&mut self, before: Self) {
        if !before.wire.is_empty() {
            self.wire = before.wire;
        }
        let known = |dossier: &Self| dossier.delivery.as_deref().is_some_and(|text| text != NOT_SENT);
        if !known(self) {
            self.delivery = before.delivery;
        }
        for step in before.evidence.steps {
            if !self.evidence.steps.iter().any(|known| tells_of(known, &step)) {
                self.evidence.steps.push(step);
            }
        }
        self.evidence.left_out = self.evidence.left_out.max(before.evidence.left_out);
    }
}

/// Whether `later` replaces `step` in a history: both entries are equal, or both describe the same watch and `later`
/// has more facts.
fn tells_of(later: &Step, step: &Step) -> bool {
    match (later, step) {
        (Step::Watched { watch: Some(one), .. }, Step::Watched { watch: Some(other), .. }) => one == other,
        // The same series of writes, stored when it was shorter.
        (
            Step::Wrote { t_ms: last_ms, verb: one, object: of, status: came_to, message: why, .. },
            Step::Wrote { t_ms, verb, object, status, message, .. },
        ) => last_ms >= t_ms && (one, of, came_to, why) == (verb, object, status, message),
        _ => later == step,
    }
}

const NOT_SENT: &str = "not sent on any watch";

/// A text about the last event in a version's delivery; "sent" takes precedence over "withheld".
fn delivery(steps: &[Step], revision: &str) -> String {
    let sent = steps.iter().rev().find_map(|step| match step {
        Step::Sent { t_ms, revision: of, watch } if of == revision => {
            Some(format!("sent on watch {watch} at {t_ms} ms"))
        }
        _ => None,
    });
    let withheld = || {
        steps.iter().rev().find_map(|step| match step {
            Step::Withheld { revision: of, fault, .. } if of == revision => {
                Some(format!("withheld by the fault {fault}"))
            }
            _ => None,
        })
    };
    sent.or_else(withheld).unwrap_or_else(|| NOT_SENT.to_owned())
}

fn step(sending: Sending, t_ms: u64, faults: &[Fault]) -> Step {
    let Sending { revision, watch, withheld_by, .. } = sending;
    let revision = revision.to_string();
    match withheld_by {
        None => Step::Sent { t_ms, revision, watch },
        Some(id) => {
            let place = id.0 as usize;
            let fault = match faults.get(place).map(|fault| fault.name) {
                // The number is only needed if several faults have this name.
                Some(name) if faults.iter().filter(|fault| fault.name == name).count() > 1 => {
                    format!("{} ({} of the scenario)", name.as_str(), place + 1)
                }
                Some(name) => name.as_str().to_owned(),
                None => "of the script".to_owned(),
            };
            Step::Withheld { t_ms, revision, watch, fault }
        }
    }
}

/// The revisions in the entries of a history and the revision `own`, ascending.
fn revisions(steps: &[Step], own: &str) -> Vec<u64> {
    let of = |step: &Step| match step {
        Step::Committed { revision, .. } | Step::Reported { revision, .. } => revision.parse().ok(),
        _ => None,
    };
    let mut revisions: Vec<u64> = steps.iter().filter_map(of).chain(own.parse().ok()).collect();
    revisions.sort_unstable();
    revisions.dedup();
    revisions
}

/// The earliest time at which a version in the entries of a history can have been sent: the time of the first commit.
/// Zero without a commit, or if the first commit may be older than the run.
fn since_us(mock: &Mock, clock: &Clock, steps: &[Step]) -> u64 {
    let first_ms = steps.iter().filter(|step| matches!(step, Step::Committed { .. })).map(Step::t_ms).min();
    first_ms.filter(|t_ms| *t_ms > 0).map_or(0, |t_ms| epoch_us(mock, clock, t_ms))
}

/// Converts a time of the run into a time of the mock.
fn epoch_us(mock: &Mock, clock: &Clock, t_ms: u64) -> u64 {
    let since = |instant: Instant| instant.saturating_duration_since(mock.epoch).as_micros();
    clock.instant(t_ms).map_or(0, |instant| u64::try_from(since(instant)).unwrap_or(u64::MAX))
}
