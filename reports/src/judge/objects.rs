//! The judge of the subject's requests for objects that it did not make.
//!
//! Owns the budgets `objects.*`. The judge reads the field `foreign` of `objects.json`. The field is absent if the
//! control plane does not report the author of each request, or if the record is older.

use super::rule::{Name, Section, section};
use super::{Findings, Verdict};
use crate::budgets::ObjectLimits;
use crate::record::{Carried, Foreign, ForeignRequest, Read, Record};
use crate::words::{count, millis};

mod deleted_by_others;
mod resurrected;

/// Maximum number of reads of one object that a sentence names, so that the sentence stays readable.
const READ_TOLD: usize = 2;

section! {
    ObjectLimits as "objects", judge "objects", facts<'a> &'a Foreign;
    resurrected "resurrected": u64 = resurrected::Resurrected,
    deleted_by_others "deletedByOthers": u64 = deleted_by_others::DeletedByOthers,
}

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let asked = record.manifest.budgets.objects.clone().unwrap_or_default();
    if let Some(foreign) = record.objects.as_ref().and_then(|objects| objects.foreign.as_ref()) {
        asked.judge_each(record, &foreign, findings);
        return;
    }
    if record.objects.is_some() && record.manifest.control_plane != "mock" && !record.manifest.judged.is_empty() {
        findings.note("objects.resurrected and objects.deletedByOthers were not judged: this control plane does not report who sent a \
                       request; the mock does.");
    }
    let limits = [
        (Name::of::<resurrected::Resurrected>(), asked.resurrected),
        (Name::of::<deleted_by_others::DeletedByOthers>(), asked.deleted_by_others),
    ];
    for (name, limit) in limits {
        let Some(limit) = limit else { continue };
        let text = "the subject's writes to objects of others were not observed: this control plane does not report who sent a request \
                    (the mock does), or the run did not reach the end of its drain.";
        findings.push(name, Verdict::Inconclusive, "not seen", count(limit), text);
    }
}

/// A request of the subject as text within a sentence.
fn request(deed: &ForeignRequest) -> String {
    let agent = if deed.user_agent.is_empty() { String::new() } else { format!(" ({})", deed.user_agent) };
    format!("{} {}{agent}", deed.method, deed.path)
}

/// A sentence about the subject's earlier reads of the object.
fn had_read(deed: &ForeignRequest) -> String {
    let newest = &deed.read[deed.read.len().saturating_sub(READ_TOLD)..];
    if newest.is_empty() {
        return "No earlier read of it by the subject is recorded.".to_owned();
    }
    let told: Vec<String> = newest.iter().map(|read| one(*read, deed.t_ms)).collect();
    format!("The subject's reads of it before: {}.", told.join("; "))
}

fn one(read: Read, t_ms: u64) -> String {
    let before = format!("{} before", millis(t_ms.saturating_sub(read.t_ms())));
    match read {
        Read::Got { status, revision: Some(revision), .. } => {
            format!("a GET {before} was answered {status}, version {revision}")
        }
        Read::Got { status, revision: None, .. } => format!("a GET {before} was answered {status}"),
        Read::Listed { revision, there, .. } => {
            let was = if there { "was in" } else { "was no longer in" };
            format!("it {was} the list {before}, version {revision}")
        }
        Read::Sent { revision, what, .. } => {
            let what = match what {
                Carried::Version => "it",
                Carried::Leaving => "its deletionTimestamp",
                Carried::Deletion => "its deletion",
            };
            format!("a watch brought {what} {before}, version {revision}")
        }
    }
}

#[cfg(test)]
mod tests;
