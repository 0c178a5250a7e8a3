//! The route of the subject to the control plane, and of every client to a single mock. It leads through a proxy if a
//! network fault is planned, otherwise directly.
//!
//! Owns the proxy and its network namespace. It must not depend on the kind of control plane.

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Context, Result};
use mock_faults::{Family, Fault, Name};
use mock_proxy::{Proxy, netns::Namespace};
use serde_json::Value;

/// A name in every certificate of a control plane, so that a proxy at any address can pass it on.
const SERVER_NAME: &str = "localhost";

/// The proxy, if there is one.
pub(crate) struct Endpoint {
    proxy: Option<Proxy>,
    /// The name that the certificate must have if it differs from the address.
    server_name: Option<&'static str>,
}

impl Endpoint {
    /// The network namespace in which packets can be lost, if a fault needs that; it needs root. It is made before the
    /// control plane, so that the certificate can name its address: not every client accepts another server name in its
    /// kubeconfig.
    pub(crate) fn namespace(faults: &[Fault]) -> Result<Option<Namespace>> {
        let loses = faults.iter().any(|fault| fault.name == Name::NetLoss);
        loses.then(Namespace::create).transpose().context("skipped: the fault net-loss cannot be played here")
    }

    /// Whether one of these faults needs a proxy.
    pub(crate) fn is_needed(faults: &[Fault]) -> bool {
        faults.iter().any(|fault| fault.name.row().family == Family::Network)
    }

    /// Opens the route to `upstream`, at this address with a port, or with port 0 at a free one; through a proxy if one
    /// is wanted.
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

    /// The address for clients instead of the control plane's.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.proxy.as_ref().map(Proxy::address)
    }

    /// A kubeconfig that uses this route.
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

    /// Bytes through the proxy so far, both directions; `None` without a proxy.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let counts = self.proxy.as_ref().map(Proxy::counts)?;
        Some(counts.bytes_to_subject + counts.bytes_to_server)
    }

    pub(crate) fn faults(&self) -> Option<&mock_proxy::Faults> {
        self.proxy.as_ref().map(Proxy::faults)
    }

    /// Ends every connection through it.
    pub(crate) async fn close(self) {
        if let Some(proxy) = self.proxy {
            proxy.shutdown().await;
        }
    }
}
