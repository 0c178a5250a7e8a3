//! A gate as a JUnit file for CI systems: one test case for each metric, and one for the whole gate. A metric that is
//! undecided or cannot be trusted is an error and not a skipped case. The gate then exits with 2, and a green test
//! report beside that exit code would mislead.

use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};

use super::decide::Word;
use super::verdict::{Judgement, Outcome, Row};

pub const FILE: &str = "junit.xml";

pub fn junit(judgement: &Judgement) -> Result<String, SerializeError> {
    let header = &judgement.header;
    let mut suite = TestSuite::new(format!("gate: {}", header.scenario));
    suite.add_property(("a", header.a.command.as_str()));
    suite.add_property(("b", header.b.command.as_str()));
    suite.add_property(("seed", header.seed.to_string().as_str()));
    suite.add_property(("verdict", judgement.outcome.text()));
    suite.add_property(("repeat", header.repeat.as_str()));
    let class = format!("longhaul.gate.{}", header.scenario);
    let mut add = |name: &str, status: TestCaseStatus| {
        let mut case = TestCase::new(name, status);
        case.set_classname(class.as_str());
        suite.add_test_case(case);
    };
    add("the gate", whole(judgement));
    for row in &judgement.rows {
        add(&row.name, of(row, judgement.outcome));
    }
    let mut report = Report::new("longhaul gate");
    report.add_test_suite(suite);
    report.to_string()
}

fn whole(judgement: &Judgement) -> TestCaseStatus {
    let kind = match judgement.outcome {
        Outcome::Better | Outcome::Same => return TestCaseStatus::success(),
        Outcome::Worse => NonSuccessKind::Failure,
        Outcome::CannotSay | Outcome::Invalid => NonSuccessKind::Error,
    };
    status(kind, judgement.outcome.text(), &judgement.reason)
}

/// The status of the test case of a metric. A metric that the gate does not need for a pass is no error if it is
/// undecided.
fn of(row: &Row, outcome: Outcome) -> TestCaseStatus {
    let rule = row.metric.rule();
    let told = format!("B {} against A {}, {}", rule.value(row.b), rule.value(row.a), row.shown(row.change));
    match row.word {
        _ if outcome == Outcome::Invalid => status(NonSuccessKind::Error, Outcome::Invalid.text(), &told),
        Word::Worse => status(NonSuccessKind::Failure, row.word.text(), &told),
        Word::CannotSay if row.leads || row.first == Word::Worse => {
            status(NonSuccessKind::Error, row.word.text(), &told)
        }
        Word::CannotSay => {
            let mut skipped = TestCaseStatus::skipped();
            skipped.set_message(format!("{}: {told}", row.word.text()));
            skipped
        }
        Word::Same | Word::Better => TestCaseStatus::success(),
    }
}

fn status(kind: NonSuccessKind, word: &str, text: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(word);
    status.set_message(text);
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::simulation::{QUIET, gate};

    #[test]
    fn a_case_for_each_row() {
        let mut judgement = gate(5, 10, QUIET, 1.1);
        assert_eq!(judgement.outcome, Outcome::Worse);
        let text = junit(&judgement).unwrap();
        let cases = text.matches("<testcase ").count();
        assert_eq!(cases, judgement.rows.len() + 1, "{text}");
        let worse = judgement.rows.iter().filter(|row| row.word == Word::Worse).count();
        assert_eq!((text.matches("<failure ").count(), text.matches("<error ").count()), (worse + 1, 0), "{text}");
        judgement.outcome = Outcome::Invalid;
        let text = junit(&judgement).unwrap();
        assert_eq!((text.matches("<failure ").count(), text.matches("<error ").count()), (0, cases), "{text}");
    }

    /// An undecided metric is an error if the gate needs it for a pass; otherwise it is a skipped test case.
    #[test]
    fn what_cannot_be_said_is_an_error_where_it_decides() {
        let mut judgement = gate(5, 10, QUIET, 1.0);
        judgement.outcome = Outcome::CannotSay;
        for row in &mut judgement.rows {
            row.word = Word::CannotSay;
        }
        let text = junit(&judgement).unwrap();
        let leads = judgement.rows.iter().filter(|row| row.leads).count();
        assert_eq!(text.matches("<error ").count(), leads + 1, "{text}");
        assert_eq!(text.matches("<skipped ").count(), judgement.rows.len() - leads, "{text}");
    }
}
