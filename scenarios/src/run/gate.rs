//! The subject's own way to the control plane: through a proxy where a fault of the network is planned, else straight there.
//!
//! Owns the proxy and its network namespace. It must not know what the control plane is.

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Context, Result};
use mocks::faults::{Family, Fault, Name};
use mocks::proxy::{self, Proxy, netns::Namespace};

/// Every certificate of a control plane names it, so a proxy at any address can pass it on.
const SERVER_NAME: &str = "localhost";

/// The proxy, if there is one.
pub(super) struct Gate {
    proxy: Option<Proxy>,
    /// What the certificate has to name where that is not the address.
    server_name: Option<&'static str>,
}

impl Gate {
    /// The network namespace in which packets can be lost, where a fault wants that; it needs root. It is made before
    /// the control plane, so that the certificate can name its address: not every client lets its kubeconfig say
    /// another name.
    pub(super) fn namespace(faults: &[Fault]) -> Result<Option<Namespace>> {
        let loses = faults.iter().any(|fault| fault.name == Name::NetLoss);
        loses.then(Namespace::create).transpose().context("skipped: the fault net-loss cannot be played here")
    }

    /// Opens the way to `upstream`.
    pub(super) async fn open(
        faults: &[Fault],
        namespace: Option<Namespace>,
        upstream: SocketAddr,
        epoch: Instant,
        seed: u64,
    ) -> Result<Self> {
        if !faults.iter().any(|fault| fault.name.family() == Family::Network) {
            return Ok(Self { proxy: None, server_name: None });
        }
        let server_name = namespace.as_ref().map(|_| SERVER_NAME);
        let config = proxy::Config { epoch, seed, namespace, ..proxy::Config::new(upstream) };
        let proxy = Proxy::start(config).await.context("failed to start the proxy in front of the control plane")?;
        Ok(Self { proxy: Some(proxy), server_name })
    }

    /// Where the subject is sent instead.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.proxy.as_ref().map(Proxy::address)
    }

    /// The name in the certificate, where it is not the address.
    pub(super) fn server_name(&self) -> Option<&'static str> {
        self.server_name
    }

    /// The faults of the network.
    pub(super) fn faults(&self) -> Option<&proxy::Faults> {
        self.proxy.as_ref().map(Proxy::faults)
    }

    /// Ends every connection through it.
    pub(super) async fn close(self) {
        if let Some(proxy) = self.proxy {
            proxy.shutdown().await;
        }
    }
}
