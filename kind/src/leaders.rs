//! Control planes of one cluster, of which one leads: who that is, and letting one stand still.
//!
//! Owns what stands still, and that it goes on. Which cluster it is knows [`crate::containers`].

use crate::containers::{Containers, Error};

/// The control planes of a cluster of kind.
#[derive(Debug, Clone)]
pub struct Leaders(Containers);

/// A control plane that stands still, with all its programs. It goes on when this is dropped.
#[derive(Debug)]
pub struct Still {
    containers: Containers,
    node: Option<String>,
}

impl Leaders {
    pub(crate) const fn of(containers: Containers) -> Self {
        Self(containers)
    }

    /// The names of all of them.
    pub async fn all(&self) -> Result<Vec<String>, Error> {
        let mut nodes = self.0.nodes().await?;
        nodes.retain(|name| name.contains("-control-plane"));
        Ok(nodes)
    }

    /// The one whose controllers work, as a certain one of them sees it; none while nobody has the Lease.
    pub async fn leader(&self, seen_from: &str) -> Result<Option<String>, Error> {
        let holder = self.0.holder(seen_from).await?;
        Ok(node_of(&holder).map(str::to_owned))
    }

    /// Lets one stand still.
    pub async fn stop(&self, node: &str) -> Result<Still, Error> {
        // Said before, so that it goes on even where the engine did it and answered too late.
        let still = Still { containers: self.0.clone(), node: Some(node.to_owned()) };
        self.0.pause(node).await?;
        Ok(still)
    }
}

impl Still {
    /// Lets it go on.
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
            // Where that fails, the next guest of the cluster lets it go on.
            let _ = self.containers.unpause_now(&node);
        }
    }
}

/// The holder of a Lease is the name of a machine and what tells its processes apart (client-go, `leaderelection`).
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
