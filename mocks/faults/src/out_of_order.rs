//! `out-of-order`: an event waits until the next one is sent, and follows it. After a second without a next event it is
//! sent unchanged. A hit is one pair.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{ActiveFault, Behaviour, Effect, EventLine, Flow, Item, PlayedRow, Row, Scene, Stream};

pub(super) const ROW: PlayedRow = Row::watches("out-of-order", "Two neighbouring events are sent in the wrong order.")
    .once()
    .sees("two events within a second are swapped")
    .hit("a pair")
    .played(|_| Box::new(OutOfOrder));

/// How long an event waits for the next one.
const WAITS: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct OutOfOrder;

impl Behaviour for OutOfOrder {
    fn opened(&mut self, stream: &Arc<Stream>, scene: &mut Scene<'_>) {
        stream.attach(Box::new(Swapping { active: scene.active.clone(), held: None }));
    }
}

#[derive(Debug)]
struct Swapping {
    active: ActiveFault,
    held: Option<(Instant, EventLine)>,
}

impl Effect for Swapping {
    fn pass(&mut self, item: Item, flow: &Flow<'_>, out: &mut Vec<Item>) {
        let first = self.held.take().map(|(_, event)| event);
        match (first, item) {
            (Some(first), Item::Event(second)) => {
                let (late, early) = (first.revision, second.revision);
                let detail = || format!("revision {early} sent before {late} on {}", flow.stream.describe());
                if self.active.strike(detail) {
                    out.extend([Item::Event(second), Item::Event(first)]);
                } else {
                    out.extend([Item::Event(first), Item::Event(second)]);
                }
            }
            (None, Item::Event(event)) if !event.initial && self.active.may() => {
                self.held = Some((flow.now + WAITS, event));
            }
            (first, item) => {
                out.extend(first.map(Item::Event));
                out.push(item);
            }
        }
    }

    fn tick(&mut self, flow: &Flow<'_>, out: &mut Vec<Item>) {
        let over = self.active.is_over();
        if let Some((_, event)) = self.held.take_if(|(due, _)| over || *due <= flow.now) {
            out.push(Item::Event(event));
        }
    }

    fn due(&self) -> Option<Instant> {
        self.held.as_ref().map(|(due, _)| *due)
    }

    fn is_done(&self) -> bool {
        self.active.is_over() && self.held.is_none()
    }
}
