//! Tests a record of a hundred hours: its size, the size of its HTML report, and its verdicts. A record of a hundred
//! hours keeps only some of its samples, and the verdicts must be those for all samples.
//!
//! The test really writes all rows except histograms. The test writes histograms for a few time ranges, and estimates
//! from each range the size for the time after it. A real file is smaller than this estimate.

#![expect(clippy::unwrap_used, reason = "a record that cannot be written or read is a failure of the test")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "bytes and milliseconds of a run"
)]

use std::ops::Range;
use std::time::Instant;

use reports::judge::{Judgement, Verdict, judge};
use reports::record::{Phase, Record, Sample, file};
use reports::render;
use statistics::hlog::Histogram;

#[path = "generated/long_run.rs"]
mod long_run;

use long_run::{HOUR_MS, Latencies, Run, WARM_UP_MS};

const RUN: Run = Run { length_ms: 100 * HOUR_MS, peak_ms: 50 * HOUR_MS + 2000 };
/// The length of each time range whose latencies are written, in milliseconds.
const STRETCH_MS: u64 = HOUR_MS / 3;
const STRETCHES: [Range<u64>; 4] = [stretch(0), stretch(1), stretch(10), stretch(40)];
/// Size of the two files with the subject's output, in bytes, as `scenarios` rotates them.
const SUBJECT_LOG_BYTES: u64 = 2 * (8 << 20);
/// Maximum size of a record of 100 hours, in bytes, and of its HTML report.
const RECORD_BYTES_MAX: u64 = 200_000_000;
const PAGE_BYTES_MAX: u64 = 2_000_000;
/// The leak in the run: four times the budget, in bytes an hour.
const LEAK_BYTES_PER_HOUR: f64 = 4.0 * 65_536.0;

const fn stretch(hour: u64) -> Range<u64> {
    hour * HOUR_MS..hour * HOUR_MS + STRETCH_MS
}

fn verdicts(judgement: &Judgement) -> Vec<(String, Verdict)> {
    let sections = ["memory", "descriptors", "threads", "admission"];
    let of = |name: &str| name.split_once('.').is_some_and(|(section, _)| sections.contains(&section));
    let findings = judgement.findings.iter().filter(|finding| of(&finding.budget));
    findings.map(|finding| (finding.budget.clone(), finding.verdict)).collect()
}

fn verdict(all: &[(String, Verdict)], budget: &str) -> Option<Verdict> {
    all.iter().find(|(name, _)| name == budget).map(|(_, verdict)| *verdict)
}

fn leak(samples: &mut [Sample]) {
    for row in samples {
        let leaked = LEAK_BYTES_PER_HOUR * row.t_ms as f64 / HOUR_MS as f64;
        row.subject.as_mut().unwrap().rss_bytes += leaked as u64;
    }
}

#[test]
#[ignore = "slow"]
fn nightly_a_hundred_hours_fit_and_are_judged_as_if_every_sample_were_there() {
    let begin = Instant::now();
    let told = |what: &str| println!("{:>6.1} s {what}", begin.elapsed().as_secs_f64());
    let (dir, latencies) = (tempfile::tempdir().unwrap(), Latencies::new());
    let bytes = |name: &str| std::fs::metadata(dir.path().join(name)).map_or(0, |file| file.len());
    // The size of the file at the end of each stretch.
    let mut ends = Vec::new();
    RUN.write(dir.path(), &latencies, &STRETCHES, |end_ms| {
        if STRETCHES.iter().any(|stretch| stretch.end == end_ms) {
            ends.push(bytes(file::LATENCY) + bytes(file::LATENCY_OPEN));
        }
    });
    told("written");
    let mut record = Record::open(dir.path()).unwrap();
    assert_eq!(record.notes, Vec::<String>::new());
    told("read");
    let judgement = judge(&record);
    told("judged");
    render::write_reports(dir.path(), &record, &judgement).unwrap();
    told("rendered");

    let next = STRETCHES.iter().skip(1).map(|stretch| stretch.start).chain([RUN.length_ms]);
    let unwritten_ms = STRETCHES.iter().zip(next).map(|(stretch, next_ms)| next_ms - stretch.end);
    let written =
        ends.iter().enumerate().map(|(index, end)| end - index.checked_sub(1).map_or(0, |before| ends[before]));
    let later_bytes: u64 = unwritten_ms.zip(written).map(|(later_ms, bytes)| later_ms * bytes / STRETCH_MS).sum();
    let mut sum = later_bytes + SUBJECT_LOG_BYTES;
    for entry in std::fs::read_dir(dir.path()).unwrap().map(Result::unwrap) {
        println!("{:>12} {}", entry.metadata().unwrap().len(), entry.file_name().display());
        sum += entry.metadata().unwrap().len();
    }
    println!("{later_bytes:>12} latencies of the rest\n{SUBJECT_LOG_BYTES:>12} subject.log\n{sum:>12} in all");
    assert!(sum <= RECORD_BYTES_MAX, "{sum} bytes");
    assert!(bytes(file::HTML) <= PAGE_BYTES_MAX, "{} bytes", bytes(file::HTML));

    // Latencies are added up, never thinned: every review is in them, in the phase in which it was sent.
    for (tag, _) in &latencies.0 {
        let in_phase = |phase| record.latency.in_phase(tag, phase).map_or(0, Histogram::len);
        let warm_up = latencies.count(tag, &(0..WARM_UP_MS));
        let all: u64 = STRETCHES.iter().map(|stretch| latencies.count(tag, stretch)).sum();
        assert_eq!((in_phase(Phase::WarmUp), in_phase(Phase::Steady)), (warm_up, all - warm_up), "{tag}");
    }

    // The verdicts are those of all the samples: level but for one second above the ceiling.
    let thin = verdicts(&judgement);
    assert_eq!(verdict(&thin, "memory.ceiling"), Some(Verdict::Fail), "{thin:?}");
    for budget in ["memory.growth", "memory.growthPerObject", "memory.growthPerRequest", "admission.p99"] {
        assert_eq!(verdict(&thin, budget), Some(Verdict::Pass), "{budget}: {thin:?}");
    }
    // The same with a leak.
    leak(&mut record.samples);
    let thin_leak = verdicts(&judge(&record));
    assert_eq!(verdict(&thin_leak, "memory.growth"), Some(Verdict::Fail), "{thin_leak:?}");
    record.samples = RUN.samples().collect();
    assert_eq!(verdicts(&judge(&record)), thin);
    leak(&mut record.samples);
    assert_eq!(verdicts(&judge(&record)), thin_leak);
    told("judged again, by every sample too");
}
