//! Finds the current address of a webhook that is configured as a URL or as a Service.

use mock_objects::object;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::webhooks::{Target, Unusable, WebhookAddress};

/// Why the server cannot connect to a webhook.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Nowhere {
    #[error(transparent)]
    Unusable(#[from] Unusable),
    #[error("service \"{name}\" in namespace \"{namespace}\" has no address")]
    NoAddress { namespace: String, name: String },
}

impl WebhookAddress {
    /// The address to which the server connects now.
    pub(crate) fn target(&self, cluster: &Cluster, ca_pem: String) -> Result<Target, Nowhere> {
        match self {
            Self::Url { host, port, .. } => {
                Ok(Target { host: host.clone(), port: *port, server_name: host.clone(), ca_pem })
            }
            Self::Service { namespace, name, port, .. } => {
                let (host, real_port) = resolve(cluster, namespace, name, *port)
                    .ok_or_else(|| Nowhere::NoAddress { namespace: namespace.clone(), name: name.clone() })?;
                Ok(Target { host, port: real_port, server_name: format!("{name}.{namespace}.svc"), ca_pem })
            }
            Self::Unusable(why) => Err(why.clone().into()),
        }
    }
}

/// Resolves a Service without a cluster network. The address is an `ExternalName`, else the first ready address of the
/// Endpoints, else the cluster IP.
fn resolve(cluster: &Cluster, namespace: &str, name: &str, port: u16) -> Option<(String, u16)> {
    let catalogue = cluster.catalogue();
    let service = cluster.get(catalogue.by_full_name("services")?, namespace, name)?.value();
    let text = |pointer: &str| service.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let ports = service.pointer("/spec/ports").and_then(Value::as_array);
    let entry = ports.into_iter().flatten().find(|entry| entry["port"].as_u64() == Some(u64::from(port)));
    let target = entry.and_then(|entry| entry["targetPort"].as_u64()).and_then(|port| u16::try_from(port).ok());
    let target = target.unwrap_or(port);
    if text("/spec/type") == "ExternalName" {
        return Some((text("/spec/externalName"), target));
    }
    let endpoints = catalogue.by_full_name("endpoints").and_then(|resource| cluster.get(resource, namespace, name));
    if let Some(endpoints) = endpoints {
        let value = endpoints.value();
        let ip = value.pointer("/subsets/0/addresses/0/ip").and_then(Value::as_str).map(str::to_owned);
        let port = value.pointer("/subsets/0/ports/0/port").and_then(Value::as_u64);
        if let Some(ip) = ip {
            return Some((ip, port.and_then(|port| u16::try_from(port).ok()).unwrap_or(target)));
        }
    }
    let ip = text("/spec/clusterIP");
    debug_assert_eq!(object::meta(&service, "name"), name);
    (!ip.is_empty() && ip != "None").then_some((ip, port))
}
