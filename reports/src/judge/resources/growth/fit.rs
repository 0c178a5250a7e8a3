//! The judge's view of memory growth, for a picture: the series, the slope with its interval, the budget.
//!
//! Owns the positions of the lines. It judges like the judge, so that no picture shows another slope than the one that
//! decided.

use super::axis::Axis;
use super::decide::{self, Limit};
use super::signal;
use crate::growth::WarmUp;
use crate::record::Record;
use crate::statistics::quantile;

/// One budget on the growth of memory, as it was judged.
#[derive(Debug)]
pub(crate) struct Fit {
    /// The budget: `memory.growth`.
    pub budget: &'static str,
    /// The judged amount, as the subject of a sentence.
    pub what: String,
    /// The limit as it is shown.
    pub limit: String,
    /// The points: milliseconds of the run and bytes.
    pub points: Vec<(u64, f64)>,
    /// The start of the counted time, in milliseconds; the time before is warm-up.
    pub from_ms: u64,
    /// The estimated line through the middle of the counted points: its values at start and end, in bytes.
    pub estimate: (f64, f64),
    /// The lines with the lower and the upper bound of the slope.
    pub lower: (f64, f64),
    pub upper: (f64, f64),
    /// The line that the budget would allow.
    pub most: (f64, f64),
    /// The start and the end of the lines, in milliseconds.
    pub span_ms: (u64, u64),
}

/// One for each budget on growing memory through which a slope could be computed.
pub(crate) fn fits(record: &Record) -> Vec<Fit> {
    let Some(memory) = &record.manifest.budgets.memory else { return Vec::new() };
    let limits = [
        (
            "memory.growth",
            memory.growth.as_ref().map(|limit| (limit.bytes_per_hour as f64, limit.to_string())),
            Axis::Hours,
        ),
        (
            "memory.growthPerOwnHour",
            memory.growth_per_own_hour.as_ref().map(|limit| (limit.0 as f64, format!("{limit}/own hour"))),
            Axis::OwnHours,
        ),
        (
            "memory.growthPerObject",
            memory.growth_per_object.as_ref().map(|limit| (limit.0 as f64, format!("{limit}/object"))),
            Axis::Objects,
        ),
        (
            "memory.growthPerRequest",
            memory.growth_per_request.as_ref().map(|limit| (limit.0 as f64, format!("{limit}/request"))),
            Axis::Requests,
        ),
    ];
    let set = limits.into_iter().filter_map(|(budget, limit, axis)| {
        let (most, text) = limit?;
        Some((budget, Limit { most, text, axis }))
    });
    set.filter_map(|(budget, limit)| fit(record, budget, limit)).collect()
}

fn fit(record: &Record, budget: &'static str, limit: Limit) -> Option<Fit> {
    let (amount, look) = decide::deciding(record, &limit, &signal::judged(record, &limit)?)?;
    let (answer, settled, axis) = decide::ask(record, &limit, &amount, look);
    let slope = answer.slope?;
    let from_s = match answer.warm_up {
        WarmUp::Until { t_s } => t_s.max(settled.since_s),
        WarmUp::None | WarmUp::Never => settled.since_s,
    };
    let first = amount.t_s.partition_point(|t_s| *t_s < from_s);
    let (places, values) = (axis.get(first..)?, amount.value.get(first..)?);
    let (begin, end) = (*places.first()?, *places.last()?);
    // Through the medians, like Theil's line: an outlier moves it no more than it moves the slope.
    let middle = (quantile::median(places), quantile::median(values));
    let line = |slope: f64| {
        let at = |place: f64| middle.1 + slope * (place - middle.0);
        (at(begin), at(end))
    };
    let ms = |t_s: f64| crate::words::whole(t_s * 1000.0);
    Some(Fit {
        budget,
        limit: limit.text,
        points: amount.t_s.iter().map(|t_s| ms(*t_s)).zip(amount.value.iter().copied()).collect(),
        from_ms: ms(from_s),
        estimate: line(slope.estimate),
        lower: line(slope.lower),
        upper: line(slope.upper),
        most: line(limit.most),
        span_ms: (ms(*amount.t_s.get(first)?), ms(*amount.t_s.last()?)),
        what: amount.what,
    })
}
