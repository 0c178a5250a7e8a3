//! `registry.requests`, `registry.requestsPerImage`: the number of requests to the registry.

use super::push;
use crate::judge::rule::{Findings, Name, Rule, Word};
use crate::record::{Record, RegistryRow};
use crate::words::counted;

pub(super) struct Requests;

impl Rule for Requests {
    const WORD: Option<Word> = Some(Word::RegistryLoad);

    fn judge(_: &Record, rows: &Vec<&RegistryRow>, limit: &u64, findings: &mut Findings) {
        let requests: u64 = rows.iter().map(|row| row.requests).sum();
        let text = format!("the registry was asked {} about {}", counted(requests, "time"), counted(tags(rows), "tag"));
        push(findings, Name::of::<Self>(), requests, *limit, requests > 0, &text);
    }
}

pub(super) struct PerImage;

impl Rule for PerImage {
    const WORD: Option<Word> = Some(Word::RegistryLoad);

    fn judge(_: &Record, rows: &Vec<&RegistryRow>, limit: &u64, findings: &mut Findings) {
        let tags = tags(rows);
        let most = rows.iter().map(|row| row.most_of_one_tag).max().unwrap_or(0);
        let text = format!("of {} the registry was asked for one {}", counted(tags, "tag"), counted(most, "time"));
        push(findings, Name::of::<Self>(), most, *limit, tags > 0, &text);
    }
}

/// The number of different tags that the subject requested.
fn tags(rows: &[&RegistryRow]) -> u64 {
    rows.iter().map(|row| row.tags_total).max().unwrap_or(0)
}
