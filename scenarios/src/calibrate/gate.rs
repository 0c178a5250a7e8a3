//! The rows of a calibration whose runs compare two builds with `longhaul gate`. Builds A and B of a row are the same
//! program; only B has the planted bug.

use std::path::Path;
use std::time::Duration;

use reports::gate::{Judgement, Metric, Outcome, Word};
use reports::judge::Verdict;

use super::result::{Expectation, Gated, Play, Row};
use crate::scenario::Phases;

/// Number of blocks in a session of a gate; each block measures each build twice. Five blocks give ten pairs of
/// measurements; the gate decides if nine pairs point in the same direction.
const BLOCKS: u32 = 5;
/// Time of one measurement beyond its phases, on two idle processors: start of threads, last calls, creation and
/// deletion of objects.
const ASIDE: Duration = Duration::from_millis(1800);
/// Time to start, warm up and count both builds, and to judge the session.
const START: Duration = Duration::from_secs(43);

/// Expected time of one gate of this row. If B is found worse, the gate needs a second session.
pub(super) fn length(row: &Row, phases: &Phases) -> Duration {
    // Reviews come first; then changes of objects run as long as they need to settle.
    let session = (phases.total() + phases.warm_up.0 + ASIDE) * BLOCKS * 4 + START;
    session * if row.plant.is_some() { 2 } else { 1 }
}

pub(super) fn arguments(row: &Row, seed: u64, program: &Path, folder: &Path) -> Vec<String> {
    let program = program.display().to_string();
    let mut arguments = vec!["gate".to_owned(), row.stage.clone(), "--quiet".to_owned(), "--no-callgrind".to_owned()];
    arguments.extend(["--a".to_owned(), program.clone(), "--b".to_owned(), program]);
    arguments.extend(["--seed".to_owned(), seed.to_string(), "--blocks".to_owned(), BLOCKS.to_string()]);
    arguments.extend(["--out".to_owned(), folder.display().to_string()]);
    arguments.extend(row.plant.iter().flat_map(|plant| ["--plant-b".to_owned(), plant.clone()]));
    arguments
}

pub(super) fn judgement(folder: &Path) -> Option<Judgement> {
    serde_json::from_slice(&std::fs::read(folder.join("gate.json")).ok()?).ok()
}

/// Converts the judgement of a gate into the result of one run of the row.
pub(super) fn read(row: &Row, judgement: &Judgement, blank: Play) -> Play {
    let name = |metric: Metric| format!("gate.{}", metric.key());
    let own = match &row.expected {
        Expectation::Caught { judge, .. } => judgement.rows.iter().find(|row| name(row.metric) == *judge),
        // A controller that only watches answers no request.
        _ => [Metric::CpuPerRequest, Metric::CpuPerEvent]
            .iter()
            .find_map(|metric| judgement.rows.iter().find(|row| row.metric == *metric)),
    };
    let is_own = |metric: Metric| own.is_some_and(|own| own.metric == metric);
    let mut play =
        Play { verdict: verdict(judgement.outcome).word().to_owned(), says: judgement.reason.clone(), ..blank };
    for row in &judgement.rows {
        play.judged.push(name(row.metric));
        match row.word {
            Word::Worse => play.fired.push(name(row.metric)),
            Word::CannotSay if row.leads || is_own(row.metric) => play.undecided.push(name(row.metric)),
            Word::CannotSay | Word::Same | Word::Better => {}
        }
    }
    if let (Some(own), true) = (own, judgement.outcome != Outcome::Invalid) {
        let false_alarm = judgement.false_alarm;
        play.gate = Some(Gated { change: own.change, smallest: own.smallest, false_alarm });
        let (change, limit) = (own.shown(own.change), own.shown(own.limit));
        let smallest = own.smallest.map(|smallest| format!(", could see {}", own.shown(smallest))).unwrap_or_default();
        play.says = format!("{}: {change} (limit {limit}{smallest})", name(own.metric));
    }
    play
}

fn verdict(outcome: Outcome) -> Verdict {
    match outcome {
        Outcome::Better | Outcome::Same => Verdict::Pass,
        Outcome::Worse => Verdict::Fail,
        Outcome::CannotSay => Verdict::Inconclusive,
        Outcome::Invalid => Verdict::Invalid,
    }
}
