//! `compact`: the history is forgotten, all of it or but for the newest revisions; open watches go on. A hit is the
//! compaction, if it took something away, and each 410 that follows from it.

use std::sync::Arc;

use super::{Behaviour, Fault, Form, Host, Row, Scene, Stream};

pub(super) const ROW: Row = Row::server("compact", "The history is forgotten; open watches go on.")
    .takes(&[("keep", "0", "newest revisions")])
    .instant()
    .sees("history is forgotten, open watches go on")
    .hit("the compaction, and each 410 after it")
    .played(|fault| Box::new(Compact::new(fault)));

#[derive(Debug)]
pub(super) struct Compact {
    keep: u64,
    floor: Option<u64>,
}

impl Compact {
    pub(crate) fn new(fault: &Fault) -> Self {
        Self { keep: fault.keep.unwrap_or(0), floor: None }
    }
}

impl Behaviour for Compact {
    fn prepare(&mut self, host: &dyn Host, _targets: &[Arc<str>]) {
        let (before, after) = host.compact(self.keep);
        self.floor = (after > before).then_some(after);
    }

    fn begin(&mut self, _open: &[Arc<Stream>], scene: &mut Scene<'_>) {
        if let Some(floor) = self.floor {
            scene.hit(format!("history up to revision {floor} forgotten"));
        }
    }

    fn opened(&mut self, _stream: &Arc<Stream>, _scene: &mut Scene<'_>) {}

    fn gone(&mut self, stream: &Stream, requested: u64, scene: &mut Scene<'_>) -> Option<Form> {
        self.floor.filter(|floor| requested < *floor)?;
        scene.hit(format!("{} resumed from {requested}: 410 in the stream", stream.describe()));
        Some(Form::Stream)
    }
}
