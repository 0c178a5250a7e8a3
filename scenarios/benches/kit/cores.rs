//! Who runs on which processor: the subject on the first one alone, everything else on the others.
//!
//! A closed loop on shared processors mostly measures its own generator. With a processor for itself a subject that is
//! busy all the time shows what it can do by itself.

use std::process::{Child, Command};

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The division of the processors that this process may use.
pub(crate) struct Cores {
    /// `None` when there is only one.
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

    /// All for everybody.
    pub(crate) fn shared() -> Self {
        Self { subject: None }
    }

    /// Whether subjects have a processor for themselves.
    pub(crate) fn are_divided(&self) -> bool {
        self.subject.is_some()
    }

    /// A line for people.
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
