//! Acting as somebody else: the headers `Impersonate-User`, `-Group`, `-Uid` and `-Extra-…` (Kubernetes documentation, "Authenticating",
//! user impersonation).
//!
//! Owns reading them, and that whoever sends them needs the verb `impersonate` for each.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use mock_objects::status::{About, Failure};
use percent_encoding::percent_decode_str;

use super::authorization::{Access, Authorization};
use super::cluster::Cluster;
use super::rbac;
use super::users::Who;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
const ACCOUNT: &str = "system:serviceaccount:";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Whom a request is from: whoever sent it, or whom they may act as.
pub(crate) fn acting(cluster: &Cluster, who: Arc<Who>, headers: &HeaderMap) -> Result<Arc<Who>, Failure> {
    let texts = |name: &str| headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    let name = texts(USER).next().unwrap_or_default();
    let groups: Vec<String> = texts(GROUP).map(str::to_owned).collect();
    let uid = texts(UID).next().unwrap_or_default();
    let extra: Vec<(String, String)> = headers
        .iter()
        .filter_map(|(header, value)| {
            let key = header.as_str().strip_prefix(EXTRA)?;
            Some((percent_decode_str(key).decode_utf8_lossy().into_owned(), value.to_str().ok()?.to_owned()))
        })
        .collect();
    if name.is_empty() {
        if groups.is_empty() && uid.is_empty() && extra.is_empty() {
            return Ok(who);
        }
        let message = "requested to impersonate groups, a uid or extra values without impersonating a user";
        return Err(Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message.to_owned()));
    }
    let account = name.strip_prefix(ACCOUNT).and_then(|rest| rest.split_once(':'));
    match account {
        Some((namespace, account)) => allowed(cluster, &who, ("", "serviceaccounts", "", namespace, account))?,
        None => allowed(cluster, &who, ("", "users", "", "", name))?,
    }
    for group in &groups {
        allowed(cluster, &who, ("", "groups", "", "", group))?;
    }
    if !uid.is_empty() {
        allowed(cluster, &who, (AUTHENTICATION, "uids", "", "", uid))?;
    }
    for (key, value) in &extra {
        allowed(cluster, &who, (AUTHENTICATION, "userextras", key, "", value))?;
    }
    let of_account = account.filter(|_| groups.is_empty());
    let groups = of_account.map_or(groups, |(namespace, _)| {
        vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
    });
    let mut acted = if name == "system:anonymous" { Who::anonymous() } else { Who::new(name, &groups) };
    uid.clone_into(&mut acted.uid);
    for (key, value) in extra {
        acted.extra.entry(key).or_default().push(value);
    }
    Ok(Arc::new(acted))
}

/// Refuses who may not: `(group, resource, subresource, namespace, name)`.
fn allowed(
    cluster: &Cluster,
    who: &Who,
    (group, resource, subresource, namespace, name): (&'static str, &'static str, &str, &str, &str),
) -> Result<(), Failure> {
    if cluster.authorization == Authorization::AllowAndRecord {
        return Ok(());
    }
    let access = Access { namespace, group, resource, subresource, name, verb: "impersonate" };
    let refused = |why: rbac::Denied| Failure::forbidden(About { group, kind: resource, name }, &why.to_string());
    rbac::allows(cluster, who, &access).map(drop).map_err(refused)
}
