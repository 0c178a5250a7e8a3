//! Siblings: how many children each parent has at any time, from the first of them to the end of the run, and which of them outlive it.
//!
//! Listens with watches of the harness's own, one for the parents and one for each kind of children, on any control plane. What is counted, and
//! when it is too much, is in [`census`], which does no I/O.

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
use super::listen::{Batch, gather, listen, told};
use crate::clock::Clock;
use crate::scenario::Scenario;

/// Changes that are taken from a watch at a time, and batches that wait to be counted.
const BATCH_MAX: usize = 1024;
const BATCHES_MAX: usize = 64;
/// Where an object says that it is going, what keeps it then, whose it is, and by which label.
const FINALIZERS: &str = "/metadata/finalizers";
const GOING: &str = "/metadata/deletionTimestamp";
const OWNERS: &str = "/metadata/ownerReferences";
const LABELS: &str = "/metadata/labels";

/// What the watch of the parents, or of a kind of children, brings.
type Reported = (Option<usize>, Batch);

/// The census under way.
pub(super) struct Siblings {
    stop: oneshot::Sender<()>,
    counts: AbortOnDropHandle<(Census, Clock)>,
}

impl Siblings {
    /// Begins before the first object is made. None where the scenario names no children.
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

    /// Ends it, and returns what was counted. A child may outlive its parent by `grace_ms`.
    pub(super) async fn end(self, grace_ms: u64) -> Vec<record::Siblings> {
        // It ends by itself only when every watch was lost.
        let _ = self.stop.send(());
        self.counts.await.map(|(census, clock)| census.finish(clock.now_ms(), grace_ms)).unwrap_or_default()
    }
}

/// A watch of the parents, or of a kind of children.
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
        Some((_, Err(unseen))) => census.lost(told(unseen, &clock)),
        None => census.advance(clock.now_ms()),
    };
    gather(changes, stopped, take).await;
    (census, clock)
}
