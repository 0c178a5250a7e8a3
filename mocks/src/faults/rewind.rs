//! `rewind`: the store goes back to what it was some time ago, as after a restore from an older backup, and its
//! revisions are handed out again. One hit is the restore itself if it undid something, and one more each time that a
//! client resumes from a revision that does not exist any more.

use units::Span;

use super::settings::{Newer, Watches};
use super::{Behaviour, Fault, Restore, Scene, Stream};

/// How old the backup is when the fault does not say.
const AGE_S: u64 = 10;

#[derive(Debug)]
pub(super) struct Rewind(Restore);

impl Rewind {
    pub fn new(fault: &Fault) -> Self {
        Self(Restore {
            age: fault.age.unwrap_or(Span::from_secs(AGE_S)).0,
            newer: fault.newer.unwrap_or(Newer::Silent),
            watches: fault.watches.unwrap_or(Watches::Kept),
        })
    }
}

impl Behaviour for Rewind {
    fn restores(&self) -> Option<Restore> {
        Some(self.0)
    }

    fn restored(&mut self, what: &str, scene: &mut Scene<'_>) {
        scene.hit(what.to_owned());
    }

    fn ahead(&mut self, stream: &Stream, requested: u64, scene: &mut Scene<'_>) {
        let how = match self.0.newer {
            Newer::Silent => "accepted, silent until then",
            Newer::Gone => "410",
            Newer::TooLarge => "504, too large",
        };
        scene.hit(format!("{} resumed from {requested}, which is not reached: {how}", stream.describe()));
    }
}
