//! Fills a mock with objects, without requests.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, anyhow};
use mock_kube::{KindOf, Server};
use serde_json::json;

use super::objects::{Maker, OWNER, PER_NAMESPACE, namespace};
use super::plan::Step;

/// Number of objects between two pauses, so that other tasks of this thread run.
const AT_ONCE: u64 = 256;
/// Every n-th object has an owner.
const OWNED_EVERY: u64 = 3;

/// Creates the objects of a step, shared evenly by these resources.
pub(super) async fn fill(server: &Server, resources: &[String], step: Step, seed: u64) -> Result<()> {
    if resources.is_empty() || step.objects == 0 {
        return Ok(());
    }
    let count = resources.len() as u64;
    let kinds: Vec<KindOf> = resources
        .iter()
        .map(|name| server.kind_of(name).with_context(|| format!("the mock does not serve {name}")))
        .collect::<Result<_>>()?;
    let needs = kinds.iter().any(|kind| kind.is_namespaced);
    let mut owners = BTreeMap::new();
    if needs {
        for number in 0..=step.objects.div_ceil(count) / PER_NAMESPACE {
            let name = namespace(number);
            load(server, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))?;
            let account =
                json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": OWNER, "namespace": name}});
            owners.insert(name, load(server, account)?);
            if number.is_multiple_of(AT_ONCE) {
                tokio::task::yield_now().await;
            }
        }
    }
    for (place, kind) in kinds.iter().enumerate() {
        let place = place as u64;
        let own = step.objects / count + u64::from(place < step.objects % count);
        let maker = Maker { kind, seed: seed ^ place.rotate_left(40), bytes: step.bytes };
        for number in 0..own {
            let owner = maker.namespace(number).filter(|_| number.is_multiple_of(OWNED_EVERY));
            let owner = owner.and_then(|namespace| owners.get(&namespace));
            load(server, maker.object(number, owner.map(String::as_str)))?;
            if number.is_multiple_of(AT_ONCE) {
                tokio::task::yield_now().await;
            }
        }
    }
    Ok(())
}

fn load(server: &Server, object: serde_json::Value) -> Result<String> {
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    server.preload(object).map_err(|why| anyhow!("the mock refused an object of kind {kind}: {why}"))
}
