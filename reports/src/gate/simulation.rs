//! Simulated gates with generated noise. The simulations show how often the whole method raises false alarms, and
//! whether it detects the changes that its certificate promises. Tests of other modules use this generator too.

use std::collections::BTreeMap;

use super::certificate::POWER;
use super::order::{BLOCK, Draw, Side, order};
use super::record::{Build, Header, Record, SCHEMA};
use super::verdict::judge_by;
use super::{Judgement, Metric, Outcome, Pressure, Slice, Word, wants_confirmation};

/// The noise of one kind of machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Noise {
    /// The standard deviation of the logarithm of the noise in each measurement.
    pub each: f64,
    /// The standard deviation of the random change that the machine's speed makes from measurement to measurement.
    pub walk: f64,
    /// The fraction of measurements with additional load, which makes the build slower by up to half. The recorded
    /// pressure may or may not show this load.
    pub bursts: f64,
}

pub(crate) const QUIET: Noise = Noise { each: 0.01, walk: 0.002, bursts: 0.0 };
pub(crate) const BUSY: Noise = Noise { each: 0.04, walk: 0.02, bursts: 0.05 };
pub(crate) const WILD: Noise = Noise { each: 0.10, walk: 0.05, bursts: 0.15 };

fn uniform(draw: &mut Draw) -> f64 {
    (draw.number() >> 11) as f64 / (1_u64 << 53) as f64
}

fn normal(draw: &mut Draw) -> f64 {
    // The method of Box and Muller.
    (-2.0 * (1.0 - uniform(draw)).ln()).sqrt() * (std::f64::consts::TAU * uniform(draw)).cos()
}

pub(super) fn header(seed: u64, blocks: u32) -> Header {
    let build = |command: &str| Build { command: command.to_owned(), digest: None };
    Header {
        schema: SCHEMA.to_owned(),
        started_at: "2026-11-24T06:00:00Z".to_owned(),
        scenario: "gate".to_owned(),
        a: build("old/longhaul-service"),
        b: build("new/longhaul-service"),
        seed,
        rate: 200.0,
        events: 0.0,
        saturation: Some([2000.0, 1900.0]),
        blocks,
        slice_ms: 20_000,
        settle_ms: 3000,
        longhaul: "0.1.0".to_owned(),
        processors: 2,
        repeat: "longhaul gate --a old/longhaul-service --b new/longhaul-service".to_owned(),
    }
}

/// Adds a session to a record. In this session, each value of B is `times` the value of A.
pub(super) fn session(record: &mut Record, session: u32, noise: Noise, times: f64) {
    let (seed, blocks) = (record.header.seed, record.header.blocks);
    let mut draw = Draw::new(seed.wrapping_mul(0x2545_F491_4F6C_DD1D) ^ u64::from(session));
    let mut level = 0.0;
    for (index, side) in (0..).zip(order(seed, session, blocks)) {
        level += noise.walk * normal(&mut draw);
        let burst = if uniform(&mut draw) < noise.bursts { uniform(&mut draw) / 2.0 } else { 0.0 };
        let seen = burst > 0.0 && draw.coin();
        let mut value = |spread: f64, middle: f64| {
            let noise = level + burst + noise.each * spread * normal(&mut draw);
            middle * noise.exp() * if side == Side::B { times } else { 1.0 }
        };
        let values = BTreeMap::from([
            (Metric::Failures, 0.0),
            (Metric::CpuPerRequest, value(1.0, 400.0)),
            (Metric::P50, value(1.5, 2000.0)),
            (Metric::P99, value(4.0, 9000.0)),
        ]);
        let pressure = Pressure { cpu: Some(if seen { 0.9 } else { 0.1 }), ..Pressure::default() };
        record.slices.push(Slice {
            session,
            block: index / BLOCK,
            place: index % BLOCK,
            side,
            fingerprint: format!("payload {}", index / 2),
            lasted_ms: 20_000,
            planned: 4000,
            answered: 4000,
            changes: 0,
            pressure,
            values,
        });
    }
}

/// Judges a whole gate, with a second session if the first one has to be confirmed.
pub(super) fn gate(seed: u64, blocks: u32, noise: Noise, times: f64) -> Judgement {
    gate_by(seed, blocks, noise, times, FEW)
}

/// Number of choices of signs for a certificate in a test; a real gate draws a thousand.
pub(crate) const FEW: usize = 100;

fn gate_by(seed: u64, blocks: u32, noise: Noise, times: f64, resamples: usize) -> Judgement {
    judge_by(&record(seed, blocks, noise, times), resamples)
}

/// Whether the gate ended because too few pairs were left to compare. The simulation does not replace dropped
/// measurements.
fn is_pressed(judgement: &Judgement) -> bool {
    judgement.reason.starts_with("the machine was under pressure")
}

