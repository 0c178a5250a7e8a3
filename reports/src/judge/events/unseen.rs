//! `events.unseen`: objects of which no version was observed. This budget replaces `events.missed` if the witness does
//! not report versions.

use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::{EventCounts, Record, Sight};
use crate::words::{count, counted};

pub(super) struct Unseen;

impl Rule for Unseen {
    const EXAMPLE: Option<&'static str> = Some("0");
    const WORD: Option<Word> = Some(Word::Missed);
    const NEEDS: &'static [Sight] = &[Sight::Created];

    fn judge(record: &Record, counts: &EventCounts, limit: &u64, findings: &mut Findings) {
        let open = record.intervals.last().map_or(0, |row| row.pending);
        let (verdict, text) = match counts.unseen {
            unseen if unseen > *limit => {
                let objects = counted(unseen, "object");
                let was = if unseen == 1 { "was" } else { "were" };
                (Verdict::Fail, format!("{objects} {was} never observed, at most {} allowed.", count(*limit)))
            }
            _ if !record.finished() && open > 0 => {
                let text = "the run did not finish, so the objects without an observation are not known.";
                (Verdict::Inconclusive, text.to_owned())
            }
            0 => (Verdict::Pass, "every object was observed.".to_owned()),
            unseen => (Verdict::Pass, format!("{} not observed, at most {} allowed.", count(unseen), count(*limit))),
        };
        let found = findings.push(Name::of::<Self>(), verdict, count(counts.unseen), count(*limit), text);
        found.used(counts.unseen as f64, *limit as f64);
    }
}
