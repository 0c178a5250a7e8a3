//! The user and the options of a request: the fields `userInfo` and `options`. Pure: no I/O.
//!
//! Webhooks get a PATCH as an UPDATE with `UpdateOptions`, and with the request's own options. Only requests of
//! `kubectl` contain a field manager (seen with kube-apiserver 1.20).

use serde_json::{Value, json};

use crate::admission::objects::{Kind, NODE};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::admission) enum Actor {
    Person,
    ControllerOf(Kind),
    /// Another service account: namespace and name.
    Account(&'static str, &'static str),
    Scheduler,
    Kubelet,
}

impl Actor {
    /// The garbage collector, which deletes the dependents of a deleted object.
    pub(in crate::admission) const GARBAGE_COLLECTOR: Self = Self::Account("kube-system", "generic-garbage-collector");

    pub(in crate::admission) fn user_info(self) -> Value {
        let account = |namespace: &str, name: &str| {
            json!({
                "username": format!("system:serviceaccount:{namespace}:{name}"),
                "uid": "5f0c2c31-6e1b-4b0b-9a53-0d8f1f4a7c11",
                "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{namespace}"), "system:authenticated"]
            })
        };
        match self {
            Self::Person => json!({
                "username": "jane@example.com",
                "groups": ["shop-developers", "system:authenticated"],
                "extra": {"authentication.kubernetes.io/credential-id": ["X509SHA256=7c9d2f0a"]}
            }),
            Self::ControllerOf(kind) => account("kube-system", kind.controller()),
            Self::Account(namespace, name) => account(namespace, name),
            Self::Scheduler => json!({"username": "system:kube-scheduler", "groups": ["system:authenticated"]}),
            Self::Kubelet => json!({
                "username": format!("system:node:{NODE}"), "groups": ["system:nodes", "system:authenticated"]
            }),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::admission) enum Options {
    /// The options of a CREATE or an UPDATE, with a field manager if one is named.
    Write(Option<&'static str>),
    /// The options of `kubectl delete`, and of the garbage collector, which names the uid of the object.
    DeleteInBackground { uid: Option<String> },
    /// The options of a controller that removes a superfluous Pod.
    Delete,
    /// The options of the kubelet after a Pod has ended.
    DeleteNow { uid: String },
}

impl Options {
    pub(super) fn json(&self, verb: &str, dry_run: bool) -> Value {
        let mut options = json!({"kind": format!("{verb}Options"), "apiVersion": "meta.k8s.io/v1"});
        match self {
            Self::Write(manager) => {
                if let Some(manager) = manager {
                    options["fieldManager"] = json!(manager);
                }
            }
            Self::DeleteInBackground { uid } => {
                options["propagationPolicy"] = json!("Background");
                if let Some(uid) = uid {
                    options["preconditions"] = json!({"uid": uid});
                }
            }
            Self::Delete => {}
            Self::DeleteNow { uid } => {
                options["gracePeriodSeconds"] = json!(0);
                options["preconditions"] = json!({"uid": uid});
            }
        }
        if dry_run {
            options["dryRun"] = json!(["All"]);
        }
        options
    }
}
