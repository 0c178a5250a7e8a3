//! `webhooks.asked`: whether every registered webhook was called. If a webhook was not, the run shows nothing about it,
//! whatever else passed.

use super::doubt;
use super::rule::Name;
use super::{Findings, Verdict};
use crate::record::{Record, WebhookPlan};
use crate::words::count;

const ASKED: Name = Name { judge: doubt::JUDGE, section: "webhooks", key: "asked", word: None };

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let rows = || record.intervals.iter().flat_map(|row| &row.webhooks);
    // A control plane that reports no calls of any webhook did not count them.
    if rows().next().is_none() {
        return;
    }
    let sent: u64 = record.intervals.iter().filter_map(|row| row.admission.as_ref()).map(|row| row.sent).sum();
    for WebhookPlan { name, direct, unmatched } in &record.manifest.webhooks {
        let calls: u64 = rows().filter(|row| row.name == *name).map(|row| row.calls).sum();
        let budget = ASKED.below(name);
        if calls > 0 || (*direct && sent > 0) {
            let times =
                if calls > 0 { format!("{} times", count(calls)) } else { "without the control plane".to_owned() };
            findings.push(budget, Verdict::Pass, count(calls), "at least 1", format!("it was asked {times}."));
            continue;
        }
        let why = unmatched.clone().unwrap_or_else(|| {
            "objects matched its rules, so its objectSelector or matchConditions exclude them all, or no object was written while it was \
             registered"
                .to_owned()
        });
        let text = format!("the webhook {name} was asked 0 times, so it was not tested: {why}.");
        findings.push(budget, Verdict::Inconclusive, "0", "at least 1", text);
    }
}
