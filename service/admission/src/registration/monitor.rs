//! Checks the webhook's registration at intervals.
//!
//! This module owns the requests of the checks, and their limits. While the webhook is called, a check is one small
//! read. If no replica was called for longer than `quiet`, metadata of namespaces and Pods is listed page by page,
//! until one Pod proves a missing review.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::StatusCode;
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use prometheus_client::registry::Registry;
use serde::Deserialize;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::calls::{Calls, now_s};
use super::judge::{PodPage, Unasked, registered, unasked};
use super::state::State;
use crate::config;
use service_core::edge::{Probe, ServerTls};
use service_core::kube::{self, Client, Webhooks, Write};
use service_watch::{Items, PageError};

/// Time limit of a request to the API server; after a timeout, the next check repeats the request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Number of times per interval that the monitor runs. Each run of the monitor records calls in the Lease. Only the
/// first run of an interval checks the registration, unless there is a problem.
const TURNS: u32 = 4;
/// Maximum number of namespaces whose Pods are listed in one check; further namespaces follow in later checks.
const NAMESPACES_A_LOOK: usize = 16;
/// Maximum number of namespaces in which Pods are searched.
const NAMESPACES_MAX: usize = 500;
/// Maximum number of Pods of one namespace that are read.
const PODS_MAX: usize = 250;
/// Maximum number of bytes of the Lease; its metadata has some KiB.
const LEASE_BYTES_MAX: usize = 256 << 10;

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{what}: {source}")]
    Request { what: String, source: kube::Error },
    #[error("{what}: {source}")]
    Answer { what: String, source: serde_json::Error },
    #[error("{what}: {source}")]
    Page { what: String, source: PageError },
}

pub struct Parts<'a> {
    pub settings: &'a config::Registration,
    /// The namespace of the Lease. If `None`, the replicas cannot share the time of their calls, and only the
    /// registration itself is checked.
    pub namespace: Option<String>,
    pub client: Arc<Client>,
    pub tls: Arc<ServerTls>,
    /// The time of the last call to this process.
    pub calls: Arc<Calls>,
}

pub struct Monitor {
    state: Arc<State>,
    tasks: JoinSet<()>,
}

struct Look {
    settings: config::Registration,
    namespace: Option<String>,
    client: Arc<Client>,
    tls: Arc<ServerTls>,
    calls: Arc<Calls>,
    state: Arc<State>,
    /// The time of the last call that is recorded in the Lease, in seconds since 1970.
    noted_s: u64,
    /// The index of the namespace at which the next check starts.
    begin_at: usize,
    /// A Pod that was created without a review. Until the webhook is called again, such a Pod proves the problem, even
    /// if the Pod is deleted.
    proof: Option<Unasked>,
    /// The time since which a webhook configuration is wrong, in seconds since 1970.
    wrong_since_s: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Lease {
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    renew_time: Option<String>,
}

impl Monitor {
    pub fn start(parts: Parts<'_>, registry: &mut Registry) -> Self {
        let state = Arc::new(State::register(registry));
        let look = Look {
            settings: parts.settings.clone(),
            namespace: parts.namespace,
            client: parts.client,
            tls: parts.tls,
            noted_s: 0,
            calls: parts.calls,
            state: Arc::clone(&state),
            begin_at: 0,
            proof: None,
            wrong_since_s: None,
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(look.go_on());
        Self { state, tasks }
    }

    pub fn probe(&self) -> Arc<dyn Probe> {
        Arc::clone(&self.state) as _
    }

    pub async fn broken(&mut self) -> String {
        match self.tasks.join_next().await {
            Some(Err(error)) => error.to_string(),
            _ => "the look at the registration ended by itself".into(),
        }
    }
}

impl Look {
    async fn go_on(mut self) {
        let pause = self.settings.interval / TURNS;
        loop {
            for turn in 0..TURNS {
                // The pause comes first: right after an installation the configuration is incomplete and certificates
                // are not made yet.
                sleep(pause).await;
                // The other replicas learn of a call soon, but not of every review.
                let noted = self.note_call().await;
                // A repair is noticed sooner than a new fault.
                let is_due = turn == 0 || self.wrong_since_s.is_some() || self.proof.is_some();
                let looked = if is_due { self.look().await } else { Ok(()) };
                if let Err(error) = noted.and(looked) {
                    self.state.unknown(&error.to_string());
                }
            }
        }
    }

    /// Records in the Lease, for other replicas, that this replica was called.
    async fn note_call(&mut self) -> Result<(), Error> {
        let (Some(path), last_s) = (self.lease_path(), self.calls.last_s()) else { return Ok(()) };
        // Never the same time again: another replica may have recorded a later call meanwhile.
        if last_s < self.noted_s.saturating_add(self.settings.interval.as_secs().max(1)) {
            return Ok(());
        }
        let time = Timestamp::from_second(i64::try_from(last_s).unwrap_or(i64::MAX)).unwrap_or_default();
        // Whole seconds, with six digits because the field has them.
        let body = json!({"spec": {"renewTime": format!("{time:.6}")}});
        let written = self.client.write_before(Write::Merge, &path, &body, Instant::now() + TIMEOUT).await;
        written.map_err(self.failed("leases"))?;
        self.noted_s = last_s;
        Ok(())
    }

