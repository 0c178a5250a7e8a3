//! The time from which everything except memory was steady, so that a subject that still warms up does not count as
//! leaking.
//!
//! Owns the three series that are compared with memory: the median response time, processor time for each review, and
//! connections. The three series can only cut the start of the memory series. A series that never becomes steady is
//! reported and does not decide, because on a noisy machine response time and processor time never become steady.

use crate::growth::{WarmUp, warm_up};
use crate::record::{Phase, Record};
use crate::statistics::blocks::Series;
use crate::statistics::quantile;

/// A series is steady from the time at which its level differs from the later level by less than this fraction.
const MATTERS: f64 = 0.1;

/// When the three series became steady.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Settled {
    /// The time, in seconds of the run, from which all series were steady, except those that never were.
    pub(super) since_s: f64,
    /// The series that became steady last of the three.
    pub(super) last: Option<&'static str>,
    /// Series that were not steady in the first half of the run.
    pub(super) never: Vec<&'static str>,
}

impl Settled {
    pub(super) fn of(record: &Record) -> Self {
        let mut settled = Self::default();
        let all = [
            ("the median response time", response(record)),
            ("the processor time of a review", cost(record)),
            ("the number of connections", connections(record)),
        ];
        for (name, points) in all {
            let (t_s, value): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
            let series = Series { t_s: &t_s, value: &value, axis: &t_s };
            let matters = MATTERS * if value.is_empty() { 0.0 } else { quantile::median(&value) };
            match warm_up(&series, matters) {
                Some(WarmUp::Until { t_s }) if t_s > settled.since_s => {
                    (settled.since_s, settled.last) = (t_s, Some(name));
                }
                Some(WarmUp::Never) => settled.never.push(name),
                _ => {}
            }
        }
        settled
    }
}

/// The response time: seconds of the run, and microseconds.
fn response(record: &Record) -> Vec<(f64, f64)> {
    let rows = record.intervals.iter().filter(|row| row.phase == Phase::Steady);
    let medians = rows.filter_map(|row| Some((row.end_ms, row.admission.as_ref()?.response.as_ref()?.p50_us?)));
    medians.map(|(end_ms, p50_us)| (end_ms as f64 / 1000.0, p50_us as f64)).collect()
}

/// The processor time of a review: seconds of the run, and milliseconds. The processor time comes from the samples next
/// to the ends of the intervals.
fn cost(record: &Record) -> Vec<(f64, f64)> {
    let cpu_ms = |t_ms: u64| {
        let next = record.samples.partition_point(|row| row.t_ms < t_ms);
        record.samples.get(next).and_then(|row| row.subject).map(|process| process.cpu_ms)
    };
    let rows = record.intervals.iter().filter(|row| row.phase == Phase::Steady);
    rows.filter_map(|row| {
        let sent = row.admission.as_ref().map(|row| row.sent).filter(|sent| *sent > 0)?;
        let used_ms = cpu_ms(row.end_ms)?.saturating_sub(cpu_ms(row.start_ms)?);
        Some((row.end_ms as f64 / 1000.0, used_ms as f64 / sent as f64))
    })
    .collect()
}

/// The number of open connections: seconds of the run, and sockets.
fn connections(record: &Record) -> Vec<(f64, f64)> {
    let sockets = record.samples_in_turn().filter_map(|row| Some((row.t_ms, row.subject?.fds.socket)));
    sockets.map(|(t_ms, sockets)| (t_ms as f64 / 1000.0, sockets as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Example;

    fn settled(spoil: impl Fn(&mut Example)) -> Settled {
        let mut example = Example::clean();
        spoil(&mut example);
        let dir = tempfile::tempdir().unwrap();
        Settled::of(&example.open(dir.path()))
    }

    #[test]
    fn a_clean_run_is_steady_from_its_start() {
        assert_eq!(settled(|_| {}), Settled::default());
    }

    /// If connections are opened for half a minute, that time is cut from the start of the memory series.
    #[test]
    fn what_settles_late_cuts_the_start() {
        let late = settled(|e| {
            for row in e.samples.iter_mut().filter(|row| row.t_ms < 45_000) {
                row.subject.as_mut().unwrap().fds.socket = 2;
            }
        });
        assert_eq!(late.last, Some("the number of connections"), "{late:?}");
        assert!((35.0..55.0).contains(&late.since_s), "{late:?}");
    }

    /// If the number of connections halves every few seconds until after the middle of the run, it is reported as
    /// unsteady, and the memory series is not cut.
    #[test]
    fn what_never_settles_is_told() {
        let never = settled(|e| {
            let (from_s, half_s) = (e.manifest.phases.warm_up_ms / 1000, e.manifest.phases.steady_ms / 24_000);
            for row in &mut e.samples {
                let halves = (row.t_ms / 1000).saturating_sub(from_s) / half_s.max(1);
                row.subject.as_mut().unwrap().fds.socket = (1 << 14_u64.saturating_sub(halves)) + row.t_ms / 1000 % 2;
            }
        });
        assert_eq!(never.never, ["the number of connections"], "{never:?}");
        assert!(never.since_s < 1.0, "{never:?}");
    }
}
