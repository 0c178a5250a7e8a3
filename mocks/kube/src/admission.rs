//! Admission webhooks and policies, which act as in kube-apiserver (Kubernetes documentation, "Dynamic Admission
//! Control").
//!
//! Owns the choice and order of webhooks for a request, failure policies, reinvocation and the checks of webhooks'
//! answers. The module `webhooks` owns configurations and connections. This module must not write objects.

mod form;
mod matching;
mod mutations;
mod plugins;
mod policies;
mod review;

use std::sync::Arc;

use go_rules::admission::{Answer, Refusal, ReviewRequest, Verdict};
use http::StatusCode;
use jiff::Timestamp;
use mock_cel::Input;
use mock_objects::defaults;
use mock_objects::kinds::Meaning;
use mock_objects::object;
use mock_objects::status::Failure;
use serde_json::Value;

use super::call::Call;
use super::reach::Nowhere;
use super::reserved::Reservation;
use super::webhooks::{FailurePolicy, Hook, Hooks, Opinion, Policies, client, judge};
use form::{Form, ReviewedObjects};

/// Maximum number of bytes of a webhook's invalid answer that an error message quotes.
const SHOWN_BYTES: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

/// One write request with the data that webhooks need.
pub(crate) struct Attempt<'a> {
    pub call: &'a Call,
    pub operation: Operation,
    pub name: &'a str,
    pub old: Option<&'a Value>,
}

impl Operation {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// The result of calling the mutating webhooks and policies.
#[derive(Debug, Default)]
pub(crate) struct Admitted {
    pub warnings: Vec<String>,
    /// Whether a webhook changed the object, so that the object must be checked again.
    pub changed: bool,
}

/// The webhooks and the policies that were configured when the request arrived; each is `None` if none of them may see
/// the request.
#[derive(Debug)]
pub(crate) struct Chain(Option<Arc<Hooks>>, Option<Arc<Policies>>);

impl Chain {
    pub fn of(call: &Call) -> Self {
        let (hooks, policies) = (hooks(call), policies::configured(call));
        let sees = hooks.see(call);
        Self(sees.then_some(hooks), policies)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none() && self.1.is_none()
    }

    /// Whether a webhook or a policy may change `object`.
    pub fn changes(&self, attempt: &Attempt<'_>, object: &Value) -> bool {
        let policies = self.1.as_ref().is_some_and(|of| !of.mutating.is_empty());
        policies
            || self
                .0
                .as_ref()
                .is_some_and(|hooks| hooks.mutating.iter().any(|hook| hook.matches.form(attempt, object).is_some()))
    }

    /// Whether any validating webhook or policy may see the request.
    pub fn validates(&self) -> bool {
        self.1.as_ref().is_some_and(|policies| !policies.validating.is_empty())
            || self.0.as_ref().is_some_and(|hooks| !hooks.validating.is_empty())
    }

    /// Lets the admission plugins, then the mutating policies and webhooks change `object`.
    pub async fn mutate(&self, attempt: &Attempt<'_>, object: &mut Value) -> Result<Admitted, Failure> {
        plugins::mutate(attempt, object)?;
        let hooks = self.0.as_ref().map_or(&[][..], |hooks| &hooks.mutating);
        let policies = self.1.as_deref().filter(|policies| !policies.mutating.is_empty());
        if hooks.is_empty() && policies.is_none() {
            return Ok(Admitted::default());
        }
        // Boxed, because every write reserves the room and few call a webhook.
        Box::pin(ask_mutating(attempt, policies, hooks, object)).await
    }

