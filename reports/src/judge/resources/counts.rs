//! `threads.growth`, `openWatches.growth`: whether their number keeps growing.

use super::counted;
use super::more::{self, Of};
use crate::judge::rule::{Findings, Name, Record, Rule, Word};

/// `threads.growth`.
pub(super) struct MoreThreads;

impl Rule for MoreThreads {
    const WORD: Option<Word> = Some(Word::Threads);

    fn judge(record: &Record, (): &(), limit: &u64, findings: &mut Findings) {
        let of = Of { name: Name::of::<Self>(), what: "threads", limit: *limit, least: more::WINDOW_SAMPLES };
        let samples: Vec<_> = counted(record).map(|(t_ms, process)| (t_ms, process.threads)).collect();
        more::judge(record, findings, of, &samples, |count| *count, |_| String::new());
    }
}

/// `openWatches.growth`.
pub(super) struct MoreWatches;

impl Rule for MoreWatches {
    const WORD: Option<Word> = Some(Word::WatchLeak);

    fn judge(record: &Record, (): &(), limit: &u64, findings: &mut Findings) {
        let of = Of { name: Name::of::<Self>(), what: "open watches", limit: *limit, least: more::WINDOW_ROWS };
        // If they are not counted, no row has any, and their number is unknown.
        let known = record.intervals.iter().any(|row| row.api.subject_open_watches > 0);
        let rows = record.intervals.iter().filter(|_| known);
        let samples: Vec<_> = rows.map(|row| (row.end_ms, row.api.subject_open_watches)).collect();
        more::judge(record, findings, of, &samples, |count| *count, |_| String::new());
    }
}
