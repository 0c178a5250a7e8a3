//! Authentication by bearer tokens, for requests and for token reviews.
//!
//! Owns the order in which tokens are looked up (first configured tokens, then tokens of service accounts), and the
//! check of audiences. A token is refused once its account or its bound object is deleted (Kubernetes documentation,
//! "Managing Service Accounts").

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{HeaderMap, StatusCode, header};
use jiff::Timestamp;
use mock_objects::status::Failure;
use mock_store::Version;
use serde_json::json;

use super::answer::Answer;
use super::authorization::Authorization;
use super::cluster::Cluster;
use super::rbac;
use super::tokens::{self, Claims, Subject};
use super::users::{Users, Who};

/// The group that contains all service accounts.
const ACCOUNTS: &str = "system:serviceaccounts";
const CONFIGURATION: &str = "/.well-known/openid-configuration";
const KEYS: &str = "/openid/v1/jwks";

/// The user of a token, and those of the requested audiences for which the token is valid.
#[derive(Debug)]
pub(crate) struct Bearer {
    pub who: Arc<Who>,
    pub audiences: Vec<String>,
}

/// Why a token is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("invalid bearer token, token lookup failed")]
    Unknown,
    #[error("invalid bearer token, {0}")]
    Token(#[from] tokens::Error),
    #[error("invalid bearer token, token audiences {is:?} is invalid for the target audiences {wanted:?}")]
    Audience { is: Vec<String>, wanted: Vec<String> },
    #[error("invalid bearer token, service account {0} has been deleted or made anew")]
    Account(String),
    #[error("invalid bearer token, the {kind} {name} that it was made for is gone")]
    Bound { kind: String, name: String },
}

/// The user of a request's token; `None` if the request has no token.
pub(crate) fn bearer(users: &Users, cluster: &Cluster, headers: &HeaderMap) -> Result<Option<Arc<Who>>, Error> {
    let Some(header) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let (scheme, token) = header.to_str().ok().and_then(|text| text.split_once(' ')).ok_or(Error::Unknown)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Ok(None);
    }
    let token = token.trim();
    // Configured tokens are for this server.
    match users.by_token(token) {
        Some(who) => Ok(Some(who)),
        None => by_token(users, cluster, token, &[]).map(|bearer| Some(bearer.who)),
    }
}

/// The user of a token that is valid for one of the audiences in the list. An empty list means this server.
pub(crate) fn by_token(users: &Users, cluster: &Cluster, token: &str, wanted: &[String]) -> Result<Bearer, Error> {
    let own = [users.tokens.issuer.to_string()];
    let wanted = if wanted.is_empty() { &own } else { wanted };
    let shared = |is: &[String]| wanted.iter().filter(|audience| is.contains(audience)).cloned().collect::<Vec<_>>();
    if let Some(who) = users.by_token(token) {
        // Configured tokens name no audiences: they are for this server.
        let audiences = shared(&own);
        return if audiences.is_empty() { Err(Error::Unknown) } else { Ok(Bearer { who, audiences }) };
    }
    let claims = match users.tokens.verify(token, Timestamp::now()) {
        Err(tokens::Error::Foreign) => return Err(Error::Unknown),
        verified => verified?,
    };
    let audiences = shared(&claims.audiences);
    if audiences.is_empty() {
        return Err(Error::Audience { is: claims.audiences.clone(), wanted: wanted.to_vec() });
    }
    check_alive(cluster, &claims)?;
    Ok(Bearer { who: Arc::new(who(&claims)), audiences })
}

/// Refuses a token whose account or bound object was deleted or replaced.
fn check_alive(cluster: &Cluster, claims: &Claims) -> Result<(), Error> {
    let is = |found: Option<Arc<Version>>, subject: &Subject| found.is_some_and(|v| *v.identity.uid == *subject.uid);
    let catalogue = cluster.catalogue();
    let find = |full_name: &str, namespace: &str, name: &str| {
        catalogue.by_full_name(full_name).and_then(|resource| cluster.get(resource, namespace, name))
    };
    if !is(find("serviceaccounts", &claims.namespace, &claims.account.name), &claims.account) {
        return Err(Error::Account(format!("{}/{}", claims.namespace, claims.account.name)));
    }
    let Some((kind, bound)) = &claims.bound else { return Ok(()) };
    let (full_name, namespace) = match kind.as_str() {
        "Node" => ("nodes", ""),
        "Pod" => ("pods", claims.namespace.as_str()),
        _ => ("secrets", claims.namespace.as_str()),
    };
    if is(find(full_name, namespace, &bound.name), bound) {
        return Ok(());
    }
    Err(Error::Bound { kind: kind.to_lowercase(), name: bound.name.clone() })
}

/// The documents with which other programs check tokens (`OpenID` Connect Discovery 1.0); `None` for other paths. The
/// role system:service-account-issuer-discovery lets every service account read the documents.
pub(crate) fn issuer(
    users: &Users,
    cluster: &Cluster,
    who: &Who,
    path: &str,
    host: &str,
) -> Option<Result<Answer, Failure>> {
    let (content_type, value) = match path.trim_end_matches('/') {
        CONFIGURATION => {
            let value = json!({
                "issuer": &*users.tokens.issuer, "jwks_uri": format!("https://{host}{KEYS}"), "response_types_supported": ["id_token"],
                "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": [users.tokens.algorithm()],
            });
            ("application/json", value)
        }
        KEYS => ("application/jwk-set+json", users.tokens.key_set()),
        _ => return None,
    };
    let is_account = who.groups.iter().any(|group| group == ACCOUNTS);
    if cluster.authorization == Authorization::Rbac
        && !is_account
        && let Err(why) = rbac::allows_path(cluster, who, path, "get")
    {
        return Some(Err(Failure::forbidden_path(&why.to_string())));
    }
    Some(Ok(Answer { content_type, ..Answer::value(StatusCode::OK, &value) }))
}

fn who(claims: &Claims) -> Who {
    let groups = [ACCOUNTS.to_owned(), format!("{ACCOUNTS}:{}", claims.namespace)];
    let mut extra = BTreeMap::new();
    let mut add = |key: &str, value: String| {
        extra.insert(format!("authentication.kubernetes.io/{key}"), vec![value]);
    };
    add("credential-id", format!("JTI={}", claims.id));
    if let Some((kind, bound)) = claims.bound.as_ref().filter(|(kind, _)| kind != "Secret") {
        let kind = kind.to_lowercase();
        add(&format!("{kind}-name"), bound.name.clone());
        add(&format!("{kind}-uid"), bound.uid.clone());
    }
    Who { uid: claims.account.uid.clone(), extra, ..Who::new(&claims.user(), &groups) }
}
