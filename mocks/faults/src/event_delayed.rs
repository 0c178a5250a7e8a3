//! `event-delayed`: each event is sent after a delay, in the right order; bookmarks and the end of the stream wait
//! behind delayed events. Held events are sent at once when the fault ends. If more than `events` events are held, the
//! oldest is sent. A hit is one delayed event. Held events are reported as withheld, so that no judge blames the client
//! for the delay.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use units::Span;

use super::settings::keys;
use super::{ActiveFault, Behaviour, Effect, Flow, Item, PlayedRow, Row, Scene, Stream};

keys! {
    pub struct Keys {
        delay "delay": Span = ("1s", ""),
        events "events": u64 = ("", "most events held for a watch; beyond it the oldest is sent. At 4096 the stream waits"),
    }
}

pub(super) const ROW: PlayedRow =
    Row::watches("event-delayed", "Events are sent later than they could be, in their order.")
        .takes::<Keys>()
        .sees("events are sent later, in order")
        .drawn(3, None)
        .hit("an event")
        .played(|_| Box::new(EventDelayed));

/// The default delay of an event.
const DELAY: Duration = Duration::from_secs(1);
/// Maximum number of events that are held for one stream. At this limit the stream stops reading events from the
/// history.
const HELD_MAX: usize = 4096;

#[derive(Debug)]
pub(super) struct EventDelayed;

impl Behaviour for EventDelayed {
    fn opened(&mut self, stream: &Arc<Stream>, scene: &mut Scene<'_>) {
        let keys = scene.fault.keys::<Keys>();
        let delay = keys.delay.map_or(DELAY, |delay| delay.0);
        let most = keys.events.and_then(|events| usize::try_from(events).ok()).unwrap_or(usize::MAX);
        stream.attach(Box::new(Delaying { active: scene.active.clone(), delay, most, held: VecDeque::new() }));
    }
}

#[derive(Debug)]
struct Delaying {
    active: ActiveFault,
    delay: Duration,
    /// Maximum number of events that the fault holds for this stream.
    most: usize,
    held: VecDeque<(Instant, Item)>,
}

impl Effect for Delaying {
    fn pass(&mut self, item: Item, flow: &Flow<'_>, out: &mut Vec<Item>) {
        let mut due = self.held.back().map_or(flow.now, |(due, _)| *due);
        if let Item::Event(event) = &item {
            let (revision, delay) = (event.revision, self.delay);
            let detail = || format!("revision {revision} held for {delay:?} on {}", flow.stream.describe());
            if !event.initial && self.active.strike(detail) {
                due = due.max(flow.now + delay);
            }
        }
        if self.held.is_empty() && due <= flow.now {
            out.push(item);
        } else {
            if let Item::Event(event) = &item {
                out.push(Item::Withheld { revision: event.revision, by: self.active.id() });
            }
            self.held.push_back((due, item));
        }
        while self.held.len() > self.most {
            out.extend(self.held.pop_front().map(|(_, item)| item));
        }
    }

    fn tick(&mut self, flow: &Flow<'_>, out: &mut Vec<Item>) {
        let over = self.active.is_over();
        while self.held.front().is_some_and(|(due, _)| over || *due <= flow.now) {
            out.extend(self.held.pop_front().map(|(_, item)| item));
        }
    }

    fn due(&self) -> Option<Instant> {
        self.held.front().map(|(due, _)| *due)
    }

    fn is_full(&self) -> bool {
        self.held.len() >= HELD_MAX
    }

    fn is_done(&self) -> bool {
        self.active.is_over() && self.held.is_empty()
    }
}
