//! The axes of growth: time, time of the subject's own clock, distinct objects, admission reviews.

use crate::record::{Interval, Record};

const SECONDS_PER_HOUR: f64 = 3600.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::judge::resources) enum Axis {
    Hours,
    OwnHours,
    /// The axis is the number of distinct objects that were created and deleted.
    Objects,
    /// The axis is the number of admission reviews.
    Requests,
}

/// The scale of an axis in one run: it gives the position of each moment.
pub(super) enum Scale {
    /// The axis is a time: the number of its units per hour of the run.
    Hours(f64),
    Counted(Counted),
}

/// A count that never falls, known at the ends of the intervals of a run.
pub(super) struct Counted {
    /// The known values of the count, each with its time in seconds.
    known: Vec<(f64, f64)>,
}

impl Axis {
    /// The unit of the axis, as text after a size.
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

    /// The count at `t_s`, interpolated between the two nearest known values.
    fn at(&self, t_s: f64) -> f64 {
        let next = self.known.partition_point(|(known_s, _)| *known_s < t_s);
        match (next.checked_sub(1).and_then(|before| self.known.get(before)), self.known.get(next)) {
            (Some(before), Some(after)) => before.1 + (after.1 - before.1) * (t_s - before.0) / (after.0 - before.0),
            (Some(only), None) | (None, Some(only)) => only.1,
            (None, None) => 0.0,
        }
    }
}
