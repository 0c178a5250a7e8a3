//! Decides which measurements are dropped because of the machine's load, by pure functions.
//!
//! A machine that is always busy is no reason to drop measurements, because both builds of a pair have the same load.
//! The certificate shows which changes can still be detected. A measurement is dropped if the machine has load in it
//! that it does not have in other measurements.

use super::slice::Slice;
use crate::words::{micros, percent};

/// A measurement in which tasks wait for less than this fraction of the time is never dropped, whatever is usual in the
/// session.
const CPU_FREE: f64 = 0.25;
const IO_FREE: f64 = 0.25;
const STEAL_FREE: f64 = 0.02;
/// The lateness of the load generator at the 99th percentile, in microseconds, below which no measurement is dropped.
const LATENESS_FREE_US: u64 = 5_000;
/// A measurement is dropped if its pressure exceeds the session's usual level by more than these limits: fractions of
/// time are added to the usual fraction, and the usual lateness is multiplied.
const ABOVE: f64 = 0.25;
const STEAL_ABOVE: f64 = 0.05;
const LATENESS_TIMES: u64 = 3;

/// The usual level of each kind of machine pressure in a session.
#[derive(Debug, Clone, Copy, Default)]
struct Usual {
    cpu: f64,
    io: f64,
    steal: f64,
    lateness_us: u64,
}

/// For each measurement of a gate the reason why it is dropped; none if it is kept.
pub fn dropped(slices: &[Slice]) -> Vec<Option<String>> {
    let sessions: Vec<u32> = slices.iter().map(|slice| slice.session).collect();
    let usual_of = |session: u32| usual(&slices.iter().filter(|slice| slice.session == session).collect::<Vec<_>>());
    let mut known: Vec<(u32, Usual)> = Vec::new();
    for session in sessions {
        if !known.iter().any(|(one, _)| *one == session) {
            known.push((session, usual_of(session)));
        }
    }
    let of = |slice: &Slice| known.iter().find(|(session, _)| *session == slice.session).map(|(_, usual)| *usual);
    slices.iter().map(|slice| why(slice, of(slice).unwrap_or_default())).collect()
}

fn usual(slices: &[&Slice]) -> Usual {
    let median = |mut values: Vec<f64>| {
        values.sort_unstable_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or_default()
    };
    let mut lateness: Vec<u64> = slices.iter().map(|slice| slice.pressure.lateness_us).collect();
    lateness.sort_unstable();
    Usual {
        cpu: median(slices.iter().filter_map(|slice| slice.pressure.cpu).collect()),
        io: median(slices.iter().filter_map(|slice| slice.pressure.io).collect()),
        steal: median(slices.iter().filter_map(|slice| slice.pressure.steal).collect()),
        lateness_us: lateness.get(lateness.len() / 2).copied().unwrap_or_default(),
    }
}

fn why(slice: &Slice, usual: Usual) -> Option<String> {
    let pressure = slice.pressure;
    let share = |what: &str, found: Option<f64>, limit: f64| {
        let found = found.filter(|found| *found > limit)?;
        Some(format!("{what} {} of the time, more than {}", percent(found), percent(limit)))
    };
    let late = LATENESS_FREE_US.max(usual.lateness_us.saturating_mul(LATENESS_TIMES));
    share("something waited for a processor", pressure.cpu, CPU_FREE.max(usual.cpu + ABOVE))
        .or_else(|| share("something waited for the disk", pressure.io, IO_FREE.max(usual.io + ABOVE)))
        .or_else(|| share("others had the processors", pressure.steal, STEAL_FREE.max(usual.steal + STEAL_ABOVE)))
        .or_else(|| {
            let found = pressure.lateness_us;
            (found > late).then(|| format!("the generator was {} late, more than {}", micros(found), micros(late)))
        })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::gate::order::Side;
    use crate::gate::slice::Pressure;

    fn slices(pressures: &[Pressure]) -> Vec<Slice> {
        let slice = |(place, pressure): (u32, &Pressure)| Slice {
            session: 1,
            block: place / 4,
            place: place % 4,
            side: Side::A,
            fingerprint: String::new(),
            lasted_ms: 1000,
            planned: 1,
            answered: 1,
            changes: 0,
            pressure: *pressure,
            values: BTreeMap::new(),
        };
        (0..).zip(pressures).map(slice).collect()
    }

    /// On a machine that is always busy, no measurement is dropped. A measurement in which the machine has additional
    /// load is dropped, on a quiet machine and on a busy one.
    #[test]
    fn bursts_are_dropped_and_a_busy_machine_is_not() {
        let busy = |cpu: f64| Pressure { cpu: Some(cpu), ..Pressure::default() };
        let dropped_of = |cpus: &[f64]| {
            let pressures: Vec<Pressure> = cpus.iter().map(|cpu| busy(*cpu)).collect();
            let dropped = dropped(&slices(&pressures));
            dropped.iter().map(Option::is_some).collect::<Vec<_>>()
        };
        assert_eq!(dropped_of(&[0.8, 0.85, 0.9, 0.8]), [false; 4]);
        assert_eq!(dropped_of(&[0.02, 0.03, 0.5, 0.2]), [false, false, true, false]);
        assert_eq!(dropped_of(&[0.4, 0.4, 0.4, 0.9]), [false, false, false, true]);
    }

    #[test]
    fn steal_and_lateness_are_told() {
        let mut pressures = [Pressure { lateness_us: 200, steal: Some(0.0), ..Pressure::default() }; 8];
        pressures[1].lateness_us = 40_000;
        pressures[2].steal = Some(0.2);
        let why: Vec<String> = dropped(&slices(&pressures)).into_iter().flatten().collect();
        assert_eq!(
            why,
            [
                "the generator was 40 ms late, more than 5 ms",
                "others had the processors 20 % of the time, more than 5 %"
            ]
        );
    }
}
