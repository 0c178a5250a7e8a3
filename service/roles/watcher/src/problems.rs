//! The state of receivers and hooks for the health endpoints: which receivers and hooks accept nothing, since when, and
//! why.
//!
//! Liveness and readiness do not depend on receivers and hooks, because another process of this service would have the
//! same problem. The watches' own probes report whether watches make progress.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::Serialize;
use service_core::edge::Probe;

/// After ten seconds, a problem gets a health note. A receiver that restarts accepts calls sooner.
const NOTED_AFTER: Duration = Duration::from_secs(10);

/// The state of an action's receiver or hook.
#[derive(Debug, Clone, Default)]
struct Way {
    taken: u64,
    failed: u64,
    /// The time since which the receiver or hook accepts no call, and the reason; `None` if calls succeed.
    trouble: Option<(Instant, String)>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    taken: u64,
    failed: u64,
    failing_for_s: Option<u64>,
    why: Option<&'a str>,
}

#[derive(Default)]
pub struct Problems(Mutex<BTreeMap<Arc<str>, Way>>);

impl Problems {
    pub fn taken(&self, action: &Arc<str>) {
        let mut ways = self.0.lock();
        let way = ways.entry(Arc::clone(action)).or_default();
        way.taken += 1;
        way.trouble = None;
    }

    /// Records a call that was not accepted; returns whether the problem is new.
    pub fn failed(&self, action: &Arc<str>, why: String) -> bool {
        let mut ways = self.0.lock();
        let way = ways.entry(Arc::clone(action)).or_default();
        way.failed += 1;
        let new = way.trouble.is_none();
        let since = way.trouble.take().map_or_else(Instant::now, |(since, _)| since);
        way.trouble = Some((since, why));
        new
    }
}

impl Probe for Problems {
    fn name(&self) -> &'static str {
        "watcher"
    }

    fn note(&self) -> Option<String> {
        let ways = self.0.lock();
        let long = ways.iter().filter_map(|(action, way)| {
            let (since, why) = way.trouble.as_ref()?;
            let age = since.elapsed();
            (age > NOTED_AFTER).then(|| format!("{action}: nothing was taken for {} s: {why}", age.as_secs()))
        });
        let long: Vec<_> = long.collect();
        (!long.is_empty()).then(|| long.join("; "))
    }

    fn page(&self) -> Option<String> {
        let ways = self.0.lock();
        let lines: BTreeMap<&str, Line<'_>> = ways
            .iter()
            .map(|(action, way)| {
                let trouble = way.trouble.as_ref();
                let line = Line {
                    taken: way.taken,
                    failed: way.failed,
                    failing_for_s: trouble.map(|(since, _)| since.elapsed().as_secs()),
                    why: trouble.map(|(_, why)| &**why),
                };
                (&**action, line)
            })
            .collect();
        serde_json::to_string_pretty(&lines).ok().map(|page| page + "\n")
    }
}
