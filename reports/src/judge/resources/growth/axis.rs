//! The axes of growth: time, the subject's own time, distinct objects, admission reviews.

use crate::record::{Interval, Record};

const SECONDS_PER_HOUR: f64 = 3600.0;

/// An axis that growth is judged against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::judge::resources) enum Axis {
    Hours,
    /// Hours of the subject's own clock.
    OwnHours,
    /// Distinct objects that have come and gone.
    Objects,
    /// Admission reviews.
    Requests,
}

/// The axis of one run: the place of each moment on it.
pub(super) enum Scale {
    /// This many pass in an hour.
    Hours(f64),
    Counted(Counted),
}

/// A count that only rises, known at the ends of intervals.
pub(super) struct Counted {
    /// Seconds and count.
    known: Vec<(f64, f64)>,
}

impl Axis {
    /// The unit after a size.
    pub(super) fn per(self) -> &'static str {
        match self {
            Self::Hours => "/h",
            Self::OwnHours => "/own hour",
            Self::Objects => "/object",
            Self::Requests => "/request",
        }
    }

    pub(super) fn of(self, record: &Record) -> Scale {
        match self {
            Self::Hours => Scale::Hours(1.0),
            Self::OwnHours => Scale::Hours(f64::from(record.manifest.clock_rate)),
            Self::Objects => {
                let objects = record.intervals.iter().filter_map(|row| Some((row, row.churn.as_ref()?.objects_total)));
                Scale::Counted(Counted::of(objects))
            }
            Self::Requests => {
                let mut total = 0;
                let requests = record.intervals.iter().filter_map(|row| {
                    total += row.admission.as_ref()?.sent;
                    Some((row, total))
                });
                Scale::Counted(Counted::of(requests))
            }
        }
    }
}

impl Scale {
    pub(super) fn at(&self, t_s: f64) -> f64 {
        match self {
            Self::Hours(each) => t_s / SECONDS_PER_HOUR * each,
            Self::Counted(counted) => counted.at(t_s),
        }
    }
}

impl Counted {
    fn of<'a>(rows: impl Iterator<Item = (&'a Interval, u64)>) -> Self {
        let mut known: Vec<(f64, f64)> = Vec::new();
        for (row, total) in rows {
            let most = known.last().map_or(0.0, |last| last.1);
            known.push((row.end_ms as f64 / 1000.0, (total as f64).max(most)));
        }
        Self { known }
    }

    /// The count at this time, interpolated between the two nearest known ones.
    fn at(&self, t_s: f64) -> f64 {
        let next = self.known.partition_point(|(known_s, _)| *known_s < t_s);
        match (next.checked_sub(1).and_then(|before| self.known.get(before)), self.known.get(next)) {
            (Some(before), Some(after)) => before.1 + (after.1 - before.1) * (t_s - before.0) / (after.0 - before.0),
            (Some(only), None) | (None, Some(only)) => only.1,
            (None, None) => 0.0,
        }
    }
}
