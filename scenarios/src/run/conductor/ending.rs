//! The end of a run: finds the end reason, stops load and subject, and closes the record.

use std::time::Duration;

use anyhow::Result;
use reports::record::{End, EndReason, HOLES_MAX};

use super::{Conductor, Halt};
use crate::run::harness_error;
use crate::run::ready::NotReady;
use crate::signals::Signals;

impl Conductor<'_> {
    pub(super) fn completed(&mut self) -> EndReason {
        let struck = (0..self.scenario.faults.len()).any(|index| self.hit_count(index) > 0);
        // A subject without a witness cannot be silent.
        let is_mute = self.scenario.subject.watches_nothing();
        let Ok(stage) = self.stage() else { return EndReason::Completed };
        let counts = stage.events.counts();
        // A fault before the first commit may prevent all observations, so the witness is not to blame.
        let struck_first = stage.faults.commits_before == Some(0) && struck;
        if counts.commits == 0 || counts.observations > 0 || struck_first || is_mute {
            return EndReason::Completed;
        }
        let malformed = stage.witness.reported.tally.malformed();
        let example =
            stage.witness.reported.tally.example().map(|example| format!("; the first unreadable line: {example}"));
        let detail = format!(
            "the subject proved none of {} commits in {} s ({malformed} unreadable lines{}). {}",
            counts.commits,
            self.clock.now_ms() / 1000,
            example.unwrap_or_default(),
            self.scenario.subject.witness.remedy()
        );
        EndReason::WitnessSilent { detail }
    }

    pub(super) async fn halted(&mut self, halt: Halt) -> EndReason {
        let started = self.clock.runs();
        let of = match &halt {
            Halt::SubjectExited(exit) => Some(exit.clone()),
            _ => None,
        };
        let last_words = match self.stage.as_mut() {
            Some(stage) => stage.subject.processes.last_words(of.as_ref()).await,
            None => String::new(),
        };
        match halt {
            Halt::Signal(name) => EndReason::Interrupted { signal: name.to_owned() },
            Halt::SubjectExited(status) if started => {
                EndReason::SubjectExited { status: status.to_string(), detail: last_words }
            }
            Halt::SubjectExited(status) => EndReason::SubjectNotReady {
                detail: format!("it exited before it was ready ({status}). Its last words: {last_words}"),
                waited_ms: None,
            },
            Halt::NeverAsked(detail) => EndReason::NeverAsked { detail },
            Halt::LoadLost(detail) => EndReason::LoadLost { detail },
            Halt::Broken(error) => match error.downcast_ref::<NotReady>() {
                Some(not_ready) => EndReason::SubjectNotReady {
                    detail: format!("{error}. Its last words: {last_words}"),
                    waited_ms: Some(not_ready.waited_ms()),
                },
                None => harness_error(&error),
            },
        }
    }

    /// Stops load and subject, however the run ended. While load and subject stop, a second signal ends the process at
    /// once.
    pub(super) async fn leave(&mut self, stop_timeout: Duration) {
        let impatient = self.signals.take().map(Signals::abort_on_next);
        self.world.troubles.dismiss();
        if let Some(stage) = self.stage.as_mut() {
            stage.load.stop().await;
            if let Err(error) = stage.load.unregister(&self.world.api()).await {
                self.live.say(&format!("{error:#}"));
            }
            stage.observers.resources.unwatch();
            if stage.subject.processes.is_attached() {
                self.live.say("the subject is left running, as it was before the run");
            }
            if stage.subject.processes.stop(stop_timeout).await {
                self.live
                    .say(&format!("the subject did not exit within {stop_timeout:?} after SIGTERM and was killed"));
            }
            self.world.troubles.finished().await;
        }
        drop(impatient);
    }

    /// Writes the last rows and closes the record. If rows cannot be written, the written part of the record is judged.
    pub(in crate::run) fn close(&mut self, end: &End) {
        let rows = self.last_rows();
        let mut holes = self.told.take_holes(&self.clock);
        // Each of the two audits has its own limit of gaps, because their gaps leave different facts unknown.
        self.holes.truncate(HOLES_MAX);
        holes.append(&mut self.holes);
        // Even if rows were lost, as on a full disk, the end itself may still fit.
        let end = match &rows {
            Ok(()) => End { holes, ..end.clone() },
            Err(error) => End { ended_ms: end.ended_ms, reason: harness_error(error), lost: None, holes },
        };
        let closed = self.writer.end(&end).map_err(anyhow::Error::from);
        if let Some(error) = rows.err().or(closed.err()) {
            crate::out::err!("longhaul: the record could not be closed: {error:#}; the written part is judged");
        }
        self.stage = None;
    }

    fn last_rows(&mut self) -> Result<()> {
        let now_ms = self.clock.now_ms();
        self.requests.write(&self.world.plane, &self.clock, &mut self.writer)?;
        if let Some(stage) = self.stage.as_mut() {
            // A run that ended early left the subject no time to catch up, so missing observations are undecided.
            stage.events.settle(self.drained, self.requests.newest(), &mut self.writer)?;
            if let Some(row) = stage.subject.crashes.untold() {
                self.writer.crash(&row)?;
            }
            for row in stage.faults.canaries.close(now_ms) {
                self.writer.fault(&row)?;
            }
        }
        // Deciding open commits and gathering their facts takes time; it belongs to no measurement.
        self.interval_until(now_ms, true).map_err(|halt| match halt {
            Halt::Broken(error) => error,
            Halt::Signal(_) | Halt::SubjectExited(_) | Halt::NeverAsked(_) | Halt::LoadLost(_) => {
                anyhow::anyhow!("the run had ended")
            }
        })
    }
}
