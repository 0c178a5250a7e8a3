//! The judge of the state at the end of a run.
//!
//! Owns the budgets `ending.*`. The judge reads the field `ending` of `objects.json`.

use super::rule::{Findings, Name, Rule, Section as _, Verdict, Word, section};
use crate::budgets::{EndingLimits, Expected};
use crate::record::{Met, Record};
use crate::words::counted;

section! {
    EndingLimits as "ending", judge "ending", facts<'a> &'a [Met];
    expected "expected": Vec<Expected> = All,
}

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let Some(budget) = &record.manifest.budgets.ending else { return };
    match record.objects.as_ref().and_then(|objects| objects.ending.as_deref()) {
        Some(met) => budget.judge_each(record, &met, findings),
        None if budget.expected.is_some() => {
            let text = "the end state is not known: the control plane is no mock, the run did not reach the end of its drain, or it had more commits than \
                 the mock keeps.";
            findings.push(Name::of::<All>(), Verdict::Inconclusive, "not read", "as expected", text);
        }
        None => {}
    }
}

struct All;

impl Rule for All {
    const WORD: Option<Word> = Some(Word::Diverged);

    fn judge(_: &Record, met: &&[Met], limit: &Vec<Expected>, findings: &mut Findings) {
        let broken: Vec<&str> = met.iter().filter(|one| !one.is_met).map(|one| one.text.as_str()).collect();
        let all = counted(limit.len() as u64, "expectation");
        let (verdict, observed, text) = match broken.as_slice() {
            [] => (Verdict::Pass, "as expected".to_owned(), format!("{all} met.")),
            broken => {
                (Verdict::Fail, counted(broken.len() as u64, "difference"), format!("of {all}: {}.", broken.join("; ")))
            }
        };
        findings.push(Name::of::<Self>(), verdict, observed, "as expected", text);
    }
}

#[cfg(test)]
mod tests {
    use crate::budgets::{EndingLimits, Expected};
    use crate::example::{Example, Judged as _};
    use crate::record::{Met, Objects};

    fn verdicts(ending: Option<Vec<Met>>) -> Vec<String> {
        let mut example = Example::clean();
        let expected = Expected { resource: "pods".to_owned(), created: Some(2), ..Expected::default() };
        example.manifest.budgets.ending = Some(EndingLimits { expected: Some(vec![expected]) });
        example.objects = Some(Objects { ending, ..Objects::default() });
        let findings = example.judged().findings;
        let own = findings.iter().filter(|finding| finding.judge == "ending");
        own.map(|finding| format!("{} {}", finding.budget, finding.verdict.word())).collect()
    }

    #[test]
    fn an_unmet_expectation_fails_and_an_unread_one_decides_nothing() {
        let met = |is_met| Met { is_met, text: "4 pods were created, at most 2 are expected".to_owned() };
        assert_eq!(verdicts(Some(vec![met(true)])), ["ending.expected pass"]);
        assert_eq!(verdicts(Some(vec![met(true), met(false)])), ["ending.expected fail"]);
        assert_eq!(verdicts(None), ["ending.expected inconclusive"]);
    }
}
