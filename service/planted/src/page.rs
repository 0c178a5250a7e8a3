//! Diagnostics of a watch that show former states of objects, for the bugs `stale-child` and `missed-delete`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use service_core::edge::Probe;
use sha2::{Digest as _, Sha256};
use tokio::time::sleep;

use super::Bug;

/// Maximum number of objects whose former state is kept: without a limit, the bug would also be a leak, which is
/// another bug.
const STALE_MAX: usize = 8;
/// Time between two reads of the present objects, even without requests.
const LOOK: Duration = Duration::from_millis(100);

/// The diagnostic lines of objects, by uid.
type Lines = BTreeMap<String, Value>;

pub struct WrongPage {
    probe: Arc<dyn Probe>,
    bug: Bug,
    kept: Mutex<Lines>,
}

impl WrongPage {
    pub fn new(probe: Arc<dyn Probe>, bug: Bug) -> Arc<Self> {
        Arc::new(Self { probe, bug, kept: Mutex::default() })
    }

    /// Reads the present objects again and again, until dropped.
    pub async fn follow(self: Arc<Self>) {
        loop {
            drop(self.lines());
            sleep(LOOK).await;
        }
    }

    /// The reported lines: `stale-child` shows a few objects in their first state, `missed-delete` also shows deleted
    /// objects.
    fn lines(&self) -> Option<Lines> {
        let text = self.probe.objects()?;
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut lines: Lines = lines.filter_map(|line| Some((line["uid"].as_str()?.to_owned(), line))).collect();
        let mut kept = self.kept.lock();
        if self.bug == Bug::StaleChild {
            let room = STALE_MAX.saturating_sub(kept.len());
            let fresh: Vec<_> = lines.iter().filter(|(uid, _)| !kept.contains_key(*uid)).take(room).collect();
            kept.extend(fresh.into_iter().map(|(uid, line)| (uid.clone(), line.clone())));
            lines.extend(kept.clone());
            Some(lines)
        } else {
            kept.append(&mut lines);
            Some(kept.clone())
        }
    }
}

/// The checksum of `lines`, computed as a store does.
fn checksum(lines: &Lines) -> String {
    let line = |(uid, line): (&String, &Value)| format!("{uid} {}\n", line["resourceVersion"].as_str().unwrap_or(""));
    let mut lines: Vec<String> = lines.iter().map(line).collect();
    lines.sort_unstable();
    let digest = lines.iter().fold(Sha256::new(), Sha256::chain_update).finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

impl Probe for WrongPage {
    fn name(&self) -> &str {
        self.probe.name()
    }

    fn dead(&self) -> Option<String> {
        self.probe.dead()
    }

    fn unready(&self) -> Option<String> {
        self.probe.unready()
    }

    fn note(&self) -> Option<String> {
        self.probe.note()
    }

    fn page(&self) -> Option<String> {
        let mut page: Value = serde_json::from_str(&self.probe.page()?).ok()?;
        let lines = self.lines()?;
        page["objects"] = lines.len().into();
        page["checksum"] = checksum(&lines).into();
        Some(format!("{page:#}\n"))
    }

    fn objects(&self) -> Option<String> {
        Some(self.lines()?.values().map(|line| format!("{line}\n")).collect::<Vec<_>>().concat())
    }
}
