//! Judges whether planned faults really had an effect: a fault without any effect proves nothing.
//!
//! Owns the conditions `validity.fault.*` and `validity.faults`. One finding reports all faults that were never hit. A
//! fault that needs requests which the subject never sends does not count, if other faults were hit.

use std::collections::{BTreeMap, BTreeSet};

use super::condition;
use crate::judge::rule::{Findings, Name, Verdict, Word};
use crate::record::{FaultEvent, FaultRow, Need, PlannedFault, Record, RequestRow, Verb};
use crate::words::{count, counted, percent};

/// The condition of validity for one fault, with the fault's identifier in its name.
pub(in crate::judge) const FAULT: Name = Name {
    // The probe after a fault was lost.
    word: Some(Word::Missed),
    ..condition("fault")
};
/// The condition of validity for all faults that were never hit.
const FAULTS: Name = condition("faults");
/// The fraction of the drawn (random) faults of one name that must be hit; if fewer are hit, each fault without a hit
/// makes the run undecided. The times of drawn faults are random, and a fault may come before the subject has recovered
/// from the previous one.
const LOT_HIT_LEAST: f64 = 0.75;
/// Maximum number of faults that the report lists one by one. If a run has more faults, those that were hit are grouped
/// by name.
const FAULTS_EACH: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    /// The fault began and found no request, stream or connection to act on.
    NothingToActOn,
    /// The event for which the fault waits never happened.
    NeverBegan,
}

impl Why {
    fn words(self) -> &'static str {
        match self {
            Self::NothingToActOn => {
                "while it was active, the subject sent no request and held no watch that it applies to"
            }
            Self::NeverBegan => "its trigger never happened",
        }
    }
}

pub(super) fn judge(record: &Record, exited: bool, findings: &mut Findings) {
    let rows = record.fault_rows();
    let many = record.manifest.faults.len() > FAULTS_EACH;
    let lots = lots(record);
    let mut survived: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let (mut missed, mut forgiven, mut alien) = (Vec::new(), Vec::new(), Vec::new());
    for fault in &record.manifest.faults {
        let rows = rows.get(fault.id.as_str()).map_or(&[][..], Vec::as_slice);
        let ended = rows.iter().any(|row| row.event == FaultEvent::Ended);
        // The subject ended before the fault could begin.
        if exited && !ended {
            continue;
        }
        if never_came(record, fault, rows) {
            continue;
        }
        let hits = rows.iter().map(|row| row.hits).max().unwrap_or(0);
        if hits == 0 {
            let started = rows.iter().any(|row| row.event == FaultEvent::Started);
            let lot = lots.get(fault.name.as_str()).filter(|_| fault.drawn);
            match () {
                () if lot.is_some_and(DrawnFaults::is_hit_enough) => forgiven.push(fault),
                () if does_not_concern(record, fault) => alien.push(fault),
                () if started => missed.push((fault, Why::NothingToActOn)),
                () => missed.push((fault, Why::NeverBegan)),
            }
            continue;
        }
        let (verdict, text) = of_hit(record, fault, rows, hits);
        // If there are many faults, successes are listed once for each name.
        if many && verdict == Verdict::Pass {
            let (faults, all) = survived.entry(&fault.name).or_default();
            *faults += 1;
            *all += hits;
            continue;
        }
        let observed =
            if verdict == Verdict::Inconclusive { "not healthy before".to_owned() } else { counted(hits, "hit") };
        findings.push(FAULT.below(&fault.id), verdict, observed, "at least 1", text);
    }
    for (name, (faults, hits)) in survived {
        let times = counted(faults, "time");
        let (all, hit) = lots.get(name).map_or((faults, faults), |lot| (lot.struck.max(faults), lot.hit));
        let hit = if all == hit { "each time".to_owned() } else { format!("{} times", count(hit)) };
        let struck = if all == faults { times } else { counted(all, "time") };
        let text = format!("the fault {name} struck {struck} and was hit {hit} ({} in all).", counted(hits, "hit"));
        findings.push(FAULT.below(name), Verdict::Pass, counted(hits, "hit"), "at least 1 each", text);
    }
    tell_never_hit(record, findings, &missed, &alien);
    if !forgiven.is_empty() {
        findings.note(format!(
            "{} of the drawn faults hit nothing ({}); at least {} of each name that struck were hit.",
            counted(forgiven.len() as u64, "fault"),
            by_name(&forgiven),
            percent(LOT_HIT_LEAST)
        ));
    }
}

