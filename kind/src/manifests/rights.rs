//! The rights of the service if one process runs all roles, taken from the manifests of the roles.
//!
//! This module owns the union of the accounts' rights: each binding of the webhook's account also applies to the
//! watcher's account. No other right is added, so that a right that is missing in the manifests is missing in every run
//! too.

use serde_json::{Value, json};

use super::{Error, NAMESPACE, RBAC, objects};

/// Namespace and name of the service account of a process that runs all roles. This account is that of the watcher,
/// which has the most rights.
pub const ALL_ROLES_ACCOUNT: (&str, &str) = ("longhaul-system", "longhaul-watch");
/// The account whose rights the process with all roles gets in addition.
const WEBHOOK_ACCOUNT: &str = "longhaul-webhook";

/// Namespace, accounts, roles and bindings for a process with all roles, in the order in which they are applied. Every
/// binding of the webhook's account also names [`ALL_ROLES_ACCOUNT`].
pub fn all_roles() -> Result<Vec<Value>, Error> {
    let mut all = objects("namespace.yaml", NAMESPACE)?;
    all.extend(objects("rbac.yaml", RBAC)?);
    let (namespace, name) = ALL_ROLES_ACCOUNT;
    for binding in &mut all {
        let Some(subjects) = binding["subjects"].as_array_mut() else { continue };
        let has = |wanted: &str| subjects.iter().any(|s| s["name"] == wanted && s["namespace"] == namespace);
        if has(WEBHOOK_ACCOUNT) && !has(name) {
            subjects.push(json!({"kind": "ServiceAccount", "name": name, "namespace": namespace}));
        }
    }
    Ok(all)
}

/// The names of the cluster roles in the manifests, including roles without a binding.
pub fn cluster_roles() -> Result<Vec<String>, Error> {
    let all = objects("rbac.yaml", RBAC)?;
    let roles = all.iter().filter(|object| object["kind"] == "ClusterRole");
    Ok(roles.filter_map(|role| Some(role["metadata"]["name"].as_str()?.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_account_has_the_rights_of_both_roles() {
        let all = all_roles().unwrap();
        let (namespace, name) = ALL_ROLES_ACCOUNT;
        let accounts: Vec<&Value> = all.iter().filter(|object| object["kind"] == "ServiceAccount").collect();
        assert!(accounts.iter().any(|o| o["metadata"]["name"] == name && o["metadata"]["namespace"] == namespace));
        assert!(
            accounts.iter().any(|o| o["metadata"]["name"] == WEBHOOK_ACCOUNT),
            "the account that is united with it"
        );
        let bindings = all.iter().filter(|object| object["subjects"].is_array());
        assert!(bindings.clone().count() > 0);
        for binding in bindings {
            let subjects = binding["subjects"].as_array().unwrap();
            assert!(subjects.iter().any(|subject| subject["name"] == name), "{binding}");
        }
        assert!(cluster_roles().unwrap().contains(&"longhaul-watch".to_owned()));
    }
}
