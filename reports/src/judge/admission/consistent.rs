//! `admission.consistent`: answers to the same question that differ without a reason.

use crate::budgets::Consistent;
use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::{AdmissionRow, Answers, Record};
use crate::words::{count, counted};

/// Number of differences in the text of a finding.
const SHOWN_MAX: usize = 3;

pub(super) struct AllConsistent;

impl Rule for AllConsistent {
    const WORD: Option<Word> = Some(Word::InconsistentAnswer);

    fn judge(record: &Record, _: &Vec<&AdmissionRow>, _: &Consistent, findings: &mut Findings) {
        judge(record.answers.as_ref(), findings);
    }
}

fn judge(answers: Option<&Answers>, findings: &mut Findings) {
    let (verdict, observed, text) = match answers {
        None => {
            let text = "the webhooks were not asked again, because the run did not reach its end.";
            (Verdict::Inconclusive, "not asked".to_owned(), text.to_owned())
        }
        Some(Answers { why: Some(why), .. }) => {
            (Verdict::Inconclusive, "not asked".to_owned(), format!("the webhooks could not be asked again: {why}."))
        }
        Some(Answers { differences, questions, .. }) if !differences.is_empty() => {
            let shown = differences.iter().take(SHOWN_MAX).map(|text| text.trim_end_matches('.'));
            let shown = shown.collect::<Vec<_>>().join("; ");
            let asked = counted(u64::from(*questions), "question");
            (Verdict::Fail, counted(differences.len() as u64, "difference"), format!("of {asked}: {shown}."))
        }
        Some(Answers { questions, compared: 0, .. }) => {
            let asked = counted(u64::from(*questions), "question");
            let text = format!("of {asked}, no answer could be compared.");
            (Verdict::Inconclusive, "nothing compared".to_owned(), text)
        }
        Some(Answers { compared, .. }) => {
            let text = format!("{} to the same questions did not differ.", counted(u64::from(*compared), "answer"));
            (Verdict::Pass, count(0), text)
        }
    };
    findings.push(Name::of::<AllConsistent>(), verdict, observed, count(0), text);
}

#[cfg(test)]
mod tests {
    use crate::budgets::{Admission, Consistent};
    use crate::example::{Example, Judged as _};
    use crate::record::Answers;

    fn verdict(answers: Option<Answers>) -> String {
        let mut example = Example::clean();
        let admission = example.manifest.budgets.admission.get_or_insert_with(Admission::default);
        admission.consistent = Some(Consistent::default());
        example.answers = answers;
        let findings = example.judged().findings;
        let own = findings.iter().find(|finding| finding.budget == "admission.consistent").unwrap();
        format!("{}: {}", own.verdict.word(), own.text)
    }

    #[test]
    fn an_answer_that_differs_fails_and_an_unasked_webhook_decides_nothing() {
        let asked = Answers { questions: 9, compared: 20, ..Answers::default() };
        assert_eq!(verdict(Some(asked.clone())), "pass: 20 answers to the same questions did not differ.");
        let differs = Answers { differences: vec!["the verdict differs.".to_owned()], ..asked.clone() };
        assert_eq!(verdict(Some(differs)), "fail: of 9 questions: the verdict differs.");
        let nothing = Answers { compared: 0, ..asked.clone() };
        assert!(verdict(Some(nothing)).starts_with("inconclusive: "));
        let unasked = Answers { why: Some("it exited".to_owned()), ..asked };
        assert_eq!(verdict(Some(unasked)), "inconclusive: the webhooks could not be asked again: it exited.");
        assert!(verdict(None).starts_with("inconclusive: "));
    }
}
