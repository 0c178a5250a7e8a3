//! A watch of the harness's own whose changes go into a channel, for whoever counts them beside the run.

use std::time::Duration;

use loadgen::audit::{Audit, Config, Entry, Error};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};
use tokio_util::task::AbortOnDropHandle;

/// How often time passes where nothing changes.
const TICK: Duration = Duration::from_millis(250);
/// What a watch showed is in the channel within this.
const LINGER: Duration = Duration::from_millis(300);

/// Changes, at most so many at a time as were asked for, or why no more of them come.
pub(super) type Batch = Result<Vec<Entry>, String>;

/// Begins it. `message` makes of a batch what stands in the channel for it.
pub(super) async fn listen<T: Send + 'static>(
    config: Config,
    batch_max: usize,
    changes: mpsc::Sender<T>,
    message: impl Fn(Batch) -> T + Send + 'static,
) -> Result<AbortOnDropHandle<()>, Error> {
    let audit = Audit::start(config).await?;
    let listens = async move {
        loop {
            let batch = audit.next_batch(batch_max).await.map_err(|error| error.to_string());
            let over = batch.is_err();
            if changes.send(message(batch)).await.is_err() || over {
                return;
            }
        }
    };
    Ok(AbortOnDropHandle::new(tokio::spawn(listens)))
}

/// Hands on what is received until it is stopped or every watch was lost, and then what was on its way; nothing where only time has passed.
pub(super) async fn gather<T>(
    mut changes: mpsc::Receiver<T>,
    mut stopped: oneshot::Receiver<()>,
    mut take: impl FnMut(Option<T>),
) {
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            _ = &mut stopped => break,
            message = changes.recv() => match message {
                Some(message) => take(Some(message)),
                None => return,
            },
            _ = tick.tick() => take(None),
        }
    }
    let linger = Instant::now() + LINGER;
    while let Ok(Some(message)) = timeout_at(linger, changes.recv()).await {
        take(Some(message));
    }
}
