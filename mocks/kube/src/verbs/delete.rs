//! The verbs `delete` and `deletecollection`.
//!
//! Owns preconditions, propagation, grace periods and finalizers. This server has no kubelets that end pods. A pod with
//! a node therefore stays until a client deletes it again without a grace period, as on a real server without kubelets.

mod grace;

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use jiff::Timestamp;
use mock_objects::catalogue::Resource;
use mock_objects::kinds::Ending;
use mock_objects::object;
use mock_objects::selector::Selector;
use mock_objects::status::{self, Cause, Failure};
use mock_store::{Expect, Refused, Version};
use serde_json::{Value, json};

use super::{decode, finish, read_body};
use grace::Grace;

use crate::admission::{Attempt, Chain, Operation};
use crate::answer::Answer;
use crate::call::Call;
use crate::cluster::Cluster;
use crate::payload::Payload;
use crate::represent::Renderer;

const TRIES: usize = 16;
const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// The effect of a deletion on the object's dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Propagation {
    #[default]
    Background,
    Foreground,
    Orphan,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Options {
    propagation: Propagation,
    pub uid: Option<String>,
    pub revision: Option<String>,
    pub dry_run: bool,
    /// The option `gracePeriodSeconds`; if absent, the pod's `terminationGracePeriodSeconds` is used.
    grace_s: Option<i64>,
}

/// How an object is deleted, by a client or by the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Manner {
    pub propagation: Propagation,
    /// The grace period of a pod in seconds; if absent, the pod's `terminationGracePeriodSeconds` is used.
    pub grace_s: Option<i64>,
}

pub(super) enum Outcome {
    /// The object was removed; the value is the object's last state.
    Gone(Value),
    /// The object waits for its finalizers.
    Waiting(Arc<Version>),
    /// The object is marked as being deleted, and no finalizer holds it: the caller removes it next.
    Marked(Arc<Version>),
}

impl Options {
    pub fn manner(&self) -> Manner {
        Manner { propagation: self.propagation, grace_s: self.grace_s }
    }
}

pub(super) async fn one(call: &Call, body: Payload) -> Result<Answer, Failure> {
    let renderer = Renderer::negotiate(call)?;
    let bytes = read_body(&call.app.limits, body).await?;
    let options = options(call, &bytes)?;
    let name = call.target.name.as_deref().unwrap_or_default();
    if call.resource.rules.immortal.contains(&name) {
        return Err(Failure::forbidden(call.resource.about(name), "this namespace may not be deleted"));
    }
    delete_named(call, &renderer, name, &options).await
}

async fn delete_named(call: &Call, renderer: &Renderer, name: &str, options: &Options) -> Result<Answer, Failure> {
    let about = call.resource.about(name);
    for _ in 0..TRIES {
        let current =
            call.cluster().get(&call.resource, call.namespace(), name).ok_or_else(|| Failure::not_found(about))?;
        // This refusal names the kind, all others the resource.
        check_preconditions(&current, options, call.resource.about_kind(name))?;
        let uid = current.identity.uid.clone();
        // An object that cannot be converted cannot be deleted.
        let seen = call.shown(current.clone()).await?;
        let (warnings, outcome) = ask_and_delete(call, name, &current, options).await?;
        let done = |answer: Answer| Answer { warnings: warnings.clone(), ..answer };
        match outcome {
            None => return Ok(done(rehearsed(call, renderer, &seen, options, about))),
            Some(Ok(Outcome::Gone(last))) if call.resource.rules.shown_when_deleted => {
                return Ok(done(Answer::json(StatusCode::OK, renderer.value(&last))));
            }
            Some(Ok(Outcome::Gone(_))) => {
                return Ok(done(Answer::value(StatusCode::OK, &status::deleted(about, &uid))));
            }
            Some(Ok(Outcome::Waiting(version) | Outcome::Marked(version))) => {
                let version = call.shown(version).await?;
                return Ok(done(Answer::json(StatusCode::OK, renderer.object(&version))));
            }
            Some(Err(Refused::Absent)) => return Err(Failure::not_found(about)),
            Some(Err(_)) => {}
        }
    }
    Err(Failure::stale(about))
}

