//! What is known of an anomaly's object, gathered when there is something to know.
//!
//! Owns the bounded memory of what was written and reported ([`Histories`]), of what was asked ([`Follows`]) and of what the subject wrote
//! ([`Efforts`]), and what was gathered of versions that became overdue: until they are decided, which may be at the end, the control plane
//! has forgotten their stream. It concludes nothing; that is `reports::causes`.

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

/// Stream lines shown before and after an anomaly's own.
const WIRE_LINES: usize = 3;
/// Overdue versions of which something is kept, of about 5 KiB each; later ones are looked into when they are decided.
const KEPT_MAX: usize = 512;
/// Looking into one version reads all that is kept of the wire, which takes up to a tenth of a second. While the run goes on it may take
/// this share of its time, …
const SHARE_MAX: f64 = 0.02;
/// … and this much at the beginning, …
const FIRST_MAX: Duration = Duration::from_millis(500);
/// … and at the end this much more. Of the versions that are left over the row itself is known, with when it was written and observed.
const END_MAX: Duration = Duration::from_secs(5);

/// What the subject asked lately.
#[derive(Debug, Default)]
pub(super) struct Requested {
    follows: Follows,
    efforts: Efforts,
}

impl Requested {
    /// Notes a request that was answered or ended.
    pub(super) fn note(&mut self, row: &RequestRow) {
        self.follows.note(row);
        self.efforts.note(row);
    }
}

/// Where facts about the wire come from.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    pub(super) plane: &'a Plane,
    pub(super) clock: &'a Clock,
    pub(super) faults: &'a [Fault],
    /// The order of commits is that of their revisions; where it is not, the wire tells nothing of one version.
    pub(super) ordered: bool,
}

impl Sources<'_> {
    /// What happened on the wire to versions of one resource, oldest first; nothing where the control plane does not tell.
    pub(super) fn sendings(&self, resource: &str, versions: &[CommitEvent]) -> Vec<Sending> {
        let (Some(mock), true) = (self.plane.mock(), self.ordered) else { return Vec::new() };
        let mut revisions: Vec<u64> = versions.iter().filter_map(|event| event.commit.revision.number()).collect();
        revisions.sort_unstable();
        let first_ms = versions.iter().map(|event| event.t_ms).min().unwrap_or(0);
        let since_us = if first_ms > 0 { epoch_us(mock, self.clock, first_ms) } else { 0 };
        mock.server.sendings(self.plane.subject(), resource, &revisions, since_us)
    }

    /// A time of the mock as the run tells it.
    pub(super) fn at_ms(&self, at_us: u64) -> u64 {
        self.plane.mock().map_or(0, |mock| self.clock.at_ms(mock.epoch + Duration::from_micros(at_us)))
    }
}

/// What was gathered of overdue versions, and of the histories of all objects what is new.
#[derive(Default)]
pub(super) struct Dossiers {
    histories: Histories,
    kept: HashMap<(Uid, Revision), Dossier>,
    /// What looking into versions took so far.
    spent: Duration,
}

/// What is known of one version.
#[derive(Default)]
struct Dossier {
    delivery: Option<String>,
    wire: Vec<String>,
    evidence: Evidence,
}

/// The version that is asked about.
struct About<'a> {
    resource: &'a str,
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
    revision: &'a str,
    /// When its story begins.
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

    /// Versions became overdue: what is known of them is kept until they are decided.
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

    /// Adds to an anomaly what is known of it; of so many that time is over only what was gathered before, if anything.
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

    /// Whether there is time left: the harness must not stand still because there is so much to tell.
    fn may_look(&self, now_ms: u64, end: bool) -> bool {
        let share = Duration::from_millis(now_ms).mul_f64(SHARE_MAX);
        self.spent < FIRST_MAX + share + if end { END_MAX } else { Duration::ZERO }
    }

    fn look(&mut self, about: &About<'_>, asked: &Requested, from: Sources<'_>) -> Dossier {
        let began = Instant::now();
        let dossier = self.gather(about, asked, from);
        self.spent += began.elapsed();
        dossier
    }

    fn gather(&self, about: &About<'_>, asked: &Requested, from: Sources<'_>) -> Dossier {
        let mut steps = self.histories.steps(about.uid, about.revision, about.until_ms);
        let mut dossier = Dossier::default();
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

impl Dossier {
    /// What was known before: the lines of then are those round the moment, and what was forgotten since is in it.
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

/// Whether a step that was read later makes another one needless: it is the same, or the same watch of which more is known now.
fn tells_of(later: &Step, step: &Step) -> bool {
    match (later, step) {
        (Step::Watched { watch: Some(one), .. }, Step::Watched { watch: Some(other), .. }) => one == other,
        // The same writes, of which there were fewer then.
        (
            Step::Wrote { t_ms: last_ms, verb: one, object: of, status: came_to, message: why, .. },
            Step::Wrote { t_ms, verb, object, status, message, .. },
        ) => last_ms >= t_ms && (one, of, came_to, why) == (verb, object, status, message),
        _ => later == step,
    }
}

const NOT_SENT: &str = "not sent on any watch";

/// The last thing that happened to a version on the wire, for people; being sent beats being withheld.
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
                // Which one it was has to be said only where there are several.
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

/// The versions that the steps speak of and the one that is asked about, ascending.
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

/// Before the first of the steps nothing of them was sent. What is at zero may have been long before.
fn since_us(mock: &Mock, clock: &Clock, steps: &[Step]) -> u64 {
    let first_ms = steps.iter().filter(|step| matches!(step, Step::Committed { .. })).map(Step::t_ms).min();
    first_ms.filter(|t_ms| *t_ms > 0).map_or(0, |t_ms| epoch_us(mock, clock, t_ms))
}

/// A time of the run as the mock tells it.
fn epoch_us(mock: &Mock, clock: &Clock, t_ms: u64) -> u64 {
    let since = |instant: Instant| instant.saturating_duration_since(mock.epoch).as_micros();
    clock.instant(t_ms).map_or(0, |instant| u64::try_from(since(instant)).unwrap_or(u64::MAX))
}
