//! `no-bookmarks`: requested bookmarks are not sent, except the one that closes initial events. A hit is one bookmark.

use std::sync::Arc;

use super::{ActiveFault, Behaviour, Effect, Flow, Item, PlayedRow, Row, Scene, Stream};

pub(super) const ROW: PlayedRow = Row::watches("no-bookmarks", "Bookmarks that were asked for are not sent.")
    .sees("requested bookmarks are not sent")
    .hit("a bookmark")
    .played(|_| Box::new(NoBookmarks));

#[derive(Debug)]
pub(super) struct NoBookmarks;

impl Behaviour for NoBookmarks {
    fn opened(&mut self, stream: &Arc<Stream>, scene: &mut Scene<'_>) {
        stream.attach(Box::new(Keeping { active: scene.active.clone() }));
    }
}

#[derive(Debug)]
struct Keeping {
    active: ActiveFault,
}

impl Effect for Keeping {
    fn pass(&mut self, item: Item, flow: &Flow<'_>, out: &mut Vec<Item>) {
        if let Item::Bookmark { revision, closes: false, .. } = &item
            && self.active.strike(|| format!("bookmark {revision} not sent on {}", flow.stream.describe()))
        {
            return;
        }
        out.push(item);
    }

    fn is_done(&self) -> bool {
        self.active.is_over()
    }
}
