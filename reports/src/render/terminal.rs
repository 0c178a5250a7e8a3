//! The summary of a run for a terminal. The first line of the summary is the verdict.
//!
//! Owns a text that fits on a screen: the verdict, findings that are not a pass, the run's numbers, and the paths of
//! reports. Control characters in the subject's output are removed, so that they cannot move the cursor.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::causes;
use crate::judge::{Judgement, Verdict};
use crate::record::{AlertsRow, FaultEvent, Phase, Quantiles, Record, tag};
use crate::words::{bytes, count, counted, micros, millis};

/// Maximum number of faults that the summary lists one by one. If a run has more faults, they are grouped by name.
const FAULTS_EACH: usize = 20;

/// Whether the text has ANSI colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Colours are off: for pipes, files and `NO_COLOR`.
    Never,
    /// Colours are on: for terminals.
    Always,
}

/// The summary of a run as text that ends with a line end.
pub fn terminal(record: &Record, judgement: &Judgement, colour: Colour) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_summary(&mut text, record, judgement, colour);
    text
}

fn write_summary(out: &mut String, record: &Record, judgement: &Judgement, colour: Colour) -> std::fmt::Result {
    let name = plain(&judgement.name);
    let length = millis(record.length_ms());
    writeln!(out, "{} {name}: {}", badge(judgement.verdict, colour), plain(&because(judgement)))?;
    writeln!(out, "     seed {}, {length}, run {}", judgement.seed, plain(&judgement.run_id))?;
    let crossed = judgement.crossed();
    if !crossed.is_empty() {
        writeln!(out)?;
    }
    for finding in crossed {
        let badge = badge(finding.verdict, colour);
        let (observed, limit) = (plain(&finding.observed), plain(&finding.limit));
        writeln!(out, "{badge} {}: {observed} (limit {limit})", plain(&finding.budget))?;
        writeln!(out, "     {}", plain(&finding.text))?;
    }
    write_causes(out, record)?;
    writeln!(out)?;
    for (title, line) in figures(record) {
        writeln!(out, "{title:<10} {line}")?;
    }
    for note in &judgement.notes {
        writeln!(out, "{:<10} {}", "note", plain(note))?;
    }
    writeln!(out, "{:<10} {}", "repeat", plain(&record.manifest.repeat))
}

/// The commonest causes of anomalies, and the remedy for the commonest cause.
fn write_causes(out: &mut String, record: &Record) -> std::fmt::Result {
    let summary = causes::summary(record);
    let Some(first) = summary.first().first() else { return Ok(()) };
    writeln!(out)?;
    for group in summary.first() {
        writeln!(out, "{:<10} {}", "cause", plain(&group.line()))?;
    }
    writeln!(out, "{:<10} {}", "next", first.cause.remedy())
}

/// The reason for the verdict on one line. Below this reason, each limit that was exceeded has one sentence.
fn because(judgement: &Judgement) -> String {
    let names: Vec<String> = judgement
        .findings
        .iter()
        .filter(|finding| finding.verdict == judgement.verdict)
        .map(|finding| format!("{} ({})", finding.budget, finding.observed))
        .collect();
    match judgement.verdict {
        Verdict::Pass => judgement.reason.clone(),
        _ if names.is_empty() => judgement.reason.clone(),
        _ => names.join(", "),
    }
}

/// The numbers of the run, one line for each group of numbers.
pub(super) fn figures(record: &Record) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let counts = record.totals();
    if counts.commits > 0 {
        let mut line = format!(
            "{}, {} observed, {} coalesced, {} late, {} missed",
            counted(counts.commits, "commit"),
            count(counts.observed),
            count(counts.coalesced),
            count(counts.late + counts.late_ghost),
            count(counts.missed)
        );
        if counts.ghost > 0 {
            line = format!("{line}, {} unnoticed", counted(counts.ghost, "deletion"));
        }
        if let Some(lag) = record.latency.whole(tag::LAG) {
            line = format!("{line}; lag {}", quantiles(&Quantiles::of(&lag)));
        }
        lines.push(("events", line));
    }
    let reviews: u64 = record.intervals.iter().filter_map(|row| Some(row.admission.as_ref()?.sent)).sum();
    if reviews > 0 {
        let rows = record.intervals.iter().filter_map(|row| row.admission.as_ref());
        let errors: u64 = rows.map(record::AdmissionRow::errors).sum();
        let mut line = format!("{}, {}", counted(reviews, "review"), counted(errors, "error"));
        if let Some(response) = record.latency.in_phase(tag::RESPONSE, Phase::Steady) {
            line = format!("{line}; steady {}", quantiles(&Quantiles::of(response)));
        }
        lines.push(("admission", line));
        let stored: Vec<_> =
            record.intervals.iter().filter_map(|row| row.admission.as_ref()?.stored.as_ref()).collect();
        if !stored.is_empty() {
            let versions = stored.iter().map(|row| row.versions).sum();
            let unpinned = stored.iter().map(|row| row.unpinned).sum();
            let (versions, unpinned) = (counted(versions, "version"), counted(unpinned, "unpinned object"));
            lines.push(("stored", format!("{versions} with images, {unpinned}")));
        }
    }
    if let Some(line) = alerts(record) {
        lines.push(("alerts", line));
    }
    if let Some(line) = calls(record) {
        lines.push(("api", line));
    }
    let largest = |read: fn(&record::Process) -> u64| {
        record.samples.iter().filter_map(|sample| sample.subject.as_ref()).map(read).max()
    };
    if let (Some(rss), Some(fds), Some(threads)) =
        (largest(|p| p.rss_bytes), largest(|p| p.fds.total()), largest(|p| p.threads))
    {
        lines.push(("subject", format!("at most {} resident, {fds} descriptors, {threads} threads", bytes(rss))));
    }
    let faults = faults(record);
    if !faults.is_empty() {
        lines.push(("faults", faults.join(", ")));
    }
    lines
}

