//! The times at which faults begin and end and canaries are written. Does no I/O: times and hits are inputs, actions
//! are outputs.
//!
//! Owns the times of canaries, and how long a momentary fault lasts. [`Schedule`] handles the keys `at`, `when` and
//! `for` of faults.

use std::collections::VecDeque;
use std::time::Duration;

use mock_faults::{Family, Fault, Lasting, Schedule, Step};

use crate::clock::millis;

/// Time from a canary to its fault, so that a healthy subject has seen the canary when the fault begins.
const CANARY_LEAD_MS: u64 = 1000;
/// How long a momentary fault waits for a hit: `watch-eof` with `midLine` hits the next event of a watch that was open
/// at the fault's begin, and no later watch. The canary after a momentary fault waits for the same time, until the
/// effect of the fault was sent.
const MOMENT_MS: u64 = 1000;

/// An action of the run on fault number `index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    CanaryBefore(usize),
    Begin(usize),
    End(usize),
    CanaryAfter(usize),
}

/// The future actions on faults and canaries. Times count from the start of the warm-up.
#[derive(Debug)]
pub(super) struct Timeline {
    schedule: Schedule,
    plans: Vec<Plan>,
    canaries: VecDeque<(u64, Action)>,
    /// Momentary faults that wait for their hits, each with its end time, if there is one.
    moments: Vec<(usize, Option<u64>)>,
}

/// The planned times and the state of one fault.
#[derive(Debug, Clone, Copy)]
struct Plan {
    moment: bool,
    /// Whether the fault begins at a fixed time, so that a canary can be written before it.
    timed: bool,
    /// Whether the fault lasts until its own work is done.
    patient: bool,
    /// Number of hits after which the fault is over.
    awaited: u64,
}

impl Timeline {
    /// Plans the actions for `faults`, which must have been checked.
    pub(super) fn new(faults: &[Fault]) -> Result<Self, (usize, mock_faults::Error)> {
        let schedule = Schedule::new(faults)?;
        let plan = |fault: &Fault| {
            let patient = fault.name.row().family.takes_its_time();
            let awaited = if patient { fault.count_most().unwrap_or(1) } else { 1 };
            Plan { moment: fault.lasting() == Lasting::Moment, timed: fault.at.is_some(), patient, awaited }
        };
        let before = |(index, fault): (usize, &Fault)| {
            Some((fault.at?.as_millis().saturating_sub(CANARY_LEAD_MS), Action::CanaryBefore(index)))
        };
        let mut canaries: Vec<_> = faults.iter().enumerate().filter_map(before).collect();
        canaries.sort_by_key(|(at_ms, _)| *at_ms);
        let plans = faults.iter().map(plan).collect();
        Ok(Self { schedule, plans, canaries: canaries.into(), moments: Vec::new() })
    }

    /// The faults that begin before the subject starts.
    pub(super) fn armed_before(&mut self) -> Vec<usize> {
        self.schedule.armed_before()
    }

    /// Records a hit of fault number `index`: ends a momentary fault, and plans the faults that wait for this hit.
    pub(super) fn hit(&mut self, index: usize, at_ms: u64) {
        self.schedule.hit(index, Duration::from_millis(at_ms));
        let plan = &mut self.plans[index];
        plan.awaited = plan.awaited.saturating_sub(1);
        if plan.awaited > 0 {
            return;
        }
        for (_, end_ms) in self.moments.iter_mut().filter(|(waiting, _)| *waiting == index) {
            *end_ms = Some(end_ms.unwrap_or(at_ms).min(at_ms));
        }
    }

    /// The write for which fault number `index` waits has come. `begun` means that the fault has begun with the write.
    pub(super) fn fired(&mut self, index: usize, at_ms: u64, begun: bool) {
        let at = Duration::from_millis(at_ms);
        if begun { self.schedule.begun(index, at) } else { self.schedule.fired(index, at) }
    }

    /// Returns the next action whose time has come.
    pub(super) fn due(&mut self, now_ms: u64) -> Option<Action> {
        if self.canaries.front().is_some_and(|(at_ms, _)| *at_ms <= now_ms) {
            return self.canaries.pop_front().map(|(_, action)| action);
        }
        self.step(now_ms)
    }

    /// The time of the next begin or end of a fault, as far as known. A hit may add a begin or an end before this time.
    pub(super) fn next_ms(&self) -> Option<u64> {
        // An action within a millisecond is due at the end of this millisecond.
        let scheduled = self.schedule.next().map(|at| millis(at.saturating_add(Duration::from_nanos(999_999))));
        scheduled.into_iter().chain(self.moments.iter().filter_map(|(_, end_ms)| *end_ms)).min()
    }

