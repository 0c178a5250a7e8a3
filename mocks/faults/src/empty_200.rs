//! `empty-200`: a watch is answered with 200 and ends at once. With `stale` the fault affects only watches from a
//! compacted revision, as in real servers for resources without a watch cache. A hit is one empty answer.

use super::settings::keys;
use super::{Behaviour, Injection, Instead, PlayedRow, RequestFacts, Row, Scene};

keys! {
    pub struct Keys {
        stale "stale": bool = ("false", "only for compacted revisions, where a healthy server answers 410"),
    }
}

pub(super) const ROW: PlayedRow = Row::requests("empty-200", "Watches are answered with 200 and end at once.")
    .takes::<Keys>()
    .sees("200 and a clean end at once")
    .played(|_| Box::new(Empty200));

#[derive(Debug)]
pub(super) struct Empty200;

impl Behaviour for Empty200 {
    fn request(&mut self, asked: &RequestFacts<'_>, injection: &mut Injection, scene: &mut Scene<'_>) {
        if scene.fault.keys::<Keys>().stale == Some(true) {
            injection.empty_when_gone = Some(scene.active.clone());
        } else if injection.instead.is_none() {
            scene.hit(format!("{} answered with nothing", asked.describe()));
            injection.instead = Some(Instead::Empty);
        }
    }
}
