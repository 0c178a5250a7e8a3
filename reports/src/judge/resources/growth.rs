//! `memory.growth`, `memory.growthPerOwnHour`, `memory.growthPerObject`, `memory.growthPerRequest`: whether memory
//! grows faster than its budget.

use units::{Bytes, Growth};

use crate::judge::rule::{Budget, Findings, Name, Record, Rule, Word};

pub(super) mod amount;
mod axis;
pub(super) mod decide;
mod fit;
mod parts;
mod settled;
mod signal;
#[cfg(test)]
mod tests;

pub(super) use axis::Axis;
use decide::{Decided, Limit};
pub(crate) use fit::{Fit, fits};

/// `memory.growth`.
pub(super) struct Growing;

impl Rule for Growing {
    const WORD: Option<Word> = Some(Word::Leak);

    fn judge(record: &Record, (): &(), limit: &Growth, findings: &mut Findings) {
        let limit = Limit { most: limit.bytes_per_hour as f64, text: limit.to_string(), axis: Axis::Hours };
        judge_growth(findings, Name::of::<Self>(), &limit, signal::judge(record, &limit));
    }
}

/// `memory.growthPerOwnHour`.
pub(super) struct PerOwnHour;

impl Rule for PerOwnHour {
    const DOC: &'static str = "How much memory may grow with each hour of the subject's own clock, which `clockRate` makes faster; without that, as `growth`.";
    const WORD: Option<Word> = Some(Word::Leak);

    fn judge(record: &Record, (): &(), limit: &Bytes, findings: &mut Findings) {
        let limit = Limit { most: limit.0 as f64, text: format!("{limit}/own hour"), axis: Axis::OwnHours };
        judge_growth(findings, Name::of::<Self>(), &limit, signal::judge(record, &limit));
    }
}

/// `memory.growthPerObject`.
pub(super) struct PerObject;

impl Rule for PerObject {
    const WORD: Option<Word> = Some(Word::Leak);

    fn judge(record: &Record, (): &(), limit: &Bytes, findings: &mut Findings) {
        let limit = Limit { most: limit.0 as f64, text: format!("{limit}/object"), axis: Axis::Objects };
        judge_growth(findings, Name::of::<Self>(), &limit, signal::judge(record, &limit));
    }
}

/// `memory.growthPerRequest`.
pub(super) struct PerRequest;

impl Rule for PerRequest {
    const WORD: Option<Word> = Some(Word::Leak);

    fn judge(record: &Record, (): &(), limit: &Bytes, findings: &mut Findings) {
        let limit = Limit { most: limit.0 as f64, text: format!("{limit}/request"), axis: Axis::Requests };
        judge_growth(findings, Name::of::<Self>(), &limit, signal::judge(record, &limit));
    }
}

/// Adds the finding of a decision.
pub(super) fn judge_growth(findings: &mut Findings, budget: impl Into<Budget>, limit: &Limit, decided: Decided) {
    let budget = budget.into();
    if let Some(needed_s) = decided.needed_s {
        findings.needed.push((budget.text.clone(), needed_s));
    }
    let found = findings.push(budget, decided.verdict, decided.observed, limit.text.clone(), decided.text);
    found.used(decided.upper.unwrap_or(f64::NAN), limit.most);
}
