//! `network-policy`: Pods of the subject may reach everything but the registry. A hit is the policy of each Deployment, once it is in force.
//!
//! The policy is an object of the cluster. Where the network of the cluster enforces none, as a bridge does not, packets to the registry
//! vanish by rules of the node that say the same.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use anyhow::{Context as _, Result};
use hyper::Method;
use serde_json::{Value, json};

use super::{Deed, LOOK_EVERY, Subject};
use crate::run::install::JSON;

/// How our policies are called, before the name of a Deployment.
const PREFIX: &str = "longhaul-cut-";

pub(super) async fn play(deed: &Deed<'_>) -> Result<()> {
    let (subject, ground) = (deed.subject()?, deed.ground()?);
    let registry = ground.registry.context("there is no registry to be cut off from")?;
    let policies = policies(subject, registry);
    for (path, policy) in &policies {
        ask(subject, Method::POST, path, policy.to_string()).await?;
    }
    let lasted = last(deed, subject, registry).await;
    if let Some(firewall) = &ground.firewall {
        firewall.open().await?;
    }
    for (path, policy) in &policies {
        let name = policy["metadata"]["name"].as_str().unwrap_or_default();
        ask(subject, Method::DELETE, &format!("{path}/{name}"), String::new()).await?;
    }
    lasted
}

/// While it lasts: Pods that come are cut off as well.
async fn last(deed: &Deed<'_>, subject: &Subject, registry: SocketAddr) -> Result<()> {
    let mut cut = BTreeSet::new();
    let mut is_told = false;
    loop {
        let pods: BTreeSet<IpAddr> = subject.here().await?.into_iter().filter_map(|pod| pod.address).collect();
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

/// A policy for each Deployment, and where it is made: egress to everything but that address, and to its other ports.
fn policies(subject: &Subject, registry: SocketAddr) -> Vec<(String, Value)> {
    let block = format!("{}/32", registry.ip());
    let port = registry.port();
    let others: Vec<Value> = [(1, port.saturating_sub(1)), (port.saturating_add(1), u16::MAX)]
        .into_iter()
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

async fn ask(subject: &Subject, method: Method, path: &str, body: String) -> Result<()> {
    let (status, answer) = subject.rollout.cluster().ask(method, path, body, JSON).await?;
    anyhow::ensure!(status.is_success(), "a NetworkPolicy was refused: {status}: {}", answer["message"]);
    Ok(())
}
