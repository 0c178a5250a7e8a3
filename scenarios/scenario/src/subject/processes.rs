//! The processes of one subject: those that the run started, or one that existed before the run.
//!
//! This module knows which processes of the subject run and which wait for a restart. This module does not decide when
//! a restart is due, and never touches a process that the run did not start.

use std::process::ExitStatus;
use std::time::{Duration, Instant};

use tokio_util::task::AbortOnDropHandle;

use super::{Attached, Error, Launch, Log, Pods, Running, Stopped};

pub enum Processes {
    /// Processes that the run started.
    Ours(Vec<Own>),
    /// A process that existed before the run and continues after it.
    Theirs(Attached),
    /// Processes in Pods, which a kubelet starts and ends.
    Pods {
        pods: Pods,
        /// Whether the Pods existed before the run.
        are_theirs: bool,
        /// The task that follows the Pods.
        _follows: AbortOnDropHandle<()>,
    },
}

/// A process that the run started.
pub struct Own {
    launch: Launch,
    running: Running,
    began: Instant,
    /// The time of the next restart, if the process has ended.
    due: Option<Instant>,
    /// Whether the process was stopped on purpose and waits for [`Processes::call_back`].
    away: bool,
}

#[derive(Debug, Clone)]
pub struct Exit {
    /// The index of the process among the processes of the subject, from 0.
    pub index: usize,
    pub name: Option<String>,
    /// The exit status. The status is `None` for a process that another program started, because only the parent learns
    /// the status.
    pub status: Option<ExitStatus>,
    /// How long the process ran, as far as the run knows.
    pub ran: Duration,
}

impl Processes {
    /// Starts all processes. If one process cannot be started, the others are ended.
    pub fn start(launches: &[Launch], log: &Log) -> Result<Self, Error> {
        let start = |launch: &Launch| {
            let running = launch.start(log.clone())?;
            Ok(Own { launch: launch.clone(), running, began: Instant::now(), due: None, away: false })
        };
        launches.iter().map(start).collect::<Result<_, _>>().map(Self::Ours)
    }

    /// The IDs of the running processes, without their descendants.
    pub fn pids(&self) -> Vec<u32> {
        match self {
            Self::Ours(all) => all.iter().filter(|one| one.is_here()).map(|one| one.running.pid()).collect(),
            Self::Theirs(attached) => attached.pid().into_iter().collect(),
            Self::Pods { pods, .. } => pods.pids(),
        }
    }

    /// The IDs of the running processes with their names in the scenario, without their descendants.
    pub fn named_pids(&self) -> Vec<(Option<String>, u32)> {
        if let Self::Ours(all) = self {
            let running = all.iter().filter(|one| one.is_here());
            return running.map(|one| (one.launch.name.clone(), one.running.pid())).collect();
        }
        self.pids().into_iter().map(|pid| (None, pid)).collect()
    }

    /// A process that has ended and is not waiting for a restart.
    pub fn exited(&mut self) -> Option<Exit> {
        match self {
            Self::Ours(all) => all.iter_mut().enumerate().filter(|(_, one)| one.is_here()).find_map(|(index, one)| {
                let status = Some(one.running.exited()?);
                Some(Exit { index, name: one.launch.name.clone(), status, ran: one.began.elapsed() })
            }),
            Self::Theirs(attached) => {
                let ran = attached.gone()?;
                Some(Exit { index: 0, name: None, status: None, ran })
            }
            // The kubelet restarts them.
            Self::Pods { .. } => None,
        }
    }

    /// The last lines of output of the ended process, or of all processes.
    pub async fn last_words(&mut self, of: Option<&Exit>) -> String {
        if let Self::Pods { pods, .. } = self {
            return pods.tail().lock().words();
        }
        let Self::Ours(all) = self else {
            return "(what it writes goes elsewhere: it was not started by this run)".to_owned();
        };
        let several = all.len() > 1 && of.is_none();
        let mut words = Vec::new();
        for (index, one) in all.iter_mut().enumerate() {
            if of.is_some_and(|exit| exit.index != index) {
                continue;
            }
            let last = one.running.last_words().await;
            words.push(match &one.launch.name {
                Some(name) if several => format!("{name}: {last}"),
                _ => last,
            });
        }
        words.join("\n")
    }

