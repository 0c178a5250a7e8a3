//! `unordered`: the items of lists, and initial events, come newest first, so that the last one is the oldest. A hit is
//! one answer with more than one item.

use super::{Asked, Behaviour, Scene, Treatment};

#[derive(Debug)]
pub(super) struct Unordered;

impl Behaviour for Unordered {
    fn asked(&mut self, _asked: &Asked<'_>, treatment: &mut Treatment, scene: &mut Scene<'_>) {
        treatment.newest_first = Some(scene.grip.clone());
    }
}
