//! `events.hotLoop`: many requests without any observation, according to the control plane's counts.

use units::Rate;

use super::{UNTOLD, untold};
use crate::judge::requests;
use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::{EventCounts, Record};
use crate::words::millis;

/// Maximum list and watch requests a second of a subject that observes nothing. This limit is multiplied by the larger
/// of `compress` and `clockRate`. With `compress` watches end sooner by this factor, and with `clockRate` the subject
/// waits by its faster clock.
const HOT_LOOP_PER_SECOND: f64 = 2.0;

pub(super) struct HotLoop;

impl Rule for HotLoop {
    const DOC: &'static str = "The subject sent more than 2 list and watch requests a second that brought nothing (as many times more as `compress` or its own clock is faster). Judged where \
        the control plane reports requests: the mock, and by their audit logs `local` and `node`.";
    const WORD: Option<Word> = Some(Word::HotLoop);

    fn judge(record: &Record, _: &EventCounts, (): &(), findings: &mut Findings) {
        judge(record, findings);
    }
}

fn judge(record: &Record, findings: &mut Findings) {
    let name = Name::of::<HotLoop>();
    let most = HOT_LOOP_PER_SECOND * f64::from(record.manifest.compress.max(record.manifest.clock_rate).max(1));
    let gone: u64 = record.intervals.iter().map(|row| row.api.repeated_gone).sum();
    let cause = if gone > 0 { ", resuming from a version already refused with 410 Gone" } else { "" };
    // If each request is known, it is also known which of them were fruitful, such as the pages of a long list.
    if record.requests.told && record.requests.follows_until_ms().is_none() {
        return requests::judge_hot_loop(record, name, Rate::per_second(most), cause, findings);
    }
    if untold(record) {
        findings.note(format!("{name} was not judged: {UNTOLD}"));
        return;
    }
    let mut worst = (0.0, 0);
    for row in &record.intervals {
        let seconds = row.end_ms.saturating_sub(row.start_ms) as f64 / 1000.0;
        // A controller's lists for its own work, even while the tested watch is silent, do not count as following.
        let asked = row.api.subject_follows.unwrap_or(row.api.subject_watches + row.api.subject_lists) as f64;
        // A very short interval gives no rate.
        if row.events.observations == 0 && seconds >= 1.0 && asked / seconds > worst.0 {
            worst = (asked / seconds, row.start_ms);
        }
    }
    let (rate, start_ms) = worst;
    let limit = format!("{most}/s");
    let observed = format!("{}/s", crate::words::three_digits(rate));
    let (verdict, text) = if rate > most {
        let text = format!(
            "at {} the subject sent {observed} list and watch requests without observing anything{cause}: a hot loop.",
            millis(start_ms)
        );
        (Verdict::Fail, text)
    } else {
        (Verdict::Pass, "no list or watch requests in a hot loop.".to_owned())
    };
    findings.push(name, verdict, observed, limit, text);
}
