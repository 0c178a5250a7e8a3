//! Control planes of one cluster, of which one leads: finding the leader, and pausing one.
//!
//! Owns the paused node, and resumes it. [`crate::containers`] knows the cluster.

use crate::containers::{Containers, Error};

/// The control planes of a cluster of kind.
#[derive(Debug, Clone)]
pub struct Leaders(Containers);

/// A paused control plane, with all its programs. It resumes when this is dropped.
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

    /// The leader of the controllers, as seen by a certain control plane; none while no node holds the Lease.
    pub async fn leader(&self, seen_from: &str) -> Result<Option<String>, Error> {
        let holder = self.0.holder(seen_from).await?;
        Ok(node_of(&holder).map(str::to_owned))
    }

    /// Pauses one.
    pub async fn stop(&self, node: &str) -> Result<Still, Error> {
        // Created before, so that it is resumed even if the engine paused it and answered too late.
        let still = Still { containers: self.0.clone(), node: Some(node.to_owned()) };
        self.0.pause(node).await?;
        Ok(still)
    }
}

impl Still {
    /// Resumes it.
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

/// The holder of a Lease is the name of a machine and a suffix that distinguishes its processes (client-go,
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
