//! `initial-end-missing` and `initial-end-held` change the bookmark that closes the initial events (KEP-3157). With
//! `initial-end-missing` the bookmark lacks its annotation. With `initial-end-held` the bookmark comes after a delay,
//! behind events that happen during the delay. A hit is one changed or delayed bookmark.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use units::Span;

use super::settings::keys;
use super::{ActiveFault, Behaviour, Effect, Flow, Item, Name, PlayedRow, Row, Scene, Stream};

keys! {
    /// The settings of `initial-end-held`.
    pub struct Keys {
        delay "delay": Span = ("1s", ""),
    }
}

pub(super) const MISSING: PlayedRow = Row::watches(
    "initial-end-missing",
    "The closing bookmark of `sendInitialEvents` goes without its annotation.",
)
.sees("the bookmark that ends the initial events has no annotation; needs a client that asks for `sendInitialEvents`")
.hit("such a bookmark")
.played(|_| Box::new(InitialEnd));

pub(super) const HELD: PlayedRow =
    Row::watches("initial-end-held", "The closing bookmark of `sendInitialEvents` comes late, after live events.")
        .takes::<Keys>()
        .sees("live events arrive before that bookmark")
        .hit("such a bookmark")
        .played(|_| Box::new(InitialEnd));

/// The default delay of the bookmark.
const DELAY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct InitialEnd;

impl Behaviour for InitialEnd {
    fn opened(&mut self, stream: &Arc<Stream>, scene: &mut Scene<'_>) {
        let active = scene.active.clone();
        if scene.fault.name == Name::InitialEndMissing {
            return stream.attach(Box::new(Missing { active }));
        }
        let delay = scene.fault.keys::<Keys>().delay.map_or(DELAY, |delay| delay.0);
        stream.attach(Box::new(Holding { active, delay, waiting: None }));
    }
}

#[derive(Debug)]
struct Missing {
    active: ActiveFault,
}

impl Effect for Missing {
    fn pass(&mut self, item: Item, flow: &Flow<'_>, out: &mut Vec<Item>) {
        let detail = || format!("initial events closed without the annotation on {}", flow.stream.describe());
        match item {
            Item::Bookmark { revision, closes: true, .. } if self.active.strike(detail) => {
                out.push(Item::Bookmark { revision, closes: false, line: (flow.bookmark)(revision, false) });
            }
            other => out.push(other),
        }
    }

    fn is_done(&self) -> bool {
        self.active.is_over()
    }
}

#[derive(Debug)]
struct Holding {
    active: ActiveFault,
    delay: Duration,
    /// The time at which the bookmark is sent, and the revision up to which all events have been sent.
    waiting: Option<(Instant, u64)>,
}

impl Effect for Holding {
    fn pass(&mut self, item: Item, flow: &Flow<'_>, out: &mut Vec<Item>) {
        let delay = self.delay;
        let detail = || format!("the end of initial events held for {delay:?} on {}", flow.stream.describe());
        match (&mut self.waiting, item) {
            (None, Item::Bookmark { revision, closes: true, .. }) if self.active.strike(detail) => {
                self.waiting = Some((flow.now + delay, revision));
            }
            (Some((_, through)), Item::Event(event)) => {
                *through = (*through).max(event.revision);
                out.push(Item::Event(event));
            }
            // Another bookmark before the closing one would be a second misbehaviour.
            (Some((_, through)), Item::Bookmark { revision, .. }) => *through = (*through).max(revision),
            (_, other) => out.push(other),
        }
    }

    fn tick(&mut self, flow: &Flow<'_>, out: &mut Vec<Item>) {
        let over = self.active.is_over();
        if let Some((_, revision)) = self.waiting.take_if(|(due, _)| over || *due <= flow.now) {
            out.push(Item::Bookmark { revision, closes: true, line: (flow.bookmark)(revision, true) });
        }
    }

    fn due(&self) -> Option<Instant> {
        self.waiting.map(|(due, _)| due)
    }

    fn is_done(&self) -> bool {
        self.active.is_over() && self.waiting.is_none()
    }
}
