//! Notes about the cost of the harness's own measurements, and about values that no budget limits.
//!
//! The harness's measurements need processor time during the run. The report shows this cost, which must not count
//! against the subject.

use std::fmt::Write as _;

use crate::judge::Findings;
use crate::record::Record;
use crate::words::{bytes, count, counted, micros, percent};

/// Minimum fraction of one processor that is reported as the cost of the harness's measurements.
const SHARE_TOLD: f64 = 0.05;
/// The shortest run for which this cost is reported, in milliseconds. Measurements begin before the run, while the
/// subject starts.
const LENGTH_MS_MIN: u64 = 10_000;

/// Adds notes about the harness's own measurements to the report.
pub(super) fn note(record: &Record, findings: &mut Findings) {
    if let Some(text) = cost(record) {
        findings.note(text);
    }
    let failed = record.metrics.iter().filter(|row| row.error.is_some()).count();
    if let Some(error) = record.metrics.iter().find_map(|row| row.error.as_deref()) {
        let (failed, all) = (count(failed as u64), count(record.metrics.len() as u64));
        findings.note(format!("its own metrics could not be read {failed} of {all} times; the first time: {error}."));
    }
    let kills = record.samples.iter().filter_map(|row| row.cgroup).map(|cgroup| cgroup.oom_kills);
    if let (Some(least), Some(most)) = (kills.clone().min(), kills.max())
        && most > least
    {
        let times = counted(most - least, "time");
        findings.note(format!(
            "the kernel killed processes in the subject's memory cgroup, because it was out of memory: {times}."
        ));
    }
}

/// A text about the processor time of the harness's own measurements; none if it is small.
fn cost(record: &Record) -> Option<String> {
    let length_us = Some(record.length_ms()).filter(|ms| *ms >= LENGTH_MS_MIN)?.checked_mul(1000)?;
    let of = |costs: &mut dyn Iterator<Item = u64>| costs.fold((0u64, 0u64), |(sum, n), one| (sum + one, n + 1));
    let (sum, _) = of(&mut record.samples.iter().map(|row| row.read_cost_us));
    let share = sum as f64 / length_us as f64;
    let (asked, scrapes) = of(&mut record.metrics.iter().map(|row| row.took_us));
    let asked_share = asked as f64 / length_us as f64;
    if share < SHARE_TOLD && asked_share < SHARE_TOLD {
        return None;
    }
    let mut text = format!("the harness's own readers took time: reading `/proc` took {} of the time", percent(share));
    let (walked, walks) = of(&mut record.samples.iter().filter_map(|row| row.rollup_cost_us));
    if let Some(each) = walked.checked_div(walks) {
        let _ = write!(text, ", {} each time all memory pages of the subject were read", micros(each));
    }
    if let Some(each) = asked.checked_div(scrapes) {
        let page = record.metrics.iter().map(|row| row.page_bytes).max().unwrap_or(0);
        let _ = write!(
            text,
            "; the subject was busy with its page of metrics ({}) for {} a reading, {} of the time",
            bytes(page),
            micros(each),
            percent(asked_share)
        );
    }
    Some(text + ".")
}

#[cfg(test)]
mod tests {
    use crate::example::Example;
    use crate::judge::judge;
    use crate::record::Cgroup;

    fn notes(spoil: impl Fn(&mut Example)) -> String {
        let mut example = Example::clean();
        example.tell_metrics(|_| 1 << 20, |_| 0.0);
        spoil(&mut example);
        let dir = tempfile::tempdir().unwrap();
        judge(&example.open(dir.path())).notes.join("\n")
    }

    #[test]
    fn what_costs_little_is_not_told() {
        let text = notes(|_| {});
        assert!(!text.contains("readers") && !text.contains("metrics") && !text.contains("cgroup"), "{text}");
    }

    #[test]
    fn readers_that_take_much_are_told() {
        let text = notes(|e| {
            e.samples.iter_mut().for_each(|row| row.read_cost_us = 60_000);
            e.samples[30].rollup_cost_us = Some(9000);
            e.metrics.iter_mut().for_each(|row| row.took_us = 30_000);
        });
        assert!(text.contains("reading `/proc` took 6 % of the time, 9 ms each time"), "{text}");
        assert!(text.contains("its page of metrics (4 KiB) for 30 ms a reading, 3 % of the time."), "{text}");
    }

    #[test]
    fn pages_that_could_not_be_read_and_kills_are_told() {
        let text = notes(|e| {
            e.metrics[7].error = Some("it answers 500".into());
            e.samples[10].cgroup = Some(Cgroup { version: 2, ..Cgroup::default() });
            e.samples[90].cgroup = Some(Cgroup { version: 2, oom_kills: 2, ..Cgroup::default() });
        });
        assert!(text.contains("could not be read 1 of 160 times; the first time: it answers 500."), "{text}");
        assert!(text.contains("out of memory: 2 times."), "{text}");
    }
}
