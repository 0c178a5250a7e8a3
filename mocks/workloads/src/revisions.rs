//! `ControllerRevision`s: the numbered templates of a `StatefulSet` or a `DaemonSet`.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::fields::{hash, map, name, namespace, number};
use super::kind::{Key, Kind};
use super::scene::Scene;
use super::template::{controlled_by, set};

/// The program that writes the `ControllerRevision`s of one kind of owner, and their label.
pub(crate) struct Keeper {
    pub(crate) by: &'static str,
    pub(crate) kind: Kind,
    /// The label that contains the hash of a template.
    pub(crate) label: &'static str,
}

/// All revisions of an owner, oldest first.
pub(crate) fn of(scene: &Scene<'_>, owner: &Value) -> Vec<Arc<Value>> {
    let mut all = scene.objects.owned(owner, Kind::Revision);
    all.sort_by_key(|revision| (number(revision, "/revision"), name(revision).to_owned()));
    all
}

/// The revision of the present template; `None` until it is written.
pub(crate) fn present(scene: &mut Scene<'_>, keeper: &Keeper, owner: &Value) -> Option<Arc<Value>> {
    let mut template = owner["spec"]["template"].clone();
    template["$patch"] = json!("replace");
    let data = json!({"spec": {"template": template}});
    let all = of(scene, owner);
    let next = all.last().map_or(0, |newest| number(newest, "/revision")) + 1;
    if let Some(known) = all.iter().find(|known| known["data"] == data) {
        if number(known, "/revision") + 1 < next {
            let mut again = Value::clone(known);
            again["revision"] = json!(next);
            scene.update(keeper.by, Key::new(Kind::Revision, namespace(owner), name(known)), again);
            return None;
        }
        return Some(known.clone());
    }
    let hash = hash(&data, number(owner, "/status/collisionCount"));
    let mut body = json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision",
        "metadata": {
            "name": format!("{}-{hash}", name(owner)), "namespace": namespace(owner),
            "labels": map(owner, "/spec/template/metadata/labels"),
            "ownerReferences": [controlled_by(owner, keeper.kind)],
        },
        "data": data, "revision": next,
    });
    let annotations = map(owner, "/metadata/annotations");
    if !annotations.is_empty() {
        body["metadata"]["annotations"] = Value::Object(annotations);
    }
    set(&mut body, "labels", keeper.label, &hash);
    scene.create(keeper.by, Kind::Revision, body);
    None
}

/// Deletes the oldest revisions beyond `revisionHistoryLimit`, except those in `used`.
pub(crate) fn clean(scene: &mut Scene<'_>, keeper: &Keeper, owner: &Value, used: &BTreeSet<&str>) {
    let all = of(scene, owner);
    let idle: Vec<&Arc<Value>> = all.iter().filter(|revision| !used.contains(name(revision))).collect();
    let kept = usize::try_from(number(owner, "/spec/revisionHistoryLimit")).unwrap_or(usize::MAX);
    let too_many = idle.len().saturating_sub(kept);
    for revision in idle.into_iter().take(too_many) {
        scene.delete(keeper.by, Kind::Revision, revision);
    }
}
