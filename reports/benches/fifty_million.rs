//! Whether ledger and record stay as large as they are through fifty million events: a run of fifteen hours, told in a minute.
//!
//! The events are real, the time is not: every commit and observation goes through the ledger as in a run, and the rows of every interval, the
//! latencies, a sample a second and what the ledger found go into a record. What the samples say of the harness is the resident set of this very
//! process; so the judge of the harness's own growth (`validity.harness`) decides, as in any run that is long enough.

#![expect(clippy::unwrap_used, reason = "a record that cannot be written or read ends the benchmark")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "events, bytes and milliseconds of a run"
)]

use std::process::ExitCode;
use std::time::Instant;

use facts::{Change, Commit, Observation, Order, Revision, Uid};
use reports::judge::{Verdict, judge};
use reports::ledger::{Config, Ledger};
use reports::record::{AnomalyRow, End, EndReason, Interval, Record, Writer};
use reports::render;

#[path = "../tests/generated/long_run.rs"]
#[expect(dead_code, reason = "the generator also serves a test and another benchmark")]
mod long_run;

use long_run::{INTERVAL, Latencies, Run};

/// Commits and observations in a second of the run: as in `soak-1h`.
const PAIRS_PER_SECOND: u64 = 450;
/// A few more, for the observations that never come.
const EVENTS: u64 = 50_100_000;
const SECONDS: u64 = EVENTS / (2 * PAIRS_PER_SECOND) / 5 * 5 + 5;
const RUN: Run = Run { length_ms: SECONDS * 1000, peak_ms: 0 };
/// Objects that live at a time.
const POPULATION: u64 = 2000;
/// Writes of an object's life: created, updated, deleted.
const WRITES: u64 = 10;
/// One observation of so many never comes, unless it is of a deletion: the next version of the object settles it.
const UNSEEN_EACH: u64 = 997;
/// How long an observation takes.
const LAG_MS: u64 = 3;

/// The n-th write of the run: every object in turn, and after its deletion a new one in its place.
fn pair(n: u64, t_ms: u64) -> (Commit, Observation) {
    let (slot, round) = (n % POPULATION, n / POPULATION);
    // Not all of them go at once.
    let turn = round + slot;
    let change = match turn % WRITES {
        0 => Change::Added,
        9 => Change::Deleted,
        _ => Change::Modified,
    };
    let uid = Uid::from(format!("00000000-0000-{slot:04}-0000-{:012}", turn / WRITES).as_str());
    let revision = Revision::of_number(1_000_000 + n);
    let seen = Observation { t_ms: t_ms + LAG_MS, uid: uid.clone(), revision: revision.clone(), change };
    let commit = Commit {
        order: Order::of_numbered(1_000_000 + n),
        resource: "packages.longhaul.dev".into(),
        namespace: "default".into(),
        name: format!("package-{slot}-{}", turn / WRITES).into(),
        uid,
        revision,
        change,
    };
    (commit, seen)
}

/// The resident set of this process.
fn rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

fn main() -> ExitCode {
    let begin = Instant::now();
    let (dir, latencies) = (tempfile::tempdir().unwrap(), Latencies::new());
    let mut ledger = Ledger::new(Config { numeric_revisions: true, ..Config::default() });
    let mut writer = Writer::create(dir.path(), &RUN.manifest()).unwrap();
    let template: Interval = serde_json::from_str(INTERVAL).unwrap();
    let (mut n, mut first_rss, mut rows) = (0, 0, 0_u64);
    // The first write of an object that the run does not begin with would be an update of nothing.
    let mut known = vec![false; usize::try_from(POPULATION).unwrap()];
    for mut sample in RUN.samples() {
        let second = sample.t_ms / 1000;
        for k in 0..PAIRS_PER_SECOND {
            let t_ms = second * 1000 + k * 1000 / PAIRS_PER_SECOND;
            let (mut commit, mut seen) = pair(n, t_ms);
            let slot = usize::try_from(n % POPULATION).unwrap();
            if !std::mem::replace(&mut known[slot], true) {
                (commit.change, seen.change) = (Change::Added, Change::Added);
            }
            n += 1;
            ledger.commit(t_ms, &commit);
            if !n.is_multiple_of(UNSEEN_EACH) || seen.change == Change::Deleted {
                ledger.observe(&seen);
            }
        }
        for found in ledger.advance(second * 1000 + 999) {
            writer.anomaly(&AnomalyRow::from(found)).unwrap();
            rows += 1;
        }
        sample.harness.as_mut().unwrap().rss_bytes = rss_bytes();
        writer.sample(&sample).unwrap();
        if second % 5 == 4 {
            latencies.write(&mut writer, second / 5);
            writer.interval(&RUN.interval(&template, second / 5)).unwrap();
        }
        if second == SECONDS / 10 {
            first_rss = rss_bytes();
        }
    }
    let last_rss = rss_bytes();
    ledger.finish(SECONDS * 1000).for_each(|found| writer.anomaly(&AnomalyRow::from(found)).unwrap());
    writer.end(&End { ended_ms: RUN.length_ms, reason: EndReason::Completed, lost: None }).unwrap();
    let (counts, told_s) = (ledger.counts(), begin.elapsed().as_secs_f64());
    let record = Record::open(dir.path()).unwrap();
    let judgement = judge(&record);
    render::write_reports(dir.path(), &record, &judgement).unwrap();
    let size: u64 = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    println!(
        "{} events in {told_s:.1} s ({:.2} million/s with the record), {:.1} h of a run; {} coalesced, {rows} anomalies",
        counts.commits + counts.observations,
        (counts.commits + counts.observations) as f64 / told_s / 1e6,
        SECONDS as f64 / 3600.0,
        counts.coalesced,
    );
    println!(
        "resident: {:.1} MiB after a tenth, {:.1} MiB at the end; record and reports {:.1} MB",
        first_rss as f64 / 1_048_576.0,
        last_rss as f64 / 1_048_576.0,
        size as f64 / 1e6
    );
    let harness = judgement.findings.iter().find(|finding| finding.budget == "validity.harness");
    let Some(finding) = harness else {
        println!("growth of the harness: not decided\n{}", judgement.notes.join("\n"));
        return ExitCode::from(2);
    };
    println!("growth of the harness: {} – {}", finding.verdict.word(), finding.text);
    ExitCode::from(u8::from(finding.verdict != Verdict::Pass))
}
