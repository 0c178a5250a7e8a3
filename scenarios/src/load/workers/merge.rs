//! Adds up the results that several workers report for the same interval of time. Does no I/O.

use std::collections::BTreeMap;

use loadgen::admission::Interval;

/// Maximum number of intervals by which a worker may be behind the fastest worker. A worker that is further behind
/// counts as hanging, which bounds the number of waiting intervals.
const BEHIND_MAX: u64 = 30;

/// A mistake of a worker, as a text after the worker's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error("delivered interval {number} where {next} is next")]
    Order { number: u64, next: u64 },
    #[error("is {intervals} intervals ahead of worker {slow}, which hangs")]
    Ahead { intervals: u64, slow: usize },
    #[error("ended after {said} intervals but delivered {delivered}")]
    End { said: u64, delivered: u64 },
    #[error("delivered more than the {most} intervals of the longest run, and does not end")]
    Endless { most: u64 },
}

/// Intervals of which some workers have not delivered their results.
#[derive(Debug)]
pub(crate) struct Merge {
    /// The number of the interval that each worker must deliver next.
    next: Vec<u64>,
    ended: Vec<bool>,
    /// Number of intervals in the longest possible run of the plan.
    most: u64,
    open: BTreeMap<u64, Sum>,
}

/// The sum of the results that workers have delivered for one interval.
#[derive(Debug)]
pub(crate) struct Sum {
    pub(crate) start_ms: u64,
    pub(crate) end_ms: u64,
    pub(crate) interval: Interval,
}

impl Merge {
    /// A merge for this number of workers, each of which delivers at most `most` intervals.
    pub(crate) fn new(workers: usize, most: u64) -> Self {
        Self { next: vec![0; workers], ended: vec![false; workers], most, open: BTreeMap::new() }
    }

    pub(crate) fn add(&mut self, worker: usize, number: u64, sum: Sum) -> Result<(), Error> {
        let next = &mut self.next[worker];
        if self.ended[worker] || number != *next {
            return Err(Error::Order { number, next: *next });
        }
        if number >= self.most {
            return Err(Error::Endless { most: self.most });
        }
        *next += 1;
        let newest = *next;
        if let Some(open) = self.open.get_mut(&number) {
            open.start_ms = open.start_ms.min(sum.start_ms);
            open.end_ms = open.end_ms.max(sum.end_ms);
            open.interval.add(&sum.interval);
        } else {
            self.open.insert(number, sum);
        }
        let slowest = self.waiting().min_by_key(|&(_, next)| next);
        match slowest {
            Some((slow, next)) if newest > next + BEHIND_MAX => Err(Error::Ahead { intervals: newest - next, slow }),
            _ => Ok(()),
        }
    }

    /// Records the end of a worker, which reports that it delivered `intervals` intervals.
    pub(crate) fn end(&mut self, worker: usize, intervals: u64) -> Result<(), Error> {
        let delivered = self.next[worker];
        if delivered != intervals || self.ended[worker] {
            return Err(Error::End { said: intervals, delivered });
        }
        self.ended[worker] = true;
        Ok(())
    }

    pub(crate) fn is_over(&self) -> bool {
        self.ended.iter().all(|&ended| ended)
    }

    /// The next complete interval, in order.
    pub(crate) fn pop(&mut self) -> Option<Sum> {
        let slowest = self.waiting().map(|(_, next)| next).min().unwrap_or(u64::MAX);
        let (&number, _) = self.open.first_key_value()?;
        if number < slowest { self.open.remove(&number) } else { None }
    }

    /// The incomplete intervals of a measurement that was aborted, for the report.
    pub(crate) fn rest(self) -> impl Iterator<Item = Sum> {
        self.open.into_values()
    }

    fn waiting(&self) -> impl Iterator<Item = (usize, u64)> {
        let waiting = |&(worker, _): &(usize, u64)| !self.ended[worker];
        self.next.iter().copied().enumerate().filter(waiting)
    }
}

#[cfg(test)]
mod tests {
    use loadgen::admission::Counts;

    use super::*;