    /// Lets the validating policies and then the validating webhooks refuse `object`; returns their warnings.
    pub async fn validate(&self, attempt: &Attempt<'_>, object: &Value) -> Result<Vec<String>, Failure> {
        let mut warnings = match &self.1 {
            Some(policies) => Box::pin(policies::ask(attempt, policies, object)).await?,
            None => Vec::new(),
        };
        if let Some(hooks) = self.0.as_ref().filter(|hooks| !hooks.validating.is_empty()) {
            warnings.extend(Box::pin(ask_validating(attempt, &hooks.validating, object)).await?);
        }
        Ok(warnings)
    }
}

/// Lets only the admission plugins change `object`, for a request that no webhook may see.
pub(crate) fn complete(attempt: &Attempt<'_>, object: &mut Value) -> Result<(), Failure> {
    plugins::mutate(attempt, object).map(drop)
}

/// Refuses `object` if it exceeds a `ResourceQuota`. Callers ask the validating webhooks before this check, and keep
/// the reservation until the commit.
pub(crate) fn conclude(attempt: &Attempt<'_>, object: &Value) -> Result<Option<Reservation>, Failure> {
    plugins::conclude(attempt, object)
}

/// Lets admission plugins refuse `object` before validating webhooks see it.
pub(crate) fn check(attempt: &Attempt<'_>, object: &Value) -> Result<(), Failure> {
    plugins::validate(attempt, object)
}

async fn ask_validating(attempt: &Attempt<'_>, hooks: &[Hook], object: &Value) -> Result<Vec<String>, Failure> {
    let validating = matching(attempt, hooks, object).await?;
    let calls = validating.iter().map(|(hook, seen)| call_hook(attempt, hook, seen));
    let mut warnings = Vec::new();
    for answer in futures_util::future::join_all(calls).await {
        if let Some(verdict) = answer? {
            warnings.extend(verdict.warnings);
        }
    }
    Ok(warnings)
}

async fn ask_mutating(
    attempt: &Attempt<'_>,
    policies: Option<&Policies>,
    hooks: &[Hook],
    object: &mut Value,
) -> Result<Admitted, Failure> {
    let mut admitted = Admitted::default();
    // The called hooks, and whether the object changed after each call.
    let mut called: Vec<(usize, bool)> = Vec::new();
    for round in 0..2 {
        // A plugin's change to the object also makes the earlier calls of hooks stale.
        if round == 1 && admitted.changed && plugins::mutate(attempt, object)? {
            for (_, stale) in &mut called {
                *stale = true;
            }
        }
        if let Some(policies) = policies.filter(|_| round == 0 || admitted.changed)
            && mutations::mutate(attempt, policies, object, round == 1).await?
        {
            admitted.changed = true;
            for (_, stale) in &mut called {
                *stale = true;
            }
        }
        for (index, hook) in hooks.iter().enumerate() {
            let again = called.iter().any(|(known, stale)| *known == index && *stale && hook.reinvoke);
            if round == 1 && !again {
                continue;
            }
            let Some(seen) = seen_by(attempt, hook, object).await? else { continue };
            let Some(verdict) = call_hook(attempt, hook, &seen).await? else { continue };
            admitted.warnings.extend(verdict.warnings);
            if let Some(patch) = &verdict.patch {
                let mut next = Value::clone(&seen.object);
                let mut steps = mock_objects::patch::Steps::of(&next);
                for operation in &patch.0 {
                    steps.apply(&mut next, operation).map_err(|error| {
                        Failure::internal(format!("failed to apply the patch of webhook \"{}\": {error}", hook.name))
                    })?;
                }
                if next != *seen.object {
                    seen.form.convert(attempt.call, &Form::of_path(attempt.call), &mut next).await?;
                    settle(attempt, &mut next)?;
                    *object = next;
                    admitted.changed = true;
                    // The hooks called before this one. This one is not in the list yet, and in the second round no
                    // further round follows.
                    for (_, stale) in &mut called {
                        *stale = true;
                    }
                }
            }
            if round == 0 {
                called.push((index, false));
            }
        }
    }
    Ok(admitted)
}

/// Adds type and defaults to an object that a webhook changed, so that the next webhook sees a complete object.
fn settle(attempt: &Attempt<'_>, object: &mut Value) -> Result<(), Failure> {
    let (call, now) = (attempt.call, Timestamp::now());
    let whole = call.target.subresource.is_none();
    if !whole && call.target.subresource.as_deref() != Some("status") {
        // The object has a type of its own, which the subresource checks.
        return Ok(());
    }
    object::drop_unknown(object, &call.resource);
    object::conform(object, &call.resource).map_err(|failure| Failure::internal(failure.message))?;
    match attempt.operation {
        Operation::Create => defaults::decoded(object, &call.resource, now),
        Operation::Update if whole => defaults::on_update(object, &call.resource, now),
        Operation::Update => defaults::on_status(object, &call.resource),
        Operation::Delete => {}
    }
    if let Some(schema) = &call.served().structure {
        schema.fill(object)?;
    }
    Ok(())
}

/// The webhooks that match a request, each with the object that it will see.
async fn matching<'a>(
    attempt: &Attempt<'a>,
    hooks: &'a [Hook],
    object: &'a Value,
) -> Result<Vec<(&'a Hook, ReviewedObjects<'a>)>, Failure> {
    let mut found = Vec::new();
    for hook in hooks {
        if let Some(seen) = seen_by(attempt, hook, object).await? {
            found.push((hook, seen));
        }
    }
    Ok(found)
}

