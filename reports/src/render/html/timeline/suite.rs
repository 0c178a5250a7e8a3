//! The time line of a test suite: its tests, the faults, and the requests and writes at the same times.

use std::collections::BTreeMap;

use super::super::chart::{Chart, Curve, Mark, Step, position};
use super::super::scale::Scale;
use super::faults::{Played, bands};
use super::{Axis, Band, HIT_MARKS, clock, plain_axis, stack};
use crate::suite::{Suite, Test};
use crate::words::{count, counted, three_digits};

/// Maximum number of failed tests that have a line of their own in the time line.
const LINES: usize = 12;
/// Maximum number of bars in the line of all tests.
const BARS: usize = 2000;
/// Hits of one fault form one band if they are closer together than the whole time divided by this number.
const CLOSE: u64 = 40;

/// One line of the suite's time line, with a bar for each test.
pub(in crate::render::html) struct Lane {
    pub name: String,
    pub bars: Vec<Bar>,
}

pub(in crate::render::html) struct Bar {
    pub left: String,
    pub width: String,
    pub class: &'static str,
    pub label: String,
}

/// The axis with the bands of its faults. Hits of one fault that are close together form a band.
pub(in crate::render::html) fn axis(suite: &Suite) -> Axis {
    let length_ms = suite.length_ms.max(1);
    let close_ms = (length_ms / CLOSE).max(1);
    let mut played: Vec<Played<'_>> = Vec::new();
    let mut open: BTreeMap<&str, usize> = BTreeMap::new();
    for hit in &suite.hits {
        let at_ms = hit.at_ms.min(length_ms);
        match open.get(hit.fault.as_str()).map(|index| &mut played[*index]) {
            Some(band) if at_ms.saturating_sub(band.to_ms) <= close_ms => {
                (band.to_ms, band.hits) = (band.to_ms.max(at_ms), band.hits + 1);
            }
            _ => {
                open.insert(&hit.fault, played.len());
                played.push(Played { name: &hit.fault, from_ms: at_ms, to_ms: at_ms, hits: 1 });
            }
        }
    }
    let x = |ms: u64| ms as f64 / length_ms as f64 * 100.0;
    let mut faults: Vec<Band> = played
        .iter()
        .take(super::LABELS)
        .map(|fault| Band {
            left: position(x(fault.from_ms)),
            width: position((x(fault.to_ms) - x(fault.from_ms)).max(0.3)),
            label: fault.name.to_owned(),
            hits: counted(fault.hits, "hit"),
            lane: 0,
            room: None,
        })
        .collect();
    let lanes = stack(&mut faults);
    let bands = bands(&played, length_ms);
    Axis { faults, bands, hits: marks(suite, length_ms), lanes, ..plain_axis(length_ms) }
}

/// Marks on the axis at the times of hits of faults. Hits at about the same time share a mark.
fn marks(suite: &Suite, length_ms: u64) -> Vec<Mark> {
    let width_ms = (length_ms / HIT_MARKS).max(1);
    let mut places: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for hit in &suite.hits {
        let at_ms = hit.at_ms.min(length_ms);
        places.entry(at_ms / width_ms).or_insert((0, at_ms)).0 += 1;
    }
    let mark = |(hits, at_ms): (u64, u64)| Mark {
        at: position(at_ms as f64 / length_ms as f64 * 100.0),
        class: "hit",
        label: format!("{} from {} on", counted(hits, "hit"), clock(at_ms)),
    };
    places.into_values().map(mark).collect()
}

/// A line with all tests of the suite, and a line for each failed test.
pub(in crate::render::html) fn lanes(suite: &Suite) -> Vec<Lane> {
    if suite.tests.is_empty() {
        return Vec::new();
    }
    let length_ms = suite.length_ms.max(1);
    let x = |ms: u64| ms.min(length_ms) as f64 / length_ms as f64 * 100.0;
    let bar = |test: &Test| Bar {
        left: position(x(test.from_ms)),
        width: position((x(test.to_ms) - x(test.from_ms)).max(0.15)),
        class: if test.failed { "fail" } else { "pass" },
        label: format!("{}, {}", test.name, if test.failed { "failed" } else { "passed" }),
    };
    let failed: Vec<&Test> = suite.tests.iter().filter(|test| test.failed).collect();
    let name = match failed.len() {
        0 => format!("{}, all passed", counted(suite.tests.len() as u64, "test")),
        some => format!("{}, {} failed", counted(suite.tests.len() as u64, "test"), count(some as u64)),
    };
    let mut bars: Vec<Bar> = suite.tests.iter().take(BARS).map(bar).collect();
    // Failed tests are drawn over passed ones.
    bars.sort_by_key(|bar| bar.class == "fail");
    let mut lanes = vec![Lane { name, bars }];
    lanes.extend(failed.iter().take(LINES).map(|test| Lane { name: test.name.clone(), bars: vec![bar(test)] }));
    lanes
}

pub(in crate::render::html) fn charts(suite: &Suite) -> Vec<Chart> {
    let length_ms = suite.length_ms.max(1);
    let rate = |read: fn(&crate::suite::Stretch) -> u64| -> Vec<Step> {
        let step = |one: &crate::suite::Stretch| Step {
            from: one.from_ms,
            until: one.until_ms,
            value: read(one) as f64 * 1000.0 / one.until_ms.saturating_sub(one.from_ms).max(1) as f64,
        };
        suite.stretches.iter().map(step).collect()
    };
    let words = |value: f64| format!("{}/s", three_digits(value));
    let chart = |names: (&'static str, &'static str, &'static str), curves: &[(&str, &'static str, Vec<Step>)]| {
        let most = curves.iter().flat_map(|(_, _, steps)| steps).fold(0f64, |most, step| most.max(step.value));
        let scale = Scale::linear(most, 1.0);
        let drawn =
            curves.iter().map(|(name, class, steps)| Curve::steps(*name, class, steps, length_ms, scale, &words));
        let summary = format!("at most {}", words(most));
        (most > 0.0).then(|| Chart::new(names, (scale, &words), drawn.collect(), summary))
    };
    let asked = ("requests", "Requests", "a second, of all clients");
    let written = ("writes", "Writes", "object versions and conflicts a second");
    let commits = ("commits", "c3", rate(|one| one.commits));
    let conflicts = ("conflicts", "c2", rate(|one| one.conflicts));
    [chart(asked, &[("requests", "c1", rate(|one| one.requests))]), chart(written, &[commits, conflicts])]
        .into_iter()
        .flatten()
        .collect()
}
