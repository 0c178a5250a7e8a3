//! Compares the subject's state with the control plane for the last time, after the drain and before the subject stops.

use std::time::Instant;

use anyhow::Context;

use super::{Conductor, Halt};
use crate::run::end_state::{self, Reader};

impl Conductor<'_> {
    /// Compares the states of the subject and of the control plane until they are equal or the time is over. Writes the
    /// last comparison into the record.
    pub(super) async fn last_look(&mut self) -> Result<(), Halt> {
        let health = self.stage()?.subject.endpoints.health;
        let Some(reader) = Reader::of(self.scenario, health, self.world.api(), self.clock.clone()) else {
            return Ok(());
        };
        let deadline = Instant::now() + end_state::SETTLE_MAX;
        for readings in 1.. {
            let reading = self.beside(Box::pin(reader.read())).await?.context("failed to read the end state")?;
            let Self { stage, writer, .. } = self;
            let Some(stage) = stage.as_mut() else { return Ok(()) };
            let believed = stage.events.believed(writer)?;
            let state = reader.compare(&reading, believed, readings);
            if end_state::is_settled(&state) || Instant::now() >= deadline {
                self.writer.end_state(&state)?;
                break;
            }
            self.beside(tokio::time::sleep(end_state::PAUSE)).await?;
        }
        Ok(())
    }
}