pub(crate) fn record(seed: u64, blocks: u32, noise: Noise, times: f64) -> Record {
    let mut record = Record::of(header(seed, blocks));
    session(&mut record, 1, noise, times);
    if wants_confirmation(&judge_by(&record, 0)) {
        session(&mut record, 2, noise, times);
    }
    record
}

/// On each kind of machine, at most one gate of twenty calls identical builds worse in any metric.
#[test]
fn identical_builds_are_seldom_called_worse() {
    for (name, noise) in [("quiet", QUIET), ("busy", BUSY), ("wild", WILD)] {
        for blocks in [5, 12] {
            let runs = 200_u32;
            let worse = (0..runs)
                .filter(|seed| gate_by(u64::from(*seed), blocks, noise, 1.0, 0).outcome == Outcome::Worse)
                .count();
            assert!(worse * 20 <= 200, "{name}, {blocks} blocks: {worse} of {runs} cried wolf");
        }
    }
}

/// Twice the certificate's smallest change is nearly always called worse. Gates of identical builds raise no more false
/// alarms than their certificate states.
#[test]
fn what_the_certificate_promises_is_seen() {
    for (name, noise) in [("quiet", QUIET), ("busy", BUSY), ("wild", WILD)] {
        let runs = 40;
        let mut seen = 0;
        for seed in 0..u64::from(runs) {
            let row = |judgement: &Judgement| {
                judgement.rows.iter().find(|row| row.metric == Metric::CpuPerRequest).cloned().unwrap()
            };
            let smallest = row(&gate(seed, 10, noise, 1.0)).smallest.unwrap();
            assert!(smallest > 0.03, "{name}: less than the limit is never called worse: {smallest}");
            let found = gate_by(seed + 10_000, 10, noise, 1.0 + 2.0 * smallest, 0);
            seen += u32::from(found.outcome == Outcome::Worse || is_pressed(&found));
        }
        assert!(seen * 10 >= runs * 9, "{name}: {seen} of {runs} were found");
    }
}

/// At exactly the certificate's smallest change, two sessions in a row detect the change four times in five.
/// Certificate and change come from different sessions, as in practice: the certificate tells what the next gate would
/// detect.
#[test]
#[ignore = "slow"]
fn the_smallest_change_is_found_as_often_as_promised() {
    for (name, noise) in [("quiet", QUIET), ("busy", BUSY), ("wild", WILD)] {
        for blocks in [6, 10] {
            let (mut found, mut valid) = (0, 0);
            for seed in 0..FOUND_RUNS {
                let clean = gate(seed, blocks, noise, 1.0);
                let row = |judgement: &Judgement| {
                    judgement.rows.iter().find(|row| row.metric == Metric::CpuPerRequest).cloned()
                };
                let Some(smallest) = row(&clean).and_then(|row| row.smallest) else { continue };
                let judgement = gate_by(seed + 10_000, blocks, noise, 1.0 + smallest, 0);
                if is_pressed(&judgement) {
                    continue;
                }
                valid += 1;
                found += u32::from(row(&judgement).is_some_and(|row| row.word == Word::Worse));
            }
            let rate = f64::from(found) / f64::from(valid);
            assert!(rate >= POWER, "{name}, {blocks} blocks: {found} of {valid} were found");
        }
    }
}

/// Number of runs that is enough to distinguish a rate of four in five from three in four.
const FOUND_RUNS: u64 = 200;

/// A gate on a quiet machine is never undecided. Identical builds are the same, a build slower by a tenth is worse, and
/// a build faster by a tenth is better.
#[test]
fn a_quiet_machine_decides() {
    let outcomes = |times: f64| (0..40).map(|seed| gate_by(seed, 10, QUIET, times, 0).outcome).collect::<Vec<_>>();
    for (times, wanted) in [(1.0, Outcome::Same), (1.1, Outcome::Worse), (0.9, Outcome::Better)] {
        let outcomes = outcomes(times);
        let right = outcomes.iter().filter(|outcome| **outcome == wanted).count();
        assert!(right >= 38, "{times}: {outcomes:?}");
    }
}

/// The rate of false alarms in the certificate is not below the real rate, except by chance.
#[test]
fn the_certificate_does_not_flatter() {
    for noise in [QUIET, BUSY, WILD] {
        let judgements: Vec<_> = (0..60).map(|seed| gate(seed, 6, noise, 1.0)).collect();
        let stated: f64 = judgements.iter().filter_map(|judgement| judgement.false_alarm).sum();
        let cried = judgements.iter().filter(|judgement| judgement.outcome == Outcome::Worse).count();
        assert!(cried as f64 <= stated + 3.0, "{noise:?}: {cried} came, {stated} were stated");
    }
}
