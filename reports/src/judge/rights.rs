//! Adds a note about rights that the subject lacks: the requests that the control plane refused. The module owns no
//! budget.
//!
//! A subject may ask for more than it needs, so a refusal alone is no failure. Other judges measure the effects of a
//! refused request.

use std::collections::BTreeMap;

use super::Findings;
use crate::record::Record;
use crate::words::{count, counted};

const NAMED_MAX: usize = 5;

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let mut times: BTreeMap<&str, u64> = BTreeMap::new();
    for refused in record.intervals.iter().flat_map(|row| &row.refused) {
        *times.entry(&refused.what).or_default() += refused.times;
    }
    let total: u64 = times.values().sum();
    if total == 0 {
        return;
    }
    let mut named: Vec<(&str, u64)> = times.into_iter().collect();
    named.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    let more = named.len().saturating_sub(NAMED_MAX);
    let texts: Vec<String> =
        named.iter().take(NAMED_MAX).map(|(what, times)| format!("{what} ({} times)", count(*times))).collect();
    let more = if more > 0 { format!(" and {} more", counted(more as u64, "other")) } else { String::new() };
    findings.note(format!(
        "the control plane answered 403 to {} of the subject, because its roles do not allow it: {}{more}.",
        counted(total, "request"),
        texts.join(", ")
    ));
}