/// Calls the admission webhooks for a deletion and deletes the object. Returns the outcome, which is `None` for a dry
/// run, and the warnings. The webhooks are called again before a marked object is removed. The webhooks are not called
/// if an earlier deletion makes this deletion unnecessary.
async fn ask_and_delete(
    call: &Call,
    asked_for: &str,
    current: &Arc<Version>,
    options: &Options,
) -> Result<(Vec<String>, Option<Result<Outcome, Refused>>), Failure> {
    let (cluster, resource) = (call.cluster(), &call.resource);
    let mut warnings = Vec::new();
    if !is_decided(current, resource, options) {
        warnings = ask(call, asked_for, current).await?;
    }
    if options.dry_run {
        return Ok((warnings, None));
    }
    let mut outcome = step(cluster, resource, current, options.manner());
    if let Ok(Outcome::Marked(marked)) = &outcome {
        warnings.extend(ask(call, asked_for, marked).await?);
        outcome = remove(cluster, resource, marked);
    }
    Ok((warnings, Some(outcome)))
}

/// Whether the object is already being deleted and a further deletion with `options` changes nothing.
fn is_decided(current: &Version, resource: &Resource, options: &Options) -> bool {
    current.facts().finalizing
        && match resource.rules.ending {
            Ending::Emptied => true,
            Ending::Graceful => grace::of(&current.value(), resource, options.grace_s) == Grace::Pending,
            Ending::AtOnce => false,
        }
}

/// Calls the admission webhooks for a deletion; the webhooks see only the old object.
async fn ask(call: &Call, name: &str, current: &Arc<Version>) -> Result<Vec<String>, Failure> {
    let chain = Chain::of(call);
    if chain.is_empty() {
        return Ok(Vec::new());
    }
    let mut old = call.shown(current.clone()).await?.value();
    super::write::show(call, &mut old);
    let attempt = Attempt { call, operation: Operation::Delete, name, old: Some(&old) };
    let mut warnings = chain.mutate(&attempt, &mut Value::Null).await?.warnings;
    warnings.extend(chain.validate(&attempt, &Value::Null).await?);
    Ok(warnings)
}

pub(super) async fn collection(call: &Call, body: Payload) -> Result<Answer, Failure> {
    if !call.resource.allows("deletecollection") {
        return Err(Failure::method_not_allowed());
    }
    let query = &call.query;
    let renderer = Renderer::negotiate(call)?;
    let bytes = read_body(&call.app.limits, body).await?;
    let options = options(call, &bytes)?;
    let selector = Selector::parse(query.label_selector.as_deref(), query.field_selector.as_deref(), &call.resource)?;
    let namespace = call.target.namespace.as_deref();
    let id = call.resource.id;
    let limit = query.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let page = call
        .cluster()
        .read(|store| store.list(id, namespace, store.revision(), None, limit, |version| selector.matches(version)));
    let mut page = page.expect("the present is never compacted");
    let seen = call.shown_all(page.items.clone()).await?;
    for version in &page.items {
        // The deletion of a collection names no object, so webhooks get no name.
        collected(call, version, &options).await?;
    }
    // The answer lists the objects as found, before the first deletion.
    page.items = seen;
    let meta = super::read::meta(&page, 0, &selector);
    Ok(Answer { body: renderer.list(page.items, &meta).into(), ..super::write::ok(Bytes::new()) })
}

/// Deletes one object of a collection, if it still exists.
async fn collected(call: &Call, version: &Arc<Version>, options: &Options) -> Result<(), Failure> {
    let identity = &version.identity;
    let mut current = version.clone();
    for _ in 0..TRIES {
        check_preconditions(&current, options, call.resource.about_kind(&identity.name))?;
        match ask_and_delete(call, "", &current, options).await?.1 {
            None | Some(Ok(_) | Err(Refused::Absent)) => return Ok(()),
            Some(Err(_)) => {}
        }
        let Some(now) = call.cluster().get(&call.resource, &identity.namespace, &identity.name) else { return Ok(()) };
        current = now;
    }
    Err(Failure::stale(call.resource.about(&identity.name)))
}

/// Deletes an object if it still exists, for deletions by the server, for which no client waits.
pub(crate) fn delete_place(cluster: &Cluster, resource: &Resource, namespace: &str, name: &str, manner: Manner) {
    for _ in 0..TRIES {
        let Some(current) = cluster.get(resource, namespace, name) else { return };
        match delete(cluster, resource, &current, manner) {
            Ok(_) | Err(Refused::Absent) => return,
            Err(_) => {}
        }
    }
}

/// Deletes an object as far as its finalizers and its grace period allow.
pub(super) fn delete(
    cluster: &Cluster,
    resource: &Resource,
    current: &Version,
    manner: Manner,
) -> Result<Outcome, Refused> {
    match step(cluster, resource, current, manner)? {
        Outcome::Marked(marked) => remove(cluster, resource, &marked),
        outcome => Ok(outcome),
    }
}

