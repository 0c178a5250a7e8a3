use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::gate::record::{Line, Objects};
use crate::gate::simulation::{BUSY, QUIET, gate, header, session};
use crate::gate::slice::Counted;
use crate::gate::{Pressure, Side};

/// Judges a gate with an A/A certificate from a hundred random choices of signs, which are enough for these tests.
fn judge(record: &Record) -> Judgement {
    judge_by(record, 100)
}

fn record(times: f64, sessions: u32) -> Record {
    let mut record = Record::of(header(3, 8));
    for number in 1..=sessions {
        session(&mut record, number, QUIET, times);
    }
    record
}

/// One session alone never calls a build worse.
#[test]
fn worse_needs_two_sessions() {
    let once = judge(&record(1.2, 1));
    assert_eq!((once.outcome, once.exit_code), (Outcome::CannotSay, 2));
    assert!(once.reason.starts_with("no second session confirmed"), "{}", once.reason);
    assert!(wants_confirmation(&once));
    let twice = judge(&record(1.2, 2));
    assert_eq!((twice.outcome, twice.exit_code), (Outcome::Worse, 1));
    assert!(!wants_confirmation(&twice));
    assert!(twice.reason.contains("CPU time a request +"), "{}", twice.reason);
    assert_eq!(confirmed(Word::Worse, Some(Word::Same), Word::Worse), Word::CannotSay);
    assert_eq!(confirmed(Word::Worse, Some(Word::Same), Word::Same), Word::Same);
    assert_eq!(confirmed(Word::Same, None, Word::Same), Word::Same);
}

/// A gate of starts: the memory of B is `times` that of A, and the starts of the builds in `failing` fail.
fn starts(times: f64, sessions: u32, failing: &[Side]) -> Judgement {
    let mut record =
        Record::of(Header { objects: Some(Objects { count: 3000, bytes: 10_240 }), rate: 0.0, ..header(3, 3) });
    (1..=sessions).for_each(|number| session(&mut record, number, QUIET, times));
    for slice in &mut record.slices {
        let bytes = slice.values[&Metric::CpuPerRequest] * 1_048_576.0;
        slice.values = if failing.contains(&slice.side) {
            BTreeMap::from([(Metric::StartFailures, 1.0)])
        } else {
            BTreeMap::from([(Metric::StartFailures, 0.0), (Metric::StartMemory, bytes)])
        };
    }
    judge(&record)
}

/// A gate of starts needs a decision on the memory and on failed starts, and no metric of load. A baseline that does not
/// start is no baseline.
#[test]
fn starts_are_judged_by_memory_and_failures() {
    let same = starts(1.0, 1, &[]);
    assert_eq!(same.outcome, Outcome::Same, "{}", same.reason);
    let worse = starts(1.5, 2, &[]);
    assert!(
        worse.outcome == Outcome::Worse && worse.reason.contains("highest memory of a start +"),
        "{}",
        worse.reason
    );
    assert!(wants_confirmation(&starts(1.5, 1, &[])));
    let fails = starts(1.0, 2, &[Side::B]);
    assert!(fails.outcome == Outcome::Worse && fails.reason.contains("starts that failed"), "{}", fails.reason);
    let none = starts(1.0, 1, &[Side::A]);
    assert_eq!(none.outcome, Outcome::Invalid);
    assert!(none.reason.starts_with("A died or did not become ready in 100 % of its starts"), "{}", none.reason);
}

#[test]
fn what_cannot_be_trusted_is_invalid() {
    let reason = |change: &dyn Fn(&mut Record)| {
        let mut record = record(1.0, 1);
        change(&mut record);
        let judgement = judge(&record);
        assert_eq!(judgement.outcome, Outcome::Invalid, "{}", judgement.reason);
        assert!(!wants_confirmation(&judgement));
        judgement.reason
    };
    assert_eq!(reason(&|record| record.slices.truncate(30)), "it ended after 30 of 32 slices");
    let other = reason(&|record| record.slices[5].fingerprint = "other".to_owned());
    assert!(other.contains("the same payloads"), "{other}");
    let fails = reason(&|record| {
        for slice in &mut record.slices {
            slice.values.insert(Metric::Failures, 0.5);
        }
    });
    assert!(fails.starts_with("A failed 50 % of its requests"), "{fails}");
}

const CALM: Pressure = Pressure { cpu: Some(0.1), io: Some(0.02), steal: None, lateness_us: 0 };
/// The pressure in a measurement on a machine whose disk is busy.
const PRESSED: Pressure = Pressure { io: Some(0.9), ..CALM };

