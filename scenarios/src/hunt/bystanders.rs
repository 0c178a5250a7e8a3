//! The bystanders: objects in the subject's namespace that it has nothing to do with, and that must survive.
//!
//! Owns what they are, and the sign of a lost one. Does no I/O.

use reports::hunt::{Sign, What};
use serde_json::{Value, json};

use super::audit::Audit;
use super::compare::of_object;

/// The name of all bystanders.
const NAME: &str = "hunt-bystander";
/// Their resources.
const RESOURCES: [&str; 2] = ["configmaps", "secrets"];

/// The bystanders, as objects. They have no effect in a cluster.
pub(super) fn bystanders() -> [Value; 2] {
    let metadata = json!({"name": NAME});
    [
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"}),
    ]
}

/// A sign for the first bystander that is gone at the end of a play without disturbances. A trial is compared with such
/// plays, so a bystander that only a trial loses is a missing object.
pub(super) fn lost(audit: &Audit) -> Option<Sign> {
    let is_there = |resource: &str| {
        let mut all = audit.objects.iter().filter(|object| object.resource == resource);
        all.any(|object| object.object["metadata"]["name"] == NAME)
    };
    let gone = RESOURCES.into_iter().find(|resource| !is_there(resource))?;
    let of_nobody = "there: it belongs to somebody else";
    Some(of_object(What::Missing, &format!("{gone} default/{NAME}"), "is missing", of_nobody))
}

#[cfg(test)]
mod tests {
    use super::super::audit::Object;
    use super::*;

    #[test]
    fn a_bystander_that_is_gone_is_a_sign() {
        let object = |(object, resource): (Value, &str)| Object { resource: resource.to_owned(), object };
        let mut audit =
            Audit { objects: bystanders().into_iter().zip(RESOURCES).map(object).collect(), ..Audit::default() };
        assert_eq!(lost(&audit), None);
        audit.objects.remove(0);
        let sign = lost(&audit).unwrap();
        assert_eq!((sign.subject.as_str(), sign.object.as_deref()), ("configmaps", Some("default/hunt-bystander")));
    }
}
