//! One sentence that explains why a subject is behind.
//!
//! Owns the choice of the reason why a subject is behind. The first reason that applies is chosen: the subject died; it
//! lost versions, for which the commonest cause is named; it broke a budget; another subject is significantly better in
//! a figure.

use super::{Entrant, FIGURES, Row, Why};
use crate::causes;
use crate::judge::{Judgement, Verdict};
use crate::record::{EndReason, Record};
use crate::words::{count, first_sentence, millis};

/// Why the subject of a row is behind; none if nothing counts against it.
pub(super) fn why(entrant: &Entrant, rows: &[Row], at: usize) -> Option<Why> {
    let row = rows.get(at)?;
    if entrant.failure.is_some() {
        return Some(plain(row.reason.clone()));
    }
    let worst = entrant.runs.iter().max_by_key(|(_, judgement)| judgement.verdict)?;
    if let Some(sentence) = ended(&worst.0) {
        return Some(plain(sentence));
    }
    let (record, judgement) = worst;
    match judgement.verdict {
        Verdict::Fail => Some(lost(record).unwrap_or_else(|| broken(judgement))),
        Verdict::Inconclusive | Verdict::Invalid => Some(plain(judgement.reason.clone())),
        Verdict::Pass => behind(rows, at).map(plain),
    }
}

fn plain(sentence: String) -> Why {
    Why { sentence, remedy: None }
}

fn broken(judgement: &Judgement) -> Why {
    plain(judgement.reason.clone())
}

/// How the subject ended; none if it ran until the end.
fn ended(record: &Record) -> Option<String> {
    let end = record.end.as_ref()?;
    let last = |detail: &str| {
        let words = detail.lines().map(str::trim).rfind(|line| !line.is_empty());
        words.map_or_else(|| "it wrote nothing".to_owned(), |line| format!("its last words: {}", first_sentence(line)))
    };
    match &end.reason {
        EndReason::SubjectExited { status, detail } => {
            Some(format!("it ended by itself at {} with {status}; {}", millis(end.ended_ms), last(detail)))
        }
        EndReason::SubjectNotReady { detail, .. } => Some(format!("it was never ready: {}", first_sentence(detail))),
        EndReason::NeverAsked { detail } => Some(first_sentence(detail)),
        EndReason::WitnessSilent { detail } => {
            Some(format!("no observation came through its witness: {}", first_sentence(detail)))
        }
        EndReason::Completed
        | EndReason::Interrupted { .. }
        | EndReason::LoadLost { .. }
        | EndReason::HarnessError { .. } => None,
    }
}

/// The subject's losses, with their commonest cause.
fn lost(record: &Record) -> Option<Why> {
    let totals = record.totals();
    let told: Vec<String> = [
        (totals.missed, "missed"),
        (totals.ghost, "deletions never seen"),
        (totals.late + totals.late_ghost, "late"),
        (totals.regressed + totals.resurrected, "told backwards"),
        (totals.phantom, "made up"),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(number, what)| format!("{} {what}", count(number)))
    .collect();
    let summary = causes::summary(record);
    let group = summary.groups.iter().find(|group| !group.is_harmless())?;
    if told.is_empty() {
        return None;
    }
    let sentence = format!("{}: {}", told.join(", "), group.line());
    Some(Why { sentence, remedy: Some(group.cause.remedy().to_owned()) })
}

/// A figure in which another subject is significantly better.
fn behind(rows: &[Row], at: usize) -> Option<String> {
    let own = rows.get(at)?;
    let worse = FIGURES.iter().find_map(|figure| {
        let cell = own.figures.get(figure.key).filter(|cell| cell.rank.is_some_and(|rank| rank > 1))?;
        let best = rows
            .iter()
            .filter_map(|row| Some((row, row.figures.get(figure.key)?)))
            .filter(|(_, other)| other.rank == Some(1))
            .min_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
        Some((figure, cell, best))
    });
    let (figure, cell, (row, best)) = worse?;
    Some(format!(
        "it kept every limit; its {} is {}, that of {} {}",
        figure.name,
        figure.unit.words(cell.value),
        row.name,
        figure.unit.words(best.value)
    ))
}
