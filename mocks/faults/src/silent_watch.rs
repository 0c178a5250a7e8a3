//! `silent-watch`: matching watches stay open and get no bytes, neither events nor bookmarks; on HTTP/2 the connection
//! and its other streams go on. A hit is one stream with at least one withheld event.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::settings::keys;
use super::{Behaviour, NewStreams, PlayedRow, Row, Scene, Stream, WatchState};

keys! {
    pub struct Keys {
        new_streams "newStreams": NewStreams = ("", "`healthy` or `silent`"),
        heals "heals": bool = ("false", ""),
    }
}

pub(super) const ROW: PlayedRow = Row::watches("silent-watch", "Open watches stay open and get no bytes.")
    .takes::<Keys>()
    .sees("the stream stays open and sends no byte; HTTP/2 PINGs are answered")
    .hit("a watch with an event withheld")
    .played(|_| Box::new(SilentWatch::default()));

#[derive(Debug, Default)]
pub(super) struct SilentWatch {
    silenced: u64,
    /// Streams that were hit; bounded by the number of silenced streams.
    hit: BTreeSet<u64>,
}

impl SilentWatch {
    fn silence(&mut self, stream: &Stream, scene: &mut Scene<'_>) {
        if scene.fault.count.is_some_and(|count| self.silenced >= count) || !scene.chance() {
            return;
        }
        if stream.decide(WatchState::Silent(scene.active.id())) {
            self.silenced += 1;
        }
    }
}

impl Behaviour for SilentWatch {
    fn begin(&mut self, open: &[Arc<Stream>], scene: &mut Scene<'_>) {
        for stream in open {
            self.silence(stream, scene);
        }
    }

    fn opened(&mut self, stream: &Arc<Stream>, scene: &mut Scene<'_>) {
        let fault = scene.fault;
        let chosen = fault.waits();
        let default = if chosen { NewStreams::Silent } else { NewStreams::Healthy };
        if fault.keys::<Keys>().new_streams.unwrap_or(default) == NewStreams::Silent {
            self.silence(stream, scene);
        }
    }

    fn withheld(&mut self, stream: &Stream, revision: u64, scene: &mut Scene<'_>) {
        if self.hit.insert(stream.id) {
            scene.hit(format!("{} silent, first event withheld at revision {revision}", stream.describe()));
        }
    }

    fn end(&mut self, open: &[Arc<Stream>], scene: &mut Scene<'_>) {
        if scene.fault.keys::<Keys>().heals != Some(true) {
            return;
        }
        for stream in open {
            if stream.watch_state() == WatchState::Silent(scene.active.id()) {
                stream.decide(WatchState::Served);
            }
        }
    }
}
