//! Ctrl-C and SIGTERM: the first signal ends a run orderly, the second signal ends the process at once.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Starts to receive the signals, which then no longer end the process.
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }

    /// While the handle is held, the next signal ends the process at once, because the user does not want to wait for
    /// the orderly end.
    pub(crate) fn abort_on_next(mut self) -> AbortOnDropHandle<()> {
        AbortOnDropHandle::new(tokio::spawn(async move {
            self.next().await;
            crate::subject::kill_all();
            crate::out::err!("longhaul: stopped at once; judge what was recorded with `longhaul report DIR`");
            std::process::exit(reports::exit::ABORTED.into());
        }))
    }
}

/// Awaits the work. A signal cancels `stop`, which the work must observe.
pub(crate) async fn stoppable<T>(stop: &CancellationToken, work: impl Future<Output = T>) -> std::io::Result<T> {
    let (mut signals, mut work) = (Signals::listen()?, std::pin::pin!(work));
    tokio::select! {
        done = &mut work => return Ok(done),
        _ = signals.next() => stop.cancel(),
    }
    Ok(work.await)
}
