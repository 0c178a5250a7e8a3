//! The watch on the end of this process's starter.
//!
//! Owns one rule: a control plane of a test suite ends with the suite, even if that is killed and cannot stop it. The
//! parent is watched by a descriptor (`pidfd_open`, Linux 5.3). A signal on its death would come from the death of the
//! *thread* that started this process, and Go's threads come and go.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, getppid, pidfd_open};
use tokio::sync::oneshot;

/// Set to keep the processes alive after their starter's end, for a start by a shell that ends at once.
pub(crate) const STAY: &str = "LONGHAUL_ENVTEST_STAY";

/// Interval of checks if the parent cannot be watched.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Waits for the parent's end, which is watched from this call on; for ever if the processes are to stay.
pub(crate) fn ended() -> impl Future<Output = ()> {
    let (tell, ended) = oneshot::channel();
    if std::env::var_os(STAY).is_none()
        && let Some(parent) = getppid().filter(|parent| !parent.is_init())
    {
        let watched = pidfd_open(parent, PidfdFlags::empty());
        // A thread of its own, which ends with the process: nothing else waits this long.
        std::thread::spawn(move || {
            match watched {
                // The parent may have ended before it could be watched.
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
        // The first process of the machine or container adopts orphans; it ends last.
        std::mem::forget(tell);
    }
    async {
        let _ = ended.await;
    }
}