/// Replaces the measurement at an index by one with the given pressure.
fn again(record: &mut Record, at: usize, pressure: Pressure) {
    let slice = Slice { pressure, ..record.slices[at].clone() };
    record.add(&Line::Slice(Box::new(slice))).unwrap();
}

/// If the machine is under pressure, the gate is undecided, and the reason names the machine; exact counts can still be
/// worse.
#[test]
fn a_pressed_machine_leaves_it_open_and_is_named() {
    let mut record = record(1.2, 2);
    for (at, slice) in record.slices.iter_mut().enumerate() {
        slice.pressure = if at.is_multiple_of(3) { PRESSED } else { CALM };
    }
    let judgement = judge(&record);
    assert_eq!((judgement.outcome, judgement.exit_code), (Outcome::CannotSay, 2));
    assert!(
        judgement.reason.starts_with(
            "the machine was under pressure: only 5 of 16 pairs are left when slices under pressure are dropped, such as: something waited for the disk 90 % of the time"
        ),
        "{}",
        judgement.reason
    );
    assert!(judgement.rows.iter().all(|row| row.word != Word::Worse) && !wants_confirmation(&judgement));
    for session in [1, 2] {
        for (side, value) in [(Side::A, 100_000.0), (Side::B, 110_000.0)] {
            record.counted.push(Counted { session, side, metric: Metric::Instructions, value });
        }
    }
    let counted = judge(&record);
    assert_eq!(counted.outcome, Outcome::Worse, "{}", counted.reason);
    assert!(counted.reason.contains("instructions a request +10 %"), "{}", counted.reason);
}

/// In a gate of six pairs, no pair may be dropped. A later measurement replaces the one that was under pressure.
#[test]
fn what_was_played_again_counts() {
    let mut record = Record::of(header(3, 3));
    session(&mut record, 1, QUIET, 1.0);
    for (at, slice) in record.slices.iter_mut().enumerate() {
        slice.pressure = if at == 6 { PRESSED } else { CALM };
    }
    assert_eq!(halves_dropped(&record, 1), [(1, 2)]);
    let judgement = judge(&record);
    assert_eq!(judgement.outcome, Outcome::CannotSay, "{}", judgement.reason);
    assert!(judgement.reason.contains("only 5 of 6 pairs are left"), "{}", judgement.reason);
    // Once more under pressure, then without.
    for pressure in [PRESSED, CALM] {
        assert_eq!(halves_dropped(&record, 1), [(1, 2)]);
        again(&mut record, 6, pressure);
        again(&mut record, 7, CALM);
    }
    assert_eq!(halves_dropped(&record, 1), []);
    let judgement = judge(&record);
    assert_eq!((judgement.outcome, judgement.slices), (Outcome::Same, 16), "{}", judgement.reason);
    assert_eq!(judgement.notes, ["4 slices of 12 were played again, because the machine was under pressure"]);
}

/// A build whose requests fail is worse, even if the failures are faster than answers.
#[test]
fn failures_are_worse() {
    let mut record = record(0.5, 2);
    for slice in record.slices.iter_mut().filter(|slice| slice.side == Side::B) {
        slice.values.insert(Metric::Failures, 0.01);
    }
    let judgement = judge(&record);
    assert_eq!(judgement.outcome, Outcome::Worse);
    assert!(judgement.reason.contains("requests that failed +1 %"), "{}", judgement.reason);
}

/// If a controller only watches, three results decide: the cost of events, their lag, and missed events.
#[test]
fn events_lead_where_there_are_no_reviews() {
    let watches = |times: f64, fails: [f64; 2]| {
        let mut record = record(times, 2);
        (record.header.rate, record.header.events, record.header.saturation) = (0.0, 200.0, None);
        for slice in &mut record.slices {
            let failed = fails[usize::from(slice.side == Side::B)];
            let [cpu, lag] = [Metric::CpuPerRequest, Metric::P50].map(|metric| slice.values[&metric]);
            let values = [(Metric::EventFailures, failed), (Metric::CpuPerEvent, cpu), (Metric::Lag, lag)];
            slice.values = values.into_iter().collect();
        }
        judge(&record)
    };
    let same = watches(1.0, [0.0, 0.0]);
    assert_eq!(same.outcome, Outcome::Same, "{}", same.reason);
    assert!(same.rows.iter().all(|row| row.leads) && same.rows.len() == 3);
    let slower = watches(1.2, [0.0, 0.0]);
    assert!(slower.outcome == Outcome::Worse && slower.reason.contains("CPU time an event +"), "{}", slower.reason);
    let misses = watches(1.0, [0.0, 0.01]);
    assert!(
        misses.outcome == Outcome::Worse && misses.reason.contains("events missed or late +1 %"),
        "{}",
        misses.reason
    );
    let nothing = watches(1.0, [0.05, 0.05]);
    assert_eq!(nothing.outcome, Outcome::Invalid);
    assert!(nothing.reason.starts_with("A missed or was late with 5 % of its events"), "{}", nothing.reason);
}

