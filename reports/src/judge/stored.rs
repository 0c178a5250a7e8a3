//! The judge of what the control plane stored: every object with images must be pinned.
//!
//! Owns `admission.unpinned`. A webhook that fails open, allows without a patch or is never asked leaves the same trace: an object
//! that is there with an image without a digest. What the webhook answered is not looked at.

use super::{Findings, Verdict};
use crate::record::{Record, StoredRow};
use crate::words::{count, counted};

const BUDGET: &str = "admission.unpinned";

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let Some(limit) = record.manifest.budgets.admission.as_ref().and_then(|budget| budget.unpinned) else { return };
    let admission = record.intervals.iter().filter_map(|row| row.admission.as_ref());
    let rows: Vec<&StoredRow> = admission.filter_map(|row| row.stored.as_ref()).collect();
    let stored: u64 = rows.iter().map(|row| row.versions).sum();
    let unpinned: u64 = rows.iter().map(|row| row.unpinned).sum();
    let (verdict, text) = match () {
        () if unpinned > limit => {
            let example = rows.iter().flat_map(|row| &row.examples).next();
            let example = example.map_or_else(String::new, |example| format!("; for example: {example}"));
            let objects = counted(unpinned, "object");
            let verb = if unpinned == 1 { "was" } else { "were" };
            (Verdict::Fail, format!("{objects} {verb} stored with an image that has no digest{example}."))
        }
        () if stored == 0 => {
            (Verdict::Inconclusive, "nothing with images was stored, so nothing could be unpinned.".to_owned())
        }
        () => {
            let versions = counted(stored, "stored version");
            (Verdict::Pass, format!("{} became unpinned in {versions} with images.", counted(unpinned, "object")))
        }
    };
    findings.push(BUDGET, verdict, count(unpinned), count(limit), text);
}