    /// The next action before the warm-up: a fault whose awaited hit has already happened.
    pub(super) fn due_early(&mut self) -> Option<Action> {
        self.step(0)
    }

    fn step(&mut self, now_ms: u64) -> Option<Action> {
        if let Some(place) = self.moments.iter().position(|(_, end_ms)| end_ms.is_some_and(|end_ms| end_ms <= now_ms)) {
            let (index, _) = self.moments.remove(place);
            return Some(self.end(index, now_ms + MOMENT_MS));
        }
        match self.schedule.due(Duration::from_millis(now_ms))? {
            Step::Begin(index) => Some(Action::Begin(index)),
            Step::End(index) if self.plans[index].moment && self.plans[index].awaited > 0 => {
                let patient = self.plans[index].patient;
                self.moments.push((index, (!patient).then_some(now_ms + MOMENT_MS)));
                self.step(now_ms)
            }
            Step::End(index) => {
                let rest_ms = if self.plans[index].moment { MOMENT_MS } else { 0 };
                Some(self.end(index, now_ms + rest_ms))
            }
        }
    }

    fn end(&mut self, index: usize, canary_ms: u64) -> Action {
        if self.plans[index].timed {
            let place = self.canaries.partition_point(|(at_ms, _)| *at_ms <= canary_ms);
            self.canaries.insert(place, (canary_ms, Action::CanaryAfter(index)));
        }
        Action::End(index)
    }

    /// The load ended at `now_ms`: faults that begin after the load get their times.
    pub(super) fn load_ended(&mut self, now_ms: u64) {
        self.schedule.load_ended(Duration::from_millis(now_ms));
    }

    /// Called when the load ends, and when the drain ends. Returns the faults to end and the canaries still to write. After this call, only
    /// faults that begin after the load follow.
    pub(super) fn finish(&mut self) -> Vec<Action> {
        let open = self.schedule.finish().into_iter().chain(self.moments.drain(..).map(|(index, _)| index));
        let mut actions: Vec<Action> = Vec::new();
        for index in open {
            actions.push(Action::End(index));
            actions.extend(self.plans[index].timed.then_some(Action::CanaryAfter(index)));
        }
        let after = |(_, action): (u64, Action)| matches!(action, Action::CanaryAfter(_)).then_some(action);
        actions.extend(self.canaries.drain(..).filter_map(after));
        actions
    }
}