fn remove(cluster: &Cluster, resource: &Resource, marked: &Version) -> Result<Outcome, Refused> {
    gone(cluster, resource, marked, marked.value())
}

/// Removes an object whose last state is `last`. The returned state has the revision of the deletion, like its event.
fn gone(cluster: &Cluster, resource: &Resource, current: &Version, mut last: Value) -> Result<Outcome, Refused> {
    let event = cluster.remove(current, resource, last.clone())?;
    object::metadata(&mut last).insert("resourceVersion".to_owned(), Value::from(event.version.revision.to_string()));
    Ok(Outcome::Gone(last))
}

/// Continues the deletion of an object, with at most one commit.
fn step(cluster: &Cluster, resource: &Resource, current: &Version, manner: Manner) -> Result<Outcome, Refused> {
    let mut value = current.value();
    let grace = grace::of(&value, resource, manner.grace_s);
    if grace == Grace::Pending {
        // Deleting twice changes nothing.
        return current_again(cluster, resource, current);
    }
    let extra = match manner.propagation {
        Propagation::Background => None,
        Propagation::Foreground => Some(FOREGROUND),
        Propagation::Orphan => Some(ORPHAN),
    };
    // The garbage collector finds out whether there are dependents, and then removes the finalizer.
    let extra = extra.filter(|extra| !object::finalizers(&value).contains(extra));
    if object::is_deleting(&value) && extra.is_none() && grace == Grace::None {
        if finish::is_unheld(&value, resource) {
            return gone(cluster, resource, current, value);
        }
        return current_again(cluster, resource, current);
    }
    if let Some(extra) = extra {
        let finalizers = object::metadata(&mut value).entry("finalizers").or_insert_with(|| json!([]));
        if let Some(list) = finalizers.as_array_mut() {
            list.push(Value::from(extra));
        }
    }
    let unheld = finish::is_unheld(&value, resource);
    if unheld && grace == Grace::None {
        return gone(cluster, resource, current, value);
    }
    mark(&mut value, resource, grace, cluster.wall.now());
    let event = cluster.put(resource, Expect::Revision(current.revision), value)?;
    if unheld && matches!(grace, Grace::Begins(0) | Grace::Shortens(0)) {
        // A pod is always marked first, so its watchers see MODIFIED and then DELETED, also without a kubelet.
        return Ok(Outcome::Marked(event.version.clone()));
    }
    cluster.cleaning.notify_one();
    Ok(Outcome::Waiting(event.version.clone()))
}

fn current_again(cluster: &Cluster, resource: &Resource, current: &Version) -> Result<Outcome, Refused> {
    let identity = &current.identity;
    cluster.get(resource, &identity.namespace, &identity.name).map(Outcome::Waiting).ok_or(Refused::Absent)
}

fn mark(value: &mut Value, resource: &Resource, grace: Grace, now: Timestamp) {
    let is_emptied = resource.rules.ending == Ending::Emptied;
    let was_deleting = object::is_deleting(value);
    let meta = object::metadata(value);
    match grace {
        Grace::Begins(grace_s) => {
            meta.insert("deletionTimestamp".to_owned(), Value::from(object::seconds(grace::later(now, grace_s))));
            meta.insert("deletionGracePeriodSeconds".to_owned(), json!(grace_s));
        }
        Grace::Shortens(grace_s) => {
            let given = meta.get("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
            let ends = meta.get("deletionTimestamp").and_then(Value::as_str).and_then(|text| text.parse().ok());
            let sooner = grace::later(ends.unwrap_or(now), grace_s.saturating_sub(given));
            meta.insert("deletionTimestamp".to_owned(), Value::from(object::seconds(sooner)));
            meta.insert("deletionGracePeriodSeconds".to_owned(), json!(grace_s));
        }
        Grace::None | Grace::Pending => {
            meta.entry("deletionTimestamp").or_insert_with(|| Value::from(object::seconds(now)));
            if !is_emptied {
                meta.entry("deletionGracePeriodSeconds").or_insert_with(|| json!(0));
            }
        }
    }
    if !was_deleting && let Some(generation) = meta.get("generation").and_then(Value::as_i64) {
        meta.insert("generation".to_owned(), Value::from(generation + 1));
    }
    if is_emptied && let Some(status) = value.get_mut("status").and_then(Value::as_object_mut) {
        status.insert("phase".to_owned(), Value::from("Terminating"));
    }
}

/// The answer to a dry run of a deletion.
fn rehearsed(
    call: &Call,
    renderer: &Renderer,
    current: &Version,
    options: &Options,
    about: status::About<'_>,
) -> Answer {
    let mut value = current.value();
    let grace = grace::of(&value, &call.resource, options.grace_s);
    let waits = !finish::is_unheld(&value, &call.resource) || options.propagation != Propagation::Background;
    if !waits && !call.resource.rules.shown_when_deleted {
        return Answer::value(StatusCode::OK, &status::deleted(about, &current.identity.uid));
    }
    if grace != Grace::Pending && (waits || grace != Grace::None) {
        mark(&mut value, &call.resource, grace, call.cluster().wall.now());
    }
    Answer::json(StatusCode::OK, renderer.value(&value))
}

/// Refuses a deletion whose preconditions name another uid or version than the object has.
pub(super) fn check_preconditions(
    current: &Version,
    options: &Options,
    about: status::About<'_>,
) -> Result<(), Failure> {
    let revision = current.revision.to_string();
    let checks = [
        ("UID", &options.uid, &*current.identity.uid, "deleted and then recreated"),
        ("ResourceVersion", &options.revision, revision.as_str(), "modified"),
    ];
    for (what, wanted, is, happened) in checks {
        if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != is) {
            let why = format!(
                "the {what} in the precondition ({wanted}) does not match the {what} in record ({is}). The object might \
                 have been {happened}"
            );
            return Err(Failure::conflict(about, &why));
        }
    }
    Ok(())
}

