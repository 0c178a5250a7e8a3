//! `bookmark-ahead`: an event is withheld, a bookmark with its revision is sent instead, and the stream ends cleanly. A
//! client that resumes from the bookmark never gets the event. Only on watches that asked for bookmarks. A hit is one
//! event.

use std::sync::Arc;

use super::{ActiveFault, Behaviour, Effect, Ending, Flow, Item, PlayedRow, Row, Scene, Stream};

pub(super) const ROW: PlayedRow = Row::watches(
    "bookmark-ahead",
    "An event is withheld, a bookmark with its revision is sent, and the stream ends cleanly.",
)
.once()
.sees("an event is left out, a bookmark has its revision, and the stream ends; needs a client that asks for bookmarks")
.hit("an event")
.played(|_| Box::new(BookmarkAhead));

#[derive(Debug)]
pub(super) struct BookmarkAhead;

impl Behaviour for BookmarkAhead {
    fn opened(&mut self, stream: &Arc<Stream>, scene: &mut Scene<'_>) {
        stream.attach(Box::new(Running { active: scene.active.clone() }));
    }
}

#[derive(Debug)]
struct Running {
    active: ActiveFault,
}

impl Effect for Running {
    fn pass(&mut self, item: Item, flow: &Flow<'_>, out: &mut Vec<Item>) {
        if let Item::Event(event) = &item {
            let revision = event.revision;
            let detail = || format!("bookmark {revision} sent instead of its event on {}", flow.stream.describe());
            if flow.bookmarks && !event.initial && self.active.strike(detail) {
                out.push(Item::Withheld { revision, by: self.active.id() });
                out.push(Item::Bookmark { revision, closes: false, line: (flow.bookmark)(revision, false) });
                out.push(Item::Over(Ending::Clean));
                return;
            }
        }
        out.push(item);
    }

    fn is_done(&self) -> bool {
        self.active.is_over()
    }
}
