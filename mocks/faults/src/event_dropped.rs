//! `event-dropped`: committed events are never sent on a stream, which goes on as if nothing had been. Without
//! `count` and `probability` one event is dropped; with `probability` each event may be, up to `count`. A hit is one
//! dropped event on one stream.

use std::sync::Arc;

use super::{Behaviour, Effect, Flow, Grip, Item, Row, Scene, Stream};
use facts::Change;

pub(super) const ROW: Row = Row::watches("event-dropped", "Committed events are never sent on a stream.")
    .takes(&[("change", "any", "`added`, `modified`, `deleted`")])
    .once()
    .sees("events are never sent")
    .hit("an event")
    .played(|_| Box::new(EventDropped));

#[derive(Debug)]
pub(super) struct EventDropped;

impl Behaviour for EventDropped {
    fn opened(&mut self, stream: &Arc<Stream>, scene: &mut Scene<'_>) {
        stream.attach(Box::new(Dropping { grip: scene.grip.clone(), change: scene.fault.change }));
    }
}

#[derive(Debug)]
struct Dropping {
    grip: Grip,
    change: Option<Change>,
}

impl Effect for Dropping {
    fn pass(&mut self, item: Item, flow: &Flow<'_>, out: &mut Vec<Item>) {
        if let Item::Event(event) = &item {
            let (change, revision) = (event.change, event.revision);
            let detail =
                || format!("{} of revision {revision} dropped on {}", change.event_type(), flow.stream.describe());
            if !event.initial && self.change.is_none_or(|wanted| wanted == change) && self.grip.strike(detail) {
                out.push(Item::Withheld { revision, by: self.grip.id() });
                return;
            }
        }
        out.push(item);
    }

    fn is_done(&self) -> bool {
        self.grip.is_over()
    }
}
