//! `crashes.max`: how often a process of the subject ended by itself.

use super::loops::worst;
use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::{CrashRow, Record};
use crate::words::{count, counted, millis};

/// Maximum number of crashes that a finding describes one by one.
const TOLD_MAX: usize = 3;

pub(super) struct Most;

impl Rule for Most {
    const WORD: Option<Word> = Some(Word::Crashed);
    const DEFAULT: Option<u64> = Some(0);

    fn judge(record: &Record, (): &(), limit: &u64, findings: &mut Findings) {
        let name = Name::of::<Self>();
        let Some(last) = record.crashes.last() else {
            let text = "no process of the subject ended by itself.";
            findings.push(name, Verdict::Pass, "0", count(*limit), text);
            return;
        };
        let verdict = if last.number > *limit { Verdict::Fail } else { Verdict::Pass };
        findings.push(name, verdict, count(last.number), count(*limit), text(record, last));
    }
}

/// A text about the last crash, with the last lines that the process printed.
fn text(record: &Record, last: &CrashRow) -> String {
    let times = counted(last.number, "time");
    let each: Vec<String> = record.crashes.iter().take(TOLD_MAX).map(crash_text).collect();
    let more = match last.number.saturating_sub(each.len() as u64) {
        0 => String::new(),
        more => format!(", and {} more, the last at {}", count(more), millis(last.t_ms)),
    };
    let worst = worst(record).map_or_else(String::new, |text| format!(" {text}"));
    let back_ms = last.t_ms.saturating_add(last.back_off_ms);
    let is_away = record.end.as_ref().is_some_and(|end| back_ms > end.ended_ms);
    let away = if is_away { " At the end of the run it was waiting for its next start." } else { "" };
    let words = if last.last_words.is_empty() { "(it wrote nothing)" } else { &last.last_words };
    format!("the subject ended by itself {times}: {}{more}.{worst}{away} Its last words: {words}", each.join(", "))
}

fn crash_text(row: &CrashRow) -> String {
    let who = row.process.as_ref().map(|name| format!("`{name}` ")).unwrap_or_default();
    format!("{who}at {} with {} after {}", millis(row.t_ms), row.status, millis(row.ran_ms))
}

#[cfg(test)]
mod tests {
    use crate::example::{Example, Judged as _};
    use crate::judge::{self, Judgement, Verdict};

    fn judgement_of(times_ms: &[u64], budgets: &str) -> Judgement {
        let mut example = Example::clean();
        example.manifest.budgets = serde_json::from_str(budgets).unwrap();
        example.crash(times_ms);
        example.judged()
    }

    fn verdicts(judgement: &Judgement, budget: &str) -> Vec<Verdict> {
        judgement.findings.iter().filter(|one| one.budget == budget).map(|one| one.verdict).collect()
    }

