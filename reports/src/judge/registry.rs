//! The judge of the registry: what it was asked, and what was refused because it was sick.
//!
//! Owns `registry.*` but for `staleness`, which decides what a wrong answer is and is judged as one.

use super::{Findings, Verdict};
use crate::record::{AdmissionRow, Record, RegistryRow};
use crate::words::{count, counted};

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let Some(budget) = &record.manifest.budgets.registry else { return };
    let rows: Vec<&RegistryRow> = record.intervals.iter().filter_map(|row| row.registry.as_ref()).collect();
    let requests: u64 = rows.iter().map(|row| row.requests).sum();
    let tags = rows.iter().map(|row| row.tags_total).max().unwrap_or(0);
    if let Some(limit) = budget.requests {
        let text = format!("the registry was asked {} about {}", counted(requests, "time"), counted(tags, "tag"));
        push(findings, "registry.requests", requests, limit, requests > 0, &text);
    }
    if let Some(limit) = budget.requests_per_image {
        let most = rows.iter().map(|row| row.most_of_one_tag).max().unwrap_or(0);
        let text = format!("of {} the registry was asked for one {}", counted(tags, "tag"), counted(most, "time"));
        push(findings, "registry.requestsPerImage", most, limit, tags > 0, &text);
    }
    if let Some(limit) = budget.unavailable {
        let rows: Vec<&AdmissionRow> = record.intervals.iter().filter_map(|row| row.admission.as_ref()).collect();
        let sum = |field: fn(&AdmissionRow) -> u64| rows.iter().map(|row| field(row)).sum::<u64>();
        let (refused, answers) = (sum(|row| row.unavailable), sum(|row| row.allowed + row.denied));
        let text =
            format!("of {} {} refused only because the registry was sick", counted(answers, "answer"), count(refused));
        push(findings, "registry.unavailable", refused, limit, answers > 0, &text);
    }
}

fn push(findings: &mut Findings, name: &str, observed: u64, limit: u64, decided: bool, text: &str) {
    let (verdict, said) = match () {
        () if observed > limit => (Verdict::Fail, format!("over the limit of {}", count(limit))),
        () if !decided => (Verdict::Inconclusive, "so there was nothing to judge".to_owned()),
        () => (Verdict::Pass, format!("within the limit of {}", count(limit))),
    };
    findings.push(name, verdict, count(observed), count(limit), format!("{text}, {said}."));
}