fn tell_never_hit(record: &Record, findings: &mut Findings, missed: &[(&PlannedFault, Why)], alien: &[&PlannedFault]) {
    let planned = record.manifest.faults.len() as u64;
    // If no fault was hit at all, nothing was proved, whatever the reason.
    let any_hit = record.faults.iter().any(|row| row.hits > 0);
    if !alien.is_empty() {
        let text = format!(
            "{} of {} cannot affect this subject, which sends no such request: {}",
            count(alien.len() as u64),
            counted(planned, "fault"),
            by_name(alien)
        );
        let instead = instead_of_all(record, alien.iter().copied());
        if any_hit {
            findings.note(format!("{text}. They leave no budget undecided.{instead}"));
        } else {
            let text =
                format!("{text}. No fault was hit, so the run does not show how the subject handles any.{instead}");
            findings.push(FAULTS, Verdict::Inconclusive, "0 hits", "at least 1 each", text);
        }
    }
    let instead = instead_of_all(record, missed.iter().map(|(fault, _)| *fault));
    let text = match missed {
        [] => return,
        [(fault, why)] => format!(
            "the fault {} was never hit: {}. The run does not show how the subject handles it.{instead}",
            fault.detail,
            why.words()
        ),
        _ => {
            let of =
                |why: Why| missed.iter().filter(|(_, one)| *one == why).map(|(fault, _)| *fault).collect::<Vec<_>>();
            let parts = [Why::NothingToActOn, Why::NeverBegan].map(|why| (why, of(why)));
            let parts = parts.iter().filter(|(_, faults)| !faults.is_empty());
            let parts: Vec<String> =
                parts.map(|(why, faults)| format!("{} ({})", by_name(faults), why.words())).collect();
            format!(
                "{} of {} were never hit: {}. The run does not show how the subject handles them.{instead}",
                count(missed.len() as u64),
                counted(planned, "fault"),
                parts.join(", and ")
            )
        }
    };
    let observed = format!("{} not hit", count(missed.len() as u64));
    findings.push(FAULTS, Verdict::Inconclusive, observed, "each at least once", text);
}

fn by_name(faults: &[&PlannedFault]) -> String {
    let mut names: BTreeMap<&str, u64> = BTreeMap::new();
    for fault in faults {
        *names.entry(&fault.name).or_default() += 1;
    }
    let one =
        |(name, number): (&str, u64)| if number == 1 { name.to_owned() } else { format!("{name} {number} times") };
    names.into_iter().map(one).collect::<Vec<_>>().join(", ")
}

/// For faults that wait for another kind of write than the subject uses: sentences about the subject's kind of write,
/// each with a space before it.
fn instead_of_all<'a>(record: &Record, faults: impl Iterator<Item = &'a PlannedFault>) -> String {
    let sentences: BTreeSet<String> = faults.filter_map(|fault| instead_of(record, fault)).collect();
    sentences.into_iter().flat_map(|sentence| [" ".to_owned(), sentence]).collect()
}

/// A text for a program that patches while the fault acts on updates, or the reverse; none for all other programs.
fn instead_of(record: &Record, fault: &PlannedFault) -> Option<String> {
    let (wanted, other, words) = match fault.needs.as_slice() {
        needs if needs.contains(&Need::Update) => (Verb::Update, Verb::Patch, ["update", "patch", "patches"]),
        needs if needs.contains(&Need::Patch) => (Verb::Patch, Verb::Update, ["patch", "update", "updates"]),
        _ => return None,
    };
    let sent =
        |verb: Verb| record.requests.rows.iter().filter(|row| is_about(fault, row) && row.verb == verb).count() as u64;
    let (wanted, other) = (sent(wanted), sent(other));
    let [from, to, many] = words;
    (wanted == 0 && other > 0 && record.requests.told).then(|| {
        format!(
            "{} waits for `on: {from}`, and the subject sent none and {} {}: write `on: {to}`.",
            fault.name,
            count(other),
            if other == 1 { to } else { many }
        )
    })
}

/// Whether a request is for the resource that the fault needs.
fn is_about(fault: &PlannedFault, row: &RequestRow) -> bool {
    let plural = |full: &str| full.split_once('.').map_or(full, |(plural, _)| plural).to_owned();
    fault.needs_resource.as_ref().is_none_or(|wanted| *wanted == row.resource || *wanted == plural(&row.resource))
}

