//! Finds the leader among several control planes of one cluster, and pauses a control plane.
//!
//! [`crate::containers`] owns the cluster.

use crate::containers::{Containers, Error};

/// The control planes of a kind cluster.
#[derive(Debug, Clone)]
pub struct Leaders(Containers);

/// A control plane whose programs are all paused. Dropping the value resumes the programs.
#[derive(Debug)]
pub struct Still {
    containers: Containers,
    node: Option<String>,
}

impl Leaders {
    pub(crate) const fn of(containers: Containers) -> Self {
        Self(containers)
    }

    /// The names of all control planes.
    pub async fn all(&self) -> Result<Vec<String>, Error> {
        let mut nodes = self.0.nodes().await?;
        nodes.retain(|name| name.contains("-control-plane"));
        Ok(nodes)
    }

    /// The node whose kube-controller-manager is the leader, as the control plane `seen_from` reports; `None` while no
    /// node holds the Lease.
    pub async fn leader(&self, seen_from: &str) -> Result<Option<String>, Error> {
        let holder = self.0.holder(seen_from).await?;
        Ok(node_of(&holder).map(str::to_owned))
    }

    /// Pauses a control plane.
    pub async fn stop(&self, node: &str) -> Result<Still, Error> {
        // Created before, so that it is resumed even if the engine paused it and answered too late.
        let still = Still { containers: self.0.clone(), node: Some(node.to_owned()) };
        self.0.pause(node).await?;
        Ok(still)
    }
}

impl Still {
    /// Resumes the paused control plane.
    pub async fn go_on(mut self) -> Result<(), Error> {
        if let Some(node) = &self.node {
            self.containers.unpause(node).await?;
        }
        self.node = None;
        Ok(())
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        if let Some(node) = self.node.take() {
            // If that fails, the next guest of the cluster resumes it.
            let _ = self.containers.unpause_now(&node);
        }
    }
}

/// The node's name in a Lease's holder, which is the name of a machine and a suffix of the process (client-go,
/// `leaderelection`).
fn node_of(holder: &str) -> Option<&str> {
    let (node, _) = holder.trim().rsplit_once('_')?;
    (!node.is_empty()).then_some(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_names_its_node() {
        assert_eq!(node_of("a-control-plane2_0b7c5f\n"), Some("a-control-plane2"));
        assert_eq!((node_of(""), node_of("_x")), (None, None));
    }
}
