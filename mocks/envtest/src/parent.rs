//! The end of whoever started this process.
//!
//! Owns one rule: a control plane of a test-suite ends with the suite, also where that is killed and has no time to say so. The parent is
//! watched by a descriptor (`pidfd_open`, Linux 5.3): a signal on its death would come from the death of the *thread* that
//! started us, and Go's threads come and go.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, getppid, pidfd_open};
use tokio::sync::oneshot;

/// Keeps the processes alive when who started them ends, for whoever starts them by a shell that does not stay.
pub(crate) const STAY: &str = "LONGHAUL_ENVTEST_STAY";

/// Waits for the parent's end; for ever when it cannot be watched, or need not be.
pub(crate) async fn ended() {
    if std::env::var_os(STAY).is_some() {
        return std::future::pending().await;
    }
    let Some(parent) = watched() else { return std::future::pending().await };
    let (tell, ended) = oneshot::channel();
    // A thread of its own, which ends with the process: nothing else waits for as long.
    std::thread::spawn(move || {
        while poll(&mut [PollFd::new(&parent, PollFlags::IN)], None) == Err(Errno::INTR) {}
        let _ = tell.send(());
    });
    let _ = ended.await;
}

fn watched() -> Option<OwnedFd> {
    // The first process of the machine or container adopts orphans; it ends with everything.
    let parent = getppid().filter(|parent| !parent.is_init())?;
    pidfd_open(parent, PidfdFlags::empty()).ok()
}