/// The object that a webhook will see; `None` if the webhook is not called. Webhooks are also called for dry runs,
/// because the server refuses configurations of webhooks with side effects.
async fn seen_by<'a>(
    attempt: &Attempt<'a>,
    hook: &Hook,
    object: &'a Value,
) -> Result<Option<ReviewedObjects<'a>>, Failure> {
    let Some(form) = hook.matches.form(attempt, object) else { return Ok(None) };
    let seen = ReviewedObjects::new(attempt, object, form).await?;
    if !meets_conditions(attempt, hook, &seen).await? {
        return Ok(None);
    }
    Ok(Some(seen))
}

/// Whether the match conditions of a webhook accept the request.
async fn meets_conditions(attempt: &Attempt<'_>, hook: &Hook, seen: &ReviewedObjects<'_>) -> Result<bool, Failure> {
    if hook.conditions.is_empty() {
        return Ok(true);
    }
    let (request, none) = (review::request(attempt, &seen.form), Value::Null);
    let input = Input { object: &seen.object, old_object: seen.old.as_deref().unwrap_or(&none), request: &request };
    let opinion = judge(&hook.conditions, &input, hook.failure_policy);
    // The conditions of the next webhook have a budget of their own; other requests run in between.
    tokio::task::yield_now().await;
    match opinion {
        Opinion::Call => Ok(true),
        Opinion::Skip => Ok(false),
        Opinion::Refuse(why) => Err(Failure::forbidden(attempt.call.resource.about(attempt.name), &why)),
    }
}

