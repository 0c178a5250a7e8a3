//! `registry.unavailable`: reviews that suffered from a sick registry.

use super::push;
use crate::judge::rule::{Findings, Name, Rule, Word};
use crate::record::{AdmissionRow, Record, RegistryRow};
use crate::words::{count, counted};

pub(super) struct Unavailable;

impl Rule for Unavailable {
    const WORD: Option<Word> = Some(Word::Unavailable);

    fn judge(record: &Record, _: &Vec<&RegistryRow>, limit: &u64, findings: &mut Findings) {
        let rows: Vec<&AdmissionRow> = record.intervals.iter().filter_map(|row| row.admission.as_ref()).collect();
        let sum = |field: fn(&AdmissionRow) -> u64| rows.iter().map(|row| field(row)).sum::<u64>();
        let (refused, answers) = (sum(|row| row.unavailable), sum(|row| row.allowed + row.denied));
        let text =
            format!("of {} {} refused only because the registry was sick", counted(answers, "answer"), count(refused));
        push(findings, Name::of::<Self>(), refused, *limit, answers > 0, &text);
    }
}
