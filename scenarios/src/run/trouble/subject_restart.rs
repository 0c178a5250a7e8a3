//! The fault `subject-restart`: starts a new process, sends new connections to it when it is ready, and ends the old
//! process. A hit is a process that took over.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use mock_faults::{LAG, SubjectRestartKeys};
use tokio_util::task::TaskTracker;

use super::{Access, LOOK_EVERY, PlayedFault};
use crate::run::ready::{Ready, Requested, wait_until_ready};
use crate::subject::{Launch, Running, Stopped};

/// A started process that is not ready yet.
struct Coming {
    launch: Launch,
    process: Running,
    address: Option<SocketAddr>,
    ready: Ready,
    start_timeout: Duration,
}

pub(super) async fn play(deed: &PlayedFault<'_>) -> Result<()> {
    let keys = deed.fault.keys::<SubjectRestartKeys>();
    let lag = keys.lag.unwrap_or(LAG).0;
    let mut times = deed.times(keys.pause);
    while times.next().await?.is_some() {
        times.does(restart(deed, lag)).await?;
    }
    Ok(())
}

async fn restart(deed: &PlayedFault<'_>, lag: Duration) -> Result<String> {
    let mut coming = deed.with(begin).await??;
    coming.wait().await?;
    let pid = coming.process.pid();
    let afterwards = deed.core.afterwards.clone();
    deed.with(move |access| replace(access, coming, lag, &afterwards)).await??;
    Ok(format!("process {pid} took over"))
}

/// Starts the next process of the subject.
fn begin(access: &mut dyn Access) -> Result<Coming> {
    let (launch, ready, address) = access.launch()?;
    let process = launch.start(access.log().clone()).context("failed to start the subject again")?;
    let start_timeout = access.scenario().subject.start_timeout.0;
    Ok(Coming { launch, process, address, ready, start_timeout })
}

impl Coming {
    async fn wait(&mut self) -> Result<()> {
        let deadline = Instant::now() + self.start_timeout;
        // The old process has made all requests already, so those of the new one cannot be recognized.
        let ready = wait_until_ready(self.ready.clone(), deadline, || Requested::Judged);
        let exited = async {
            loop {
                if let Some(status) = self.process.exited() {
                    return status;
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let status = tokio::select! {
            ready = ready => return ready,
            status = exited => status,
        };
        let said = self.process.last_words().await;
        bail!("the process that was to take over exited ({status}). Its last words: {said}")
    }
}

/// Replaces the old process by the ready new one: new connections go to the new process, and the old process ends.
fn replace(access: &mut dyn Access, coming: Coming, lag: Duration, afterwards: &TaskTracker) -> Result<()> {
    let Coming { launch, process, address, ready, .. } = coming;
    let old = access.processes().replace(launch, process);
    let mut old = old.context("there is no process that another could replace")?;
    let was = access.take_over(address, ready.health());
    let front = access.front();
    if let (Some(front), Some(address)) = (&front, address) {
        front.add(address);
    }
    let stop_timeout = access.scenario().subject.upkeep().stop_timeout();
    let log = access.log().clone();
    afterwards.spawn(async move {
        let unlisted = async {
            tokio::time::sleep(lag).await;
            if let (Some(front), Some(was)) = (front, was) {
                front.remove(was);
            }
        };
        let (stopped, ()) = tokio::join!(old.stop(stop_timeout), unlisted);
        if stopped == Stopped::Killed {
            log.note(&format!("a process did not exit within {stop_timeout:?} after SIGTERM and was killed"));
        }
    });
    Ok(())
}