    async fn look(&mut self) -> Result<(), Error> {
        let (mut why, mut selectors) = (None, Vec::new());
        for name in &self.settings.webhooks {
            let found = self.configuration(name).await?;
            why = why.or(registered(name, found.as_ref(), &self.tls.chain(), SystemTime::now()));
            let asked = found.iter().flat_map(|found| &found.webhooks).filter(|webhook| webhook.asks_about_every_pod());
            selectors.extend(asked.filter_map(kube::Webhook::namespace_selector));
        }
        if let Some(why) = why {
            let since_s = *self.wrong_since_s.get_or_insert_with(now_s);
            self.state.judge(Some((why, since_s)), None);
            return Ok(());
        }
        self.wrong_since_s = None;
        let (now, quiet_s) = (now_s(), self.settings.quiet.as_secs());
        let last_s = self.last_call_s().await?;
        if now < last_s.saturating_add(quiet_s) {
            self.proof = None;
            self.state.judge(None, None);
            return Ok(());
        }
        let mut note = None;
        if let (Some(selector), true) = (selectors.first(), self.namespace.is_some()) {
            note = self.find_proof(selector, last_s, now).await?;
        }
        let old = self.proof.as_ref().filter(|proof| now >= proof.created_s.saturating_add(quiet_s));
        // The text names the Pod, not its age, so that a lasting state is logged once.
        let why = old.map(|proof| (description(proof, last_s), proof.created_s));
        self.state.judge(why, note);
        Ok(())
    }

    /// Searches for a Pod that was created without a review; returns a note about it.
    async fn find_proof(&mut self, selector: &str, last_s: u64, now: u64) -> Result<Option<String>, Error> {
        if self.proof.is_some() {
            return Ok(None);
        }
        let namespaces = self.namespaces(selector).await?;
        if namespaces.is_empty() {
            return Ok(Some(format!("no namespace is selected by {selector}: no review is sent")));
        }
        // Twice the time in which other replicas record a call.
        let grace_s = self.settings.interval.as_secs().max(1) * 2;
        let begin = self.begin_at % namespaces.len();
        let turn = namespaces.iter().cycle().skip(begin).take(NAMESPACES_A_LOOK.min(namespaces.len()));
        for namespace in turn {
            let path = format!("/api/v1/namespaces/{namespace}/pods?limit={PODS_MAX}");
            let page = self.page(&path).await?;
            self.proof = unasked(&page, last_s.saturating_add(grace_s), now.saturating_sub(grace_s));
            if self.proof.is_some() {
                break;
            }
        }
        self.begin_at = begin.saturating_add(NAMESPACES_A_LOOK);
        Ok(None)
    }

    async fn namespaces(&self, selector: &str) -> Result<Vec<String>, Error> {
        let selector = utf8_percent_encode(selector, NON_ALPHANUMERIC);
        let page = self.page(&format!("/api/v1/namespaces?limit={NAMESPACES_MAX}&labelSelector={selector}")).await?;
        Ok(page.items.iter().map(|item| item.name().to_owned()).collect())
    }

    /// Reads a page of a metadata list item by item, because each object may have a quarter of a megabyte of
    /// annotations.
    async fn page(&self, path: &str) -> Result<PodPage, Error> {
        let what = path.split('?').next().unwrap_or_default().to_owned();
        let (mut items, mut page, mut wrong) = (Items::default(), PodPage::default(), None);
        let mut take = |piece: &[u8]| {
            let read = items.push(piece, |item| {
                page.items.push(serde_json::from_slice(item)?);
                Ok::<_, PageError>(())
            });
            wrong = read.err();
            wrong.is_none()
        };
        let answer = self.client.page(path, true, &mut take).await;
        if let Some(source) = wrong {
            return Err(Error::Page { what, source });
        }
        answer.map_err(self.failed(&what))?;
        items.finish().map_err(|source| Error::Page { what, source: source.into() })?;
        Ok(page)
    }

    async fn configuration(&self, name: &str) -> Result<Option<Webhooks>, Error> {
        let what = format!("mutatingwebhookconfigurations/{name}");
        let deadline = Instant::now() + TIMEOUT;
        match self.client.read_at_most(&Webhooks::path(name), Webhooks::bytes_max(), deadline).await {
            Ok(body) => Webhooks::read(&body).map(Some).map_err(|source| Error::Answer { what, source }),
            Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => Ok(None),
            Err(source) => Err(Error::Request { what, source }),
        }
    }

    /// The time of the last call of any replica, in seconds since 1970.
    async fn last_call_s(&self) -> Result<u64, Error> {
        let ours_s = self.calls.last_s();
        let Some(path) = self.lease_path() else { return Ok(ours_s) };
        if now_s() < ours_s.saturating_add(self.settings.quiet.as_secs()) {
            return Ok(ours_s);
        }
        let body = self.client.read_at_most(&path, LEASE_BYTES_MAX, Instant::now() + TIMEOUT).await;
        let body = body.map_err(self.failed("leases"))?;
        let lease: Lease =
            serde_json::from_slice(&body).map_err(|source| Error::Answer { what: "leases".into(), source })?;
        let theirs = lease.spec.renew_time.and_then(|time| time.parse::<Timestamp>().ok());
        let theirs = theirs.and_then(|time| u64::try_from(time.as_second()).ok());
        Ok(ours_s.max(theirs.unwrap_or_default()))
    }

    fn lease_path(&self) -> Option<String> {
        let namespace = self.namespace.as_ref()?;
        let name = &self.settings.lease;
        Some(format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"))
    }

    fn failed(&self, what: &str) -> impl Fn(kube::Error) -> Error + use<> {
        let what = if what == "leases" { format!("leases/{}", self.settings.lease) } else { what.to_owned() };
        move |source| Error::Request { what: what.clone(), source }
    }
}

fn description(proof: &Unasked, last_s: u64) -> String {
    let last = Timestamp::from_second(i64::try_from(last_s).unwrap_or(i64::MAX)).unwrap_or_default();
    let pod = &proof.pod;
    format!(
        "no replica was asked since {last}, and {pod} was created in a namespace that is selected: the API server does not reach us"
    )
}
