//! The judged growth of memory for a chart: the series of samples, the slope with its interval, and the budget.
//!
//! Owns the positions of the lines in the chart. The module calls the judge's own functions, so that a chart never
//! shows another slope than the one that decided.

use super::axis::Axis;
use super::decide::{self, Limit};
use super::signal;
use crate::growth::WarmUp;
use crate::record::Record;
use crate::statistics::quantile;

/// One budget on the growth of memory, with the line that was fitted to the memory.
#[derive(Debug)]
pub(crate) struct Fit {
    /// The key of the budget, such as `memory.growth`.
    pub budget: &'static str,
    /// The name of the judged amount, as the subject of a sentence.
    pub what: String,
    pub limit: String,
    /// The judged values: milliseconds of the run, and bytes.
    pub points: Vec<(u64, f64)>,
    /// The start of the judged time, in milliseconds; the time before it is warm-up.
    pub from_ms: u64,
    /// The estimated line through the middle of the judged points: its values at the first and last time, in bytes.
    pub estimate: (f64, f64),
    /// The line with the lower bound of the slope, and the line with the upper bound.
    pub lower: (f64, f64),
    pub upper: (f64, f64),
    /// The line with the largest slope that the budget allows.
    pub most: (f64, f64),
    /// The start and the end of the lines, in milliseconds.
    pub span_ms: (u64, u64),
}

/// The data of the charts, one for each budget on the growth of memory for which a slope could be computed.
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
    let (amount, look) = decide::deciding(record, &limit, &signal::judged_series(record, &limit)?)?;
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
