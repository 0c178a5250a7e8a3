//! The subject's identity at the control plane, and its RBAC rights.
//!
//! Owns the subject's account, applies the account's roles and waits until the roles are in force. The control plane
//! issues the token.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hyper::Method;
use serde_json::{Value, json};

use super::install::Api;
use crate::scenario::{Rbac, Scenario};

/// The group of superusers in Kubernetes.
pub(super) const MASTERS: &str = "system:masters";
/// The user name of a subject with all rights.
const ADMIN: &str = "subject";
/// The service account of a subject with roles in the scenario.
const OWN_ACCOUNT: &str = "longhaul-subject";
/// Longest wait until roles are in force. kube-apiserver reads roles from a cache, which hardly ever lags by a second.
const DEADLINE: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(50);

#[derive(Debug, Clone)]
pub(super) struct Account {
    /// The subject's user name at the control plane.
    pub(super) user: String,
    pub(super) groups: Vec<String>,
    /// The objects that give the account its rights; empty for a subject with all rights.
    objects: Vec<Value>,
}

impl Account {
    pub(super) fn of(scenario: &Scenario) -> Result<Self> {
        let subject = &scenario.subject;
        let none = Rbac::default();
        if let Some(user) = subject.profile().user {
            // Its own manifests grant its rights.
            return Ok(Self { user, groups: Vec::new(), objects: Vec::new() });
        }
        match (subject.profile().is_service, &subject.rbac) {
            (false, None) | (_, Some(Rbac { admin: true, .. })) => {
                Ok(Self { user: ADMIN.to_owned(), groups: vec![MASTERS.to_owned()], objects: Vec::new() })
            }
            (true, more) => {
                let (namespace, name) = kind::manifests::ALL_ROLES_ACCOUNT;
                let mut objects = kind::manifests::all_roles().context("failed to read the service's roles")?;
                if scenario.api.is_some() {
                    let more =
                        kind::manifests::replicas_roles_of_all().context("failed to read the service's roles")?;
                    objects.extend(more);
                }
                Ok(Self::service_account(namespace, name, objects, more.as_ref().unwrap_or(&none)))
            }
            (false, Some(rbac)) => {
                let (namespace, _) = kind::manifests::ALL_ROLES_ACCOUNT;
                let mut objects = kind::manifests::all_roles().context("failed to read the service's roles")?;
                // A command may name the cluster roles; it does not get the service's own accounts and bindings.
                objects.retain(|object| object["kind"] == "Namespace" || object["kind"] == "ClusterRole");
                objects.push(json!({
                    "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": OWN_ACCOUNT, "namespace": namespace}
                }));
                Ok(Self::service_account(namespace, OWN_ACCOUNT, objects, rbac))
            }
        }
    }

    fn service_account(namespace: &str, name: &str, mut objects: Vec<Value>, rbac: &Rbac) -> Self {
        let role = format!("{OWN_ACCOUNT}-rules");
        if !rbac.rules.is_empty() {
            objects.push(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": role},
                "rules": rbac.rules
            }));
        }
        let own = (!rbac.rules.is_empty()).then_some(&role);
        for role in rbac.roles.iter().chain(own) {
            objects.push(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                "metadata": {"name": format!("{OWN_ACCOUNT}-{role}")},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]
            }));
        }
        // The API server's user name for the token of such an account (Kubernetes documentation, "Service account
        // tokens").
        let user = format!("system:serviceaccount:{namespace}:{name}");
        let groups = vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
        Self { user, groups, objects }
    }

    pub(super) fn is_limited(&self) -> bool {
        !self.objects.is_empty()
    }

    /// Creates the account and its roles, and waits until the roles are in force.
    pub(super) async fn apply(&self, api: &Api<'_>) -> Result<()> {
        for object in &self.objects {
            let path = collection(object)?;
            let (status, answer) = api.create(&path, object).await?;
            if !status.is_success() {
                let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
                bail!("failed to make {kind} {name}: {status}: {}", String::from_utf8_lossy(&answer));
            }
        }
        for attributes in self.first_rights() {
            self.wait_until_allowed(api, &attributes).await?;
        }
        Ok(())
    }

    /// One right of each cluster role that is bound to the account, to test whether the role is in force.
    fn first_rights(&self) -> Vec<Value> {
        let bindings = self.objects.iter().filter(|object| object["kind"] == "ClusterRoleBinding");
        let roles = bindings.filter_map(|binding| {
            let wanted = &binding["roleRef"]["name"];
            self.objects.iter().find(|object| object["kind"] == "ClusterRole" && object["metadata"]["name"] == *wanted)
        });
        let rules = roles.filter_map(|role| role["rules"].get(0));
        rules
            .map(|rule| {
                let resource = rule["resources"][0].as_str().unwrap_or_default();
                let (resource, sub) = resource.split_once('/').unwrap_or((resource, ""));
                json!({
                    "group": rule["apiGroups"][0], "resource": resource, "subresource": sub, "verb": rule["verbs"][0],
                    "name": rule["resourceNames"][0].as_str().unwrap_or_default()
                })
            })
            .collect()
    }

    async fn wait_until_allowed(&self, api: &Api<'_>, attributes: &Value) -> Result<()> {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": self.user, "groups": self.groups, "resourceAttributes": attributes}
        });
        let deadline = Instant::now() + DEADLINE;
        loop {
            let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
            let (status, answer) = api.ask(Method::POST, path, review.to_string()).await?;
            let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
            if answer["status"]["allowed"] == true {
                return Ok(());
            }
            if Instant::now() >= deadline {
                bail!("the roles of {} have no effect after {} s: {status} {answer}", self.user, DEADLINE.as_secs());
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

/// The API path under which an object of this kind is created.
fn collection(object: &Value) -> Result<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let plural = match kind.as_str() {
        "Namespace" => "namespaces",
        "ServiceAccount" => "serviceaccounts",
        "ClusterRole" => "clusterroles",
        "ClusterRoleBinding" => "clusterrolebindings",
        "Role" => "roles",
        "RoleBinding" => "rolebindings",
        other => bail!("the manifests of the roles hold a {other}, which is none of accounts, roles and bindings"),
    };
    let root = if version == "v1" { "/api/v1".to_owned() } else { format!("/apis/{version}") };
    Ok(match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}"),
        None => format!("{root}/{plural}"),
    })
}
