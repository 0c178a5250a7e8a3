//! The address at which the subject, and every client of `longhaul mock kube`, reaches the control plane. If a network
//! fault is planned, the address belongs to a proxy, otherwise to the control plane.
//!
//! Owns the proxy and its network namespace. Works with every kind of control plane.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use anyhow::{Context, Result};
use mock_faults::{Family, Fault, Name};
use mock_proxy::{Proxy, netns::Namespace};
use serde_json::Value;

/// A name in every certificate of a control plane, so that a proxy at any address can use the certificate.
const SERVER_NAME: &str = "localhost";

/// The proxy, if a network fault is planned.
pub(crate) struct Endpoint {
    proxy: Option<Proxy>,
    /// The server name to verify in the certificate, if the name differs from the address.
    server_name: Option<&'static str>,
}

impl Endpoint {
    /// Creates the network namespace in which packets can be lost, if a fault needs a namespace. Needs root. Called
    /// before the control plane starts, so that the control plane's certificate can contain the proxy's address: not
    /// every client accepts another server name in its kubeconfig.
    pub(crate) fn namespace(faults: &[Fault]) -> Result<Option<Namespace>> {
        let loses = faults.iter().any(|fault| fault.name == Name::NetLoss);
        loses.then(Namespace::create).transpose().context("skipped: the fault net-loss cannot be played here")
    }

    pub(crate) fn is_needed(faults: &[Fault]) -> bool {
        faults.iter().any(|fault| fault.name.row().family == Family::Network)
    }

    /// Opens an address in front of `upstream`, through a proxy if a proxy is wanted. Port 0 takes a free port.
    pub(crate) async fn open(
        wanted: bool,
        namespace: Option<Namespace>,
        upstream: SocketAddr,
        listen: SocketAddr,
        epoch: Instant,
        seed: u64,
    ) -> Result<Self> {
        if !wanted {
            return Ok(Self { proxy: None, server_name: None });
        }
        let server_name = namespace.as_ref().map(|_| SERVER_NAME);
        let config = mock_proxy::Config { listen, epoch, seed, namespace, ..mock_proxy::Config::new(upstream) };
        let proxy = Proxy::start(config).await.context("failed to start the proxy in front of the control plane")?;
        Ok(Self { proxy: Some(proxy), server_name })
    }

    /// The address that clients on this machine use instead of the control plane's address.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        let mut address = self.proxy.as_ref().map(Proxy::address)?;
        if address.ip().is_unspecified() {
            address.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        Some(address)
    }

    /// The kubeconfig, changed to use the address of the proxy.
    pub(crate) fn direct(&self, kubeconfig: &str) -> Result<String> {
        let mut config: Value = serde_saphyr::from_str(kubeconfig).context("the kubeconfig is not YAML")?;
        if let (Some(cluster), Some(address)) = (config.pointer_mut("/clusters/0/cluster"), self.address()) {
            cluster["server"] = format!("https://{address}").into();
            if let Some(name) = self.server_name {
                cluster["tls-server-name"] = name.into();
            }
        }
        serde_saphyr::to_string(&config).context("failed to write the kubeconfig")
    }

    /// Bytes through the proxy so far, in both directions; `None` without a proxy.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let counts = self.proxy.as_ref().map(Proxy::counts)?;
        Some(counts.bytes_to_subject + counts.bytes_to_server)
    }

    pub(crate) fn faults(&self) -> Option<&mock_proxy::Faults> {
        self.proxy.as_ref().map(Proxy::faults)
    }

    /// Closes every connection through the proxy.
    pub(crate) async fn close(self) {
        if let Some(proxy) = self.proxy {
            proxy.shutdown().await;
        }
    }
}
