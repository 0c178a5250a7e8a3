//! `POST pods/NAME/eviction`: a deletion that the pod's `PodDisruptionBudget` must allow ("API-initiated Eviction").
//!
//! Owns the order of operations in an eviction. The module `budget` decides whether a `PodDisruptionBudget` allows the
//! eviction, and the module `delete` deletes the pod. Webhooks see the creation of an `Eviction` and the write of the
//! budget's status, but not the deletion of the pod.

mod budget;

use std::sync::Arc;

use http::StatusCode;
use jiff::Timestamp;
use mock_objects::catalogue::Resource;
use mock_objects::status::Failure;
use mock_store::{Expect, Refused, Version};
use serde_json::{Value, json};

use super::delete::{self, Options};
use super::write::TRIES;
use super::{decode, named, own, read_body};
use crate::admission::Chain;
use crate::answer::Answer;
use crate::call::Call;
use crate::payload::Payload;

pub(super) async fn create(call: &Call, body: Payload) -> Result<Answer, Failure> {
    let bytes = read_body(&call.app.limits, body).await?;
    let mut eviction = decode(&call.content_type, &bytes)?;
    let chain = Chain::of(call);
    named::begin(call, &mut eviction, "policy/v1", "Eviction")?;
    let mut warnings = named::mutate(call, &chain, &mut eviction).await?;
    named::check_name(call, &eviction, "Eviction")?;
    let mut options = delete::parse_options(&eviction["deleteOptions"], &call.resource)?;
    options.dry_run |= call.query.dry_run;
    warnings.extend(named::validate(call, &chain, &eviction).await?);
    evict(call, &options).await?;
    let done = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Ok(Answer { warnings, ..Answer::value(StatusCode::CREATED, &done) })
}

/// Deletes the pod if its `PodDisruptionBudget` allows the disruption.
async fn evict(call: &Call, options: &Options) -> Result<(), Failure> {
    let Some(pod) = unless_unguarded(call, options)? else { return Ok(()) };
    let catalogue = call.cluster().catalogue();
    let resource = catalogue.by_full_name("poddisruptionbudgets.policy").expect("budgets are built in");
    let budgets = guarding(call, resource, &pod);
    let budget = match &budgets[..] {
        [] => return remove(call, options, None),
        [one] => one,
        _ => return Err(Failure::plain(budget::SEVERAL)),
    };
    let name = &*budget.identity.name;
    if budget::lets_unready_go(&budget.value(), &pod.value()) {
        return remove(call, options, Some(pod.revision)).map_err(|failure| {
            // The pod may be ready by now, and then the budget has to decide.
            let moved = failure.code == StatusCode::CONFLICT && options.revision.is_none();
            if moved { budget::unsettled(name) } else { failure }
        });
    }
    let pod_name = &*pod.identity.name;
    if options.dry_run {
        budget::take(&mut budget.value(), pod_name, Timestamp::now())?;
    } else {
        let take = |budget: &mut Value| budget::take(budget, pod_name, Timestamp::now());
        // Boxed, because every request reserves the room and few are evictions.
        Box::pin(own::change_status(call, resource, name, take)).await?;
    }
    remove(call, options, None)
}

/// Deletes the pod if no `PodDisruptionBudget` can apply to it; otherwise returns the pod.
fn unless_unguarded(call: &Call, options: &Options) -> Result<Option<Arc<Version>>, Failure> {
    for _ in 0..TRIES {
        let pod = current(call)?;
        let value = pod.value();
        if !budget::is_unguarded(&value) {
            return Ok(Some(pod));
        }
        let fixed = budget::may_become_ready(&value).then_some(pod.revision);
        match remove(call, options, fixed) {
            Err(failure)
                if failure.code == StatusCode::CONFLICT && options.revision.is_none() && options.uid.is_none() => {}
            done => return done.map(|()| None),
        }
    }
    Err(Failure::stale(call.resource.about(call.target.name.as_deref().unwrap_or_default())))
}

fn current(call: &Call) -> Result<Arc<Version>, Failure> {
    let name = call.target.name.as_deref().unwrap_or_default();
    let found = call.cluster().get(&call.resource, call.namespace(), name);
    found.ok_or_else(|| Failure::not_found(call.resource.about(name)))
}

/// The `PodDisruptionBudget`s that select the pod.
fn guarding(call: &Call, resource: &Resource, pod: &Version) -> Vec<Arc<Version>> {
    let namespace = Some(call.namespace());
    let page =
        call.cluster().read(|store| store.list(resource.id, namespace, store.revision(), None, usize::MAX, |_| true));
    let mut budgets = page.map(|page| page.items).unwrap_or_default();
    budgets.retain(|budget| budget::selects(&budget.value(), |key| pod.label(key)));
    budgets
}

/// Sets the condition `DisruptionTarget` in the pod and deletes the pod. The pod must still have the revision that the
/// client named, or the revision `fixed`.
fn remove(call: &Call, options: &Options, fixed: Option<u64>) -> Result<(), Failure> {
    let (cluster, resource) = (call.cluster(), &call.resource);
    let name = call.target.name.as_deref().unwrap_or_default();
    let revision = options.revision.clone().or(fixed.map(|revision| revision.to_string()));
    let mut options = options.clone();
    options.revision = revision;
    for _ in 0..TRIES {
        let current = current(call)?;
        delete::check_preconditions(&current, &options, resource.about_kind(name))?;
        if options.dry_run {
            return Ok(());
        }
        let deleted =
            note(call, &current).and_then(|noted| delete::delete(cluster, resource, &noted, options.manner()));
        match deleted {
            Ok(_) => return Ok(()),
            Err(Refused::Absent) => return Err(Failure::not_found(resource.about(name))),
            Err(_) if options.revision.is_some() => break,
            Err(_) => {}
        }
    }
    Err(Failure::stale(resource.about(name)))
}

/// Sets the condition `DisruptionTarget` in the pod; returns the pod's new version.
fn note(call: &Call, current: &Arc<Version>) -> Result<Arc<Version>, Refused> {
    let mut value = current.value();
    if !budget::note_eviction(&mut value, Timestamp::now()) {
        return Ok(current.clone());
    }
    let event = call.cluster().put(&call.resource, Expect::Revision(current.revision), value)?;
    Ok(event.version.clone())
}
