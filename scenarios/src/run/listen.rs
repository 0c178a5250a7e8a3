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

/// What it says: changes, at most so many at a time as were asked for, or why it has nothing more to say.
pub(super) type Statement = Result<Vec<Entry>, String>;

/// Begins it. `told` is what stands in the channel for what it says.
pub(super) async fn listen<T: Send + 'static>(
    config: Config,
    batch_max: usize,
    heard: mpsc::Sender<T>,
    told: impl Fn(Statement) -> T + Send + 'static,
) -> Result<AbortOnDropHandle<()>, Error> {
    let audit = Audit::start(config).await?;
    let listens = async move {
        loop {
            let said = audit.next_batch(batch_max).await.map_err(|error| error.to_string());
            let over = said.is_err();
            if heard.send(told(said)).await.is_err() || over {
                return;
            }
        }
    };
    Ok(AbortOnDropHandle::new(tokio::spawn(listens)))
}

/// Hands on what is heard until it is stopped or every watch was lost, and then what was on its way; nothing where only time has passed.
pub(super) async fn gather<T>(
    mut hears: mpsc::Receiver<T>,
    mut stopped: oneshot::Receiver<()>,
    mut take: impl FnMut(Option<T>),
) {
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            _ = &mut stopped => break,
            said = hears.recv() => match said {
                Some(said) => take(Some(said)),
                None => return,
            },
            _ = tick.tick() => take(None),
        }
    }
    let linger = Instant::now() + LINGER;
    while let Ok(Some(said)) = timeout_at(linger, hears.recv()).await {
        take(Some(said));
    }
}
