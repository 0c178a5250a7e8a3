//! Assigns processors: the measured program has the first processor for itself, and all other processes run on the
//! others.
//!
//! On shared processors, a closed loop mostly measures its own load generator. With a processor of its own, a program
//! that is always busy shows its real capacity.

use std::process::{Child, Command};

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The division of the processors that this process may use.
pub(crate) struct Cores {
    /// The processor of the measured program; `None` if the machine has only one.
    subject: Option<(usize, CpuSet)>,
}

impl Cores {
    /// Keeps this thread, and the threads that it starts, off the measured program's processor.
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

    /// Lets all processes use all processors.
    pub(crate) fn shared() -> Self {
        Self { subject: None }
    }

    /// Whether measured programs have a processor of their own.
    pub(crate) fn are_divided(&self) -> bool {
        self.subject.is_some()
    }

    /// Description of the assignment for the printed output.
    pub(crate) fn describe(&self) -> String {
        match self.subject {
            Some((first, _)) => {
                format!("each subject has processor {first} alone; generator and registry have the others")
            }
            None => "there is one processor: subjects, generator and registry share it".to_owned(),
        }
    }

    /// Starts `command` on the measured program's processor. A process inherits its processors from the thread that
    /// starts the process.
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