/// Whether the fault needs requests that the subject never sent from its first request to its last.
fn does_not_concern(record: &Record, fault: &PlannedFault) -> bool {
    // Only complete records can show that a request was never sent.
    if fault.needs.is_empty() || !record.requests.told || !record.requests.summaries.is_empty() {
        return false;
    }
    let about = |row: &&RequestRow| is_about(fault, row);
    !record.requests.rows.iter().filter(about).any(|row| fault.needs.iter().all(|need| meets(*need, row)))
}

fn meets(need: Need, row: &RequestRow) -> bool {
    match need {
        Need::List => row.verb == Verb::List,
        Need::Watch => row.verb == Verb::Watch,
        Need::Get => row.verb == Verb::Get,
        Need::Create => row.verb == Verb::Create,
        Need::Update => row.verb == Verb::Update,
        Need::Patch => row.verb == Verb::Patch,
        Need::Delete => matches!(row.verb, Verb::Delete | Verb::DeleteCollection),
        Need::Bookmarks => row.bookmarks,
        Need::InitialEvents => row.send_initial_events == Some(true),
    }
}

/// How often the drawn faults of one name began, and how many of them found a target.
#[derive(Debug, Default)]
struct DrawnFaults {
    struck: u64,
    hit: u64,
}

impl DrawnFaults {
    fn is_hit_enough(&self) -> bool {
        self.hit as f64 >= LOT_HIT_LEAST * self.struck as f64
    }
}

fn lots(record: &Record) -> BTreeMap<&str, DrawnFaults> {
    let hit = hit(record);
    let began = record.faults.iter().filter(|row| row.event == FaultEvent::Started);
    let began: BTreeSet<&str> = began.map(|row| row.id.as_str()).collect();
    let mut lots: BTreeMap<&str, DrawnFaults> = BTreeMap::new();
    for fault in record.manifest.faults.iter().filter(|fault| fault.drawn && began.contains(fault.id.as_str())) {
        let lot = lots.entry(&fault.name).or_default();
        lot.struck += 1;
        lot.hit += u64::from(hit.contains(fault.id.as_str()));
    }
    lots
}

/// Whether the run ended before the fault's time. In that case the subject is not to blame that the fault was never
/// hit.
fn never_came(record: &Record, fault: &PlannedFault, rows: &[&FaultRow]) -> bool {
    let begun = rows.iter().any(|row| row.event != FaultEvent::Planned);
    !begun && fault.at_ms > record.length_ms()
}

/// The planned faults that had no effect, except faults whose time came after the end of the run.
pub(in crate::judge) fn never_hit(record: &Record) -> Vec<&PlannedFault> {
    let (hit, rows) = (hit(record), record.fault_rows());
    let came =
        |fault: &&PlannedFault| !never_came(record, fault, rows.get(fault.id.as_str()).map_or(&[][..], Vec::as_slice));
    record.manifest.faults.iter().filter(|fault| !hit.contains(fault.id.as_str())).filter(came).collect()
}

pub(super) fn hit(record: &Record) -> BTreeSet<&str> {
    record.faults.iter().filter(|row| row.hits > 0).map(|row| row.id.as_str()).collect()
}

fn of_hit(record: &Record, fault: &PlannedFault, rows: &[&FaultRow], hits: u64) -> (Verdict, String) {
    let unhealthy = |event: FaultEvent| rows.iter().find(|row| row.event == event && row.ok == Some(false)).copied();
    let says = |row: &FaultRow| row.detail.as_ref().map_or_else(String::new, |detail| format!(": {detail}"));
    if let Some(row) = unhealthy(FaultEvent::CanaryBefore) {
        let text = format!(
            "the probe before the fault {} was not healthy{}, so the run does not show the fault's effect.",
            fault.name,
            says(row)
        );
        (Verdict::Inconclusive, text)
    } else if let Some(row) = unhealthy(FaultEvent::CanaryAfter) {
        // Either the subject lost the probe, and then it also lost events and the judge of events reports that, or it
        // saw the probe later.
        let verdict = if lost(record) { Verdict::Fail } else { Verdict::Pass };
        (
            verdict,
            format!("the fault {} was hit, and the probe after it was not observed in time{}.", fault.name, says(row)),
        )
    } else {
        (Verdict::Pass, format!("the fault {} was hit ({}).", fault.name, counted(hits, "time")))
    }
}

/// Whether the subject missed a version or a deletion until the end of the run.
fn lost(record: &Record) -> bool {
    let counts = record.totals();
    counts.missed + counts.ghost > 0
}
