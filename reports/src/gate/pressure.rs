//! The slices that are dropped because of the machine's load. Pure.
//!
//! A machine that is busy all the time is no reason to drop a slice: both slices of a pair see the same load, and the
//! certificate shows what could be detected in spite of it. A burst during one slice and not during others is a reason.

use super::slice::Slice;
use crate::words::{micros, percent};

/// No slice is dropped below these shares, whatever is usual in the session.
const CPU_FREE: f64 = 0.25;
const IO_FREE: f64 = 0.25;
const STEAL_FREE: f64 = 0.02;
/// Lateness of the generator at the 99th percentile that does not affect these measurements.
const LATENESS_FREE_US: u64 = 5_000;
/// A burst lies this far above the session's usual level: a quarter of the time for shares, and three times the usual
/// for unbounded values.
const ABOVE: f64 = 0.25;
const STEAL_ABOVE: f64 = 0.05;
const LATENESS_TIMES: u64 = 3;

/// The usual pressure in a session.
#[derive(Debug, Clone, Copy, Default)]
struct Usual {
    cpu: f64,
    io: f64,
    steal: f64,
    lateness_us: u64,
}

/// For each slice the reason why it is dropped, if it is.
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

    /// A machine that is always busy drops no slice; a burst is dropped, on a quiet machine and on a busy one.
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