/// A line about alerts; none if the run had no receiver of alerts.
fn alerts(record: &Record) -> Option<String> {
    let rows = || record.intervals.iter().filter_map(|row| row.alerts.as_ref());
    rows().next()?;
    let sum = |field: fn(&AlertsRow) -> u64| rows().map(field).sum::<u64>();
    let (decided, told) = (counted(sum(|row| row.decided), "decision"), counted(sum(|row| row.told), "alert"));
    Some(format!("{decided}, {told}, {} lost, {} too many", sum(|row| row.lost), sum(|row| row.twice)))
}

/// A line about calls to the subject's API that scales Deployments; none if the run made no calls.
fn calls(record: &Record) -> Option<String> {
    let rows = || record.intervals.iter().filter_map(|row| row.calls.as_ref());
    let sent: u64 = rows().map(|row| row.sent).sum();
    if sent == 0 {
        return None;
    }
    let errors = rows().map(|row| row.errors).sum();
    let mut line = format!("{}, {}", counted(sent, "call"), counted(errors, "error"));
    if let Some(response) = record.latency.in_phase(tag::CALLS_READ, Phase::Steady) {
        line = format!("{line}; steady reads {}", quantiles(&Quantiles::of(response)));
    }
    if let Some(oldest_us) = rows().filter_map(|row| Some(row.staleness.as_ref()?.max_us)).max() {
        line = format!("{line}; oldest count {}", micros(oldest_us));
    }
    Some(line)
}

/// Lines about faults and their hits: each fault with its time, or grouped by name if there are many.
fn faults(record: &Record) -> Vec<String> {
    let rows = record.fault_rows();
    let hits = |id: &str| rows.get(id).and_then(|rows| rows.iter().map(|row| row.hits).max()).unwrap_or(0);
    let planned = &record.manifest.faults;
    if planned.len() <= FAULTS_EACH {
        // A fault that waits for another one begins when that one is hit, so the plan has no time for it.
        let began = |id: &str| {
            let rows = rows.get(id)?;
            rows.iter().find(|row| row.event == FaultEvent::Started).map(|row| row.t_ms)
        };
        let each = planned.iter().map(|fault| {
            let at = match began(&fault.id) {
                Some(at_ms) => format!("at {}", millis(at_ms)),
                None if fault.at_ms == 0 => "never begun".to_owned(),
                None => format!("at {}", millis(fault.at_ms)),
            };
            (plain(&fault.name), at, counted(hits(&fault.id), "hit"))
        });
        return each.map(|(name, at, hits)| format!("{name} {at} ({hits})")).collect();
    }
    let mut names: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for fault in planned {
        let (times, all) = names.entry(&fault.name).or_default();
        (*times, *all) = (*times + 1, *all + hits(&fault.id));
    }
    let each =
        names.into_iter().map(|(name, (times, hits))| (plain(name), counted(times, "time"), counted(hits, "hit")));
    each.map(|(name, times, hits)| format!("{name} {times} ({hits})")).collect()
}

/// The percentiles of a latency with enough samples, and its largest value, as text.
pub(super) fn quantiles(quantiles: &Quantiles) -> String {
    let points = [
        ("p50", quantiles.p50_us),
        ("p90", quantiles.p90_us),
        ("p99", quantiles.p99_us),
        ("p99.9", quantiles.p999_us),
        ("max", Some(quantiles.max_us)),
    ];
    let points: Vec<String> =
        points.iter().filter_map(|(name, value)| Some(format!("{name} {}", micros((*value)?)))).collect();
    points.join(", ")
}

pub(super) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "PASS",
        Verdict::Fail => "FAIL",
        Verdict::Inconclusive => "INCONCLUSIVE",
        Verdict::Invalid => "INVALID",
    }
}

fn badge(verdict: Verdict, colour: Colour) -> String {
    let word = word(verdict);
    let code = match verdict {
        Verdict::Pass => 32,
        Verdict::Fail => 31,
        Verdict::Inconclusive => 33,
        Verdict::Invalid => 35,
    };
    match colour {
        Colour::Never => word.to_owned(),
        Colour::Always => format!("\x1b[1;{code}m{word}\x1b[0m"),
    }
}

/// A text without control characters, on one line.
pub(super) fn plain(text: &str) -> String {
    let spaced = text.chars().map(|c| if c == '\n' || c == '\t' { ' ' } else { c });
    spaced.filter(|c| !crate::outside::is_hidden(*c)).collect()
}
