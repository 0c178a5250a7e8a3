//! The judge of admission reviews: latency in the steady phase, wrong answers and errors in the whole run.
//!
//! Owns `admission.*`. Latency is counted from the planned start, over all outcomes: a subject that fails fast must not look
//! fast.

use units::Span;

use super::{Findings, Verdict};
use crate::record::{AdmissionRow, Phase, Record, quantile_us, samples_needed, tag};
use crate::words::{count, counted, micros};

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let Some(budget) = &record.manifest.budgets.admission else { return };
    let quantiles = [
        ("admission.p50", "median", 500, budget.p50),
        ("admission.p99", "99th percentile", 990, budget.p99),
        ("admission.p999", "99.9th percentile", 999, budget.p999),
    ];
    for (name, words, parts_per_thousand, limit) in quantiles {
        if let Some(limit) = limit {
            judge_quantile(record, findings, name, words, parts_per_thousand, limit);
        }
    }
    let rows: Vec<&AdmissionRow> = record.intervals.iter().filter_map(|row| row.admission.as_ref()).collect();
    judge_wrong(&rows, budget.wrong_verdicts.unwrap_or(0), findings);
    if let Some(limit) = budget.errors {
        judge_errors(&rows, limit, findings);
    }
}

fn judge_quantile(
    record: &Record,
    findings: &mut Findings,
    name: &str,
    words: &str,
    parts_per_thousand: u64,
    limit: Span,
) {
    let steady = record.latency.in_phase(tag::RESPONSE, Phase::Steady);
    let n = steady.map_or(0, hdrhistogram::Histogram::len);
    let Some(value_us) = steady.and_then(|steady| quantile_us(steady, parts_per_thousand)) else {
        let missing = samples_needed(parts_per_thousand) - n;
        let text = format!(
            "the {words} needs {} answers in the steady phase and there were {}: {} more would decide it.",
            count(samples_needed(parts_per_thousand)),
            count(n),
            count(missing)
        );
        let observed = format!("{} samples", count(n));
        findings.push(name, Verdict::Inconclusive, observed, limit.to_string(), text);
        return;
    };
    let broken = u128::from(value_us) > limit.0.as_micros();
    let text = format!(
        "the {words} of the response time over {} in the steady phase is {}, {} the limit of {limit}.",
        counted(n, "answer"),
        micros(value_us),
        if broken { "over" } else { "within" }
    );
    let verdict = if broken { Verdict::Fail } else { Verdict::Pass };
    findings.push(name, verdict, micros(value_us), limit.to_string(), text);
}

fn judge_wrong(rows: &[&AdmissionRow], limit: u64, findings: &mut Findings) {
    let wrong: u64 = rows.iter().map(|row| row.wrong_verdicts).sum();
    let allows: u64 = rows.iter().map(|row| row.wrong_allows).sum();
    let answers: u64 = rows.iter().map(|row| row.allowed + row.denied).sum();
    let (verdict, text) = match () {
        () if wrong > limit => {
            let allowed = if allows > 0 {
                format!(", {} of them allowed what had to be denied", count(allows))
            } else {
                String::new()
            };
            (Verdict::Fail, format!("{} of {} answers were wrong{allowed}.", count(wrong), count(answers)))
        }
        () if answers == 0 => {
            (Verdict::Inconclusive, "no review was answered, so no answer could be checked.".to_owned())
        }
        () => (Verdict::Pass, format!("{} of {} were wrong.", count(wrong), counted(answers, "answer"))),
    };
    findings.push("admission.wrongVerdicts", verdict, count(wrong), count(limit), text);
}

fn judge_errors(rows: &[&AdmissionRow], limit: u64, findings: &mut Findings) {
    let sum = |field: fn(&AdmissionRow) -> u64| rows.iter().map(|row| field(row)).sum::<u64>();
    let sent = sum(|row| row.sent);
    let classes = [
        ("timeout", sum(|row| row.timeout)),
        ("HTTP error", sum(|row| row.http_error)),
        ("connect", sum(|row| row.connect)),
        ("TLS", sum(|row| row.tls)),
        ("invalid response", sum(|row| row.invalid_response)),
    ];
    let errors: u64 = classes.iter().map(|(_, number)| number).sum();
    let (verdict, text) = match () {
        () if errors > limit => {
            let parts: Vec<String> = classes
                .iter()
                .filter(|(_, number)| *number > 0)
                .map(|(name, number)| format!("{name} {}", count(*number)))
                .collect();
            let example = rows.iter().flat_map(|row| &row.examples).next();
            let example = example.map_or_else(String::new, |example| format!("; for example: {example}"));
            let text = format!(
                "{} of {} reviews had no valid answer ({}){example}.",
                count(errors),
                count(sent),
                parts.join(", ")
            );
            (Verdict::Fail, text)
        }
        () if sent == 0 => (Verdict::Inconclusive, "no review was sent.".to_owned()),
        () => (Verdict::Pass, format!("{} of {} had no valid answer.", count(errors), counted(sent, "review"))),
    };
    findings.push("admission.errors", verdict, count(errors), count(limit), text);
}
