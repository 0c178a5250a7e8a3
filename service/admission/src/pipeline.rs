//! The steps of a review: exempt, walk, treat each image by its rule, resolve in parallel, decide.
//!
//! The input is a parsed request and a deadline; the module `endpoint` handles HTTP.

mod alerts;
mod ruling;
mod signed;

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, timeout_at};

use super::decide::{Course, Found, Hook, Outcome, Outcomes, decide, let_in};
use super::exempt;
use super::memo::Memo;
use super::metrics::Metrics;
use super::patch;
use super::policy::{Policy, RuleName, Treatment};
use super::resolver::{DEFECT, Resolver};
use super::review::{Ask, Decision, Notes};
use super::site::Site;
use super::tenants::Tenants;
use super::text::printable;
use super::unchanged::Stored;
use super::walk::{self, Pullers};
use crate::config::Action;
use service_core::alert::AlertSink;
use service_core::share::{IMAGES_AT_ONCE, ReviewMemory, Share};
use service_registry::Brought;
use service_registry::verdicts::{Class, Failure};
pub use signed::Validation;

/// Maximum number of bytes of a failure's cause in the log; the caller gets a longer text.
const LOGGED_BYTES_MAX: usize = 1024;
/// Maximum number of bytes of an object's name in the log; Kubernetes allows 253.
const LOGGED_NAME_BYTES_MAX: usize = 256;

/// The error that no memory is free for a review's image lookups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// The images of an object, and the service accounts and Secrets for pulling them.
type Sites<'a> = (Cow<'a, [Site]>, Cow<'a, Pullers>);

pub struct Pipeline {
    memo: Memo,
    resolver: Arc<Resolver>,
    validation: Option<Validation>,
    metrics: Arc<Metrics>,
    memory: Arc<ReviewMemory>,
    tenants: Tenants,
    alerts: Option<Arc<dyn AlertSink>>,
}

impl Pipeline {
    /// A pipeline that treats images by `policy` and looks up digests with `resolver`.
    pub fn new(policy: Arc<Policy>, resolver: Arc<Resolver>, metrics: Arc<Metrics>) -> Self {
        Self {
            memo: Memo::new(policy),
            resolver,
            validation: None,
            metrics,
            memory: Arc::clone(Share::default().reviews()),
            tenants: Tenants::new(),
            alerts: None,
        }
    }

    /// Limits the memory of image lookups to `memory`.
    #[must_use]
    pub fn within(mut self, memory: Arc<ReviewMemory>) -> Self {
        self.memory = memory;
        self
    }

    /// Adds signature checks, which run if the policy demands them.
    #[must_use]
    pub fn with_validation(mut self, validation: Validation) -> Self {
        self.validation = Some(validation);
        self
    }

    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    pub fn policy(&self) -> &Policy {
        self.memo.policy()
    }

    pub async fn review(&self, hook: Hook, ask: &Ask<'_>, deadline: Instant) -> Result<Decision, Full> {
        if let Some(reason) = exempt::by_request(ask) {
            return Ok(self.exempt(reason));
        }
        if let Some(key) = self.policy().exempts(ask.namespace.as_deref()) {
            return Ok(self.exempt(key));
        }
        let stored = ask.old_object.filter(|_| ask.operation == "UPDATE").map(Stored::read);
        let (sites, pullers) = match self.sites(ask, stored.as_ref()) {
            Ok(found) => found,
            Err(error) => {
                let message =
                    format!("the object cannot be examined: {}", printable(&error.to_string(), LOGGED_BYTES_MAX));
                return Ok(self.recorded(ask, Decision::Deny { message, notes: Notes::default() }));
            }
        };
        let inherited = self.inherited(ask, &sites, deadline).await;
        let own = self.bootstrapped(ask, &sites);
        let excused: Vec<&str> = inherited.iter().chain(&own).copied().collect();
        let outcomes = self.outcomes(ask, &sites, &excused, &pullers, deadline).await?;
        for failure in outcomes.values().filter_map(|outcome| outcome.result.as_ref().err()) {
            self.metrics.failed(failure.class);
        }
        let mut decision = decide(hook, &sites, &outcomes);
        if let (false, Decision::Allow { notes, .. } | Decision::Deny { notes, .. }) =
            (inherited.is_empty(), &mut decision)
        {
            notes.annotations.insert("approved-by-owner", super::decide::list(&inherited));
        }
        if let (false, Decision::Allow { notes, .. } | Decision::Deny { notes, .. }) = (own.is_empty(), &mut decision) {
            notes.annotations.insert("bootstrap", super::decide::list(&own));
        }
        if let Decision::Allow { .. } = decision {
            for class in let_in(&outcomes) {
                self.metrics.let_in(class);
            }
        }
        Ok(self.recorded(ask, decision))
    }

