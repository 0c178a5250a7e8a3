//! Ctrl-C and SIGTERM: the first ends a run in order, the second at once.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// The signals that end a run.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// From now on the signals come here instead of ending the process.
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// The name of the next signal.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }

    /// The run is ending; who asks again, while the handle is held, does not want to wait for the order of it.
    pub(crate) fn abort_on_next(mut self) -> AbortOnDropHandle<()> {
        AbortOnDropHandle::new(tokio::spawn(async move {
            self.next().await;
            crate::subject::kill_all();
            crate::out::err!("longhaul: stopped at once; judge what was recorded with `longhaul report DIR`");
            std::process::exit(reports::exit::ABORTED.into());
        }))
    }
}

/// Does the work to its end. A signal cancels `stop`, which the work looks at.
pub(crate) async fn stoppable<T>(stop: &CancellationToken, work: impl Future<Output = T>) -> std::io::Result<T> {
    let (mut signals, mut work) = (Signals::listen()?, std::pin::pin!(work));
    tokio::select! {
        done = &mut work => return Ok(done),
        _ = signals.next() => stop.cancel(),
    }
    Ok(work.await)
}
