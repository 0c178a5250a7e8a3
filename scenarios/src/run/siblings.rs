//! Siblings: observes the number of children of each parent, from the first child to the end of the run. Also finds
//! children that outlive their parents.
//!
//! The harness uses its own watches, one for the parents and one for each kind of children, on any control plane. The
//! module [`census`] counts children without I/O and decides when a parent has too many children.

mod census;
mod orphans;
mod parents;

use anyhow::{Context, Result};
use loadgen::audit;
use loadgen::churn::Api;
use reports::record;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use self::census::Census;
use super::end_state::{all_spelled, churned};
use super::listen::{Batch, gap_text, gather, listen};
use crate::clock::Clock;
use crate::scenario::Scenario;

/// Maximum number of changes per batch of a watch, and of batches in the channel.
const BATCH_MAX: usize = 1024;
const BATCHES_MAX: usize = 64;
const FINALIZERS: &str = "/metadata/finalizers";
const GOING: &str = "/metadata/deletionTimestamp";
const OWNERS: &str = "/metadata/ownerReferences";
const LABELS: &str = "/metadata/labels";

/// A batch from the watch of parents, or from the watch of a kind of children.
type Reported = (Option<usize>, Batch);

pub(super) struct Siblings {
    stop: oneshot::Sender<()>,
    counts: AbortOnDropHandle<(Census, Clock)>,
}

impl Siblings {
    /// Starts the watches, before the first object is created. `None` if the scenario names no children.
    pub(super) async fn start(scenario: &Scenario, api: &Api, clock: Clock) -> Result<Option<Self>> {
        let kinds = scenario.subject.children.to_vec();
        let Some((parents, _)) = churned(scenario).filter(|_| !kinds.is_empty()) else { return Ok(None) };
        let spelled = all_spelled(scenario).into_iter().next().context("no load writes the parents of the children")?;
        let entries: Vec<Option<String>> = kinds.iter().map(|kind| kind.per_entry.clone()).collect();
        let (sender, changes) = mpsc::channel(BATCHES_MAX);
        let mut listening = Vec::new();
        let mut config = audit::Config::new(api.clone(), &spelled);
        config.fields = vec![GOING.to_owned()];
        config.fields.extend(entries.into_iter().map(|pointer| pointer.unwrap_or_else(|| GOING.to_owned())));
        config.fields.push(FINALIZERS.to_owned());
        listening.push(watch(None, config, sender.clone()).await?);
        for (at, kind) in kinds.iter().enumerate() {
            let mut config = audit::Config::new(api.clone(), &kind.resource);
            config.fields = vec![GOING.to_owned(), OWNERS.to_owned(), LABELS.to_owned()];
            listening.push(watch(Some(at), config, sender.clone()).await?);
        }
        drop(sender);
        let (stop, stopped) = oneshot::channel();
        let census = Census::new(&parents, kinds);
        let counts = tokio::spawn(count(census, clock, changes, stopped, listening));
        Ok(Some(Self { stop, counts: AbortOnDropHandle::new(counts) }))
    }

    /// Ends the watches and returns the result of the count. A child may outlive its parent by `grace_ms`.
    pub(super) async fn end(self, grace_ms: u64) -> Vec<record::Siblings> {
        // The send fails only if every watch was lost.
        let _ = self.stop.send(());
        self.counts.await.map(|(census, clock)| census.finish(clock.now_ms(), grace_ms)).unwrap_or_default()
    }
}

/// Starts a watch of the parents, or of a kind of children.
async fn watch(
    kind: Option<usize>,
    config: audit::Config,
    changes: mpsc::Sender<Reported>,
) -> Result<AbortOnDropHandle<()>> {
    listen(config, BATCH_MAX, changes, move |batch| (kind, batch)).await.context("the children could not be watched")
}

async fn count(
    mut census: Census,
    clock: Clock,
    changes: mpsc::Receiver<Reported>,
    stopped: oneshot::Receiver<()>,
    _listening: Vec<AbortOnDropHandle<()>>,
) -> (Census, Clock) {
    let take = |reported: Option<Reported>| match reported {
        Some((kind, Ok(batch))) => {
            for entry in &batch {
                let t_ms = clock.at_ms(entry.at);
                match kind {
                    None => census.parent(t_ms, entry),
                    Some(kind) => census.child(kind, t_ms, entry),
                }
            }
        }
        Some((_, Err(unseen))) => census.lost(gap_text(unseen, &clock)),
        None => census.advance(clock.now_ms()),
    };
    gather(changes, stopped, take).await;
    (census, clock)
}