    /// The decision about a review during which a panic occurred outside the code that judges images.
    pub fn defect(&self, ask: &Ask<'_>) -> Decision {
        self.metrics.panics.inc();
        self.metrics.failed(Class::Internal);
        let message = format!("{}: {DEFECT}", Class::Internal);
        self.recorded(
            ask,
            match self.policy().action_of_defect() {
                Action::Deny => Decision::Deny { message, notes: Notes::default() },
                Action::Error => Decision::Error { message },
                Action::Allow => {
                    self.metrics.let_in(Class::Internal);
                    let warning = "no image was looked at (internal); let in by policy.onFailure".to_owned();
                    let mut notes = Notes { warnings: vec![warning], ..Notes::default() };
                    notes.annotations.insert("let-in", message.as_str().into());
                    Decision::Allow { patch: None, notes }
                }
            },
        )
    }

    fn exempt(&self, reason: &'static str) -> Decision {
        self.metrics.reviewed("exempt");
        Decision::Allow { patch: None, notes: Notes::exempt(reason) }
    }

    /// The images to judge (all images of a new object, changed images of a stored object), and the service accounts
    /// and Secrets for pulling them.
    fn sites<'a>(&self, ask: &'a Ask<'_>, stored: Option<&Stored>) -> Result<Sites<'a>, walk::Error> {
        if let Some(known) = &ask.sites {
            return Ok((known.into(), Cow::Borrowed(&ask.pullers)));
        }
        let mut sites = Vec::new();
        let Some(object) = ask.object else { return Ok((sites.into(), Cow::Borrowed(&ask.pullers))) };
        let outline = walk::walk(object, &mut |seen| {
            // A deleted object keeps its images; new ones in it are judged, because controllers still make its
            // children.
            let is_left_alone =
                |stored: &Stored| stored.has(seen) && (stored.deleting || !self.policy().rechecks(seen.image));
            if stored.is_some_and(is_left_alone) {
                return Ok(());
            }
            if sites.len() == Site::MAX {
                return Err(walk::TooMany { most: Site::MAX });
            }
            let (pointer, image) = (seen.pointer.to_owned(), seen.image.to_owned());
            sites.push(Site { pointer, image, mutable: patch::is_mutable(ask, seen.list) });
            Ok(())
        })?;
        Ok((sites.into(), Cow::Owned(outline.pullers)))
    }

