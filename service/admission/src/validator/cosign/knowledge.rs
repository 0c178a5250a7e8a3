//! Facts about registries: whether they support the referrers API, and the format of their signatures.
//!
//! The facts about registries only save requests: every format of signatures is tried before an image counts as
//! unsigned.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Maximum number of registry hosts that are remembered. Images name hosts, so without a limit any user could fill the
/// memory. If another host is added, all hosts are forgotten.
const HOSTS_MAX: usize = 256;
/// Time for which a registry is assumed to lack the referrers API. After this time the registry may have been upgraded.
const WITHOUT_API: Duration = Duration::from_hours(1);

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    #[default]
    Tags,
    Bundles,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// The time at which the registry was found to lack the referrers API.
    without_api: Option<Instant>,
    /// The format in which signatures were last found at the registry.
    pub last: Form,
}

/// The facts about all registry hosts.
#[derive(Debug, Default)]
pub struct Knowledge(Mutex<BTreeMap<String, Known>>);

impl Known {
    /// Whether a request to the referrers API of the registry may succeed.
    pub fn may_have_api(self, now: Instant) -> bool {
        self.without_api.is_none_or(|since| now.saturating_duration_since(since) >= WITHOUT_API)
    }
}

impl Knowledge {
    pub fn of(&self, host: &str) -> Known {
        self.0.lock().get(host).copied().unwrap_or_default()
    }

    pub fn has_no_api(&self, host: &str, now: Instant) {
        self.change(host, |known| known.without_api = Some(now));
    }

    pub fn found(&self, host: &str, form: Form) {
        if self.of(host).last != form {
            self.change(host, |known| known.last = form);
        }
    }

    fn change(&self, host: &str, change: impl FnOnce(&mut Known)) {
        let mut hosts = self.0.lock();
        if hosts.len() >= HOSTS_MAX && !hosts.contains_key(host) {
            hosts.clear();
        }
        change(hosts.entry(host.to_owned()).or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_learned_is_bounded_and_may_be_learned_anew() {
        let (knowledge, now) = (Knowledge::default(), Instant::now());
        assert!(knowledge.of("h").may_have_api(now));
        knowledge.has_no_api("h", now);
        knowledge.found("h", Form::Bundles);
        let known = knowledge.of("h");
        assert!(!known.may_have_api(now) && known.may_have_api(now + WITHOUT_API) && known.last == Form::Bundles);
        for n in 0..3 * HOSTS_MAX {
            knowledge.found(&format!("h{n}"), Form::Bundles);
            assert!(knowledge.0.lock().len() <= HOSTS_MAX);
        }
    }
}
