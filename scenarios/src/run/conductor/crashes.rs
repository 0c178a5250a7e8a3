//! Handles a process of the subject that exited: the run ends, or the process is started again.
//!
//! Reports each crash to the record, the ledger, the observer, the subject's log and the user.

use std::time::Instant;

use anyhow::Context as _;

use super::{Conductor, Halt};
use crate::run::crashes::crash_text;

impl Conductor<'_> {
    pub(super) async fn processes(&mut self, now_ms: u64) -> Result<(), Halt> {
        let Some(stage) = self.stage.as_mut() else { return Ok(()) };
        while let Some(exit) = stage.subject.processes.exited() {
            let Some(restarting) = stage.subject.crashes.after(&exit, Instant::now()) else {
                return Err(Halt::SubjectExited(exit));
            };
            let last_words = stage.subject.processes.bury(&exit, restarting.due).await;
            let (row, is_told) = stage.subject.crashes.row(now_ms, &exit, &restarting, last_words);
            if is_told {
                self.writer.crash(&row)?;
            }
            stage.events.ledger().subject_ended(now_ms);
            stage.observers.resources.left(stage.subject.processes.pids());
            stage.subject.log.note(&crash_text(&row));
            self.live.say(&format!("{:>4}s {}", now_ms / 1000, crash_text(&row)));
        }
        self.pods(now_ms)?;
        let Some(stage) = self.stage.as_mut() else { return Ok(()) };
        let started = stage.subject.processes.start_due(Instant::now(), &stage.subject.log);
        let started = started.context("failed to start the subject again")?;
        if !started.is_empty() {
            stage.events.ledger().subject_started(now_ms);
            stage.observers.resources.watch(stage.subject.processes.pids());
        }
        Ok(())
    }

    /// Handles crashes of a subject in Pods. A kubelet restarts the crashed containers.
    fn pods(&mut self, now_ms: u64) -> Result<(), Halt> {
        let Some(stage) = self.stage.as_mut() else { return Ok(()) };
        let Some(pods) = stage.subject.processes.pods().cloned() else { return Ok(()) };
        if let Some(why) = pods.is_blind() {
            return Err(Halt::Broken(anyhow::anyhow!(why)));
        }
        if let Some(used) = pods.take_used() {
            stage.observers.resources.report(used);
        }
        for crash in pods.take_crashes() {
            let (row, is_told) = stage.subject.crashes.of_container(now_ms, crash);
            if is_told {
                self.writer.crash(&row)?;
            }
            stage.subject.log.note(&crash_text(&row));
            self.live.say(&format!("{:>4}s {}", now_ms / 1000, crash_text(&row)));
        }
        if pods.take_died() && self.clock.runs() {
            stage.events.ledger().subject_ended(now_ms);
        }
        match pods.take_changed() {
            // A new process lists everything, and may report observations of the earlier one again.
            Some(pids) if self.clock.runs() => {
                stage.events.ledger().subject_started(now_ms);
                stage.observers.resources.watch(pids);
            }
            // They start one after the other until all are ready.
            Some(pids) => stage.observers.resources.left(pids),
            None => {}
        }
        Ok(())
    }
}
