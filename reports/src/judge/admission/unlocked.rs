//! `admission.unlocked`: answers that pin an image to a digest that differs from the image's locked digest.
//!
//! The image's tag points to the digest in the answer, or pointed to it a moment before. Without the locked digest the
//! answer would be correct, so it is not a wrong verdict.

use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::{AdmissionRow, Record};
use crate::words::{count, counted};

pub(super) struct Unlocked;

impl Rule for Unlocked {
    const WORD: Option<Word> = Some(Word::Unlocked);

    fn judge(_: &Record, rows: &Vec<&AdmissionRow>, limit: &u64, findings: &mut Findings) {
        let unlocked: u64 = rows.iter().map(|row| row.unlocked).sum();
        let moved: u64 = rows.iter().map(|row| row.moved).sum();
        let said = format!(
            "{} of {} about images whose tag had moved named a digest that is not the locked one",
            count(unlocked),
            counted(moved, "admission")
        );
        let (verdict, text) = match () {
            () if unlocked > *limit => {
                let example = rows.iter().flat_map(|row| &row.examples).find(|text| text.starts_with("unlocked"));
                let example = example.map_or_else(String::new, |text| format!("; for example: {text}"));
                (Verdict::Fail, format!("{said}{example}."))
            }
            () if moved == 0 => {
                (Verdict::Inconclusive, "no tag of a locked image had moved, so the lock decided nothing.".to_owned())
            }
            () => (Verdict::Pass, format!("{said}.")),
        };
        findings
            .push(Name::of::<Self>(), verdict, count(unlocked), count(*limit), text)
            .used(unlocked as f64, *limit as f64);
    }
}
