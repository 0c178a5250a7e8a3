//! `watch-reset`: the connection of each matching watch is reset, once at the beginning and for each watch that opens
//! while the fault lasts. A hit is one reset stream.

use std::sync::Arc;

use super::{Behaviour, Fate, Scene, Stream};

#[derive(Debug)]
pub(super) struct WatchReset;

impl Behaviour for WatchReset {
    fn begin(&mut self, open: &[Arc<Stream>], scene: &mut Scene<'_>) {
        for stream in open {
            self.opened(stream, scene);
        }
    }

    fn opened(&mut self, stream: &Arc<Stream>, scene: &mut Scene<'_>) {
        if !scene.spent(None) && scene.chance() && stream.decide(Fate::Reset) {
            scene.hit(format!("{} reset", stream.describe()));
        }
    }
}
