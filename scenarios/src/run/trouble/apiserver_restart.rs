//! The fault `apiserver-restart`. A hit means that the old API server has ended and a new API server reports readiness.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use hyper::Method;
use loadgen::churn;
use mock_faults::{ApiserverRestartKeys, EndBy};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use super::{LOOK_EVERY, OVER_WITHIN, PlayedFault};
use crate::run::install::Api;

const PROGRAM: &str = "kube-apiserver";
/// Grace period for an API server to end. An API server would wait a minute for clients that hold a connection; a
/// kubelet gives less time.
const GRACE: Duration = Duration::from_secs(10);
/// Timeout of an answer; a starting API server accepts connections before it can answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(3);

pub(super) async fn play(deed: &PlayedFault<'_>) -> Result<()> {
    let keys = deed.fault.keys::<ApiserverRestartKeys>();
    let by = keys.signal.unwrap_or_default();
    let mut times = deed.times(keys.pause);
    while times.next().await?.is_some() {
        times.does(restart(deed, by)).await?;
    }
    Ok(())
}

async fn restart(deed: &PlayedFault<'_>, by: EndBy) -> Result<String> {
    let machinery = deed.machinery()?;
    let api = deed.ground()?.api.as_ref().context("no client uses the API server")?;
    let before = machinery.processes(PROGRAM);
    anyhow::ensure!(!before.is_empty(), "no process of {PROGRAM} was found");
    let signal = if by == EndBy::Term { Signal::TERM } else { Signal::KILL };
    let began = Instant::now();
    end(&before, signal)?;
    let (mut gone_after, mut is_asked) = (None, by == EndBy::Term);
    loop {
        let now = machinery.processes(PROGRAM);
        let is_gone = now.iter().all(|pid| !before.contains(pid));
        if is_asked && !is_gone && began.elapsed() >= GRACE {
            is_asked = false;
            end(&before, Signal::KILL)?;
        }
        if is_gone {
            gone_after.get_or_insert_with(|| began.elapsed());
        }
        if is_gone && !now.is_empty() && is_ready(api).await {
            let (gone, back) = (gone_after.unwrap_or_default().as_secs_f64(), began.elapsed().as_secs_f64());
            return Ok(format!("it ended after {gone:.1} s and was ready again after {back:.1} s"));
        }
        if began.elapsed() >= OVER_WITHIN {
            bail!("the API server was not ready again after {} s", OVER_WITHIN.as_secs());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn end(pids: &[u32], signal: Signal) -> Result<()> {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
        match kill_process(pid, signal) {
            // It has ended meanwhile.
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => return Err(error).context("failed to end the API server"),
        }
    }
    Ok(())
}

async fn is_ready(api: &churn::Api) -> bool {
    let asks = Api::from(api);
    let asked = tokio::time::timeout(ANSWER_LIMIT, asks.ask(Method::GET, "/readyz", String::new())).await;
    matches!(asked, Ok(Ok((status, _))) if status.is_success())
}
