//! How the kernel schedules the thread of a closed loop.

/// Lets the running program continue when an answer wakes this thread, instead of preempting it at once.
///
/// A closed loop measures how much a server can do. If load and server share CPUs, the first answer wakes this thread,
/// which then preempts the server and finds only one answer. Without this policy the server loses its CPU 0.19 times a
/// request. With this policy the server loses its CPU 0.01 times a request, and answers a tenth more requests. An open
/// loop must not use this policy, because its thread must wake in time.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe crate sets the policy alone: they set the niceness as well")]
pub(super) fn in_batches() {
    // The kernel's `sched_param`, which is only its priority. musl's function of that name refuses every policy.
    let priority: libc::c_int = 0;
    // SAFETY: the call reads the priority, which lives until it returns, and concerns the calling thread only.
    let refused =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_BATCH, &raw const priority) } != 0;
    if refused {
        tracing::debug!(error = %std::io::Error::last_os_error(), "the closed loop goes on without batches");
    }
}

/// Does nothing: systems other than Linux lack such a policy.
#[cfg(not(target_os = "linux"))]
pub(super) fn in_batches() {}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    /// The scheduling policy: field 41 of `proc_pid_stat(5)`, counted from behind the name, which is the second field.
    fn policy() -> i32 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, behind_the_name) = stat.rsplit_once(") ").unwrap();
        behind_the_name.split(' ').nth(41 - 3).unwrap().parse().unwrap()
    }

    #[test]
    fn only_the_thread_that_asks_runs_in_batches() {
        let asked = std::thread::spawn(|| {
            super::in_batches();
            policy()
        });
        assert_eq!((asked.join().unwrap(), policy()), (libc::SCHED_BATCH, libc::SCHED_OTHER));
    }
}
