//! Ends this process when its parent process ends.
//!
//! Owns one rule: a test suite's control plane ends with the suite, even if the suite is killed and cannot stop it. The
//! parent is watched through a descriptor (`pidfd_open`, Linux 5.3). Linux's signal for a parent's death comes when the
//! *thread* that started this process ends, and Go ends threads at any time.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, getppid, pidfd_open};
use tokio::sync::oneshot;

/// The environment variable that keeps the processes alive after their parent ends, for example if a shell starts them
/// and ends at once.
pub(crate) const STAY: &str = "LONGHAUL_ENVTEST_STAY";

/// Interval at which the process checks its parent if it cannot watch the parent through a descriptor.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Returns a future that waits until the parent ends, or for ever if [`STAY`] is set.
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
