//! When which fault begins and ends, and when its canaries are written. Pure: time comes in, actions come out.

use std::collections::VecDeque;

use mocks::faults::Fault;

/// The canary before a fault is written so long before it, that a healthy subject has seen it when the fault begins.
const CANARY_LEAD_MS: u64 = 1000;
/// A fault without a length (`for`) is an instant; its canary after waits until its effect is on the wire.
const INSTANT_MS: u64 = 1000;

/// What the run has to do about fault number `index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    CanaryBefore(usize),
    Begin(usize),
    End(usize),
    CanaryAfter(usize),
}

/// The actions that are still to come, in order of time.
#[derive(Debug)]
pub(super) struct Timeline {
    pending: VecDeque<(u64, Action)>,
}

impl Timeline {
    /// The actions of `faults`, none later than `end_ms`: a fault that outlives the load ends with it.
    pub(super) fn new(faults: &[Fault], end_ms: u64) -> Self {
        let mut actions = Vec::new();
        for (index, fault) in faults.iter().enumerate() {
            let begin = fault.at.unwrap_or_default().as_millis();
            let length = fault.lasts.map_or(INSTANT_MS, units::Span::as_millis);
            let end = begin.saturating_add(length).min(end_ms);
            actions.push((begin.saturating_sub(CANARY_LEAD_MS), Action::CanaryBefore(index)));
            actions.push((begin, Action::Begin(index)));
            actions.push((end, Action::End(index)));
            actions.push((end, Action::CanaryAfter(index)));
        }
        // Stable: actions of the same moment stay in the order in which they are listed above.
        actions.sort_by_key(|(at_ms, _)| *at_ms);
        Self { pending: actions.into() }
    }

    /// The next action that is due.
    pub(super) fn due(&mut self, now_ms: u64) -> Option<Action> {
        let (at_ms, action) = *self.pending.front()?;
        if at_ms > now_ms {
            return None;
        }
        self.pending.pop_front();
        Some(action)
    }

    /// Everything that is left: for a run that ends early.
    pub(super) fn ends(&mut self) -> impl Iterator<Item = usize> + '_ {
        self.pending.drain(..).filter_map(|(_, action)| match action {
            Action::End(index) => Some(index),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mocks::faults::Name;
    use units::Span;

    fn drain(timeline: &mut Timeline, now_ms: u64) -> Vec<Action> {
        std::iter::from_fn(|| timeline.due(now_ms)).collect()
    }

    #[test]
    fn a_fault_is_framed_by_its_canaries() {
        let fault = Fault { lasts: Some(Span::from_secs(3)), ..Fault::new(Name::SilentWatch, Span::from_secs(10)) };
        let mut timeline = Timeline::new(&[fault], 60_000);
        assert_eq!(drain(&mut timeline, 8999), []);
        assert_eq!(drain(&mut timeline, 9000), [Action::CanaryBefore(0)]);
        assert_eq!(drain(&mut timeline, 12_999), [Action::Begin(0)]);
        assert_eq!(drain(&mut timeline, 13_000), [Action::End(0), Action::CanaryAfter(0)]);
    }

    #[test]
    fn a_fault_that_outlives_the_load_ends_with_it() {
        let fault = Fault { lasts: Some(Span::from_secs(100)), ..Fault::new(Name::SilentWatch, Span::from_secs(10)) };
        let mut timeline = Timeline::new(std::slice::from_ref(&fault), 20_000);
        assert_eq!(drain(&mut timeline, 20_000).last(), Some(&Action::CanaryAfter(0)));
        let mut interrupted = Timeline::new(&[fault], 20_000);
        drain(&mut interrupted, 15_000);
        assert_eq!(interrupted.ends().collect::<Vec<_>>(), [0], "what is left can be ended early");
    }
}
