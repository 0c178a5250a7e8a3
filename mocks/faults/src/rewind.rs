//! `rewind`: the store is restored to an earlier state, as from an older backup, and its revision counter continues
//! from that state. If the restore undid a commit, the first list that shows the restore is a hit. Each watch from a
//! revision that no longer exists is a hit too.

use std::sync::Arc;

use units::Span;

use super::settings::{Newer, Watches, keys};
use super::{Behaviour, Fault, Host, On, PlayedRow, RequestFacts, Restore, Row, Scene, Stream};

keys! {
    pub struct Keys {
        age "age": Span = ("10s", ""),
        newer "newer": Newer = ("`silent`", "`silent`, `gone`, `too-large`"),
        watches "watches": Watches = ("`kept`", "`kept` or `cut`"),
    }
}

pub(super) const ROW: PlayedRow = Row::server(
    "rewind",
    "The store goes back to an older state and hands out its revisions again, as after a restore from a backup.",
)
.chooses(&["resource", "userAgent"])
.takes::<Keys>()
.instant()
.sees("the store is restored from a backup of this age, and its revisions are assigned again")
.hit("the first list afterwards, and a watch from a revision that no longer exists")
.played(|fault| Box::new(Rewind::new(fault)));

/// The default age of the backup in seconds.
const AGE_S: u64 = 10;

#[derive(Debug)]
pub(super) struct Rewind {
    restore: Restore,
    /// A description of the undone commits; `None` after a list has shown the restore.
    undone: Option<String>,
}

impl Rewind {
    pub(crate) fn new(fault: &Fault) -> Self {
        let keys = fault.keys::<Keys>();
        let restore = Restore {
            age: keys.age.unwrap_or(Span::from_secs(AGE_S)).0,
            newer: keys.newer.unwrap_or(Newer::Silent),
            watches: keys.watches.unwrap_or(Watches::Kept),
        };
        Self { restore, undone: None }
    }
}

impl Behaviour for Rewind {
    fn prepare(&mut self, host: &dyn Host, _targets: &[Arc<str>]) {
        self.undone = host.restore(self.restore);
    }

    /// Does nothing: a watch that was cut proves nothing about the restore, because any server may reset a watch.
    fn begin(&mut self, _open: &[Arc<Stream>], _scene: &mut Scene<'_>) {}

    fn met(&mut self, asked: &RequestFacts<'_>, scene: &mut Scene<'_>) -> bool {
        // A resumed watch gets the answer of `newer`, not the present state.
        let shows = asked.on == On::List || (asked.on == On::Watch && asked.resumes_from().is_none());
        let Some(what) = self.undone.take_if(|_| shows) else { return false };
        scene.hit(format!("{what}: {}", asked.describe()));
        true
    }

    fn ahead(&mut self, stream: &Stream, requested: u64, scene: &mut Scene<'_>) -> bool {
        let how = match self.restore.newer {
            Newer::Silent => "accepted, silent until then",
            Newer::Gone => "410",
            Newer::TooLarge => "504, too large",
        };
        scene.hit(format!("{} resumed from {requested}, which is not reached: {how}", stream.describe()));
        true
    }
}
