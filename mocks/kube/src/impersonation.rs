//! Impersonation: the headers `Impersonate-User`, `-Group`, `-Uid` and `-Extra-…` (Kubernetes documentation,
//! "Authenticating", user impersonation).
//!
//! Owns reading the impersonation headers, and the rule that the sender needs the verb `impersonate` for each header.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, StatusCode};
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
const MASTERS: &str = "system:masters";
const ACCOUNT: &str = "system:serviceaccount:";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Returns the user whose rights a request has: the sender, or the user that the sender impersonates.
pub(crate) fn acting(cluster: &Cluster, who: Arc<Who>, headers: &HeaderMap) -> Result<Arc<Who>, Failure> {
    let texts = |name: &str| headers.get_all(name).into_iter().map(text).collect::<Result<Vec<&str>, Failure>>();
    let name = texts(USER)?.first().copied().unwrap_or_default();
    let groups: Vec<String> = texts(GROUP)?.into_iter().map(str::to_owned).collect();
    let uid = texts(UID)?.first().copied().unwrap_or_default();
    let mut extra: Vec<(String, String)> = Vec::new();
    for (header, value) in headers {
        if let Some(key) = header.as_str().strip_prefix(EXTRA) {
            extra.push((percent_decode_str(key).decode_utf8_lossy().into_owned(), text(value)?.to_owned()));
        }
    }
    if name.is_empty() {
        if groups.is_empty() && uid.is_empty() && extra.is_empty() {
            return Ok(who);
        }
        let message = "requested to impersonate groups, a uid or extra values without impersonating a user";
        return Err(Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message.to_owned()));
    }
    // Without RBAC, impersonation must not raise rights: neither make an anonymous user known nor open `/longhaul`.
    if cluster.authorization == Authorization::AllowAndRecord {
        if !who.is_known() {
            return Err(Failure::unauthorized());
        }
        let is_master = |groups: &[String]| groups.iter().any(|group| group == MASTERS);
        if is_master(&groups) && !who.groups.iter().any(|group| &**group == MASTERS) {
            let about = About { group: "", kind: "groups", name: MASTERS };
            return Err(Failure::forbidden(about, "only a member of the group may act as one"));
        }
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

/// The text of a header. Go accepts UTF-8 in headers. Bytes that are not UTF-8 are an error, because without the
/// impersonation header the request would have the sender's own rights.
fn text(value: &HeaderValue) -> Result<&str, Failure> {
    std::str::from_utf8(value.as_bytes())
        .map_err(|_| Failure::bad_request("an `Impersonate-…` header is not UTF-8".to_owned()))
}

/// Refuses a sender without the verb `impersonate` on `(group, resource, subresource, namespace, name)`.
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