fn options(call: &Call, bytes: &Bytes) -> Result<Options, Failure> {
    // The real server reports an unreadable body as a plain error, not as the client's.
    let unreadable = |failure: Failure| match failure.code {
        StatusCode::BAD_REQUEST => Failure::plain(format!("couldn't get version/kind; {}", failure.message)),
        _ => failure,
    };
    let body = if bytes.is_empty() { Value::Null } else { decode(&call.content_type, bytes).map_err(unreadable)? };
    let kind = body["kind"].as_str().unwrap_or("DeleteOptions");
    if kind != "DeleteOptions" {
        let version = body["apiVersion"].as_str().unwrap_or_default();
        return Err(Failure::plain(format!("no kind \"{kind}\" is registered for version \"{version}\"")));
    }
    let mut options = parse_options(&body, &call.resource)?;
    // With a body the query is ignored.
    if bytes.is_empty() {
        if let Some(policy) = &call.query.propagation_policy {
            options.propagation = propagation(policy)?;
        }
        options.dry_run |= call.query.dry_run;
        options.grace_s = call.query.grace_period_s.and_then(|grace_s| i64::try_from(grace_s).ok());
        options.uid.clone_from(&call.query.uid);
        options.revision.clone_from(&call.query.resource_version);
    }
    Ok(options)
}

pub(super) fn parse_options(body: &Value, resource: &Resource) -> Result<Options, Failure> {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    Ok(Options {
        uid: text("/preconditions/uid"),
        revision: text("/preconditions/resourceVersion"),
        dry_run: body["dryRun"].as_array().is_some_and(|list| !list.is_empty()),
        grace_s: body["gracePeriodSeconds"].as_i64(),
        propagation: parse_propagation(body)?.unwrap_or(unsaid(resource)),
    })
}

fn parse_propagation(body: &Value) -> Result<Option<Propagation>, Failure> {
    let orphan = body["orphanDependents"].as_bool();
    let Some(policy) = body["propagationPolicy"].as_str() else {
        return Ok(orphan.map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background }));
    };
    if orphan.is_some() {
        let why = "orphanDependents and deletionPropagation cannot be both set";
        let cause = Cause::invalid("propagationPolicy", &format!("\"{policy}\""), why);
        return Err(Failure::invalid_options("DeleteOptions", cause));
    }
    propagation(policy).map(Some)
}

/// The default propagation of a deletion.
fn unsaid(resource: &Resource) -> Propagation {
    if resource.rules.orphans { Propagation::Orphan } else { Propagation::Background }
}

fn propagation(policy: &str) -> Result<Propagation, Failure> {
    match policy {
        "" | "Background" => Ok(Propagation::Background),
        "Foreground" => Ok(Propagation::Foreground),
        "Orphan" => Ok(Propagation::Orphan),
        other => {
            let message = format!(
                "Unsupported value: \"{other}\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
            );
            let field = "propagationPolicy".to_owned();
            let cause = Cause { reason: "FieldValueNotSupported", field, message };
            Err(Failure::invalid_options("DeleteOptions", cause))
        }
    }
}
