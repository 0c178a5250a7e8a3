//! Faults that change the clocks of the subject's processes.
//!
//! Owns the clock line of each process (the connection over which the process's clock is changed), and counts the hits.
//! `mocks/clock` changes the clocks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use mock_clock::{Shift, Which};
use mock_faults::{DriftKeys, Error, Family, Fault, FaultId, Hit, JumpKeys, JumpOf, Name, Player, process_of};
use parking_lot::Mutex;
use tokio::sync::Notify;
use units::Span;

use crate::subject::ClockLine;

#[derive(Debug)]
pub(super) struct Clocks {
    epoch: Instant,
    state: Mutex<State>,
    struck: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Clock lines by process name; the key of a single process is `None`.
    lines: BTreeMap<Option<String>, Arc<ClockLine>>,
    hits: BTreeMap<FaultId, u64>,
    fresh: Vec<Hit>,
    /// Active drifts: each fault with the process that it affects.
    drifting: BTreeMap<FaultId, Option<String>>,
}

impl Clocks {
    pub(super) fn new(epoch: Instant) -> Self {
        Self { epoch, state: Mutex::default(), struck: Notify::new() }
    }

    /// Whether at least one of the faults changes a clock.
    pub(super) fn are_needed(faults: &[Fault]) -> bool {
        faults.iter().any(|fault| fault.name.row().family == Family::Clock)
    }

    /// The connection over which the clock of a process is changed. A restart of the process keeps this connection.
    pub(super) fn line(&self, process: Option<&str>) -> Arc<ClockLine> {
        Arc::clone(self.state.lock().lines.entry(process.map(str::to_owned)).or_default())
    }

    /// Returns when a clock has been changed since the last return.
    pub(super) async fn struck(&self) {
        self.struck.notified().await;
    }

    /// Changes the clock of `process`, or of all processes. Counts a hit for each running process.
    fn tell(&self, id: FaultId, process: Option<&str>, shift: Shift, what: Option<&str>) {
        let mut state = self.state.lock();
        let lines = state.lines.iter().map(|(name, line)| (name.clone(), Arc::clone(line)));
        let lines: Vec<_> = lines.filter(|(name, _)| process.is_none() || name.as_deref() == process).collect();
        for (name, line) in lines {
            let whose = name.map_or_else(|| "the subject".to_owned(), |name| format!("`{name}`"));
            let there = line.tell(shift).unwrap_or_else(|why| {
                // A fault without a hit makes the run inconclusive; this message is the reason.
                crate::out::err!("longhaul: the clock of {whose} was not changed: {}", crate::shown::text(&why));
                0
            });
            let Some(what) = what.filter(|_| there > 0) else { continue };
            let at_us = u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(u64::MAX);
            state.fresh.push(Hit { fault: id, at_us, detail: format!("the clock of {whose} {what}") });
            *state.hits.entry(id).or_default() += 1;
        }
        self.struck.notify_one();
    }
}

impl Player for Clocks {
    fn begin(&self, id: FaultId, fault: &Fault) -> Result<(), Error> {
        fault.check()?;
        let process = process_of(fault);
        let (shift, what) = if fault.name == Name::ClockDrift {
            let ppm = fault.keys::<DriftKeys>().ppm();
            self.state.lock().drifting.insert(id, process.clone());
            (Shift::Drift { ppm }, format!("runs {ppm} ppm too fast from now on"))
        } else {
            jump(&fault.keys::<JumpKeys>())
        };
        self.tell(id, process.as_deref(), shift, Some(&what));
        Ok(())
    }

    fn end(&self, id: FaultId) {
        let drifted = self.state.lock().drifting.remove(&id);
        if let Some(process) = drifted {
            self.tell(id, process.as_deref(), Shift::Drift { ppm: 0 }, None);
        }
    }

    fn hits(&self, id: FaultId) -> u64 {
        self.state.lock().hits.get(&id).copied().unwrap_or(0)
    }

    fn take_hits(&self) -> Vec<Hit> {
        std::mem::take(&mut self.state.lock().fresh)
    }
}

fn jump(keys: &JumpKeys) -> (Shift, String) {
    let by_ns = keys.by_ns();
    let far = Span(std::time::Duration::from_nanos(by_ns.unsigned_abs()));
    let (of, which) = match keys.which() {
        JumpOf::Wall => (Which::Wall, "by the wall"),
        JumpOf::Suspended => (Which::Suspended, "as after a suspend"),
        JumpOf::All => (Which::All, "as a whole"),
    };
    let direction = if by_ns < 0 { "back" } else { "ahead" };
    (Shift::Jump { of, by_ns }, format!("jumped {far} {direction}, {which}"))
}
