//! The one network link between a node and the machine, and the addresses on it.
//!
//! This module finds and claims an unused block of addresses for the link. The kernel removes the link together with
//! the node's network namespace.

use std::net::Ipv4Addr;
use std::path::Path;

use super::Error;
use crate::step::{Step, Tool};

/// The values of `N` that are tried for the block `10.N.0.0/16`.
const BLOCKS: std::ops::RangeInclusive<u8> = 200..=250;

/// The network link of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    block: u8,
}

impl Link {
    /// The name of the link on the machine.
    pub(super) fn name(self) -> String {
        format!("longhaul-{}", self.block)
    }

    /// The machine's address on the link, which the node and all Pods reach.
    pub(super) fn machine(self) -> Ipv4Addr {
        Ipv4Addr::new(10, self.block, 0, 1)
    }

    pub(super) fn node(self) -> Ipv4Addr {
        Ipv4Addr::new(10, self.block, 0, 2)
    }

    /// The first address of Services, which belongs to the API server's Service.
    pub(super) fn service(self) -> Ipv4Addr {
        Ipv4Addr::new(10, self.block, 96, 1)
    }

    /// The address range of Services.
    pub(super) fn services(self) -> String {
        format!("10.{}.96.0/20", self.block)
    }

    /// The address range of Pods.
    pub(super) fn pods(self) -> String {
        format!("10.{}.128.0/17", self.block)
    }

    /// The range of all addresses of the link, node, Services and Pods.
    fn all(self) -> String {
        format!("10.{}.0.0/16", self.block)
    }

    /// The arguments of each call of `ip` that sets up the network in the node.
    pub(super) fn inside(self) -> Vec<Vec<String>> {
        let words = |text: String| text.split(' ').map(str::to_owned).collect();
        [
            "link set lo up".to_owned(),
            "link set eth0 up".to_owned(),
            format!("address add {}/24 dev eth0", self.node()),
            format!("route add default via {}", self.machine()),
        ]
        .map(words)
        .into()
    }

    /// Chooses the first unused block of addresses and makes the link, which claims the block. `pid` is the process id
    /// of a process of the node.
    pub(super) async fn claim(ip: &Path, pid: u32) -> Result<Self, Error> {
        let ip = Tool::new(ip.to_owned());
        let ask =
            async |words: &str| Step::new("link the node", "longhaul show doctor", &ip, words.split(' ')).call().await;
        let mut last = None;
        for link in BLOCKS.map(|block| Self { block }) {
            let used = ask(&format!("-o address show to {}", link.all())).await?;
            let routed = ask(&format!("route show root {}", link.all())).await?;
            if !used.trim().is_empty() || !routed.trim().is_empty() {
                continue;
            }
            let name = link.name();
            if let Err(error) = ask(&format!("link add {name} type veth peer name eth0 netns {pid}")).await {
                // Another process was faster.
                last = Some(error);
                continue;
            }
            ask(&format!("address add {}/24 dev {name}", link.machine())).await?;
            ask(&format!("link set {name} up")).await?;
            ask(&format!("route add {} via {}", link.all(), link.node())).await?;
            return Ok(link);
        }
        Err(last.map_or(Error::NoAddresses, Error::Step))
    }
}
