//! The times at which faults begin and end. The schedule is pure: it gets the time and the hits of faults, and returns
//! the faults to begin or end.
//!
//! Owns the keys `at`, `when` and `for`. The schedule begins no fault itself; its caller begins the faults.

use std::time::Duration;

use super::settings::{self, Lasting};
use super::{Error, Fault, When};

/// The beginning or end of fault number `index` in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Begin(usize),
    End(usize),
}

/// The begins and ends of faults whose time has not come yet. Times count from the start of the warm-up.
#[derive(Debug)]
pub struct Schedule {
    entries: Vec<Entry>,
    /// Begins and ends with known times, in order of time. Begins and ends of the same time are in the order in which
    /// they became known.
    pending: Vec<(Duration, Step)>,
}

#[derive(Debug)]
struct Entry {
    id: Option<String>,
    waits_for: Option<(String, Duration)>,
    /// If the fault waits for a write: the delay after it.
    after_write: Option<Duration>,
    /// The time from the end of the load to the beginning, if the fault begins after the load.
    after_load: Option<Duration>,
    lasting: Lasting,
    was_hit: bool,
    begun: bool,
    ended: bool,
}

impl Schedule {
    /// Checks a list of faults and makes their schedule. An error comes with the number of the invalid fault.
    pub fn new(faults: &[Fault]) -> Result<Self, (usize, Error)> {
        settings::check_all(faults)?;
        let plus = |when: &When| when.plus.unwrap_or_default().0;
        let entry = |fault: &Fault| Entry {
            id: fault.id.clone(),
            waits_for: fault.when.as_ref().and_then(|when| Some((when.hit.clone()?, plus(when)))),
            after_write: fault.when.as_ref().filter(|when| when.write.is_some()).map(plus),
            after_load: fault.after_load().map(|after| after.0),
            lasting: fault.lasting(),
            was_hit: false,
            begun: false,
            ended: false,
        };
        let mut schedule = Self { entries: faults.iter().map(entry).collect(), pending: Vec::new() };
        for (index, fault) in faults.iter().enumerate() {
            if let Some(at) = fault.at {
                schedule.plan(at.0, Step::Begin(index));
            }
        }
        Ok(schedule)
    }

    /// The faults that begin before the subject starts, in the order of the list. The `for` of these faults counts from
    /// the start of the warm-up.
    pub fn armed_before(&mut self) -> Vec<usize> {
        let armed = |entry: &Entry| {
            entry.waits_for.is_none() && entry.after_write.is_none() && entry.after_load.is_none() && !entry.begun
        };
        let timed: Vec<usize> = self.pending.iter().filter_map(|(_, step)| step.begins()).collect();
        let now: Vec<usize> =
            (0..self.entries.len()).filter(|index| armed(&self.entries[*index]) && !timed.contains(index)).collect();
        for index in &now {
            self.began(*index, Duration::ZERO);
        }
        now
    }

    /// Fault number `index` had a hit at `now`: faults that wait for its first hit get their times.
    pub fn hit(&mut self, index: usize, now: Duration) {
        let Some(entry) = self.entries.get_mut(index).filter(|entry| !entry.was_hit) else { return };
        entry.was_hit = true;
        let Some(id) = entry.id.clone() else { return };
        let waiting: Vec<(usize, Duration)> = self
            .entries
            .iter()
            .enumerate()
            .filter_map(|(index, entry)| {
                entry.waits_for.as_ref().filter(|(hit, _)| *hit == id).map(|(_, plus)| (index, *plus))
            })
            .collect();
        for (index, plus) in waiting {
            self.plan(now.saturating_add(plus), Step::Begin(index));
        }
    }

    /// The write for which fault number `index` waits has come at `now`: the fault gets its time.
    pub fn fired(&mut self, index: usize, now: Duration) {
        if let Some(plus) = self.entries.get(index).filter(|entry| !entry.begun).and_then(|entry| entry.after_write) {
            self.plan(now.saturating_add(plus), Step::Begin(index));
        }
    }

    /// Fault number `index` has begun with its write at `now`; the schedule only ends the fault.
    pub fn begun(&mut self, index: usize, now: Duration) {
        if self.entries.get(index).is_some_and(|entry| !entry.begun) {
            self.began(index, now);
        }
    }

    /// The next begin or end whose time has come. After a `Begin`, the `End` of that fault is scheduled, if the fault
    /// has an end.
    pub fn due(&mut self, now: Duration) -> Option<Step> {
        if self.pending.first()?.0 > now {
            return None;
        }
        let (at, step) = self.pending.remove(0);
        match step {
            Step::Begin(index) => self.began(index, at),
            Step::End(index) => self.entries[index].ended = true,
        }
        Some(step)
    }

    /// The time of the next known begin or end; a hit may add an earlier one.
    pub fn next(&self) -> Option<Duration> {
        self.pending.first().map(|(at, _)| *at)
    }

    /// The load ended at `now`: faults that begin after the load get their times.
    pub fn load_ended(&mut self, now: Duration) {
        for index in 0..self.entries.len() {
            if let Some(after) = self.entries[index].after_load {
                self.plan(now.saturating_add(after), Step::Begin(index));
            }
        }
    }

    /// Ends the schedule at the end of the load. Returns the faults that have begun and not ended, in the order of the
    /// list. Afterwards the schedule is empty.
    pub fn finish(&mut self) -> Vec<usize> {
        self.pending.clear();
        let open: Vec<usize> =
            (0..self.entries.len()).filter(|i| self.entries[*i].begun && !self.entries[*i].ended).collect();
        for index in &open {
            self.entries[*index].ended = true;
        }
        open
    }