/// A session whose time ran out has fewer blocks and is still valid. The report says that the session was shortened.
#[test]
fn a_shortened_session_is_no_interrupted_one() {
    let mut record = record(1.0, 1);
    record.slices.truncate(24);
    assert_eq!(judge(&record).outcome, Outcome::Invalid);
    record.shortened.push(Shortened { session: 1, blocks: 6 });
    let judgement = judge(&record);
    assert_eq!(judgement.outcome, Outcome::Same, "{}", judgement.reason);
    assert_eq!(judgement.notes, ["session 1 has 6 blocks instead of 8, because its time was up"]);
}

/// Exact counts decide without pairs, and they need a second session as well.
#[test]
fn counts_are_compared_by_their_ends() {
    let word = |a: &[f64], b: &[f64], sessions: u32| {
        let mut record = record(1.0, sessions);
        for session in 1..=sessions {
            for (side, values) in [(Side::A, a), (Side::B, b)] {
                for value in values {
                    record.counted.push(Counted { session, side, metric: Metric::Instructions, value: *value });
                }
            }
        }
        let judgement = judge(&record);
        let row = judgement.rows.iter().find(|row| row.metric == Metric::Instructions).unwrap().clone();
        (row.word, wants_confirmation(&judgement))
    };
    assert_eq!(word(&[100_000.0, 100_400.0], &[100_100.0, 100_300.0], 1), (Word::Same, false));
    assert_eq!(word(&[100_000.0, 100_400.0], &[106_000.0, 105_000.0], 1), (Word::CannotSay, true));
    assert_eq!(word(&[100_000.0, 100_400.0], &[106_000.0, 105_000.0], 2), (Word::Worse, false));
    assert_eq!(word(&[100_000.0], &[90_000.0], 1), (Word::Better, false));
    assert_eq!(word(&[100_000.0, 110_000.0], &[104_000.0, 112_000.0], 1), (Word::CannotSay, false));
}

/// Judging a written record again leads to the same verdict.
#[test]
fn a_record_that_is_read_again_has_the_same_verdict() {
    let mut record = record(1.2, 2);
    record.notes.push("instructions: skipped: needs valgrind".to_owned());
    let mut written = Record::of(record.header.clone());
    let lines = [Line::Header(Box::new(record.header.clone()))].into_iter();
    let lines = lines.chain(record.slices.iter().cloned().map(|slice| Line::Slice(Box::new(slice))));
    let lines = lines.chain(record.notes.iter().cloned().map(Line::Note));
    record.shortened.push(Shortened { session: 2, blocks: 8 });
    let lines = lines.chain(record.shortened.iter().copied().map(Line::Shortened));
    let text: String = lines.map(|line| written.add(&line).unwrap()).collect();
    let again = Record::read(&text).unwrap();
    assert_eq!(judge(&again), judge(&written));
    let cut = &text[..text.len() - 10];
    assert_eq!(Record::read(cut).unwrap().slices.len(), record.slices.len(), "a line that is cut off is left out");
    assert!(Record::read("{\"note\":\"x\"}\n").unwrap_err().to_string().contains("does not begin with its header"));
    assert!(Record::read("{}\n").unwrap_err().to_string().starts_with("line 1 of slices.jsonl"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// With any noise, the outcome, the rows and the exit code agree, and each figure is between its bounds.
    #[test]
    fn a_judgement_agrees_with_itself(seed in 0..1000_u64, times in 0.8..1.3_f64, blocks in 3..8_u32) {
        let judgement = gate(seed, blocks, BUSY, times);
        prop_assert_eq!(judgement.exit_code, judgement.outcome.exit_code());
        let worse = judgement.rows.iter().any(|row| row.word == Word::Worse);
        prop_assert!(judgement.outcome == Outcome::Invalid || worse == (judgement.outcome == Outcome::Worse));
        for row in &judgement.rows {
            prop_assert!(row.lower.is_none_or(|lower| lower <= row.change));
            prop_assert!(row.upper.is_none_or(|upper| row.change <= upper));
            prop_assert_eq!(row.points.len(), row.pairs);
        }
    }
}
