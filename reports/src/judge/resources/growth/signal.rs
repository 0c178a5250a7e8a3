//! Chooses the series that judges the growth of memory, heap or resident set, and writes a text about the series that
//! was not chosen.
//!
//! Owns the choice between heap and resident set. If the subject reports often enough how much memory its allocator or
//! runtime has in use (the heap), the heap decides. A leak is visible in the heap before the resident set grows, and
//! the heap does not contain memory that an allocator only retains. Memory can also leak outside of the heap. A flat
//! heap therefore excuses a growing resident set only if an allocator can be the reason.

use super::amount::Amount;
use super::decide::{Decided, Limit, decide, size_of_bytes};
use crate::growth::length;
use crate::judge::Verdict;
use crate::judge::resources::{subject, unsampled};
use crate::record::{MetricsRow, Phase, Process, Record};
use crate::statistics::quantile;
use crate::words::count;

/// The smallest scatter of memory that is assumed, in bytes. With the scatter of one memory page, any run would be long
/// enough.
const SIGMA_BYTES_LEAST: f64 = 65_536.0;
const OF_BYTES: (f64, fn(f64) -> String) = (SIGMA_BYTES_LEAST, size_of_bytes);

/// The heap decides only if the steady phase has at least this many heap values: three for each block of the minimum
/// number of blocks.
const READINGS_LEAST: usize = 36;
/// The count of another resource grew with the resident set if its value in the last quarter of the steady phase is at
/// least this many times that of the first quarter.
const MORE_SHARE: f64 = 1.5;
/// Minimum difference of another resource's count between the last and the first quarter of the steady phase.
const MORE_LEAST: f64 = 8.0;

/// Judges memory by the better of the two series, heap or resident set.
pub(super) fn judge(record: &Record, limit: &Limit) -> Decided {
    if let (Some(why), None) = (unsampled(record), heap(record)) {
        return Decided {
            verdict: Verdict::Inconclusive,
            observed: "no samples".to_owned(),
            text: format!("the resident set {why}"),
            needed_s: None,
            grew: None,
            upper: None,
            least: 0.0,
            is_unusable: true,
        };
    }
    let resident = decide(record, limit, &resident(record));
    let Some(heap) = heap(record) else { return resident };
    let what = heap.what.clone();
    if heap.t_s.len() < READINGS_LEAST && !resident.is_unusable {
        let readings = count(heap.t_s.len() as u64);
        let text = format!("{} It was not judged by {what}, because {readings} readings are too few.", resident.text);
        return Decided { text, ..resident };
    }
    let in_use = decide(record, limit, &heap);
    if in_use.is_unusable && !resident.is_unusable {
        let text = format!("{} It was not judged by {what}, because {}", resident.text, in_use.text);
        return Decided { text, ..resident };
    }
    let Some(grew) = &resident.grew else { return in_use };
    let also = match (in_use.verdict, resident.verdict) {
        (Verdict::Pass | Verdict::Inconclusive, Verdict::Fail) => match Outside::of(record, limit, &heap, &resident) {
            Some(outside) => {
                let flat = in_use.grew.as_ref().map_or_else(String::new, |grew| format!(", which grew by {grew}"));
                let text = format!("{} It is not in {what}{flat}: {}", resident.text, outside.words());
                return Decided { text, ..resident };
            }
            None => format!(
                " The resident set grew by {grew}, which an allocator that keeps free memory can explain; a longer run, or \
                 `memory.ceiling`, shows whether it is a leak outside the heap."
            ),
        },
        (Verdict::Fail, Verdict::Pass) => {
            format!(" The resident set grew by only {grew}, because memory that was free before is filled.")
        }
        _ => format!(" The resident set grew by {grew}."),
    };
    Decided { text: in_use.text.clone() + &also, ..in_use }
}

/// Why a resident set that grows while the heap is flat is still a leak.
enum Outside {
    /// The resident set grew by more than the size that the heap ever had: no allocator retains that much.
    MoreThanTheHeap { least: f64, heap: f64, with: Vec<String> },
    /// The counts of other resources grew with the resident set.
    With(Vec<String>),
    /// The resident set grew for longer than an allocator needs to fill its pools.
    Long,
}

