//! The limiters of requests, one for each registry in use.
//!
//! Limiters of configured registries are never dropped. If there are too many limiters of other registries, the least
//! recently used limiter is dropped. In metrics, only configured registries have a name; all other registries have the
//! label `other`.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::config;
use crate::limiter::{Limiter, Limits};
use crate::metrics::Metrics;
use service_core::authority::OneName;

/// Maximum number of limiters of registries without an entry.
const OTHERS_MAX: usize = 64;
/// The metric label of registries without an entry.
const OTHER: &str = "other";

pub(super) struct Limiters {
    configured: BTreeMap<OneName, Arc<Limiter>>,
    others: Mutex<Others>,
    metrics: Arc<Metrics>,
}

#[derive(Default)]
struct Others {
    known: BTreeMap<OneName, (Arc<Limiter>, u64)>,
    /// A counter of all uses, which gives the order in which limiters were last used.
    uses: u64,
}

impl Limiters {
    pub fn new(registries: &[config::Registry], metrics: Arc<Metrics>) -> Self {
        metrics.forget_breakers();
        let limiter = |registry: &config::Registry| {
            let limits = Limits { concurrent: registry.max_concurrent, per_second: registry.max_per_second };
            (registry.host.clone(), Arc::new(Limiter::new(limits, metrics.breaker(registry.host.as_str()))))
        };
        let configured = registries.iter().map(limiter).collect();
        // It exists from the start, as those of the others do.
        drop(metrics.breaker(OTHER));
        Self { configured, others: Mutex::default(), metrics }
    }

    pub fn limiter(&self, host: &OneName) -> Arc<Limiter> {
        if let Some(limiter) = self.configured.get(host) {
            return Arc::clone(limiter);
        }
        let mut others = self.others.lock();
        others.uses += 1;
        let uses = others.uses;
        if let Some((limiter, used)) = others.known.get_mut(host) {
            *used = uses;
            return Arc::clone(limiter);
        }
        if others.known.len() >= OTHERS_MAX {
            let oldest = others.known.iter().min_by_key(|(_, (_, used))| *used).map(|(host, _)| host.clone());
            oldest.and_then(|oldest| others.known.remove(&oldest));
        }
        let limits = Limits { concurrent: config::MAX_CONCURRENT, per_second: None };
        let limiter = Arc::new(Limiter::new(limits, self.metrics.breaker(OTHER)));
        others.known.insert(host.clone(), (Arc::clone(&limiter), uses));
        limiter
    }
}