    fn sum(end_ms: u64, sent: u64) -> Sum {
        Sum {
            start_ms: 0,
            end_ms,
            interval: Interval { counts: Counts { sent, ..Counts::default() }, ..Interval::default() },
        }
    }

    #[test]
    fn an_interval_is_whole_when_everybody_who_goes_on_has_delivered_it() {
        let mut merge = Merge::new(3, 1000);
        merge.add(0, 0, sum(1000, 1)).unwrap();
        merge.add(1, 0, sum(1010, 2)).unwrap();
        assert!(merge.pop().is_none());
        merge.add(0, 1, sum(2000, 4)).unwrap();
        merge.add(2, 0, sum(1005, 8)).unwrap();
        let whole = merge.pop().unwrap();
        assert_eq!((whole.end_ms, whole.interval.counts.sent), (1010, 11));
        assert!(merge.pop().is_none());
        merge.end(1, 1).unwrap();
        merge.end(2, 1).unwrap();
        assert_eq!(merge.pop().unwrap().interval.counts.sent, 4);
        assert!(!merge.is_over());
        merge.end(0, 2).unwrap();
        assert!(merge.is_over() && merge.pop().is_none());
    }

    /// A merged interval lasts from the earliest begin to the latest end of the workers' intervals. Incomplete
    /// intervals are returned at the end.
    #[test]
    fn an_interval_lasts_from_the_first_to_the_last() {
        let part = |start_ms, end_ms| Sum { start_ms, end_ms, interval: Interval::default() };
        let mut merge = Merge::new(2, 1000);
        merge.add(0, 0, part(5, 1000)).unwrap();
        merge.add(1, 0, part(3, 990)).unwrap();
        merge.add(0, 1, part(1000, 2000)).unwrap();
        let whole = merge.pop().unwrap();
        assert_eq!((whole.start_ms, whole.end_ms), (3, 1000));
        assert!(merge.pop().is_none());
        assert_eq!(merge.rest().map(|sum| (sum.start_ms, sum.end_ms)).collect::<Vec<_>>(), [(1000, 2000)]);
    }

    #[test]
    fn who_has_ended_says_nothing_more_and_holds_nobody_up() {
        let mut merge = Merge::new(2, 1000);
        merge.add(1, 0, sum(1, 1)).unwrap();
        merge.end(1, 1).unwrap();
        assert_eq!(merge.add(1, 1, sum(1, 1)), Err(Error::Order { number: 1, next: 1 }));
        assert_eq!(merge.end(1, 1).unwrap_err().to_string(), "ended after 1 intervals but delivered 1");
        for number in 0..100 {
            merge.add(0, number, sum(1, 1)).unwrap();
            assert!(merge.pop().is_some());
        }
        assert!(!merge.is_over());
    }

    /// A worker that continues when all others have ended is reported.
    #[test]
    fn a_worker_without_an_end_is_told() {
        let mut merge = Merge::new(2, 90);
        merge.end(1, 0).unwrap();
        for number in 0..90 {
            merge.add(0, number, sum(1, 1)).unwrap();
            merge.pop().unwrap();
        }
        let endless = merge.add(0, 90, sum(1, 1)).unwrap_err().to_string();
        assert_eq!(endless, "delivered more than the 90 intervals of the longest run, and does not end");
    }

    #[test]
    fn gaps_repetitions_and_hanging_workers_are_told() {
        let mut merge = Merge::new(2, 1000);
        assert_eq!(merge.add(0, 1, sum(1, 1)).unwrap_err().to_string(), "delivered interval 1 where 0 is next");
        merge.add(0, 0, sum(1, 1)).unwrap();
        assert_eq!(merge.add(0, 0, sum(1, 1)), Err(Error::Order { number: 0, next: 1 }));
        assert_eq!(merge.end(1, 3), Err(Error::End { said: 3, delivered: 0 }));
        let behind = (1..100).find_map(|number| merge.add(0, number, sum(1, 1)).err()).unwrap();
        assert_eq!(behind.to_string(), "is 31 intervals ahead of worker 1, which hangs");
    }
}