    fn began(&mut self, index: usize, at: Duration) {
        let entry = &mut self.entries[index];
        entry.begun = true;
        match entry.lasting {
            Lasting::Moment => self.plan(at, Step::End(index)),
            Lasting::For(span) => self.plan(at.saturating_add(span.0), Step::End(index)),
            Lasting::ToTheEnd => {}
        }
    }

    fn plan(&mut self, at: Duration, step: Step) {
        let place = self.pending.partition_point(|(known, _)| *known <= at);
        self.pending.insert(place, (at, step));
    }
}

impl Step {
    fn begins(self) -> Option<usize> {
        match self {
            Self::Begin(index) => Some(index),
            Self::End(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use units::Span;

    use super::super::{Name, WriteOf};
    use super::*;

    fn seconds(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    fn after(name: Name, hit: &str, plus_s: u64) -> Fault {
        let when = Some(When::hit(hit, Some(Span::from_secs(plus_s))));
        Fault { when, ..Fault::armed(name) }
    }

    fn labelled(fault: Fault, id: &str) -> Fault {
        Fault { id: Some(id.to_owned()), ..fault }
    }

    #[test]
    fn a_time_a_length_and_a_moment() {
        let long = Fault { lasts: Some(Span::from_secs(3)), ..Fault::new(Name::SilentWatch, Span::from_secs(5)) };
        let moment = Fault::new(Name::WatchReset, Span::from_secs(5));
        let mut schedule = Schedule::new(&[long, moment]).unwrap();
        assert_eq!(schedule.armed_before(), Vec::<usize>::new());
        assert_eq!((schedule.due(seconds(4)), schedule.next()), (None, Some(seconds(5))));
        let steps: Vec<Step> = std::iter::from_fn(|| schedule.due(seconds(8))).collect();
        assert_eq!(steps, [Step::Begin(0), Step::Begin(1), Step::End(1), Step::End(0)]);
        assert_eq!(schedule.finish(), Vec::<usize>::new());
    }

    #[test]
    fn a_fault_waits_for_the_first_hit_of_another() {
        let first = labelled(Fault::armed(Name::ErrorEvent), "first");
        let mut schedule = Schedule::new(&[first, after(Name::Compact, "first", 2)]).unwrap();
        assert_eq!(schedule.armed_before(), [0]);
        assert_eq!(schedule.due(seconds(100)), None);
        schedule.hit(0, seconds(10));
        schedule.hit(0, seconds(11));
        assert_eq!(schedule.due(seconds(11)), None);
        let steps: Vec<Step> = std::iter::from_fn(|| schedule.due(seconds(12))).collect();
        assert_eq!(steps, [Step::Begin(1), Step::End(1)], "the first hit only, and a compaction is a moment");
        assert_eq!(schedule.finish(), [0]);
    }

    /// A fault that waits for a write begins neither early nor by itself, and begins only once.
    #[test]
    fn a_fault_waits_for_a_write() {
        let when = |plus| Some(When { write: Some(WriteOf::default()), plus, ..When::default() });
        let now = Fault { when: when(None), lasts: Some(Span::from_secs(2)), ..Fault::armed(Name::SilentWatch) };
        let later = Fault { when: when(Some(Span::from_secs(3))), ..now.clone() };
        let mut schedule = Schedule::new(&[now, later]).unwrap();
        assert_eq!((schedule.armed_before(), schedule.due(seconds(100))), (vec![], None));
        schedule.begun(0, seconds(10));
        schedule.begun(0, seconds(11));
        schedule.fired(1, seconds(10));
        schedule.fired(0, seconds(10));
        let steps: Vec<Step> = std::iter::from_fn(|| schedule.due(seconds(20))).collect();
        assert_eq!(steps, [Step::End(0), Step::Begin(1), Step::End(1)]);
    }

    #[test]
    fn a_fault_after_the_load_waits_for_its_end() {
        let late = Fault::armed(Name::ChildrenDrift).set("afterLoad", Span::from_secs(1));
        let mut schedule = Schedule::new(&[late]).unwrap();
        assert_eq!((schedule.armed_before(), schedule.due(seconds(100)), schedule.finish()), (vec![], None, vec![]));
        schedule.load_ended(seconds(100));
        assert_eq!(schedule.due(seconds(100)), None);
        let steps: Vec<Step> = std::iter::from_fn(|| schedule.due(seconds(101))).collect();
        assert_eq!(steps, [Step::Begin(0), Step::End(0)]);
    }

    #[test]
    fn labels_that_lead_nowhere_are_refused() {
        let error = |faults: &[Fault]| Schedule::new(faults).unwrap_err().1.to_string();
        let one = labelled(Fault::armed(Name::ErrorEvent), "one");
        assert_eq!(
            error(&[one.clone(), after(Name::Compact, "two", 0)]),
            "`when` waits for a hit of `two`, which no fault has as its `id`: there is `one`"
        );
        assert!(error(&[after(Name::Compact, "x", 0)]).contains("no fault has an `id`"));
        assert_eq!(error(&[one.clone(), one]), "`id: one` is there twice: every fault's `id` must be its own");
        let circle = [labelled(after(Name::Compact, "b", 0), "a"), labelled(after(Name::Compact, "a", 0), "b")];
        assert!(error(&circle).contains("neither would ever begin"));
        let behind = [after(Name::Compact, "a", 0), circle[0].clone(), circle[1].clone()];
        assert_eq!(Schedule::new(&behind).unwrap_err().0, 1, "one that waits for a circle is not itself in it");
    }
}
