//! The judge of the registry: the subject's requests to the registry, and refused reviews while the registry was
//! faulty.
//!
//! Owns the budgets `registry.*`.

use units::Span;

use super::rule::{Name, Section, section};
use super::{Findings, Verdict};
use crate::budgets::Registry;
use crate::record::{Record, RegistryRow};
use crate::words::count;

mod requests;
mod staleness;
mod unavailable;

section! {
    Registry as "registry", judge "registry", facts<'a> Vec<&'a RegistryRow>;
    requests "requests": u64 = requests::Requests,
    requests_per_image "requestsPerImage": u64 = requests::PerImage,
    unavailable "unavailable": u64 = unavailable::Unavailable,
    staleness "staleness": Span = staleness::Staleness,
}

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let Some(budget) = &record.manifest.budgets.registry else { return };
    let rows = record.intervals.iter().filter_map(|row| row.registry.as_ref()).collect();
    budget.judge_each(record, &rows, findings);
}

fn push(findings: &mut Findings, name: Name, observed: u64, limit: u64, decided: bool, text: &str) {
    let (verdict, said) = match () {
        () if observed > limit => (Verdict::Fail, format!("over the limit of {}", count(limit))),
        () if !decided => (Verdict::Inconclusive, "so there was nothing to judge".to_owned()),
        () => (Verdict::Pass, format!("within the limit of {}", count(limit))),
    };
    findings.push(name, verdict, count(observed), count(limit), format!("{text}, {said}."));
}
