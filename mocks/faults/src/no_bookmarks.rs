//! `no-bookmarks`: bookmarks that were asked for are not sent; the one that closes initial events is. A hit is one bookmark.

use std::sync::Arc;

use super::{Behaviour, Effect, Flow, Grip, Item, Row, Scene, Stream};

pub(super) const ROW: Row = Row::watches("no-bookmarks", "Bookmarks that were asked for are not sent.")
    .sees("bookmarks that were asked for do not come")
    .hit("a bookmark")
    .played(|_| Box::new(NoBookmarks));

#[derive(Debug)]
pub(super) struct NoBookmarks;

impl Behaviour for NoBookmarks {
    fn opened(&mut self, stream: &Arc<Stream>, scene: &mut Scene<'_>) {
        stream.attach(Box::new(Keeping { grip: scene.grip.clone() }));
    }
}

#[derive(Debug)]
struct Keeping {
    grip: Grip,
}

impl Effect for Keeping {
    fn pass(&mut self, item: Item, flow: &Flow<'_>, out: &mut Vec<Item>) {
        if let Item::Bookmark { revision, closes: false, .. } = &item
            && self.grip.strike(|| format!("bookmark {revision} not sent on {}", flow.stream.describe()))
        {
            return;
        }
        out.push(item);
    }

    fn is_done(&self) -> bool {
        self.grip.is_over()
    }
}
