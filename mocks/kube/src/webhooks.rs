//! The configured admission webhooks, the connections to them, and their counters.
//!
//! Owns the state of webhooks that is kept between requests. The module `admission` chooses the webhooks for a request
//! and handles their answers.

pub(crate) mod client;
mod conditions;
mod hook;
mod policy;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

pub(crate) use client::{Client, Target};
pub(crate) use conditions::{FailurePolicy, Opinion, judge};
pub(crate) use hook::{
    Hook, Hooks, MatchPolicy, Matches, Rule, Unusable, WebhookAddress, authority, check_configuration, place,
};
pub(crate) use policy::{Binding, Mutation, Policies, Policy, Validation};

/// Parsed configurations, connections and counters, which are kept between requests.
#[derive(Debug, Default)]
pub(crate) struct Webhooks {
    /// Parsed webhooks, and the revisions of the configurations from which they were parsed.
    pub parsed: Mutex<Option<(Vec<u64>, Arc<Hooks>)>>,
    /// Parsed admission policies, and the revisions of the policies and bindings from which they were parsed.
    pub policies: Mutex<Option<(Vec<u64>, Arc<Policies>)>>,
    pub client: Client,
    pub counters: Mutex<Counters>,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct Counters {
    pub by_hook: BTreeMap<String, HookCounters>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HookCounters {
    pub calls: u64,
    pub rejected: u64,
    pub failed: u64,
    pub failed_open: u64,
    pub duration_us_sum: u64,
    pub duration_us_max: u64,
}

impl Webhooks {
    pub fn count(&self, hook: &str, took_us: u64, more: impl FnOnce(&mut HookCounters)) {
        let mut counters = self.counters.lock();
        let counters = counters.by_hook.entry(hook.to_owned()).or_default();
        counters.calls += 1;
        counters.duration_us_sum += took_us;
        counters.duration_us_max = counters.duration_us_max.max(took_us);
        more(counters);
    }
}
