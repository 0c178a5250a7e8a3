//! `finalizers.stuck`: deleted objects that still exist at the end of the run because of a finalizer of the subject.
//!
//! A finalizer counts only if the subject added it. A finalizer in the scenario's own template may belong to any
//! program: it is reported and not judged. An object does not count if its deletion was requested less than the
//! deadline before the end. An object does not count either if its writes were refused so often that the subject may
//! still wait before its next try; the finding says so.

use std::collections::BTreeSet;

use facts::{BACK_OFF_MAX_MS, back_off_ms, longest_back_off_ms};

use crate::budgets::Events;
use crate::judge::rule::{Findings, Name, Rule, Section, Verdict, Word};
use crate::record::{Hanging, PutOn, Record, Refusals, StuckFinalizer};
use crate::words::{count, counted, millis};

/// The shortest default deadline of an observation, in milliseconds, for a record without intervals.
const DEADLINE_MIN_MS: u64 = 5000;

/// If at most this share of the objects with refused writes hang, the subject repeats refused writes: one in so many.
const FEW: u64 = 20;
pub(super) struct Stuck;

impl Rule for Stuck {
    const WORD: Option<Word> = Some(Word::Stuck);
    const DEFAULT: Option<u64> = Some(0);

    fn judge(record: &Record, hanging: &&Hanging, limit: &u64, findings: &mut Findings) {
        let deadline_ms = record.intervals.last().map_or(DEADLINE_MIN_MS, |row| row.deadline_ms);
        let (waiting, charged): (Vec<StuckFinalizer>, Vec<StuckFinalizer>) =
            hanging.held.iter().cloned().partition(|row| row.by == PutOn::Subject && waits(row, hanging.read_ms));
        let hanging = &Hanging { held: charged, ..(*hanging).clone() };
        let (verdict, stuck, text) = judge(hanging, deadline_ms, *limit);
        waiting.first().into_iter().for_each(|first| findings.note(wait_text(&waiting, first)));
        // A subject that missed the deletion cannot remove its finalizer. If at least as many versions were missed,
        // that is one failure and not two, unless the scenario sets this budget.
        let is_asked = record.manifest.budgets.finalizers.as_ref().is_some_and(|budget| budget.stuck.is_some());
        let missed = findings.all_broken().any(|name| name.section == Events::KEY && name.key == "missed");
        if verdict == Verdict::Fail && !is_asked && missed && record.totals().missed >= stuck {
            findings.note(format!("{text} The missed versions, at least as many, may be the reason."));
            return;
        }
        findings
            .push(Name::of::<Self>(), verdict, counted(stuck, "object"), count(*limit), text)
            .used(stuck as f64, *limit as f64);
    }
}

/// Whether a client with client-go's back-off may still wait for its next try.
fn waits(row: &StuckFinalizer, read_ms: u64) -> bool {
    row.refusals.as_ref().is_some_and(|refusals| {
        let known = longest_back_off_ms(refusals.times);
        read_ms.saturating_sub(refusals.last_ms) < known.max(doubled_ms(refusals).unwrap_or(0))
    })
}

/// The longest wait that doubled pauses suggest. A try starts up to a quarter later, because it waits in the queue.
fn doubled_ms(refusals: &Refusals) -> Option<u64> {
    refusals.wait_ms.map(|wait| wait.saturating_add(wait / 4).min(BACK_OFF_MAX_MS))
}

fn wait_text(waiting: &[StuckFinalizer], first: &StuckFinalizer) -> String {
    let refusals = first.refusals.clone().unwrap_or_default();
    let known = back_off_ms(refusals.times);
    let wait = match doubled_ms(&refusals).filter(|wait| *wait > known) {
        Some(wait) => format!("{} (its pauses doubled before)", millis(wait)),
        None => millis(known),
    };
    format!(
        "{} in deletion with a finalizer of the subject, which is not charged: {} {} was refused (status {}) {} in a row, last at {}, and a controller \
         on client-go may wait {} before it tries again.",
        if waiting.len() == 1 { "1 object hangs".to_owned() } else { format!("{} objects hang", waiting.len()) },
        first.resource,
        first.object,
        refusals.status,
        counted(refusals.times, "time"),
        millis(refusals.last_ms),
        wait
    )
}

fn judge(hanging: &Hanging, deadline_ms: u64, limit: u64) -> (Verdict, u64, String) {
    let overdue = |by: PutOn| hanging.held.iter().filter(move |row| row.by == by && row.for_ms > deadline_ms);
    let objects = |rows: &[&StuckFinalizer]| {
        rows.iter().map(|row| (&row.resource, &row.object)).collect::<BTreeSet<_>>().len() as u64
    };
    let (own, told): (Vec<&StuckFinalizer>, Vec<&StuckFinalizer>) =
        (overdue(PutOn::Subject).collect(), overdue(PutOn::Scenario).collect());
    let stuck = objects(&own);
    if let Some(first) = own.first().filter(|_| stuck > limit) {
        let hang = if stuck == 1 { "hangs" } else { "hang" };
        let at_least = if hanging.more > 0 { "at least " } else { "" };
        let text = format!(
            "{at_least}{} {hang} in deletion with a finalizer of the subject: {} {} is held by `{}`{} since {} (younger deletions than {} \
             do not count).",
            counted(stuck, "object"),
            first.resource,
            first.object,
            first.finalizer,
            manager(first),
            millis(first.for_ms),
            millis(deadline_ms)
        );
        // A controller that failed at each earlier try, perhaps without a write, waits longer than a run of a minute.
        let is_refused = |row: &&StuckFinalizer| row.refusals.is_some();
        if own.iter().all(is_refused) && stuck.saturating_mul(FEW) <= hanging.refused {
            let text = format!(
                "{text} Its last write was refused, as were writes of {} other objects, which do not hang. After further failures a controller on client-go \
                 waits up to {}; a longer drain decides.",
                count(hanging.refused - stuck),
                millis(BACK_OFF_MAX_MS)
            );
            return (Verdict::Inconclusive, stuck, text);
        }
        return (Verdict::Fail, stuck, text);
    }
    if let Some(first) = told.first() {
        let held = objects(&told);
        let hang = if held == 1 { "hangs" } else { "hang" };
        let text = format!(
            "{} {hang} in deletion with the finalizer `{}` from the scenario's own template ({} {} since {}). If it is the subject's \
             finalizer, the subject never removed it; otherwise remove it from the template.",
            counted(held, "object"),
            first.finalizer,
            first.resource,
            first.object,
            millis(first.for_ms)
        );
        return (Verdict::Inconclusive, stuck, text);
    }
    let young = hanging.held.iter().filter(|row| row.by != PutOn::ControlPlane && row.for_ms <= deadline_ms).count();
    let text = match (stuck, young) {
        (0, 0) => {
            format!("none of {} hangs in deletion with a finalizer of the subject.", counted(hanging.objects, "object"))
        }
        (0, young) => format!(
            "no object has been in deletion for longer than {}; {} deleted later than that.",
            millis(deadline_ms),
            if young == 1 { "one was".to_owned() } else { format!("{} were", count(young as u64)) }
        ),
        (stuck, _) => {
            format!("{} in deletion with a finalizer of the subject, at most {} allowed.", count(stuck), count(limit))
        }
    };
    (Verdict::Pass, stuck, text)
}

fn manager(row: &StuckFinalizer) -> String {
    row.manager.as_ref().map(|manager| format!(" (put on by `{manager}`)")).unwrap_or_default()
}
