//! The report in the Common Test Report Format (ctrf.io), which services for test results read.
//!
//! Owns the mapping of verdicts to CTRF's statuses. Inconclusive and invalid findings have the status `other`, because
//! they are neither a pass nor a skipped test.

use serde_json::json;

use super::{Error, Renderer};
use crate::judge::{Judgement, Verdict};
use crate::record::{Record, file};

pub(super) const ROW: Renderer =
    Renderer { file: file::CTRF, doc: "for services that read CTRF: a test for each budget", render: ctrf };

const DAY_MS: i64 = 86_400_000;

pub fn ctrf(record: &Record, judgement: &Judgement) -> Result<String, Error> {
    let length_ms = i64::try_from(record.length_ms()).unwrap_or(i64::MAX);
    // A record without a readable time begins in 1970.
    let start = since_1970_ms(&record.manifest.started_at).unwrap_or_default();
    let tests: Vec<_> = judgement
        .findings
        .iter()
        .map(|finding| {
            json!({
                "name": finding.budget,
                "status": word(finding.verdict),
                // Every budget is judged over the whole run.
                "duration": length_ms,
                "suite": [format!("longhaul.{}.{}", judgement.name, finding.judge)],
                "message": finding.text,
                "extra": {
                    "verdict": finding.verdict.word(),
                    "observed": finding.observed,
                    "limit": finding.limit,
                    "repeat": record.manifest.repeat,
                },
            })
        })
        .collect();
    let count = |status: &str| judgement.findings.iter().filter(|finding| word(finding.verdict) == status).count();
    let report = json!({
        "reportFormat": "CTRF",
        "specVersion": "0.0.0",
        "results": {
            "tool": {"name": "longhaul", "version": record.manifest.versions.longhaul},
            "summary": {
                "tests": tests.len(),
                "passed": count("passed"),
                "failed": count("failed"),
                "pending": 0,
                "skipped": 0,
                "other": count("other"),
                "start": start,
                "stop": start.saturating_add(length_ms),
            },
            "tests": tests,
            "extra": {"runId": judgement.run_id, "seed": judgement.seed, "verdict": judgement.verdict.word()},
        },
    });
    let mut text = serde_json::to_string_pretty(&report)?;
    text.push('\n');
    Ok(text)
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "passed",
        Verdict::Fail => "failed",
        Verdict::Inconclusive | Verdict::Invalid => "other",
    }
}

/// A time in UTC, such as `2026-11-24T06:00:00Z` with or without a fraction, as milliseconds since 1970.
pub(super) fn since_1970_ms(text: &str) -> Option<i64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let numbers =
        |text: &str, sign: char| -> Option<Vec<i64>> { text.split(sign).map(|part| part.parse().ok()).collect() };
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [year, month, day] = numbers(date, '-')?[..] else { return None };
    let [hour, minute, second] = numbers(clock, ':')?[..] else { return None };
    let millis: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    // Days from the civil calendar, with years that begin in March (H. Hinnant, chrono-compatible date algorithms).
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days =
        365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (153 * month + 2) / 5 + day
            - 719_469;
    Some(days * DAY_MS + ((hour * 60 + minute) * 60 + second) * 1000 + millis)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::example::Example;
    use crate::judge::judge;

    #[test]
    fn times_are_counted_from_1970() {
        for (text, millis) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:00:00Z", 951_825_600_000),
            ("2026-11-24T06:00:00.25Z", 1_795_500_000_250),
        ] {
            assert_eq!(since_1970_ms(text), Some(millis), "{text}");
        }
        assert_eq!(since_1970_ms("yesterday"), None);
    }

    /// The CTRF report has the counts and statuses of the findings. An undecided finding is not listed as a passed
    /// test.
    #[test]
    fn every_finding_is_a_test() {
        let folder = tempfile::tempdir().unwrap();
        let record = Example::failing().open(folder.path());
        let judgement = judge(&record);
        let report: Value = serde_json::from_str(&ctrf(&record, &judgement).unwrap()).unwrap();
        let (results, of) = (&report["results"], |verdict: Verdict| {
            judgement.findings.iter().filter(|finding| finding.verdict == verdict).count()
        });
        let summary = &results["summary"];
        assert_eq!(results["tests"].as_array().unwrap().len(), judgement.findings.len());
        assert_eq!(summary["failed"], of(Verdict::Fail));
        assert_eq!(summary["passed"], of(Verdict::Pass));
        assert_eq!(summary["other"], of(Verdict::Inconclusive) + of(Verdict::Invalid));
        assert!(summary["start"].as_i64().unwrap() > 0 && summary["stop"].as_i64() > summary["start"].as_i64());
        assert_eq!(results["tests"][0]["extra"]["repeat"], record.manifest.repeat);
    }
}
