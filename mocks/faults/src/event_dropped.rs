//! `event-dropped`: committed events are never sent on a stream, which otherwise goes on normally. Without `count` and
//! `probability` one event is dropped; with `probability` each event may be, up to `count`. A hit is one dropped event
//! on one stream.

use std::sync::Arc;

use super::settings::keys;
use super::{ActiveFault, Behaviour, Effect, Flow, Item, PlayedRow, Row, Scene, Stream};
use facts::Change;

keys! {
    pub struct Keys {
        change "change": Change = ("any", "`added`, `modified`, `deleted`"),
    }
}

pub(super) const ROW: PlayedRow = Row::watches("event-dropped", "Committed events are never sent on a stream.")
    .takes::<Keys>()
    .once()
    .sees("events are never sent")
    .drawn(3, Some(1))
    .hit("an event")
    .played(|_| Box::new(EventDropped));

#[derive(Debug)]
pub(super) struct EventDropped;

impl Behaviour for EventDropped {
    fn opened(&mut self, stream: &Arc<Stream>, scene: &mut Scene<'_>) {
        stream.attach(Box::new(Dropping { active: scene.active.clone(), change: scene.fault.keys::<Keys>().change }));
    }
}

#[derive(Debug)]
struct Dropping {
    active: ActiveFault,
    change: Option<Change>,
}

impl Effect for Dropping {
    fn pass(&mut self, item: Item, flow: &Flow<'_>, out: &mut Vec<Item>) {
        if let Item::Event(event) = &item {
            let (change, revision) = (event.change, event.revision);
            let detail =
                || format!("{} of revision {revision} dropped on {}", change.event_type(), flow.stream.describe());
            if !event.initial && self.change.is_none_or(|wanted| wanted == change) && self.active.strike(detail) {
                out.push(Item::Withheld { revision, by: self.active.id() });
                return;
            }
        }
        out.push(item);
    }

    fn is_done(&self) -> bool {
        self.active.is_over()
    }
}
