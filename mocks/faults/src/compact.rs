//! `compact`: the server's history is compacted, wholly or except for the newest revisions, and open watches continue.
//! A hit is a watch that asks to resume from a removed revision: the watch gets 410, or the answer that another fault
//! sets. If no watch resumes from a removed revision, the fault has no hit.

use std::sync::Arc;

use super::settings::keys;
use super::{Behaviour, Fault, Form, Host, PlayedRow, RequestFacts, Row, Scene, Stream};

keys! {
    pub struct Keys {
        keep "keep": u64 = ("0", "so many newest revisions stay"),
    }
}

pub(super) const ROW: PlayedRow = Row::server("compact", "The history is forgotten; open watches go on.")
    .takes::<Keys>()
    .instant()
    .sees("the history is compacted; open watches go on")
    .hit("a watch from a compacted revision")
    .played(|fault| Box::new(Compact::new(fault)));

#[derive(Debug)]
pub(super) struct Compact {
    keep: u64,
    floor: Option<u64>,
}

impl Compact {
    pub(crate) fn new(fault: &Fault) -> Self {
        Self { keep: fault.keys::<Keys>().keep.unwrap_or(0), floor: None }
    }
}

impl Behaviour for Compact {
    fn prepare(&mut self, host: &dyn Host, _targets: &[Arc<str>]) {
        let (before, after) = host.compact(self.keep);
        self.floor = (after > before).then_some(after);
    }

    /// Does nothing: open watches continue.
    fn begin(&mut self, _open: &[Arc<Stream>], _scene: &mut Scene<'_>) {}

    fn opened(&mut self, _stream: &Arc<Stream>, _scene: &mut Scene<'_>) {}

    fn met(&mut self, asked: &RequestFacts<'_>, scene: &mut Scene<'_>) -> bool {
        let Some((from, floor)) = asked.resumes_from().zip(self.floor).filter(|(from, floor)| from < floor) else {
            return false;
        };
        scene.hit(format!("{} from {from}: history up to revision {floor} is forgotten", asked.describe()));
        true
    }

    fn gone(&mut self, _stream: &Stream, requested: u64, _scene: &mut Scene<'_>) -> Option<Form> {
        self.floor.filter(|floor| requested < *floor).map(|_| Form::Stream)
    }
}
