//! `rewind`: the store is restored to an earlier state, as from an older backup, and its revisions are handed out
//! again. If that undid a commit, a hit is the first list that shows it, and each watch from a revision that does not
//! exist any more.

use std::sync::Arc;

use units::Span;

use super::settings::{Newer, Watches, keys};
use super::{Asked, Behaviour, Fault, Host, On, PlayedRow, Restore, Row, Scene, Stream};

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

/// The default age of the backup.
const AGE_S: u64 = 10;

#[derive(Debug)]
pub(super) struct Rewind {
    restore: Restore,
    /// A description of the undone commits, until a list has shown the restore.
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

    /// Open watches that were cut prove nothing about the restore: any server may reset them.
    fn begin(&mut self, _open: &[Arc<Stream>], _scene: &mut Scene<'_>) {}

    fn met(&mut self, asked: &Asked<'_>, scene: &mut Scene<'_>) -> bool {
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
