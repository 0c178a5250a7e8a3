//! Runs the judge of growth on generated series: each kind of series at each speed of growth, on all processors.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use reports::growth::Outcome;
use reports::growth::calibration::{KINDS, Kind, Row};

/// Growth that no judge may miss, as a multiple of the budget, and the number of series with this growth.
const CANARY: (f64, u64) = (40.0, 10);

/// Whether the judge finds a growth that cannot be missed, and accepts series without growth.
pub(super) fn canary() -> bool {
    let [level, ..] = KINDS;
    let fails = |seed| level.play(CANARY.0, seed).outcome == Outcome::Fail;
    (0..CANARY.1).all(fails)
}

/// The results for `runs` generated series of each kind and speed, ordered by kind. The result depends on the seeds,
/// and not on the number of threads.
pub(super) fn table(runs: u64) -> Vec<Row> {
    let work: Vec<(Kind, f64)> =
        KINDS.into_iter().flat_map(|kind| kind.speeds().into_iter().map(move |times| (kind, times))).collect();
    let rows: Vec<Mutex<Option<Row>>> = work.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(work.len()) {
            scope.spawn(|| {
                while let Some((index, (kind, times))) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|index| Some((index, work.get(index)?)))
                {
                    let row = kind.row(*times, runs);
                    if let Ok(mut place) = rows[index].lock() {
                        *place = Some(row);
                    }
                }
            });
        }
    });
    rows.into_iter().filter_map(|row| row.into_inner().ok().flatten()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_kind_at_every_speed_in_order() {
        let rows = table(1);
        let kinds: Vec<&str> = rows.iter().map(|row| row.kind.as_str()).collect();
        let expected: Vec<&str> = KINDS.iter().flat_map(|kind| vec![kind.name; kind.speeds().len()]).collect();
        assert_eq!(kinds, expected);
        assert!(rows.iter().all(|row| row.passed + row.failed + row.undecided + row.invalid == 1));
        assert!(canary());
    }
}
