//! The fault `network-policy`: the subject's Pods may reach any address except the registry. A hit is the creation of
//! the policies of all Deployments.
//!
//! The `NetworkPolicie`s are objects of the cluster. If the cluster's network does not enforce policies, as with a plain
//! bridge, firewall rules of the node drop packets to the registry.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use anyhow::{Context as _, Result};
use hyper::Method;
use serde_json::{Value, json};

use super::{LOOK_EVERY, PlayedFault, Subject};
use crate::run::install::JSON;

/// Prefix of the names of the fault's `NetworkPolicie`s, before the name of a Deployment.
const PREFIX: &str = "longhaul-cut-";

pub(super) async fn play(deed: &PlayedFault<'_>) -> Result<()> {
    let (subject, ground) = (deed.subject()?, deed.ground()?);
    let registry = ground.registry.context("there is no registry to be cut off from")?;
    let policies = policies(subject, registry);
    let mut lasted = cut(deed, subject, &policies, registry).await;
    // Even after an error, no change stays.
    if let Some(firewall) = &ground.firewall {
        lasted = lasted.and(firewall.open().await.map_err(Into::into));
    }
    for (path, policy) in &policies {
        let name = policy["metadata"]["name"].as_str().unwrap_or_default();
        lasted = lasted.and(delete(subject, &format!("{path}/{name}")).await);
    }
    lasted
}

async fn cut(
    deed: &PlayedFault<'_>,
    subject: &Subject,
    policies: &[(String, Value)],
    registry: SocketAddr,
) -> Result<()> {
    for (path, policy) in policies {
        let policy = subject.rollout.cluster().marked(policy);
        ask(subject, Method::POST, path, policy.to_string()).await?;
    }
    last(deed, subject, registry).await
}

/// Keeps Pods, also new ones, cut off from the registry until the fault ends.
async fn last(deed: &PlayedFault<'_>, subject: &Subject, registry: SocketAddr) -> Result<()> {
    let mut cut = BTreeSet::new();
    let mut is_told = false;
    loop {
        // While an API server is away no Pod starts, and existing ones stay cut off.
        let Ok(here) = subject.here().await else {
            if deed.rest(LOOK_EVERY).await {
                continue;
            }
            return Ok(());
        };
        let pods: BTreeSet<IpAddr> = here.into_iter().filter_map(|pod| pod.address).collect();
        if let Some(firewall) = deed.ground()?.firewall.as_ref().filter(|_| pods != cut) {
            firewall.cut(&pods.iter().copied().collect::<Vec<_>>(), registry).await?;
        }
        cut = pods;
        if !is_told {
            deed.hit(format!("{} Pods cannot reach the registry at {registry}", cut.len()));
            is_told = true;
        }
        if !deed.rest(LOOK_EVERY).await {
            return Ok(());
        }
    }
}

/// A NetworkPolicy for each Deployment, with its API path. Egress is allowed to all addresses except the registry's,
/// and to other ports of the registry's address.
fn policies(subject: &Subject, registry: SocketAddr) -> Vec<(String, Value)> {
    let block = format!("{}/32", registry.ip());
    let port = registry.port();
    let above = port.checked_add(1).map(|from| (from, u16::MAX));
    let others: Vec<Value> = [(1, port.saturating_sub(1))]
        .into_iter()
        .chain(above)
        .filter(|(from, to)| from <= to)
        .flat_map(|(from, to)| {
            ["TCP", "UDP"].map(|protocol| json!({"protocol": protocol, "port": from, "endPort": to}))
        })
        .collect();
    let one = |(namespace, name, labels): (String, String, Value)| {
        let policy = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": {"name": format!("{PREFIX}{name}"), "namespace": namespace},
            "spec": {"podSelector": labels, "policyTypes": ["Egress"], "egress": [
                {"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": [block]}}]},
                {"to": [{"ipBlock": {"cidr": block}}], "ports": others},
            ]}
        });
        (format!("/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"), policy)
    };
    subject.rollout.selectors().into_iter().map(one).collect()
}

async fn delete(subject: &Subject, path: &str) -> Result<()> {
    let (status, answer) = subject.rollout.cluster().ask(Method::DELETE, path, String::new(), JSON).await?;
    // A policy that could not be created does not exist.
    let is_gone = status.is_success() || status == hyper::StatusCode::NOT_FOUND;
    anyhow::ensure!(is_gone, "{path} could not be deleted: {status}: {}", answer["message"]);
    Ok(())
}

async fn ask(subject: &Subject, method: Method, path: &str, body: String) -> Result<()> {
    let (status, answer) = subject.rollout.cluster().ask(method, path, body, JSON).await?;
    anyhow::ensure!(status.is_success(), "a NetworkPolicy was refused: {status}: {}", answer["message"]);
    Ok(())
}
