//! `event-dropped`: committed events are never sent on a stream, which goes on as if nothing had been. Without
//! `count` and `probability` one event is dropped; with `probability` each event may be, up to `count`. A hit is one
//! dropped event on one stream.

use super::{Behaviour, Change, Scene, Stream};

#[derive(Debug)]
pub(super) struct EventDropped;

impl Behaviour for EventDropped {
    fn swallows(&mut self, stream: &Stream, change: crate::kube::Change, revision: u64, scene: &mut Scene<'_>) -> bool {
        let wanted = match scene.fault.change {
            None => true,
            Some(Change::Added) => change == crate::kube::Change::Added,
            Some(Change::Modified) => change == crate::kube::Change::Modified,
            Some(Change::Deleted) => change == crate::kube::Change::Deleted,
        };
        let default_count = if scene.fault.probability.is_some() { None } else { Some(1) };
        if !wanted || scene.spent(default_count) || !scene.chance() {
            return false;
        }
        scene.hit(format!("{} of revision {revision} dropped on {}", change.as_str(), stream.describe()));
        true
    }
}