/// Whether a fault may hold back the subject's requests before the subject is ready.
pub(super) fn begins_before(faults: &[Fault]) -> bool {
    faults.iter().any(|fault| fault.is_armed_before() && fault.name.row().family != Family::Subject)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mock_faults::{Name, When};
    use units::Span;

    fn drain(timeline: &mut Timeline, now_ms: u64) -> Vec<Action> {
        std::iter::from_fn(|| timeline.due(now_ms)).collect()
    }

    fn silent(at_s: u64, for_s: u64) -> Fault {
        Fault { lasts: Some(Span::from_secs(for_s)), ..Fault::new(Name::SilentWatch, Span::from_secs(at_s)) }
    }

    #[test]
    fn a_fault_is_framed_by_its_canaries() {
        let mut timeline = Timeline::new(&[silent(10, 3)]).unwrap();
        assert_eq!(drain(&mut timeline, 8999), []);
        assert_eq!(drain(&mut timeline, 9000), [Action::CanaryBefore(0)]);
        assert_eq!(drain(&mut timeline, 12_999), [Action::Begin(0)]);
        assert_eq!(drain(&mut timeline, 13_000), [Action::End(0), Action::CanaryAfter(0)]);
    }

    #[test]
    fn a_fault_that_outlives_the_load_ends_with_it() {
        let mut timeline = Timeline::new(&[silent(10, 100)]).unwrap();
        drain(&mut timeline, 15_000);
        assert_eq!(timeline.finish(), [Action::End(0), Action::CanaryAfter(0)]);
        assert_eq!((drain(&mut timeline, 200_000), timeline.finish()), (vec![], vec![]));
    }

    #[test]
    fn a_moment_ends_with_its_first_hit_or_a_second_later() {
        let reset = Fault::new(Name::WatchReset, Span::from_secs(5));
        let mut timeline = Timeline::new(&[reset.clone(), reset]).unwrap();
        assert_eq!(
            drain(&mut timeline, 5000),
            [0, 1].map(Action::CanaryBefore).into_iter().chain([0, 1].map(Action::Begin)).collect::<Vec<_>>()
        );
        assert_eq!(drain(&mut timeline, 5100), []);
        timeline.hit(0, 5200);
        assert_eq!(drain(&mut timeline, 5200), [Action::End(0)]);
        assert_eq!(drain(&mut timeline, 5999), []);
        assert_eq!(drain(&mut timeline, 6000), [Action::End(1)]);
        assert_eq!(timeline.finish(), [Action::CanaryAfter(0), Action::CanaryAfter(1)]);
    }

    /// The scenario `soak-100h` draws more faults than the engine of faults remembers. Each fault begins, hits, ends
    /// and has its canaries, and its hits can be read at that time.
    #[test]
    fn a_hundred_hours_of_faults_are_played_to_the_end() {
        let source = crate::scenario::Source::read("soak-100h").unwrap();
        let faults: &[Fault] = &source.scenario.faults;
        assert!(faults.len() > 5900, "{}", faults.len());
        let mut timeline = Timeline::new(faults).unwrap();
        let mut table = mock_faults::table::Table::new(source.scenario.seed);
        let id = |index| mock_faults::FaultId(u32::try_from(index).unwrap());
        let mut done = vec![(0, 0, 0, 0); faults.len()];
        let length_s = source.scenario.phases.loaded().as_secs();
        for now_ms in (0..length_s).map(|second| second * 1000) {
            while let Some(action) = timeline.due(now_ms) {
                match action {
                    Action::CanaryBefore(index) => done[index].0 += 1,
                    Action::Begin(index) => {
                        let place = table.begin(id(index), &faults[index], ()).unwrap();
                        table.hit(place, now_ms * 1000, String::new());
                        timeline.hit(index, now_ms);
                        done[index].1 += 1;
                    }
                    Action::End(index) => {
                        table.end(id(index)).unwrap();
                        done[index].2 += table.hits_of(id(index));
                    }
                    Action::CanaryAfter(index) => done[index].3 += table.hits_of(id(index)),
                }
            }
            table.take_hits();
        }
        assert_eq!(timeline.finish(), []);
        let wrong: Vec<_> = done.iter().enumerate().filter(|(_, done)| **done != (1, 1, 1, 1)).take(5).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    /// At the time that `next_ms` returns, an action is ready, and no action is ready before.
    #[test]
    fn the_next_time_is_known() {
        let first = Fault { id: Some("first".to_owned()), ..Fault::new(Name::WatchReset, Span::from_secs(5)) };
        let plus = Some(Span(Duration::from_micros(1500)));
        let then = Fault { when: Some(When::hit("first", plus)), ..Fault::armed(Name::SilentWatch) };
        let mut timeline = Timeline::new(&[first, then]).unwrap();
        drain(&mut timeline, 4999);
        assert_eq!(timeline.next_ms(), Some(5000));
        assert_eq!(drain(&mut timeline, 5000), [Action::Begin(0)]);
        assert_eq!(timeline.next_ms(), Some(6000), "a moment waits for its hit");
        timeline.hit(0, 5200);
        assert_eq!((timeline.next_ms(), drain(&mut timeline, 5200)), (Some(5200), vec![Action::End(0)]));
        assert_eq!((timeline.next_ms(), drain(&mut timeline, 5201)), (Some(5202), vec![]));
        assert_eq!((drain(&mut timeline, 5202), timeline.next_ms()), (vec![Action::Begin(1)], None));
    }

    #[test]
    fn what_waits_for_a_hit_has_no_canaries_and_may_begin_before_the_times_count() {
        let first = Fault { id: Some("first".to_owned()), ..Fault::armed(Name::ErrorEvent) };
        let when = |plus_s| Some(When::hit("first", Some(Span::from_secs(plus_s))));
        let soon = Fault { when: when(0), ..Fault::armed(Name::SilentWatch) };
        let later = Fault { when: when(2), lasts: Some(Span::from_secs(1)), ..Fault::armed(Name::SilentWatch) };
        let faults = [first, soon, later];
        assert!(begins_before(&faults) && !begins_before(&faults[1..]));
        let mut timeline = Timeline::new(&faults).unwrap();
        assert_eq!((timeline.armed_before(), timeline.due_early()), (vec![0], None));
        timeline.hit(0, 0);
        assert_eq!((timeline.due_early(), timeline.due_early()), (Some(Action::Begin(1)), None));
        assert_eq!(drain(&mut timeline, 3000), [Action::Begin(2), Action::End(2)]);
        assert_eq!(timeline.finish(), [Action::End(0), Action::End(1)]);
    }
}
