//! `descriptors.growth`: whether ever more descriptors are open.

use super::more::{self, WINDOW_ROWS, WINDOW_SAMPLES, ends};
use super::{Descriptors, anew, subject};
use crate::judge::rule::{Name, Rule};
use crate::judge::{Findings, Word};
use crate::record::Record;
use crate::words::count;

/// `descriptors.growth`.
pub(super) struct Growing;

impl Rule for Growing {
    type Section = Descriptors;
    type Limit = u64;
    const KEY: &'static str = "growth";
    const DOC: &'static str = "How many more at the end of the steady phase than at the end of the warm-up.";
    const WORD: Option<Word> = Some(Word::Descriptors);

    fn judge(record: &Record, (): &(), limit: &u64, findings: &mut Findings) {
        let (name, what) = (Name::of::<Self>(), "open descriptors");
        if let Some((verdict, text)) = anew(record, findings) {
            findings.push(name, verdict, "restarted", count(*limit), text);
            return;
        }
        let Some((before, after)) = ends(record, || subject(record), WINDOW_SAMPLES, |process| process.fds.total())
        else {
            more::undecided(record, findings, (name, what, *limit), WINDOW_SAMPLES);
            return;
        };
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
        let parts = parts + &half_closed(record);
        more::judge(findings, name, *limit, what, (before.fds.total(), after.fds.total()), &parts);
    }
}

/// Connections that ever more peers have closed and the subject has not, as the end of a sentence: those of a client that forgets to.
fn half_closed(record: &Record) -> String {
    let waiting = || record.samples.iter().filter_map(|row| Some((row.t_ms, row.sockets?)));
    match ends(record, waiting, WINDOW_ROWS, |sockets| sockets.close_wait) {
        Some((before, after)) if after.close_wait > before.close_wait => {
            format!("; sockets that only the peer has closed went from {} to {}", before.close_wait, after.close_wait)
        }
        _ => String::new(),
    }
}
