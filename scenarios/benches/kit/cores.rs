//! The assignment of processors: the subject has the first one for itself, everything else runs on the others.
//!
//! A closed loop on shared processors mostly measures its own generator. With its own processor, a constantly busy
//! subject shows its real capacity.

use std::process::{Child, Command};

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The division of the processors that this process may use.
pub(crate) struct Cores {
    /// The subject's processor; `None` if there is only one processor.
    subject: Option<(usize, CpuSet)>,
}

impl Cores {
    /// Keeps this thread, and those that it starts, off the subject's processor.
    pub(crate) fn divide() -> Result<Self> {
        let mut others = sched_getaffinity(None).context("failed to read which processors may be used")?;
        let first = (0..CpuSet::MAX_CPU).find(|cpu| others.is_set(*cpu));
        let Some(first) = first.filter(|_| others.count() > 1) else { return Ok(Self { subject: None }) };
        let mut subject = CpuSet::new();
        subject.set(first);
        others.unset(first);
        sched_setaffinity(None, &others).context("failed to choose processors")?;
        Ok(Self { subject: Some((first, subject)) })
    }

    /// All processors for all processes.
    pub(crate) fn shared() -> Self {
        Self { subject: None }
    }

    /// Whether subjects have their own processor.
    pub(crate) fn are_divided(&self) -> bool {
        self.subject.is_some()
    }

    /// A line for the output.
    pub(crate) fn describe(&self) -> String {
        match self.subject {
            Some((first, _)) => {
                format!("each subject has processor {first} alone; generator and registry have the others")
            }
            None => "there is one processor: subjects, generator and registry share it".to_owned(),
        }
    }

    /// Starts `command` on the subject's processor. A process inherits it from the thread that starts it.
    pub(crate) fn spawn(&self, command: &mut Command) -> Result<Child> {
        std::thread::scope(|scope| {
            let spawner = scope.spawn(|| {
                if let Some((_, subject)) = &self.subject {
                    sched_setaffinity(None, subject).context("failed to choose a processor")?;
                }
                let program = command.get_program().to_owned();
                command.spawn().with_context(|| format!("failed to start {}", program.display()))
            });
            spawner.join().expect("starting a process does not panic")
        })
    }
}
