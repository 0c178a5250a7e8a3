//! Moves the tags of locked images, one after the other, while load runs.
//!
//! Owns their times, and the rows that prove them. A fault of the registry would not do: it moves a tag when the
//! subject reads it, and a subject with a lock does not read it.

use anyhow::{Context, Result};
use reports::record::{FaultEvent, FaultRow};

use super::manifest::TAGS_MOVED;
use super::world::World;
use crate::clock::millis;
use crate::scenario::Scenario;

/// The tags that are still to be moved.
#[derive(Debug, Default)]
pub(super) struct Moves {
    /// References, in the order of their moves.
    references: Vec<String>,
    moved: usize,
    from_ms: u64,
    to_ms: u64,
}

impl Moves {
    /// The moves between the middle of the warm-up and the middle of the load, so that later requests certainly see
    /// moved tags.
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

    /// The row with the plan.
    pub(super) fn planned(&self) -> Option<FaultRow> {
        (!self.references.is_empty()).then(|| self.row(0, FaultEvent::Planned))
    }

    /// Moves the tags that are due.
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

    /// Ends the moves when the load is over. Returns the last row.
    pub(super) fn finish(&mut self, now_ms: u64) -> Option<FaultRow> {
        (!self.references.is_empty()).then(|| self.row(now_ms, FaultEvent::Ended))
    }

    fn row(&self, t_ms: u64, event: FaultEvent) -> FaultRow {
        let (id, hits) = (TAGS_MOVED.to_owned(), self.moved as u64);
        FaultRow { t_ms, name: id.clone(), id, event, hits, ok: None, detail: None }
    }
}
