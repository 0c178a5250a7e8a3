//! The processes of one subject: those that the run started, or one that ran before it.
//!
//! Owns the set of running processes, and of those waiting for a restart. It must not decide when a restart is due, and
//! it never touches a process that it did not start.

use std::process::ExitStatus;
use std::time::{Duration, Instant};

use tokio_util::task::AbortOnDropHandle;

use super::{Attached, Error, Launch, Log, Pods, Running, Stopped};

pub enum Processes {
    /// Started by the run.
    Ours(Vec<Own>),
    /// Running before the run and after it.
    Theirs(Attached),
    /// In Pods, where a kubelet starts and ends them.
    Pods {
        pods: Pods,
        /// Whether they existed before the run.
        are_theirs: bool,
        /// The task that follows them.
        _follows: AbortOnDropHandle<()>,
    },
}

/// A process that the run started.
pub struct Own {
    launch: Launch,
    running: Running,
    began: Instant,
    /// After its end: the time of its restart.
    due: Option<Instant>,
    /// Whether it was stopped until it is called back.
    away: bool,
}

#[derive(Debug, Clone)]
pub struct Exit {
    /// Its index among the processes of the subject.
    pub index: usize,
    /// Its name, if there are several.
    pub name: Option<String>,
    /// `None` for a process of another parent, which alone knows the status.
    pub status: Option<ExitStatus>,
    /// Time that it ran, as far as the run knows.
    pub ran: Duration,
}

impl Processes {
    /// Starts all of them. If one does not start, the others are ended.
    pub fn start(launches: &[Launch], log: &Log) -> Result<Self, Error> {
        let start = |launch: &Launch| {
            let running = launch.start(log.clone())?;
            Ok(Own { launch: launch.clone(), running, began: Instant::now(), due: None, away: false })
        };
        launches.iter().map(start).collect::<Result<_, _>>().map(Self::Ours)
    }

    /// The roots of the running process trees.
    pub fn pids(&self) -> Vec<u32> {
        match self {
            Self::Ours(all) => all.iter().filter(|one| one.is_here()).map(|one| one.running.pid()).collect(),
            Self::Theirs(attached) => attached.pid().into_iter().collect(),
            Self::Pods { pods, .. } => pods.pids(),
        }
    }

    /// A process that has ended and does not wait for a restart.
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

    /// The last lines of the ended process, or of all of them.
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

    /// Cleans up after an ended process, whose restart is due at `due`. Returns its last lines.
    pub async fn bury(&mut self, exit: &Exit, due: Instant) -> String {
        let Self::Ours(all) = self else { return String::new() };
        let Some(one) = all.get_mut(exit.index) else { return String::new() };
        one.due = Some(due);
        one.running.bury();
        one.running.last_words().await
    }

    /// Starts those that are due. Returns their indices and names.
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

    /// Replaces the only process, which is returned.
    pub fn replace(&mut self, launch: Launch, running: Running) -> Option<Running> {
        let Self::Ours(all) = self else { return None };
        let one = all.first_mut()?;
        (one.launch, one.began) = (launch, Instant::now());
        // A process that waits for a restart is here now.
        one.due = None;
        Some(std::mem::replace(&mut one.running, running))
    }

    /// Asks the process with this index to end; until it is called back its end is no crash.
    pub fn send_away(&mut self, index: usize) {
        let Self::Ours(all) = self else { return };
        let Some(one) = all.get_mut(index) else { return };
        one.away = true;
        one.running.ask();
    }

    /// Whether it has ended. The rest of its group is ended as well.
    pub fn is_away(&mut self, index: usize) -> bool {
        let Self::Ours(all) = self else { return false };
        let Some(one) = all.get_mut(index).filter(|one| one.away) else { return false };
        let has_ended = one.running.exited().is_some();
        if has_ended {
            one.running.bury();
        }
        has_ended
    }

    /// Starts it again with the same settings.
    pub fn call_back(&mut self, index: usize, log: &Log) -> Result<(), Error> {
        let Self::Ours(all) = self else { return Ok(()) };
        let Some(one) = all.get_mut(index) else { return Ok(()) };
        one.running = one.launch.start(log.clone())?;
        (one.began, one.away) = (Instant::now(), false);
        Ok(())
    }

    /// Ends all processes that the run started, all at once. Returns whether one had to be killed.
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

    /// The Pods, if the subject is in Pods.
    pub fn pods(&self) -> Option<&Pods> {
        match self {
            Self::Pods { pods, .. } => Some(pods),
            Self::Ours(_) | Self::Theirs(_) => None,
        }
    }

    /// Whether it goes on when the run is over.
    pub fn is_attached(&self) -> bool {
        matches!(self, Self::Theirs(_) | Self::Pods { are_theirs: true, .. })
    }
}

impl Own {
    /// Whether it runs, as far as known.
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
