//! The fault `node-pressure`: limits the resources of containers, also of new containers. Each limited container is a
//! hit.
//!
//! If the kernel kills a limited container, `crashes.jsonl` shows the crash with the kubelet's reason.

use anyhow::{Context as _, Result};
use kind::node::{Limits, Pressed};
use mock_faults::NodePressureKeys;

use super::{LOOK_EVERY, PlayedFault};

pub(super) async fn play(deed: &PlayedFault<'_>) -> Result<()> {
    let (subject, keys) = (deed.subject()?, deed.fault.keys::<NodePressureKeys>());
    let limits = Limits { memory: keys.memory.map(|memory| memory.0), cpu: keys.processor() };
    // In all cases, containers get their earlier limits back.
    let mut pressed: Vec<Pressed> = Vec::new();
    loop {
        // While an API server is away no new container is found, and nothing else is lost.
        for pod in subject.here().await.unwrap_or_default() {
            let known: Vec<String> = pressed.iter().map(|one| one.container.clone()).collect();
            let more = subject.rollout.press(&pod, limits, &known);
            let more = more.with_context(|| format!("failed to limit the containers of {}", pod.name))?;
            for one in &more {
                deed.hit(format!("a container of {} has {}", pod.name, one.told));
            }
            pressed.extend(more);
        }
        if !deed.rest(LOOK_EVERY).await {
            return Ok(());
        }
    }
}