/// Why a webhook's call failed, with the real server's messages.
#[derive(Debug, thiserror::Error)]
enum Unanswered {
    #[error("failed to call webhook: {0}")]
    Nowhere(#[from] Nowhere),
    #[error("failed to call webhook: {0}")]
    Call(#[from] client::Error),
    #[error("failed to call webhook: the server responded with the status code {code} {text}")]
    Status { code: u16, text: String },
    #[error("failed to call webhook: {0}")]
    Undecodable(#[source] Refusal),
    #[error("received invalid webhook response: {0}")]
    Answer(#[source] Refusal),
    #[error("{0}")]
    Patch(#[source] Refusal),
    #[error("failed to call webhook: Post \"{url}\": context deadline exceeded")]
    Deadline { url: String },
}

/// Calls one webhook. `None` means that the call failed and the webhook's failure policy is `Ignore`.
async fn call_hook(attempt: &Attempt<'_>, hook: &Hook, seen: &ReviewedObjects<'_>) -> Result<Option<Verdict>, Failure> {
    let webhooks = &attempt.call.cluster().webhooks;
    let uid = attempt.call.cluster().fresh().uid;
    let request = review::body(attempt, &uid, seen, hook.review);
    let began = tokio::time::Instant::now();
    let path_and_query = hook.path_and_query();
    let target = hook.target(attempt.call.cluster());
    // Boxed, because every write reserves the room and few call a webhook.
    let called = Box::pin(async {
        let target = target?;
        let reply = webhooks.client.post(&target, &path_and_query, request).await?;
        let content_type = reply.content_type.as_ref().map(http::HeaderValue::as_bytes);
        let answer = Answer { status: reply.status.as_u16(), content_type, body: &reply.body };
        let asked = ReviewRequest { uid: uid.as_bytes(), mutating: hook.mutating, version: hook.review };
        go_rules::admission::verdict(answer, asked).map_err(|refusal| unanswered(refusal, &reply))
    });
    let answer = match tokio::time::timeout(hook.timeout, called).await {
        Ok(answer) => answer,
        Err(_) => Err(Unanswered::Deadline { url: hook.shown_url() }),
    };
    let took_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    webhooks.count(&hook.name, took_us, |counters| match &answer {
        Ok(verdict) if !verdict.allowed => counters.rejected += 1,
        Ok(_) => {}
        Err(_) => {
            counters.failed += 1;
            counters.failed_open += u64::from(hook.failure_policy == FailurePolicy::Ignore);
        }
    });
    match answer {
        Ok(verdict) if verdict.allowed => Ok(Some(verdict)),
        Ok(verdict) => Err(denied(hook, &verdict)),
        Err(why) if hook.failure_policy == FailurePolicy::Ignore => {
            tracing::debug!(webhook = hook.name, %why, "failed open");
            Ok(None)
        }
        Err(why) => Err(Failure::internal(format!("failed calling webhook \"{}\": {why}", hook.name))),
    }
}

/// The real server's error message for a webhook's answer that the server rejects.
fn unanswered(refusal: Refusal, reply: &client::Reply) -> Unanswered {
    match refusal {
        Refusal::Status { status, .. } => {
            let text = String::from_utf8_lossy(&reply.body[..reply.body.len().min(SHOWN_BYTES)]).into_owned();
            Unanswered::Status { code: status, text }
        }
        Refusal::Empty { .. } | Refusal::MediaType { .. } | Refusal::Undecodable { .. } => {
            Unanswered::Undecodable(refusal)
        }
        Refusal::Patch(_) | Refusal::NoPatch(_) => Unanswered::Patch(refusal),
        refusal => Unanswered::Answer(refusal),
    }
}

/// The error for a request that a webhook refused. The message begins with the webhook's name, and a status below 400
/// becomes 400.
fn denied(hook: &Hook, verdict: &Verdict) -> Failure {
    let why = if verdict.message.is_empty() {
        format!("admission webhook \"{}\" denied the request without explanation", hook.name)
    } else {
        format!("admission webhook \"{}\" denied the request: {}", hook.name, verdict.message)
    };
    let code = u16::try_from(verdict.code).ok().and_then(|code| StatusCode::from_u16(code).ok());
    let code = code.filter(|code| code.as_u16() >= 400);
    let code = code.unwrap_or(StatusCode::BAD_REQUEST);
    let reason = match verdict.reason.as_str() {
        "Forbidden" => "Forbidden",
        "Invalid" => "Invalid",
        "Conflict" => "Conflict",
        "InternalError" => "InternalError",
        "BadRequest" => "BadRequest",
        _ if code == StatusCode::FORBIDDEN => "Forbidden",
        _ => "",
    };
    Failure::new(code, reason, why)
}

/// The webhooks that are configured now. The server parses the configurations again only after a change.
fn hooks(call: &Call) -> Arc<Hooks> {
    let cluster = call.cluster();
    let catalogue = cluster.catalogue();
    let configurations = matching::configurations(cluster, &catalogue);
    let revisions: Vec<u64> = configurations.iter().map(|(_, version)| version.revision).collect();
    let mut parsed = cluster.webhooks.parsed.lock();
    if let Some((known, hooks)) = &*parsed
        && *known == revisions
    {
        return hooks.clone();
    }
    let hooks = Arc::new(Hooks::read(&configurations));
    *parsed = Some((revisions, hooks.clone()));
    hooks
}

/// The object that rules and selectors check: the new object, or the old object for a deletion.
pub(crate) fn subject_of<'a>(attempt: &Attempt<'a>, object: &'a Value) -> &'a Value {
    if object.is_null() { attempt.old.unwrap_or(object) } else { object }
}

pub(crate) fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["labels"].get(key).and_then(Value::as_str)
}

/// The namespace whose labels a namespace selector checks.
pub(crate) fn namespace_of<'a>(attempt: &'a Attempt<'_>, object: &'a Value) -> Option<&'a str> {
    if attempt.call.resource.rules.meaning == Meaning::Namespace {
        return Some(object::meta(subject_of(attempt, object), "name"));
    }
    attempt.call.target.namespace.as_deref()
}
