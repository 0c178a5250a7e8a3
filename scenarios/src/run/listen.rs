//! A watch of the harness's own whose changes go into a channel, for whoever counts them beside the run.

use loadgen::audit::{Audit, Config, Entry, Error};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

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
