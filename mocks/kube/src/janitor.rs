//! The background work of a control plane: garbage collection, emptying namespaces, and removing definitions.
//!
//! Owns one task. The task reads commits like other readers and writes through the store, so watches show its work. The
//! rules are those of the Kubernetes documentation, "Garbage Collection" and "Finalizers".

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use facts::Change;
use jiff::Timestamp;
use mock_objects::catalogue::Resource;
use mock_objects::object;
use mock_store::{Expect, ObjectKey, RawCommit, Version};
use serde_json::Value;
use tokio::time::Instant;

use super::aggregation;
use super::bootstrap;
use super::call::App;
use super::cluster::Cluster;
use super::followed;
use super::verbs::{Manner, Propagation, delete_place, finish};
use super::{disruption, quota, signing, type_check};

/// Maximum number of commits that the task processes at a time.
const BATCH: usize = 1024;
/// Maximum number of objects of a namespace that the task deletes at a time.
const SWEEP: usize = 1024;
/// Interval of checks of namespaces and finalizers when there are no commits.
const AGAIN: Duration = Duration::from_millis(500);
/// Shortest time between two updates of the status of quotas and disruption budgets.
const COUNT_EVERY: Duration = Duration::from_millis(100);
/// Longest time between two updates of the status of quotas and disruption budgets if nothing changes, because evicted
/// pods stop to count after two minutes.
const COUNT_IDLE_EVERY: Duration = Duration::from_secs(10);
/// How dependents are deleted if their owner waits for their deletion.
const FOREGROUND: Manner = Manner { propagation: Propagation::Foreground, grace_s: None };

/// Runs the background work until the future is dropped.
pub(crate) async fn run(app: Arc<App>) {
    let cluster = &app.cluster;
    let mut next = cluster.read(|store| store.commits().next());
    // Owners in foreground deletion, until their last blocking dependent is gone.
    let mut held = BTreeSet::new();
    let (mut counted, mut counted_at) = (Instant::now(), 0);
    loop {
        let _ = tokio::time::timeout(AGAIN, cluster.cleaning.notified()).await;
        loop {
            let mut commits = Vec::new();
            let read = cluster.read(|store| {
                let commits_ring = store.commits();
                commits_ring.read(next, BATCH, &mut commits).map_err(|_| commits_ring.oldest())
            });
            match read {
                Ok(()) if commits.is_empty() => break,
                Ok(()) => next += commits.len() as u64,
                Err(oldest) => next = oldest,
            }
            for commit in &commits {
                collect(cluster, commit, &mut held);
            }
            tokio::task::yield_now().await;
        }
        held.retain(|place| is_held(cluster, place));
        if !cluster.alone {
            let (since, revision) = (counted.elapsed(), cluster.read(mock_store::Store::revision));
            if since >= COUNT_IDLE_EVERY || (since >= COUNT_EVERY && revision != counted_at) {
                (counted, counted_at) = (Instant::now(), revision);
                quota::refresh(cluster);
                type_check::refresh(cluster);
                if let Some(signer) = &cluster.signer {
                    disruption::refresh(cluster);
                    signing::sign(cluster, signer);
                }
            }
            finish_namespaces(cluster);
        }
        finish_definitions(cluster);
    }
}

/// Handles one commit: deletes the dependents of a deleted object, and an object that gets owners of which none exists.
fn collect(cluster: &Cluster, commit: &RawCommit, held: &mut BTreeSet<ObjectKey>) {
    let catalogue = cluster.catalogue();
    let Some(resource) = catalogue.by_id(commit.identity.resource) else { return };
    bootstrap::follow(cluster, resource, commit);
    if cluster.alone {
        return;
    }
    if commit.change == Change::Deleted {
        for place in cluster.read(|store| store.dependents(&commit.identity.uid)) {
            drop_owner(cluster, &place);
        }
        if followed::roles(resource) {
            aggregation::refresh(cluster, resource);
        }
        return;
    }
    if followed::roles(resource) {
        aggregation::refresh(cluster, resource);
    }
    let identity = &commit.identity;
    let Some(version) = cluster.get(resource, &identity.namespace, &identity.name) else { return };
    if version.facts().finalizing {
        if propagate(cluster, resource, &version) {
            held.insert(identity.place());
        }
    } else if commit.is_adopted {
        drop_owner(cluster, &identity.place());
    }
}

