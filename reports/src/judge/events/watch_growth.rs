//! `events.watchGrowth`: watches that multiply with each reconnect.

use crate::judge::requests::{self, grown};
use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::{EventCounts, Record};
use crate::words::{count, counted, millis};

pub(super) struct WatchGrowth;

impl Rule for WatchGrowth {
    const DOC: &'static str = "The subject's open watches of one scope became more with each that ended: at least 4 at once, and 3 times as many \
        as before. Informers of one scope, however many, are constant. Judged where the control plane reports requests, as the mock does.";
    const WORD: Option<Word> = Some(Word::WatchLeak);

    fn judge(record: &Record, _: &EventCounts, (): &(), findings: &mut Findings) {
        judge(record, findings);
    }
}

fn judge(record: &Record, findings: &mut Findings) {
    let name = Name::of::<WatchGrowth>();
    if !record.requests.told {
        // Records without request rows cannot be judged; only the mock writes them.
        if record.manifest.control_plane != "mock" {
            findings.note(format!(
                "{name} was not judged: this control plane does not report open watches; the mock does."
            ));
        }
        return;
    }
    if let Some(grown) = grown::grown(record) {
        let text = format!(
            "{} of {} were open at once at {}, after {} of such watches; before that {}. Each end must open one watch, not more.",
            requests::watches(grown.most),
            grown.scope,
            millis(grown.most_ms),
            counted(grown.ends, "end"),
            count(grown.first),
        );
        let limit = format!("{} as before", count(grown.first));
        findings.push(name, Verdict::Fail, count(grown.most), limit, text);
        return;
    }
    let (most, ends) = grown::most(record);
    // Without an end of a watch, nothing is known of the reconnects.
    if ends > 0 {
        let text = format!(
            "after {} no scope had more open watches than before: at most {} at once.",
            counted(ends, "end"),
            count(most)
        );
        findings.push(name, Verdict::Pass, count(most), "as many as before", text);
    }
}
