//! Moves the tags of images with locked digests, one after the other, under load.
//!
//! Owns the times at which tags move, and the record rows that prove each move. No fault of the registry can move these
//! tags: such a fault waits until the subject reads a tag, and a subject with a digest lock reads none.

use anyhow::{Context, Result};
use reports::record::{FaultEvent, FaultRow};

use super::manifest::TAGS_MOVED;
use super::world::World;
use crate::clock::millis;
use crate::scenario::Scenario;

/// The tags that are not moved yet.
#[derive(Debug, Default)]
pub(super) struct Moves {
    /// References of images, in the order in which their tags move.
    references: Vec<String>,
    moved: usize,
    from_ms: u64,
    to_ms: u64,
}

impl Moves {
    /// Plans the moves between the middle of the warm-up and the middle of the load, so that later requests certainly
    /// use moved tags.
    pub(super) fn of(scenario: &Scenario, world: &World) -> Self {
        if scenario.registry.lock.is_none() {
            return Self::default();
        }
        let exist = world.images.iter().filter(|image| image.digest.is_some());
        Self {
            references: exist.map(|image| image.reference.clone()).collect(),
            moved: 0,
            from_ms: millis(scenario.phases.warm_up.0 / 2),
            to_ms: millis(scenario.phases.loaded() / 2),
        }
    }

    /// The record row with the number of planned moves.
    pub(super) fn planned(&self) -> Option<FaultRow> {
        (!self.references.is_empty()).then(|| self.row(0, FaultEvent::Planned))
    }

    /// Moves the tags whose planned time has come.
    pub(super) fn tick(&mut self, now_ms: u64, world: &World) -> Result<Option<FaultRow>> {
        let all = self.references.len() as u64;
        let gone = now_ms.saturating_sub(self.from_ms);
        let due = (all * gone).checked_div(self.to_ms.saturating_sub(self.from_ms)).unwrap_or(all).min(all);
        let before = self.moved;
        for reference in self.references.iter().take(usize::try_from(due).unwrap_or(usize::MAX)).skip(before) {
            world.registry.move_tag(reference).with_context(|| format!("failed to move the tag {reference}"))?;
            self.moved += 1;
        }
        Ok((before == 0 && self.moved > 0).then(|| self.row(now_ms, FaultEvent::Started)))
    }

    /// Ends the moves when the load is over. Returns the last row of the moves.
    pub(super) fn finish(&mut self, now_ms: u64) -> Option<FaultRow> {
        (!self.references.is_empty()).then(|| self.row(now_ms, FaultEvent::Ended))
    }

    fn row(&self, t_ms: u64, event: FaultEvent) -> FaultRow {
        let (id, hits) = (TAGS_MOVED.to_owned(), self.moved as u64);
        FaultRow { t_ms, name: id.clone(), id, event, hits, ok: None, detail: None }
    }
}
