//! The report for CI systems: one test case for each budget and each condition of validity.
//!
//! Owns the mapping of verdicts to JUnit's terms. Inconclusive and invalid are errors, not skipped cases: the run exits
//! with 2, and a green page above a red job misleads.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::{Error, Renderer};
use crate::judge::{Judgement, Verdict};
use crate::record::{Record, file};

/// `junit.xml`.
pub(super) const ROW: Renderer =
    Renderer { file: file::JUNIT, doc: "for CI systems: a test case for each budget", render: junit };

pub fn junit(record: &Record, judgement: &Judgement) -> Result<String, Error> {
    let length = Duration::from_millis(record.length_ms());
    let mut suite = TestSuite::new(judgement.name.as_str());
    suite.set_time(length);
    suite.add_property(("runId", judgement.run_id.as_str()));
    suite.add_property(("seed", judgement.seed.to_string().as_str()));
    suite.add_property(("verdict", judgement.verdict.word()));
    suite.add_property(("repeat", record.manifest.repeat.as_str()));
    for finding in &judgement.findings {
        let status = match finding.verdict {
            Verdict::Pass => TestCaseStatus::success(),
            Verdict::Fail => failed(NonSuccessKind::Failure, finding),
            Verdict::Inconclusive | Verdict::Invalid => failed(NonSuccessKind::Error, finding),
        };
        let mut case = TestCase::new(finding.budget.as_str(), status);
        case.set_classname(format!("longhaul.{}.{}", judgement.name, finding.judge));
        suite.add_test_case(case);
    }
    let mut report = Report::new("longhaul");
    report.set_time(length);
    report.add_test_suite(suite);
    Ok(report.to_string()?)
}

fn failed(kind: NonSuccessKind, finding: &crate::judge::Finding) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(finding.verdict.word());
    status.set_message(format!("{} (limit {})", finding.observed, finding.limit));
    status.set_description(finding.text.as_str());
    status
}