    /// The outcome of each different image that must be judged. All lookups of a review run at the same time.
    async fn outcomes<'s>(
        &self,
        ask: &Ask<'_>,
        sites: &'s [Site],
        excused: &[&str],
        pullers: &Pullers,
        deadline: Instant,
    ) -> Result<Outcomes<'s>, Full> {
        let mut outcomes = Outcomes::new();
        let mut asked = Vec::new();
        let reports = self.policy().judges_pods_only() && ask.kind.as_ref().is_none_or(|kind| kind.kind != "Pod");
        let outcome = |result: Result<Found, Failure>, rule, signed| {
            let action = |failure: &Failure| self.policy().action_on(rule, failure);
            let course = match &result {
                _ if reports || self.policy().detects(rule) => Course::Detect,
                Err(failure) => Course::Enforce(action(failure)),
                Ok(_) => Course::Enforce(Action::Deny),
            };
            Outcome { result, rule, course, signed }
        };
        // Pull secrets are read only for a lookup at a registry; known answers without them need no wait.
        let now = std::time::Instant::now();
        let known = |name: &str| if self.resolver.reads_pull_secrets() { None } else { self.resolver.known(name, now) };
        for image in sites.iter().map(|site| site.image.as_str()) {
            if outcomes.contains_key(image) || asked.iter().any(|(other, _)| *other == image) {
                continue;
            }
            let treatment = self.memo.treatment(image);
            match &*treatment {
                Treatment::LeaveAlone => {}
                Treatment::Refuse { failure, rule } => {
                    outcomes.insert(image, outcome(Err(failure.clone()), *rule, failure.class.is_of_policy()));
                }
                Treatment::Resolve { name, rule, .. } => match known(name) {
                    Some(known) => drop(outcomes.insert(image, outcome(known.map(Found::pinned), *rule, false))),
                    None => asked.push((image, treatment)),
                },
                Treatment::Verify { .. } if excused.contains(&image) => {}
                Treatment::Verify { target, name, rule, pin } => {
                    match self.verdict(target, *rule, *pin, || known(name)) {
                        Some(known) => drop(outcomes.insert(image, outcome(known, *rule, true))),
                        None => asked.push((image, treatment)),
                    }
                }
            }
        }
        if asked.is_empty() {
            return Ok(outcomes);
        }
        let brought = self.resolver.brought(ask.namespace.as_deref(), pullers, deadline).await;
        let brought = brought.as_ref();
        let queue = self.tenants.queue(ask.namespace.as_deref());
        let now = Instant::now();
        let half = now + deadline.saturating_duration_since(now) / 2;
        let mut waiting = asked.into_iter();
        let mut under_way = FuturesUnordered::new();
        loop {
            for (image, treatment) in waiting.by_ref().take(IMAGES_AT_ONCE - under_way.len()) {
                let queue = &queue;
                under_way.push(async move {
                    // A result obtained with the credentials of a namespace is requested for that namespace alone.
                    let whose = brought.and(ask.namespace.as_deref()).unwrap_or_default();
                    let asked = format!("{whose} {image}");
                    if self.tenants.is_asked(&asked) {
                        return Ok((image, self.answered(&treatment, brought, deadline).await));
                    }
                    // A longer wait ends with the answer of the lookup at that time.
                    let _place = timeout_at(deadline, queue.acquire()).await;
                    let waited = Instant::now() > half;
                    let _turn = self.tenants.turn(asked);
                    let _held = self.memory.image().ok_or(Full)?;
                    let mut answer = self.answered(&treatment, brought, deadline).await;
                    if let (true, Some((Err(failure), ..))) = (waited, &mut answer) {
                        waited_too_long(failure);
                    }
                    Ok((image, answer))
                });
            }
            let Some(asked) = under_way.next().await else { break };
            let (image, answer) = asked?;
            outcomes.extend(answer.map(|(result, rule, signed)| (image, outcome(result, rule, signed))));
        }
        Ok(outcomes)
    }

    /// The result of an image's lookup, its rule, and whether signatures are verified; `None` if no lookup is needed.
    async fn answered(
        &self,
        treatment: &Treatment,
        brought: Option<&Brought>,
        deadline: Instant,
    ) -> Option<(Result<Found, Failure>, RuleName, bool)> {
        match treatment {
            Treatment::Resolve { reference, name, rule } => {
                let result = self.resolver.resolve(reference, name, brought, deadline).await;
                Some((result.map(Found::pinned), *rule, false))
            }
            Treatment::Verify { target, name, rule, pin } => {
                let result = self.verified(target, name, *rule, *pin, brought, deadline).await;
                Some((result, *rule, true))
            }
            Treatment::LeaveAlone | Treatment::Refuse { .. } => None,
        }
    }

    /// Counts the decision of a review by outcome. A review that was refused, failed or got a warning is logged.
    fn recorded(&self, ask: &Ask<'_>, decision: Decision) -> Decision {
        let (outcome, said) = match &decision {
            Decision::Allow { patch: None, notes } => ("allowed", notes.warnings.first()),
            Decision::Allow { patch: Some(_), notes } => ("patched", notes.warnings.first()),
            Decision::Deny { message, .. } => ("denied", Some(message)),
            Decision::Error { message } => ("error", Some(message)),
        };
        self.metrics.reviewed(outcome);
        if let Some(said) = said {
            let name = |text: Option<&str>| printable(text.unwrap_or_default(), LOGGED_NAME_BYTES_MAX).into_owned();
            tracing::info!(name: crate::events::REVIEW,
                uid = %name(Some(&ask.uid)),
                operation = %name(Some(&ask.operation)),
                kind = %name(ask.kind.as_ref().map(|kind| &*kind.kind)),
                namespace = %name(ask.namespace.as_deref()),
                name = %name(ask.name.as_deref()),
                cause = %printable(said, LOGGED_BYTES_MAX),
                "a review was {}",
                match outcome {
                    "denied" => "denied",
                    "error" => "left to the failurePolicy",
                    _ => "allowed with a warning",
                }
            );
        }
        decision
    }
}

/// Changes the failure class of a review that spent most of its time waiting inside this process, because the registry
/// may not be at fault.
fn waited_too_long(failure: &mut Failure) {
    if failure.class == Class::Unavailable && !failure.unasked {
        failure.class = Class::Busy;
        let most = IMAGES_AT_ONCE;
        let waited = format!("; it had waited, because {most} images of its namespace are asked about at one time");
        failure.cause.push_str(&waited);
    }
}
