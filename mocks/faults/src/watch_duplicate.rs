//! `watch-duplicate`: each event is sent twice in a row, with the same bytes. A client must handle a repeated event
//! without harm, and must not count events. A hit is one event that is sent twice.

use std::sync::Arc;

use super::{ActiveFault, Behaviour, Effect, EventLine, Flow, Item, PlayedRow, Row, Scene, Stream};

pub(super) const ROW: PlayedRow = Row::watches("watch-duplicate", "Each event is sent twice.")
    .sees("each event is sent twice, byte for byte")
    .hit("an event")
    .played(|_| Box::new(WatchDuplicate));

#[derive(Debug)]
pub(super) struct WatchDuplicate;

impl Behaviour for WatchDuplicate {
    fn opened(&mut self, stream: &Arc<Stream>, scene: &mut Scene<'_>) {
        stream.attach(Box::new(Doubling { active: scene.active.clone() }));
    }
}

#[derive(Debug)]
struct Doubling {
    active: ActiveFault,
}

impl Effect for Doubling {
    fn pass(&mut self, item: Item, flow: &Flow<'_>, out: &mut Vec<Item>) {
        if let Item::Event(EventLine { change, revision, initial: false, ref line, .. }) = item
            && self.active.strike(|| format!("revision {revision} sent twice on {}", flow.stream.describe()))
        {
            // Only the second one completes the delivery up to it.
            out.push(Item::Event(EventLine { change, revision, initial: false, line: line.clone(), through: None }));
        }
        out.push(item);
    }

    fn is_done(&self) -> bool {
        self.active.is_over()
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use bytes::Bytes;
    use tokio::time::Instant;

    use super::super::handle::Handle;
    use super::super::{Fault, FaultId, Faults, Name, On, RequestFacts, Streaming};
    use super::*;

    fn event(revision: u64, initial: bool) -> Item {
        let line = Bytes::from(format!("event {revision}\n"));
        Item::Event(EventLine { change: facts::Change::Added, revision, initial, line, through: Some(revision) })
    }

    #[test]
    fn live_events_come_twice_until_the_count_is_reached() {
        let faults = Faults::new(1);
        faults.target_users(["subject"]);
        faults.begin(FaultId(1), &Fault { count: Some(2), ..Fault::armed(Name::WatchDuplicate) }).unwrap();
        let stream = Arc::new(Stream::new(Streaming {
            id: 1,
            user: "subject".into(),
            resource: "pods".into(),
            user_agent: "".into(),
            query: "".into(),
            connection: Arc::new(Handle::new(1, 1)),
        }));
        let asked = RequestFacts {
            user: &stream.user,
            resource: &stream.resource,
            user_agent: &stream.user_agent,
            on: On::Watch,
            query: "",
            endpoint: 1,
            connection: 1,
        };
        faults.opened(&stream, &faults.injection(&asked));
        let (_, mut effects) = stream.look(Waker::noop());
        let bookmark = |_, _| Bytes::new();
        let flow = Flow { now: Instant::now(), stream: &stream, bookmarks: false, bookmark: &bookmark };
        let mut out = Vec::new();
        for item in [event(1, true), event(2, false), event(3, false), event(4, false)] {
            effects[0].pass(item, &flow, &mut out);
        }
        let sent: Vec<(u64, Option<u64>)> = out
            .iter()
            .map(|item| match item {
                Item::Event(event) => (event.revision, event.through),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(sent, [(1, Some(1)), (2, None), (2, Some(2)), (3, None), (3, Some(3)), (4, Some(4))]);
        assert_eq!(faults.hits(FaultId(1)), 2);
    }
}
