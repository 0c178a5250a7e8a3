//! The quiet time: counts the subject's writes after the load has ended, when no other client writes.
//!
//! The harness uses its own watches, on any control plane. The watches cover the churned resources and the subject's
//! children. If the control plane records requests, the watches also cover all other resources that the subject has
//! written.

mod rewrites;
mod writers;

use std::collections::BTreeSet;
use std::time::Duration;

use loadgen::audit;
use loadgen::churn::Api;
use reports::record;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use self::rewrites::Rewrites;
pub(super) use self::writers::Writers;
use super::end_state::all_spelled;
use super::listen::{Batch, gap_text, gather, listen};
use crate::clock::{Clock, millis};
use crate::scenario::Scenario;

/// Maximum number of changes per batch of a watch, and of batches in the channel.
const BATCH_MAX: usize = 256;
const BATCHES_MAX: usize = 64;
/// Time for the subject to catch up with the last writes, if the drain is long enough: the shortest deadline for
/// observations.
const CATCH_UP_MAX: Duration = Duration::from_secs(5);
/// If the drain is short, the subject gets the time of the drain divided by this number to catch up.
const CATCH_UP_SHARE: u32 = 3;

pub(super) struct Quiet {
    stop: oneshot::Sender<()>,
    counts: AbortOnDropHandle<Rewrites>,
    resources: Vec<String>,
    tells_writers: bool,
}

/// The quiet time: its begin and end in milliseconds of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) from_ms: u64,
    pub(super) to_ms: u64,
}

impl Window {
    /// The quiet time in a drain that begins at `drain_ms`: the rest of the drain after the harness's last change and
    /// the time to catch up.
    pub(super) fn of(drain_ms: u64, drain: Duration, last_deed: Option<Duration>) -> Self {
        let still = last_deed.unwrap_or_default().min(drain);
        let catch_up = (drain.saturating_sub(still) / CATCH_UP_SHARE).min(CATCH_UP_MAX);
        Self { from_ms: drain_ms + millis(still + catch_up), to_ms: drain_ms + millis(drain) }
    }
}

impl Quiet {
    /// Starts the watches of the quiet time, after the load has ended. `None` if the run has no churn, or the subject
    /// only answers reviews.
    pub(super) async fn start(
        scenario: &Scenario,
        api: &Api,
        clock: Clock,
        window: Window,
        writers: Option<&Writers>,
    ) -> Option<Self> {
        if scenario.subject.watches_nothing() {
            return None;
        }
        let mut spelled = all_spelled(scenario);
        if spelled.is_empty() {
            return None;
        }
        spelled.extend(scenario.subject.children.iter().map(|kind| kind.resource.clone()));
        let named = spelled.len();
        spelled.extend(writers.into_iter().flat_map(Writers::spelled));
        let (sender, changes) = mpsc::channel(BATCHES_MAX);
        let (mut listening, mut resources, mut rewrites) = (Vec::new(), Vec::new(), Rewrites::new(window));
        let mut known = BTreeSet::new();
        for (at, one) in spelled.into_iter().enumerate() {
            let Some((name, _)) = loadgen::churn::names(&one) else { continue };
            if !known.insert(name.clone()) {
                continue;
            }
            match watch(&one, api, sender.clone()).await {
                Ok(listens) => listening.push(listens),
                // Other resources that the subject wrote may not be watchable, and no budget needs them.
                Err(_) if at >= named => continue,
                Err(error) => rewrites.lost(format!("{name}: {error}")),
            }
            resources.push(name);
        }
        drop(sender);
        let (stop, stopped) = oneshot::channel();
        let counts = AbortOnDropHandle::new(tokio::spawn(count(rewrites, clock, changes, stopped, listening)));
        Some(Self { stop, counts, resources, tells_writers: writers.is_some() })
    }

    /// Ends the watches and returns the writes that they showed. `writers` names the clients that wrote, if known.
    pub(super) async fn end(self, writers: Option<&Writers>) -> record::Quiet {
        let Self { stop, counts, resources, tells_writers } = self;
        // The send fails only if every watch was lost.
        let _ = stop.send(());
        let counted = counts.await;
        let lost = || record::Quiet { unread: Some("the count broke off".to_owned()), ..record::Quiet::default() };
        let quiet = counted.map_or_else(|_| lost(), |rewrites| rewrites.finish(writers));
        record::Quiet { resources, tells_writers, ..quiet }
    }
}

/// Starts a watch of all changes of a resource from now on.
async fn watch(resource: &str, api: &Api, changes: mpsc::Sender<Batch>) -> Result<AbortOnDropHandle<()>, audit::Error> {
    let mut config = audit::Config::new(api.clone(), resource);
    config.from_now = true;
    // It asks for whole objects, because the changing fields are unknown.
    config.fields = vec![String::new()];
    listen(config, BATCH_MAX, changes, |batch| batch).await
}

async fn count(
    mut rewrites: Rewrites,
    clock: Clock,
    changes: mpsc::Receiver<Batch>,
    stopped: oneshot::Receiver<()>,
    _listening: Vec<AbortOnDropHandle<()>>,
) -> Rewrites {
    let take = |batch: Option<Batch>| match batch {
        Some(Ok(batch)) => batch.into_iter().for_each(|entry| rewrites.wrote(clock.at_ms(entry.at), entry)),
        Some(Err(unseen)) => rewrites.lost(gap_text(unseen, &clock)),
        None => {}
    };
    gather(changes, stopped, take).await;
    rewrites
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subject_is_left_alone_once_it_may_have_caught_up() {
        let window = |drain_s: u64, deed: Option<u64>| {
            let window = Window::of(60_000, Duration::from_secs(drain_s), deed.map(Duration::from_secs));
            (window.from_ms, window.to_ms)
        };
        assert_eq!(window(9, None), (63_000, 69_000));
        assert_eq!(window(120, None), (65_000, 180_000));
        assert_eq!(window(12, Some(3)), (66_000, 72_000), "after the last deed of the harness");
        assert_eq!(window(3, Some(9)), (63_000, 63_000), "nothing is left");
    }
}
