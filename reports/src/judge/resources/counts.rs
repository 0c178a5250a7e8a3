//! `threads.growth`, `openWatches.growth`: whether there are ever more of them.

use super::{OpenWatches, Threads, more, subject};
use crate::judge::rule::{Name, Rule};
use crate::judge::{Findings, Word};
use crate::record::Record;

/// `threads.growth`.
pub(super) struct MoreThreads;

impl Rule for MoreThreads {
    type Section = Threads;
    type Limit = u64;
    const KEY: &'static str = "growth";
    const DOC: &'static str = "How many more at the end of the steady phase than at the end of the warm-up.";
    const WORD: Option<Word> = Some(Word::Threads);

    fn judge(record: &Record, (): &(), limit: &u64, findings: &mut Findings) {
        let of = (Name::of::<Self>(), "threads", *limit);
        more::judge_one(record, findings, of, more::WINDOW_SAMPLES, || {
            subject(record).map(|(t_ms, process)| (t_ms, process.threads))
        });
    }
}

/// `openWatches.growth`.
pub(super) struct MoreWatches;

impl Rule for MoreWatches {
    type Section = OpenWatches;
    type Limit = u64;
    const KEY: &'static str = "growth";
    const DOC: &'static str =
        "How many more at the end of the steady phase than at the end of the warm-up, as the control plane sees it.";
    const WORD: Option<Word> = Some(Word::WatchLeak);

    fn judge(record: &Record, (): &(), limit: &u64, findings: &mut Findings) {
        let of = (Name::of::<Self>(), "open watches", *limit);
        // Where nobody counts them there are none in any row, and nothing is known.
        let counted = record.intervals.iter().any(|row| row.api.subject_open_watches > 0);
        let rows = || record.intervals.iter().filter(move |_| counted);
        more::judge_one(record, findings, of, more::WINDOW_ROWS, || {
            rows().map(|row| (row.end_ms, row.api.subject_open_watches))
        });
    }
}