    /// Ends the remaining process group of an ended process, and schedules its restart at `due`. Returns the last lines
    /// of the ended process's output.
    pub async fn bury(&mut self, exit: &Exit, due: Instant) -> String {
        let Self::Ours(all) = self else { return String::new() };
        let Some(one) = all.get_mut(exit.index) else { return String::new() };
        one.due = Some(due);
        one.running.bury();
        one.running.last_words().await
    }

    /// Starts the processes whose restart is due. Returns the indices and names of the started processes.
    pub fn start_due(&mut self, now: Instant, log: &Log) -> Result<Vec<(usize, Option<String>)>, Error> {
        let Self::Ours(all) = self else { return Ok(Vec::new()) };
        let mut started = Vec::new();
        for (index, one) in all.iter_mut().enumerate() {
            if one.due.is_some_and(|due| due <= now) {
                one.running = one.launch.start(log.clone())?;
                (one.began, one.due) = (now, None);
                started.push((index, one.launch.name.clone()));
            }
        }
        Ok(started)
    }

    /// Replaces the only process of the subject. Returns the old process.
    pub fn replace(&mut self, launch: Launch, running: Running) -> Option<Running> {
        let Self::Ours(all) = self else { return None };
        let one = all.first_mut()?;
        (one.launch, one.began) = (launch, Instant::now());
        // A process that waits for a restart is here now.
        one.due = None;
        Some(std::mem::replace(&mut one.running, running))
    }

    /// Asks the process with this index to exit. Until [`Self::call_back`] is called, the end of this process is no
    /// crash.
    pub fn send_away(&mut self, index: usize) {
        let Self::Ours(all) = self else { return };
        let Some(one) = all.get_mut(index) else { return };
        one.away = true;
        one.running.ask();
    }

    /// Whether the process that [`Self::send_away`] asked to exit has ended. Also ends the rest of the process group.
    pub fn is_away(&mut self, index: usize) -> bool {
        let Self::Ours(all) = self else { return false };
        let Some(one) = all.get_mut(index).filter(|one| one.away) else { return false };
        let has_ended = one.running.exited().is_some();
        if has_ended {
            one.running.bury();
        }
        has_ended
    }

    /// Starts the process again with the same settings, after [`Self::send_away`].
    pub fn call_back(&mut self, index: usize, log: &Log) -> Result<(), Error> {
        let Self::Ours(all) = self else { return Ok(()) };
        let Some(one) = all.get_mut(index) else { return Ok(()) };
        one.running = one.launch.start(log.clone())?;
        (one.began, one.away) = (Instant::now(), false);
        Ok(())
    }

    /// Ends all processes that the run started, at the same time. Returns whether a process had to be killed to end it.
    pub async fn stop(&mut self, timeout: Duration) -> bool {
        let Self::Ours(all) = self else { return false };
        let mut here: Vec<&mut Own> = all.iter_mut().filter(|one| one.due.is_none()).collect();
        for one in &mut here {
            one.running.ask();
        }
        let end = Instant::now() + timeout;
        let mut killed = false;
        for one in here {
            let left = end.saturating_duration_since(Instant::now());
            killed |= one.running.stop(left).await == Stopped::Killed;
        }
        killed
    }

    /// The reports about the Pods, if the subject is in Pods.
    pub fn pods(&self) -> Option<&Pods> {
        match self {
            Self::Pods { pods, .. } => Some(pods),
            Self::Ours(_) | Self::Theirs(_) => None,
        }
    }

    /// Whether the subject continues after the run.
    pub fn is_attached(&self) -> bool {
        matches!(self, Self::Theirs(_) | Self::Pods { are_theirs: true, .. })
    }
}

impl Own {
    /// Whether the process is neither stopped on purpose nor waiting for a restart, as far as the run knows.
    fn is_here(&self) -> bool {
        self.due.is_none() && !self.away
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.status {
            Some(status) => write!(f, "{status}")?,
            None => f.write_str("a status that only its parent knows")?,
        }
        self.name.as_ref().map_or(Ok(()), |name| write!(f, " (`{name}`)"))
    }
}
