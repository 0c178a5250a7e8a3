//! Drift: the harness deletes or edits children of the subject while load runs, as somebody with kubectl would.
//!
//! Owns when each deed is due, which children it takes, and the rows that prove it. What the subject makes of it is seen in the end
//! state.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use hyper::Method;
use loadgen::churn::Api;
use reports::judge::DRIFT;
use reports::record::{FaultEvent, FaultRow};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::task::JoinSet;

use super::end_state::children::{Known, is_child};
use super::end_state::churned;
use super::end_state::list::{Item, list};
use super::install;
use crate::clock::millis;
use crate::scenario::{Children, Drift, Scenario};

/// Children of one deed: each is a request of its own.
const CHILDREN_MAX: usize = 1000;
/// The last deed may take so long after load has ended.
pub(super) const FINISH_MAX: Duration = Duration::from_secs(30);

/// The deeds of a run.
#[derive(Default)]
pub(super) struct Drifts {
    plan: Option<Plan>,
    /// Deeds that were begun.
    begun: usize,
    under_way: JoinSet<Result<u64>>,
    /// Children that were deleted or edited.
    hits: u64,
}

/// What every deed needs.
#[derive(Clone)]
struct Plan {
    keys: Children,
    /// Name and path of the parents.
    resource: String,
    path: String,
    seed: u64,
    api: Api,
}

impl Drifts {
    pub(super) fn of(scenario: &Scenario, api: Api) -> Self {
        let plan = || {
            let keys = scenario.subject.children.clone().filter(|children| !children.drift.is_empty())?;
            let (resource, path) = churned(scenario)?;
            Some(Plan { keys, resource, path, seed: scenario.seed, api })
        };
        Self { plan: plan(), ..Self::default() }
    }

    /// The row that says what is planned.
    pub(super) fn planned(&self) -> Option<FaultRow> {
        let plan = self.plan.as_ref()?;
        let all: Vec<String> = plan.keys.drift.iter().map(Drift::describe).collect();
        Some(row(0, FaultEvent::Planned, 0, Some(all.join(", "))))
    }

    /// Begins what is due at `now_ms`, and tells what was done.
    pub(super) fn tick(&mut self, now_ms: u64) -> Result<Vec<FaultRow>> {
        let Some(plan) = &self.plan else { return Ok(Vec::new()) };
        let mut rows = Vec::new();
        while let Some(drift) = plan.keys.drift.get(self.begun).filter(|drift| now_ms >= millis(drift.at.0)) {
            if self.begun == 0 {
                rows.push(row(now_ms, FaultEvent::Started, 0, None));
            }
            self.under_way.spawn(plan.clone().act(self.begun, drift.clone()));
            self.begun += 1;
        }
        while let Some(done) = self.under_way.try_join_next() {
            rows.push(self.done(now_ms, done)?);
        }
        Ok(rows)
    }

    /// Load is over: waits for the deeds that are under way. The times of the rows are `now_ms`.
    pub(super) async fn finish(&mut self, now_ms: u64) -> Result<Vec<FaultRow>> {
        let mut rows = self.tick(now_ms)?;
        while let Some(done) = self.under_way.join_next().await {
            rows.push(self.done(now_ms, done)?);
        }
        rows.extend(self.plan.take().map(|_| row(now_ms, FaultEvent::Ended, self.hits, None)));
        Ok(rows)
    }

    fn done(&mut self, now_ms: u64, done: Result<Result<u64>, tokio::task::JoinError>) -> Result<FaultRow> {
        let hits = done.context("a drift broke")?.context("the harness could not make the children drift")?;
        self.hits += hits;
        let detail = format!("{hits} children were deleted or edited");
        Ok(row(now_ms, FaultEvent::Hit, self.hits, Some(detail)))
    }
}

impl Plan {
    /// Does deed number `index`; returns how many children it really changed.
    async fn act(self, index: usize, drift: Drift) -> Result<u64> {
        let collection = loadgen::churn::collection_path(&self.keys.resource).context("no resource")?;
        let parents = list(&self.api, &self.path, false).await?;
        let known = Known::of(&self.resource, &parents);
        let mut children = list(&self.api, &collection, true).await?;
        children.retain(|child| is_child(&self.keys, &known, child));
        let asked = install::Api { url: &self.api.url, ca_pem: &self.api.ca_pem, token: &self.api.token };
        let mut hits = 0;
        for child in chosen(children, drift.share, self.seed, index) {
            let path = one(&collection, &child);
            let (status, answer) = match &drift.edit {
                Some(edit) => {
                    let patch = Value::Object(edit.clone()).to_string();
                    asked.ask_as(Method::PATCH, &path, patch, install::JSON, "application/merge-patch+json").await?
                }
                None => asked.ask(Method::DELETE, &path, String::new()).await?,
            };
            match status.as_u16() {
                // It went with its parent meanwhile.
                404 => {}
                _ if status.is_success() => hits += 1,
                _ => bail!("{path}: HTTP {status}: {}", String::from_utf8_lossy(&answer[..answer.len().min(200)])),
            }
        }
        Ok(hits)
    }
}

/// A share of the children, the same for the same seed and the same children.
fn chosen(mut children: Vec<Item>, share: f64, seed: u64, index: usize) -> Vec<Item> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a length")]
    let wanted = (children.len() as f64 * share).ceil() as usize;
    children.sort_by_cached_key(|child| Sha256::digest(format!("{seed}/{index}/{}", child.place())));
    children.truncate(wanted.min(CHILDREN_MAX));
    children
}

/// The path of one object of a collection.
fn one(collection: &str, item: &Item) -> String {
    match (collection.rsplit_once('/'), item.namespace.as_str()) {
        (Some((root, plural)), namespace) if !namespace.is_empty() => {
            format!("{root}/namespaces/{namespace}/{plural}/{}", item.name)
        }
        _ => format!("{collection}/{}", item.name),
    }
}

fn row(t_ms: u64, event: FaultEvent, hits: u64, detail: Option<String>) -> FaultRow {
    FaultRow { t_ms, id: DRIFT.to_owned(), name: DRIFT.to_owned(), event, hits, ok: None, detail }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn items(count: usize) -> Vec<Item> {
        let item = |number: usize| {
            let meta = json!({"namespace": "n", "name": format!("o{number}"), "uid": number.to_string(), "resourceVersion": "1"});
            Item::of(json!({ "metadata": meta })).unwrap()
        };
        (0..count).map(item).collect()
    }

    #[test]
    fn the_seed_chooses_and_the_order_of_the_list_does_not() {
        let names = |items: Vec<Item>| items.into_iter().map(|item| item.name).collect::<Vec<_>>();
        let mut backwards = items(40);
        backwards.reverse();
        let first = names(chosen(items(40), 0.25, 7, 0));
        assert_eq!(first.len(), 10);
        assert_eq!(first, names(chosen(backwards, 0.25, 7, 0)));
        assert_ne!(first, names(chosen(items(40), 0.25, 8, 0)));
        assert_ne!(first, names(chosen(items(40), 0.25, 7, 1)));
        assert_eq!(chosen(items(3), 0.01, 7, 0).len(), 1, "a share of something is something");
        assert!(chosen(Vec::new(), 1.0, 7, 0).is_empty());
        assert_eq!(one("/api/v1/configmaps", &items(1)[0]), "/api/v1/namespaces/n/configmaps/o0");
    }
}