impl Outside {
    fn of(record: &Record, limit: &Limit, heap: &Amount, resident: &Decided) -> Option<Self> {
        let with = grown(record);
        let most = heap.value.iter().copied().fold(0.0, f64::max);
        let planned_s = record.manifest.phases.steady_ms as f64 / 1000.0;
        match () {
            () if resident.least > most => Some(Self::MoreThanTheHeap { least: resident.least, heap: most, with }),
            () if !with.is_empty() => Some(Self::With(with)),
            () if length::decidable(planned_s, length::SIGMA_BYTES, length::TAU_S, limit.per_second(record)) => {
                Some(Self::Long)
            }
            () => None,
        }
    }

    fn words(&self) -> String {
        match self {
            Self::MoreThanTheHeap { least, heap, with } => {
                let with = if with.is_empty() { String::new() } else { format!(" Meanwhile {}.", with.join(", ")) };
                format!(
                    "it grew by at least {}, and the heap never held more than {}, so an allocator is not the reason. Memory outside the \
                     heap leaks: buffers of a native library, stacks, TLS sessions, mappings.{with}",
                    size_of_bytes(*least),
                    size_of_bytes(*heap)
                )
            }
            Self::With(with) => format!("memory outside the heap grew together with these: {}.", with.join(", ")),
            Self::Long => "it continued for longer than an allocator takes to fill up, so memory outside the heap leaks: buffers of a \
                           native library, stacks, TLS sessions, mappings."
                .to_owned(),
        }
    }
}

/// The other resources that keep growing: descriptors, threads, open watches, connections.
fn grown(record: &Record) -> Vec<String> {
    let processes = |read: fn(&Process) -> u64| -> Vec<(u64, u64)> {
        subject(record).map(|(t_ms, process)| (t_ms, read(&process))).collect()
    };
    let rows = |read: fn(&record::ApiRow) -> u64| -> Vec<(u64, u64)> {
        record.intervals.iter().map(|row| (row.end_ms, read(&row.api))).collect()
    };
    let series = [
        ("sockets", processes(|process| process.fds.socket)),
        ("other descriptors", processes(|process| process.fds.total() - process.fds.socket)),
        ("threads", processes(|process| process.threads)),
        ("open watches", rows(|api| api.subject_open_watches)),
        ("connections to the control plane", rows(|api| api.subject_open_connections)),
    ];
    let told = series.iter().filter_map(|(name, values)| {
        let steady: Vec<f64> =
            values.iter().filter(|(t_ms, _)| record.phase_at(*t_ms) == Phase::Steady).map(|(_, n)| *n as f64).collect();
        let quarter = steady.len() / 4;
        if quarter == 0 {
            return None;
        }
        let (first, last) = (quantile::median(&steady[..quarter]), quantile::median(&steady[steady.len() - quarter..]));
        let grew = last >= MORE_SHARE * first && last >= first + MORE_LEAST;
        grew.then(|| format!("{name} went from {first:.0} to {last:.0}"))
    });
    told.collect()
}

/// The series whose growth is judged; none if there is no sample.
pub(super) fn judged_series(record: &Record, limit: &Limit) -> Option<Amount> {
    let other = resident(record);
    let Some(heap) = heap(record) else { return Some(other).filter(|amount| !amount.t_s.is_empty()) };
    let by_other = decide(record, limit, &other);
    let by_heap = decide(record, limit, &heap);
    let is_no_signal = heap.t_s.len() < READINGS_LEAST || by_heap.is_unusable;
    let leaks_outside = by_heap.verdict != Verdict::Fail
        && by_other.verdict == Verdict::Fail
        && Outside::of(record, limit, &heap, &by_other).is_some();
    Some(if (is_no_signal && !by_other.is_unusable) || leaks_outside { other } else { heap })
}

fn resident(record: &Record) -> Amount {
    let values = record.samples_in_turn().filter_map(|row| Some((row.t_ms, row.subject?.rss_bytes as f64)));
    Amount::of(record, "the resident set", OF_BYTES, values)
}

/// The samples of the heap in use; none if the subject does not report it.
fn heap(record: &Record) -> Option<Amount> {
    let of = record.metrics.iter().find_map(|row: &MetricsRow| row.heap_of.as_deref())?;
    let values = record.metrics.iter().filter_map(|row| Some((row.t_ms, row.heap_bytes? as f64)));
    Some(Amount::of(record, format!("the heap in use ({of})"), OF_BYTES, values))
}
