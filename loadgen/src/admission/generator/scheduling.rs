//! How the kernel lets the thread of a closed loop run.

/// Lets whoever runs go on when an answer wakes this thread, instead of taking its processor at once.
///
/// A closed loop asks how much a server can do. Where both share processors, a thread that is woken by the first answer and takes over
/// finds one answer at a time, and the server loses its processor for each: 0.19 times a request, 0.01 times with this,
/// and a tenth more requests. An open loop must not do this: there a thread is woken to be on time.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe crate sets the policy alone: they set the niceness as well")]
pub(super) fn in_batches() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the call reads the parameters, which live until it returns, and concerns the calling thread only.
    let refused = unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) } != 0;
    if refused {
        tracing::debug!(error = %std::io::Error::last_os_error(), "the closed loop goes on without batches");
    }
}

/// Elsewhere there is no such policy.
#[cfg(not(target_os = "linux"))]
pub(super) fn in_batches() {}
