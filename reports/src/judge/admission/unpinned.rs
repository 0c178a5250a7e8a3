//! `admission.unpinned`: every object with images that the control plane stored must be pinned.
//!
//! A webhook that fails open, allows without a patch or is never called leaves the same trace: a stored object with an
//! image without a digest. This judge ignores the webhook's answers.

use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::{AdmissionRow, Record, StoredRow};
use crate::words::{count, counted};

pub(super) struct Unpinned;

impl Rule for Unpinned {
    const WORD: Option<Word> = Some(Word::Unpinned);

    fn judge(_: &Record, rows: &Vec<&AdmissionRow>, limit: &u64, findings: &mut Findings) {
        judge(rows, *limit, findings);
    }
}

fn judge(rows: &[&AdmissionRow], limit: u64, findings: &mut Findings) {
    let rows: Vec<&StoredRow> = rows.iter().filter_map(|row| row.stored.as_ref()).collect();
    let stored: u64 = rows.iter().map(|row| row.versions).sum();
    let unpinned: u64 = rows.iter().map(|row| row.unpinned).sum();
    let (verdict, text) = match () {
        () if unpinned > limit => {
            let example = rows.iter().flat_map(|row| &row.examples).next();
            let example = example.map_or_else(String::new, |example| format!("; for example: {example}"));
            let objects = counted(unpinned, "object");
            let verb = if unpinned == 1 { "was" } else { "were" };
            (Verdict::Fail, format!("{objects} {verb} stored with an image without a digest{example}."))
        }
        () if stored == 0 => {
            (Verdict::Inconclusive, "no object with images was stored, so there was nothing to judge.".to_owned())
        }
        () => {
            let versions = counted(stored, "stored version");
            (Verdict::Pass, format!("{} became unpinned, in {versions} with images.", counted(unpinned, "object")))
        }
    };
    findings
        .push(Name::of::<Unpinned>(), verdict, count(unpinned), count(limit), text)
        .used(unpinned as f64, limit as f64);
}