/// Deletes an object if none of its owners exists; otherwise removes its references to missing owners.
fn drop_owner(cluster: &Cluster, place: &ObjectKey) {
    let catalogue = cluster.catalogue();
    let Some(resource) = catalogue.by_id(place.resource) else { return };
    let Some(version) = cluster.get(resource, &place.namespace, &place.name) else { return };
    let mut value = version.value();
    let owners = value["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    let (alive, dead): (Vec<Value>, Vec<Value>) =
        owners.into_iter().partition(|owner| owner_exists(cluster, owner, &place.namespace));
    if dead.is_empty() {
        return;
    }
    if alive.is_empty() {
        delete_place(cluster, resource, &place.namespace, &place.name, Manner::default());
        return;
    }
    object::metadata(&mut value).insert("ownerReferences".to_owned(), Value::Array(alive));
    // Losing a race is fine: the janitor also sees the winner's commit.
    let _ = cluster.put(resource, Expect::Revision(version.revision), value);
}

fn owner_exists(cluster: &Cluster, owner: &Value, namespace: &str) -> bool {
    let text = |key: &str| owner[key].as_str().unwrap_or_default();
    let catalogue = cluster.catalogue();
    // An owner of an unknown kind cannot be checked; the real collector leaves it alone too.
    let Some(resource) = catalogue.by_kind(text("apiVersion"), text("kind")) else { return true };
    let namespace = if resource.namespaced { namespace } else { "" };
    cluster.get(resource, namespace, text("name")).is_some_and(|found| &*found.identity.uid == text("uid"))
}

/// Continues the deletion of an owner that waited for its dependents; returns whether the owner still waits.
fn is_held(cluster: &Cluster, place: &ObjectKey) -> bool {
    let catalogue = cluster.catalogue();
    let Some(resource) = catalogue.by_id(place.resource) else { return false };
    let version = cluster.get(resource, &place.namespace, &place.name);
    version.is_some_and(|version| version.facts().finalizing && propagate(cluster, resource, &version))
}

/// Continues a foreground or orphan deletion: first the dependents are handled, then the finalizer and the object are
/// removed. Returns whether dependents still block the deletion.
fn propagate(cluster: &Cluster, resource: &Resource, version: &Version) -> bool {
    let mut value = version.value();
    let has = |name: &str| object::finalizers(&value).contains(&name);
    let (foreground, orphan) = (has("foregroundDeletion"), has("orphan"));
    if !foreground && !orphan {
        return false;
    }
    let uid = &*version.identity.uid;
    for place in &cluster.read(|store| store.dependents(uid)) {
        let catalogue = cluster.catalogue();
        let Some(of_dependent) = catalogue.by_id(place.resource) else { continue };
        let Some(dependent) = cluster.get(of_dependent, &place.namespace, &place.name) else { continue };
        if orphan || has_other_owner(cluster, &dependent, uid) {
            disown(cluster, of_dependent, &dependent, uid);
        } else if !dependent.facts().finalizing {
            // After a lost race the owner stays held and is checked again.
            if closes_a_circle(cluster, &dependent) && !unblock(cluster, of_dependent, &dependent) {
                continue;
            }
            delete_place(cluster, of_dependent, &place.namespace, &place.name, FOREGROUND);
        }
    }
    let left = cluster.read(|store| store.dependents(uid));
    if orphan && !left.is_empty() || left.iter().any(|place| is_blocking(cluster, place, uid)) {
        return true;
    }
    if let Some(list) = object::metadata(&mut value).get_mut("finalizers").and_then(Value::as_array_mut) {
        list.retain(|name| !matches!(name.as_str(), Some("foregroundDeletion" | "orphan")));
    }
    let done = if finish::is_due(&value, resource) {
        // The object as it was: the state without the finalizer is never stored.
        cluster.remove(version, resource, version.value()).is_ok()
    } else {
        cluster.put(resource, Expect::Revision(version.revision), value).is_ok()
    };
    // The winner of a race has committed a change, but that change needs no second look as a deletion.
    !done
}

/// Whether a dependent of `version` is already in foreground deletion. The two objects would then wait for each other.
fn closes_a_circle(cluster: &Cluster, version: &Version) -> bool {
    let catalogue = cluster.catalogue();
    cluster.read(|store| store.dependents(&version.identity.uid)).iter().any(|place| {
        let resource = catalogue.by_id(place.resource);
        let dependent = resource.and_then(|resource| cluster.get(resource, &place.namespace, &place.name));
        dependent.is_some_and(|dependent| {
            dependent.facts().finalizing && object::finalizers(&dependent.value()).contains(&"foregroundDeletion")
        })
    })
}

/// Sets `blockOwnerDeletion` of the object to false, as the real collector does for owner cycles; returns `false` if
/// another client wrote the object first.
fn unblock(cluster: &Cluster, resource: &Resource, version: &Version) -> bool {
    let mut value = version.value();
    let owners = object::metadata(&mut value).get_mut("ownerReferences").and_then(Value::as_array_mut);
    for owner in owners.into_iter().flatten() {
        owner["blockOwnerDeletion"] = Value::Bool(false);
    }
    cluster.put(resource, Expect::Revision(version.revision), value).is_ok()
}

/// Whether a dependent blocks the foreground deletion of its owner through `blockOwnerDeletion`.
fn is_blocking(cluster: &Cluster, place: &ObjectKey, uid: &str) -> bool {
    let catalogue = cluster.catalogue();
    let resource = catalogue.by_id(place.resource);
    let dependent = resource.and_then(|resource| cluster.get(resource, &place.namespace, &place.name));
    let Some(value) = dependent.map(|version| version.value()) else { return false };
    let mut owners = value["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    owners.any(|owner| owner["uid"].as_str() == Some(uid) && owner["blockOwnerDeletion"] == Value::Bool(true))
}

/// Whether the object has an existing owner other than `uid`.
fn has_other_owner(cluster: &Cluster, version: &Version, uid: &str) -> bool {
    let value = version.value();
    let mut owners = value["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    owners.any(|owner| owner["uid"].as_str() != Some(uid) && owner_exists(cluster, owner, &version.identity.namespace))
}

fn disown(cluster: &Cluster, resource: &Resource, version: &Version, uid: &str) {
    let mut value = version.value();
    let meta = object::metadata(&mut value);
    if let Some(owners) = meta.get_mut("ownerReferences").and_then(Value::as_array_mut) {
        owners.retain(|owner| owner["uid"].as_str() != Some(uid));
        if owners.is_empty() {
            meta.remove("ownerReferences");
        }
    }
    let _ = cluster.put(resource, Expect::Revision(version.revision), value);
}

/// Deletes the objects in namespaces that are being deleted, and removes the namespaces that are empty.
fn finish_namespaces(cluster: &Cluster) {
    let catalogue = cluster.catalogue();
    let Some(namespaces) = catalogue.by_full_name("namespaces") else { return };
    for version in finalizing(cluster, namespaces) {
        let name = &version.identity.name;
        let mut left = 0;
        for resource in catalogue.originals().filter(|resource| resource.namespaced) {
            for place in cluster.read(|store| store.places(resource.id, Some(name), SWEEP)) {
                let manner = Manner { grace_s: overdue(cluster, resource, &place).then_some(0), ..Manner::default() };
                delete_place(cluster, resource, &place.namespace, &place.name, manner);
            }
            left += cluster.read(|store| store.count(resource.id, Some(name)));
        }
        if left > 0 {
            continue;
        }
        let mut value = version.value();
        if let Some(list) = value.pointer_mut("/spec/finalizers").and_then(Value::as_array_mut) {
            list.retain(|finalizer| finalizer.as_str() != Some("kubernetes"));
        }
        if finish::is_due(&value, namespaces) {
            let _ = cluster.remove(&version, namespaces, value);
        }
    }
}

/// Whether the grace period of an object is over, so that the task removes the object itself. No kubelet ends pods
/// here, so their namespace would otherwise wait for ever.
fn overdue(cluster: &Cluster, resource: &Resource, place: &ObjectKey) -> bool {
    let Some(version) = cluster.get(resource, &place.namespace, &place.name) else { return false };
    if !version.facts().finalizing {
        return false;
    }
    let value = version.value();
    let ends = object::meta(&value, "deletionTimestamp").parse::<Timestamp>();
    ends.is_ok_and(|ends| ends <= cluster.wall.now())
}

/// Removes the resources of deleted definitions, and their objects.
fn finish_definitions(cluster: &Cluster) {
    let catalogue = cluster.catalogue();
    let Some(definitions) = catalogue.by_full_name("customresourcedefinitions.apiextensions.k8s.io") else { return };
    for resource in catalogue.iter().filter(|resource| resource.custom) {
        if cluster.get(definitions, "", &resource.full_name).is_some() {
            continue;
        }
        for place in cluster.read(|store| store.places(resource.id, None, SWEEP)) {
            delete_place(cluster, resource, &place.namespace, &place.name, Manner::default());
        }
        if cluster.read(|store| store.count(resource.id, None)) == 0 {
            cluster.undefine(&resource.full_name);
        }
    }
}

fn finalizing(cluster: &Cluster, resource: &Resource) -> Vec<Arc<Version>> {
    let page = cluster.read(|store| {
        store.list(resource.id, None, store.revision(), None, usize::MAX, |version| version.facts().finalizing)
    });
    page.map(|page| page.items).unwrap_or_default()
}
