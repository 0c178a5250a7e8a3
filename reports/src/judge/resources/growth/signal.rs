//! Which series judges the growth of memory, and what the other one says.
//!
//! Owns the choice. What the subject's allocator or runtime has in use is the first witness where the subject tells it: a leak shows in it
//! before the resident set moves, and what an allocator only keeps does not. Whether that memory is given back is what a ceiling is for.

use super::decide::{Amount, Decided, Limit, decide, size_of_bytes};
use crate::judge::Verdict;
use crate::judge::resources::unsampled;
use crate::record::{MetricsRow, Record};

/// The least scatter of memory that is believed, in bytes: a page of noise would make any run long enough.
const SIGMA_BYTES_LEAST: f64 = 65_536.0;
const OF_BYTES: (f64, fn(f64) -> String) = (SIGMA_BYTES_LEAST, size_of_bytes);

/// Judges memory by the best series that there is.
pub(super) fn judge(record: &Record, limit: &Limit) -> Decided {
    if let (Some(why), None) = (unsampled(record), heap(record)) {
        let (verdict, text) = (Verdict::Inconclusive, format!("the resident set {why}"));
        return Decided { verdict, observed: "no samples".to_owned(), text, needed_s: None, grew: None, upper: None };
    }
    let resident = decide(record, limit, &resident(record));
    let Some(heap) = heap(record) else { return resident };
    let what = heap.what.clone();
    let in_use = decide(record, limit, &heap);
    if in_use.verdict == Verdict::Invalid && resident.verdict != Verdict::Invalid {
        let text = format!("{} By {what} it was not judged, because {}", resident.text, in_use.text);
        return Decided { text, ..resident };
    }
    let Some(grew) = &resident.grew else { return in_use };
    let also = match (in_use.verdict, resident.verdict) {
        (Verdict::Pass, Verdict::Fail) => format!(
            " The resident set grew by {grew} all the same: memory that is free is kept by the allocator, or something outside of the heap grows. \
             Only `memory.ceiling` limits that."
        ),
        (Verdict::Fail, Verdict::Pass) => {
            format!(" The resident set does not show it: it grew by {grew}. Room that was free before is being filled.")
        }
        _ => format!(" The resident set grew by {grew}."),
    };
    Decided { text: in_use.text.clone() + &also, ..in_use }
}

/// The series by which it is judged; none where there is no sample.
pub(super) fn judged(record: &Record, limit: &Limit) -> Option<Amount> {
    let Some(heap) = heap(record) else { return Some(resident(record)).filter(|amount| !amount.t_s.is_empty()) };
    let unusable = decide(record, limit, &heap).verdict == Verdict::Invalid;
    let other = resident(record);
    let falls_back = unusable && decide(record, limit, &other).verdict != Verdict::Invalid;
    Some(if falls_back { other } else { heap })
}

fn resident(record: &Record) -> Amount {
    let values = record.samples_in_turn().filter_map(|row| Some((row.t_ms, row.subject?.rss_bytes as f64)));
    Amount::of(record, "the resident set", OF_BYTES, values)
}

/// None where the subject does not tell it.
fn heap(record: &Record) -> Option<Amount> {
    let of = record.metrics.iter().find_map(|row: &MetricsRow| row.heap_of.as_deref())?;
    let values = record.metrics.iter().filter_map(|row| Some((row.t_ms, row.heap_bytes? as f64)));
    Some(Amount::of(record, format!("the heap in use ({of})"), OF_BYTES, values))
}
