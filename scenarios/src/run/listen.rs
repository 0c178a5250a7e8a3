//! A watch by the harness itself, which sends changes into a channel for modules that count objects during the run.

use std::time::Duration;

use loadgen::audit::{Audit, Config, Entry, Error, Hole};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::clock::Clock;

/// Interval of the messages that only advance the time, while no object changes.
const TICK: Duration = Duration::from_millis(250);
/// How long a stopped module waits for earlier changes that still arrive in the channel.
const LINGER: Duration = Duration::from_millis(300);

/// Changes of objects, at most as many as requested, or the reason why some changes are unknown.
pub(super) type Batch = Result<Vec<Entry>, Unseen>;

/// Some changes are unknown: the changes of one gap, or all changes from now on.
#[derive(Debug)]
pub(super) struct Unseen {
    pub(super) why: String,
    /// Time at which the gap was noticed.
    pub(super) at: std::time::Instant,
}

impl Unseen {
    fn of(resource: &str, error: &Error) -> Self {
        let why = match error {
            Error::Hole { hole } => {
                let Hole { from, until, reason, .. } = &**hole;
                let long_ms = until.saturating_duration_since(*from).as_millis();
                format!("the harness's watch of {resource} was interrupted for {long_ms} ms ({reason})")
            }
            Error::Overrun { lost } => {
                format!("the harness fell behind its watch of {resource}, and missed {lost} changes")
            }
            error => format!("the harness's watch of {resource} ended ({error})"),
        };
        Self { why, at: std::time::Instant::now() }
    }
}

/// The reason for the gap, with the time of the gap in the run.
pub(super) fn gap_text(Unseen { why, at }: Unseen, clock: &Clock) -> String {
    format!("{why} at {}", reports::words::millis(clock.at_ms(at)))
}

/// Begins the watch. `message` converts a batch into a message for the channel.
pub(super) async fn listen<T: Send + 'static>(
    config: Config,
    batch_max: usize,
    changes: mpsc::Sender<T>,
    message: impl Fn(Batch) -> T + Send + 'static,
) -> Result<AbortOnDropHandle<()>, Error> {
    let resource = loadgen::churn::names(&config.resource).map_or_else(|| config.resource.clone(), |(name, _)| name);
    let audit = Audit::start(Config { tells_holes: true, ..config }).await?;
    let listens = async move {
        loop {
            let batch = audit.next_batch(batch_max).await;
            let over = matches!(&batch, Err(error) if !matches!(error, Error::Hole { .. } | Error::Overrun { .. }));
            let batch = batch.map_err(|error| Unseen::of(&resource, &error));
            if changes.send(message(batch)).await.is_err() || over {
                return;
            }
        }
    };
    Ok(AbortOnDropHandle::new(tokio::spawn(listens)))
}

/// Passes on messages until the task is stopped or all watches are lost. After a stop, also passes on the messages that
/// arrive within [`LINGER`]. An empty message only advances the time.
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
