//! The end of whoever started this process.
//!
//! Owns one rule: a control plane of a test-suite ends with the suite, also where that is killed and has no time to say so. The parent is
//! watched by a descriptor (`pidfd_open`, Linux 5.3): a signal on its death would come from the death of the *thread* that
//! started us, and Go's threads come and go.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, getppid, pidfd_open};
use tokio::sync::oneshot;

/// Keeps the processes alive when who started them ends, for whoever starts them by a shell that does not stay.
pub(crate) const STAY: &str = "LONGHAUL_ENVTEST_STAY";

/// How often it is looked at where it cannot be watched.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Waits for the parent's end, which is looked at from this call on; for ever when it need not be.
pub(crate) fn ended() -> impl Future<Output = ()> {
    let (tell, ended) = oneshot::channel();
    if std::env::var_os(STAY).is_none()
        && let Some(parent) = getppid().filter(|parent| !parent.is_init())
    {
        let watched = pidfd_open(parent, PidfdFlags::empty());
        // A thread of its own, which ends with the process: nothing else waits for as long.
        std::thread::spawn(move || {
            match watched {
                // It may have ended before it could be watched.
                Ok(watched) if getppid() == Some(parent) => {
                    while poll(&mut [PollFd::new(&watched, PollFlags::IN)], None) == Err(Errno::INTR) {}
                }
                _ => {
                    while getppid() == Some(parent) {
                        std::thread::park_timeout(LOOK_EVERY);
                    }
                }
            }
            let _ = tell.send(());
        });
    } else {
        // The first process of the machine or container adopts orphans; it ends with everything.
        std::mem::forget(tell);
    }
    async {
        let _ = ended.await;
    }
}
