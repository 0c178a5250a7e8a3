//! Firewall rules that drop packets of Pods, because the node's network does not enforce policies.
//!
//! The CNI bridge enforces no NetworkPolicy. This module enforces a policy for a subject's Pods by iptables rules in
//! the node's network namespace, which end with the namespace.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use super::Error;
use crate::step::{Step, Tool};

/// The name of the iptables chain with these rules.
const CHAIN: &str = "LONGHAUL-POLICY";

/// The firewall rules of one node.
#[derive(Debug, Clone)]
pub struct Firewall {
    pub(super) nsenter: PathBuf,
    pub(super) iptables: PathBuf,
    pub(super) pid: u32,
}

impl Firewall {
    /// Drops all packets of these Pods to an address. The new rules replace all earlier rules in the iptables chain.
    pub async fn cut(&self, pods: &[IpAddr], to: SocketAddr) -> Result<(), Error> {
        self.open().await?;
        self.call(&format!("-N {CHAIN}")).await?;
        for pod in pods {
            self.call(&format!("-A {CHAIN} -s {pod} -d {} -p tcp --dport {} -j DROP", to.ip(), to.port())).await?;
        }
        self.call(&format!("-I FORWARD -j {CHAIN}")).await.map(drop)
    }

    /// Removes the firewall rules.
    pub async fn open(&self) -> Result<(), Error> {
        // The first two fail if there was no rule.
        let _ = self.call(&format!("-D FORWARD -j {CHAIN}")).await;
        if self.call(&format!("-F {CHAIN}")).await.is_ok() {
            self.call(&format!("-X {CHAIN}")).await?;
        }
        Ok(())
    }

    /// The number of packets that the rules dropped.
    pub async fn dropped(&self) -> Result<u64, Error> {
        let listed = self.call(&format!("-nvxL {CHAIN}")).await?;
        Ok(packets(&listed))
    }

    async fn call(&self, words: &str) -> Result<String, Error> {
        let entered = Tool::new(self.nsenter.clone()).with(["-t", &self.pid.to_string(), "-n", "--"]);
        // Another process may hold the lock of the tables for a moment.
        let (tool, words) = (entered.with([&self.iptables]), format!("-w 5 {words}"));
        Ok(Step::new("cut off Pods", "longhaul cluster down", &tool, words.split(' ')).call().await?)
    }
}

/// The number of packets in a listing of iptables(8): with `-v` and `-x` it is the first column.
fn packets(listed: &str) -> u64 {
    let dropped = listed.lines().filter(|line| line.contains("DROP"));
    dropped.filter_map(|line| line.split_whitespace().next()?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    #[test]
    fn packets_that_vanished_are_counted() {
        let listed = "Chain LONGHAUL-POLICY (1 references)\n    pkts      bytes target     prot opt in     out     source               \
            destination\n      12      720 DROP       tcp  --  *      *       10.200.128.3         10.200.0.1           tcp dpt:4321\n       \
            3      180 DROP       tcp  --  *      *       10.200.128.4         10.200.0.1           tcp dpt:4321\n";
        assert_eq!((super::packets(listed), super::packets("")), (15, 0));
    }
}
