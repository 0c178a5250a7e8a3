//! `admission.wrongVerdicts`: answers that differ from the right one.

use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::{AdmissionRow, Record};
use crate::words::{count, counted};

pub(super) struct WrongVerdicts;

impl Rule for WrongVerdicts {
    const WORD: Option<Word> = Some(Word::WrongAnswer);
    const DEFAULT: Option<u64> = Some(0);

    fn judge(_: &Record, rows: &Vec<&AdmissionRow>, limit: &u64, findings: &mut Findings) {
        judge(rows, *limit, findings);
    }
}

fn judge(rows: &[&AdmissionRow], limit: u64, findings: &mut Findings) {
    let wrong: u64 = rows.iter().map(|row| row.wrong_verdicts).sum();
    let allows: u64 = rows.iter().map(|row| row.wrong_allows).sum();
    let answers: u64 = rows.iter().map(|row| row.allowed + row.denied).sum();
    let (verdict, text) = match () {
        () if wrong > limit => {
            let allowed = if allows > 0 {
                format!(", {} of them allowed a request that had to be denied", count(allows))
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
    findings.push(Name::of::<WrongVerdicts>(), verdict, count(wrong), count(limit), text);
}