    /// Without a budget, a subject with `restart` fails if it crashes. A budget for crashes can allow them.
    #[test]
    fn a_crash_fails_unless_it_is_allowed() {
        let clean = judgement_of(&[], "{}");
        assert_eq!((clean.verdict, verdicts(&clean, "crashes.max")), (Verdict::Pass, vec![Verdict::Pass]));
        let once = judgement_of(&[40_000], "{}");
        assert_eq!((once.verdict, verdicts(&once, "crashes.max")), (Verdict::Fail, vec![Verdict::Fail]));
        assert_eq!(once.words, [judge::Word::Crashed]);
        assert!(once.reason.contains("1 time: at 40 s with exit status: 3 after 900 ms"), "{}", once.reason);
        let text = &once.findings.iter().find(|one| one.budget == "crashes.max").unwrap().text;
        assert!(text.ends_with("Its last words: out of patience"), "{text}");
        let allowed = judgement_of(&[40_000], r#"{"crashes": {"max": 1}}"#);
        assert_eq!(allowed.verdict, Verdict::Pass, "{:?}", allowed.findings);
        assert!(verdicts(&allowed, "crashes.loops").is_empty());
    }

    #[test]
    fn a_loop_has_its_name_and_its_limit() {
        let looped = judgement_of(&[40_000, 42_000, 45_000], r#"{"crashes": {"max": 9, "loops": 0}}"#);
        assert_eq!(verdicts(&looped, "crashes.loops"), [Verdict::Fail]);
        let text = &looped.findings.iter().find(|one| one.budget == "crashes.max").unwrap().text;
        assert!(text.contains("CrashLoopBackOff: the subject ended 3 times in 5 s"), "{text}");
        let once = judgement_of(&[40_000], r#"{"crashes": {"max": 9, "loops": 0}}"#);
        assert_eq!(verdicts(&once, "crashes.loops"), [Verdict::Pass]);
    }

    /// Memory before a crash proves nothing about growth after it. If the crash itself breaks a budget, undecided
    /// growth does not count against the run.
    #[test]
    fn growth_is_not_judged_across_a_crash() {
        let memory = r#""memory": {"growth": "1MiB/h"}, "threads": {"growth": 9}"#;
        let failed = judgement_of(&[40_000], &format!("{{{memory}}}"));
        assert_eq!(failed.verdict, Verdict::Fail, "{:?}", failed.findings);
        assert_eq!(verdicts(&failed, "memory.growth"), [Verdict::Inconclusive]);
        let allowed = judgement_of(&[40_000], &format!(r#"{{{memory}, "crashes": {{"max": 1}}}}"#));
        assert_eq!(verdicts(&allowed, "memory.growth"), [Verdict::Inconclusive]);
        assert_eq!(verdicts(&allowed, "threads.growth"), [Verdict::Inconclusive]);
        // A crash in the warm-up does not affect later samples.
        let early = judgement_of(&[10_000], &format!(r#"{{{memory}, "crashes": {{"max": 1}}}}"#));
        let text = |judgement: &Judgement| {
            judgement.findings.iter().find(|one| one.budget == "memory.growth").unwrap().text.clone()
        };
        assert!(text(&allowed).contains("restarted at") && !text(&early).contains("restarted at"));
    }

    /// During a back-off there is no process to sample, so samples of that time do not count as missing.
    #[test]
    fn a_back_off_is_no_hole_in_the_samples() {
        let verdict = |crashes: &[u64]| {
            let mut example = Example::clean();
            example.manifest.budgets = serde_json::from_str(r#"{"memory": {"ceiling": "1GiB"}}"#).unwrap();
            example.crash(crashes);
            example.crashes.iter_mut().for_each(|row| row.back_off_ms = 40_000);
            example.samples.retain(|row| !(40_000..80_000).contains(&row.t_ms));
            verdicts(&example.judged(), "validity.samples")
        };
        assert_eq!(verdict(&[]), [Verdict::Inconclusive]);
        assert_eq!(verdict(&[40_000]), [Verdict::Pass]);
    }

    /// If processes cannot be sampled, ceilings are undecided, and the finding has the reason.
    #[test]
    fn what_cannot_be_sampled_is_inconclusive_with_its_reason() {
        let mut example = Example::clean();
        let budgets = r#"{"memory": {"ceiling": "1GiB", "growth": "1MiB/h"}, "descriptors": {"ceiling": 9, "growth": 1}, "threads": {"ceiling": 9, "growth": 1}}"#;
        example.manifest.budgets = serde_json::from_str(budgets).unwrap();
        example.manifest.subject.unsampled = Some("it runs already and `pid` is not there".into());
        example.samples.iter_mut().for_each(|sample| sample.subject = None);
        let judgement = example.judged();
        let judged: Vec<_> = judgement.findings.iter().filter(|one| one.judge == "resources").collect();
        assert_eq!(judged.len(), 6);
        for finding in judged {
            assert_eq!(finding.verdict, Verdict::Inconclusive, "{finding:?}");
            assert!(finding.text.contains("`pid` is not there"), "{finding:?}");
        }
        assert_eq!(judgement.verdict, Verdict::Inconclusive);
    }
}
