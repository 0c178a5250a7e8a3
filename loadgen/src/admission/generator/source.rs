//! Where a thread's requests come from: its share of the plan at its planned times, or a closed loop.

use std::time::{Duration, Instant};

use crate::admission::plan::Request;
use crate::pace::{Counts, Due};

type Share = Box<dyn Iterator<Item = (Duration, Request)> + Send>;

/// Requests with the moment they are due.
pub(in crate::admission) struct Source {
    share: Share,
    pace: Pace,
    next: Option<(Duration, Request)>,
}

#[derive(Clone, Copy)]
enum Pace {
    /// At their planned times, counted from here.
    From(Instant),
    /// Whenever fewer than so many are under way.
    ClosedLoop(usize),
}

impl Source {
    pub(in crate::admission) fn planned(
        share: impl Iterator<Item = (Duration, Request)> + Send + 'static,
        begin: Instant,
    ) -> Self {
        Self::new(Box::new(share), Pace::From(begin))
    }

    pub(in crate::admission) fn closed_loop(
        share: impl Iterator<Item = (Duration, Request)> + Send + 'static,
        under_way: usize,
    ) -> Self {
        Self::new(Box::new(share), Pace::ClosedLoop(under_way))
    }

    fn new(mut share: Share, pace: Pace) -> Self {
        let next = share.next();
        Self { share, pace, next }
    }

    pub(super) fn is_closed_loop(&self) -> bool {
        matches!(self.pace, Pace::ClosedLoop(_))
    }

    /// The next request if it is due; `under_way` others are not over.
    pub(super) fn due(&mut self, now: Instant, under_way: usize) -> Option<Due<Request>> {
        let (offset, item) = self.next?;
        let planned = match self.pace {
            Pace::From(begin) => Some(begin + offset).filter(|planned| *planned <= now)?,
            Pace::ClosedLoop(most) => (under_way < most).then_some(now)?,
        };
        self.next = self.share.next();
        Some(Due { planned, item })
    }

    /// When the next request is due, as far as that is known.
    pub(super) fn next_at(&self, under_way: usize) -> Option<Instant> {
        let (offset, _) = self.next.as_ref()?;
        match self.pace {
            Pace::From(begin) => Some(begin + *offset),
            Pace::ClosedLoop(most) => (under_way < most).then(Instant::now),
        }
    }

    /// Gives out nothing more.
    pub(super) fn close(&mut self) {
        self.next = None;
        self.share = Box::new(std::iter::empty());
    }

    /// Counts the rest of the plan as planned and not sent.
    pub(super) fn rest(&mut self, counts: &Counts) {
        for _ in self.next.take().into_iter().chain(&mut self.share) {
            counts.planned_one();
            counts.overflow_one();
        }
    }
}
