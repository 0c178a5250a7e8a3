//! Charts of the subject's resources: memory, descriptors, sockets, and series of its own metrics.

use std::borrow::Cow;

use super::{gap_ms, thinned};
use crate::record::{MachineRow, Process, Record, Sample, Sockets};
use crate::render::html::chart::{Chart, Curve, Tick, position};
use crate::render::html::scale::{Scale, whole};
use crate::words::{bytes, count, three_digits};

const MIB: f64 = 1_048_576.0;

/// Identifier, title and caption of a chart.
pub(super) type Names = (Cow<'static, str>, Cow<'static, str>, &'static str);

/// A curve of a chart before it is drawn: name, CSS class and points.
pub(super) type Line = (&'static str, &'static str, Vec<(u64, f64)>);

pub(super) fn memory(record: &Record, length_ms: u64) -> Option<Chart> {
    let ceiling = record.manifest.budgets.memory.as_ref().and_then(|budget| budget.ceiling);
    let limit = ceiling.map(|ceiling| (ceiling.0 as f64, format!("limit {ceiling}")));
    let caption = if record.metrics.iter().any(|row| row.heap_bytes.is_some()) {
        "resident set of the process tree, and its reported heap in use"
    } else {
        "resident set of the process tree"
    };
    let words = |value: f64| bytes(whole(value));
    let heap = record.metrics.iter().filter_map(|row| Some((row.t_ms, row.heap_bytes? as f64)));
    let cgroup = record.samples.iter().filter_map(|row| Some((row.t_ms, row.cgroup?.current_bytes as f64)));
    let harness = record.samples.iter().filter_map(|row| Some((row.t_ms, row.harness?.rss_bytes as f64)));
    let lines = [
        ("subject", "c1", of_subject(record, length_ms, |process| process.rss_bytes)),
        ("heap in use", "c3", thinned(heap, length_ms)),
        ("its cgroup", "c2 thin", thinned(cgroup, length_ms)),
        ("harness", "c4 thin", thinned(harness, length_ms)),
    ];
    lines_chart(record, length_ms, ("memory".into(), "Memory".into(), caption), (MIB, &words), limit, &lines)
}

pub(super) fn descriptors(record: &Record, length_ms: u64) -> Option<Chart> {
    let ceiling = record.manifest.budgets.descriptors.as_ref().and_then(|budget| budget.ceiling);
    let limit = ceiling.map(|ceiling| (ceiling as f64, format!("limit {ceiling}")));
    let names = ("descriptors".into(), "Descriptors".into(), "open file descriptors of the process tree");
    let words = |value: f64| count(whole(value));
    let lines = [("subject", "c1", of_subject(record, length_ms, |process| process.fds.total()))];
    lines_chart(record, length_ms, names, (1.0, &words), limit, &lines)
}

pub(super) fn threads(record: &Record, length_ms: u64) -> Option<Chart> {
    let ceiling = record.manifest.budgets.threads.as_ref().and_then(|budget| budget.ceiling);
    let limit = ceiling.map(|ceiling| (ceiling as f64, format!("limit {ceiling}")));
    let words = |value: f64| count(whole(value));
    let lines = [("subject", "c1", of_subject(record, length_ms, |process| process.threads))];
    let names = ("threads".into(), "Threads".into(), "of the process tree");
    lines_chart(record, length_ms, names, (1.0, &words), limit, &lines)
}

pub(super) fn processor(record: &Record, length_ms: u64) -> Option<Chart> {
    let share = |read| processor_share(record, length_ms, read);
    let words = |value: f64| format!("{} %", three_digits(value));
    let lines = [("subject", "c1", share(|row| row.subject)), ("harness", "c4 thin", share(|row| row.harness))];
    let names = ("processor".into(), "Processor".into(), "100 % is one processor");
    lines_chart(record, length_ms, names, (1.0, &words), None, &lines)
}

/// The percentage of one processor that a process used between each two samples.
pub(super) fn processor_share(
    record: &Record,
    length_ms: u64,
    read: fn(&Sample) -> Option<Process>,
) -> Vec<(u64, f64)> {
    {
        let mut last: Option<(u64, Process)> = None;
        let each = record.samples.iter().filter(|row| !row.peak).filter_map(move |row| {
            let now = (row.t_ms, read(row)?);
            let (t_ms, before) = last.replace(now)?;
            // The counter of a process that was started again begins at zero.
            let used_ms = (now.1.starts == before.starts).then(|| now.1.cpu_ms.checked_sub(before.cpu_ms))??;
            let length_ms = now.0.saturating_sub(t_ms);
            (length_ms > 0).then(|| (now.0, used_ms as f64 / length_ms as f64 * 100.0))
        });
        thinned(each, length_ms)
    }
}

/// The chart of the machine's load.
pub(super) fn pressure(record: &Record, length_ms: u64) -> Option<Chart> {
    let of = |read: fn(&MachineRow) -> Option<f64>| {
        thinned(record.samples.iter().filter_map(|row| Some((row.t_ms, read(&row.machine)?))), length_ms)
    };
    let words = |value: f64| format!("{} %", three_digits(value));
    let lines = [
        ("processor", "c1", of(|machine| machine.psi_cpu_some_pct)),
        ("memory", "c3", of(|machine| machine.psi_memory_some_pct)),
        ("disk", "c4 thin", of(|machine| machine.psi_io_some_pct)),
        ("taken by other guests", "c2", stolen(record, length_ms)),
    ];
    let caption = "share of the last 10 s in which tasks waited for it";
    lines_chart(
        record,
        length_ms,
        ("pressure".into(), "Pressure on the machine".into(), caption),
        (1.0, &words),
        None,
        &lines,
    )
}

/// The percentage of the machine's time that other virtual machines of its host used.
fn stolen(record: &Record, length_ms: u64) -> Vec<(u64, f64)> {
    let cores = f64::from(record.manifest.machine.cores.max(1));
    let mut last: Option<(u64, u64)> = None;
    let each = record.samples.iter().filter(|row| !row.peak).filter_map(|row| {
        let now = (row.t_ms, row.machine.steal_ms?);
        let (t_ms, before) = last.replace(now)?;
        let length_ms = now.0.saturating_sub(t_ms);
        (length_ms > 0).then(|| (now.0, now.1.saturating_sub(before) as f64 / length_ms as f64 / cores * 100.0))
    });
    let points: Vec<(u64, f64)> = each.collect();
    if points.iter().all(|(_, share)| *share == 0.0) { Vec::new() } else { thinned(points.into_iter(), length_ms) }
}

pub(super) fn sockets(record: &Record, length_ms: u64) -> Option<Chart> {
    let of = |read: fn(&Sockets) -> u64| {
        let values = record.samples.iter().filter_map(|row| Some((row.t_ms, read(row.sockets.as_ref()?) as f64)));
        thinned(values, length_ms)
    };
    let names = ("sockets".into(), "TCP sockets".into(), "of the process tree, by the state of their connection");
    let words = |value: f64| count(whole(value));
    let lines = [
        ("open", "c1", of(|sockets| sockets.established)),
        ("closed by the peer only", "c2", of(|sockets| sockets.close_wait)),
        ("being opened or closed", "c4 thin", of(|sockets| sockets.opening + sockets.closing)),
    ];
    lines_chart(record, length_ms, names, (1.0, &words), None, &lines)
}

/// A chart for each series of the subject's own metrics that the manifest lists.
pub(super) fn own_series(record: &Record, length_ms: u64) -> impl Iterator<Item = Chart> {
    let followed = record.manifest.subject.metrics.iter().flat_map(|plan| &plan.series);
    followed.enumerate().filter_map(move |(index, series)| {
        let values = record.metrics.iter().filter_map(|row| Some((row.t_ms, *row.series.get(series)?)));
        let ceiling = record.manifest.budgets.metrics.get(series).and_then(|limits| limits.ceiling);
        let limit = ceiling.map(|most| (most, format!("limit {}", three_digits(most))));
        let names = (format!("series-{index}").into(), series.clone().into(), "of the subject's own metrics");
        let lines = [("value", "c1", thinned(values, length_ms))];
        lines_chart(record, length_ms, names, (1.0, &three_digits), limit, &lines)
    })
}

pub(super) fn of_subject(record: &Record, length_ms: u64, read: fn(&Process) -> u64) -> Vec<(u64, f64)> {
    let values = record.samples.iter().filter_map(|row| Some((row.t_ms, read(row.subject.as_ref()?) as f64)));
    thinned(values, length_ms)
}

/// A chart of curves whose axis begins at zero; none if the first line has no point.
pub(super) fn lines_chart(
    record: &Record,
    length_ms: u64,
    names: Names,
    (unit, words): (f64, &dyn Fn(f64) -> String),
    limit: Option<(f64, String)>,
    lines: &[Line],
) -> Option<Chart> {
    let largest = |points: &[(u64, f64)]| points.iter().fold(0f64, |most, (_, value)| most.max(*value));
    let first = lines.first().filter(|(.., points)| !points.is_empty())?;
    let summary = format!("{} at most {}", first.0, words(largest(&first.2)));
    let most = lines.iter().map(|(.., points)| largest(points)).fold(0f64, f64::max);
    // A limit far above the curves would flatten them to a line.
    let limit = limit.filter(|(value, _)| *value <= most * 3.0);
    let scale = Scale::linear(limit.as_ref().map_or(most, |(value, _)| most.max(*value)), unit);
    let shape = (length_ms, gap_ms(record, length_ms));
    let drawn = lines.iter().filter(|(.., points)| !points.is_empty());
    let curves =
        drawn.map(|(name, class, points)| Curve::over_time(*name, class, points, shape, scale, words)).collect();
    let limits = limit.map(|(value, label)| Tick { at: position(100.0 - scale.percent(value)), label });
    let limits = limits.into_iter().collect();
    Some(Chart { limits, ..Chart::new(names, (scale, words), curves, summary) })
}
