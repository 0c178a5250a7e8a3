//! `descriptors.growth`: whether the number of open descriptors keeps growing.

use super::more::{self, Ends, Of, WINDOW_ROWS, WINDOW_SAMPLES, ends};
use super::{counted, lives};
use crate::judge::rule::{Findings, Name, Rule, Word};
use crate::record::{Process, Record};

pub(super) struct Growing;

impl Rule for Growing {
    const WORD: Option<Word> = Some(Word::Descriptors);

    fn judge(record: &Record, (): &(), limit: &u64, findings: &mut Findings) {
        let of = Of { name: Name::of::<Self>(), what: "open descriptors", limit: *limit, least: WINDOW_SAMPLES };
        let samples: Vec<_> = counted(record).collect();
        more::judge(record, findings, of, &samples, |process| process.fds.total(), |ends| parts(record, ends));
    }
}

/// The classes of the new descriptors, as the end of a sentence.
fn parts(record: &Record, Ends { before, after, .. }: &Ends<Process>) -> String {
    let classes = [
        ("sockets", before.fds.socket, after.fds.socket),
        ("files", before.fds.file, after.fds.file),
        ("pipes", before.fds.pipe, after.fds.pipe),
        ("others", before.fds.other, after.fds.other),
    ];
    let parts: Vec<String> = classes
        .iter()
        .filter(|(_, before, after)| before != after)
        .map(|(name, before, after)| format!("{name} {before} → {after}"))
        .collect();
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    parts + &half_closed(record)
}

/// The growing number of connections that the peer has closed and the subject has not, as the end of a sentence.
fn half_closed(record: &Record) -> String {
    let waiting: Vec<_> = record.samples.iter().filter_map(|row| Some((row.t_ms, row.sockets?))).collect();
    let ends =
        lives(record).first().and_then(|life| ends(record, *life, &waiting, WINDOW_ROWS, |sockets| sockets.close_wait));
    match ends {
        Some(Ends { before, after, .. }) if after.close_wait > before.close_wait => {
            format!("; sockets that only the peer has closed went from {} to {}", before.close_wait, after.close_wait)
        }
        _ => String::new(),
    }
}
