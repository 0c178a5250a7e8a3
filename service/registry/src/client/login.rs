//! Authentication: tries matching credentials in order until the registry accepts one.
//!
//! The order of credentials is: the Pod's, the registry's entry in the configuration, the docker configuration,
//! anonymous. An accepted authorization is used again while it is valid, but only for an equal keyring. If a registry
//! on another machine uses no TLS, it gets no credentials.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response, StatusCode, header};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::exchange::{failure, redirected, request, written};
use super::{Question, Registry, is_temporary};
use crate::challenge::{self, Challenge};
use crate::hosts::{Target, Upstream};
use crate::keychain::{Credential, Proof};
use crate::url::Url;
use crate::verdicts::{Class, Failure};
use service_core::authority::Authority;
use service_core::wire;

/// Maximum number of bytes of a token service's answer; real tokens have less than 8 KiB.
const TOKEN_BYTES_MAX: usize = 64 << 10;
/// Maximum number of credentials of one Pod that are tried for an image: each of them costs two requests within one
/// deadline.
const TRIED_MAX: usize = 4;
/// Time for which an accepted user name and password are sent without a challenge.
const BASIC_LIFE: Duration = Duration::from_mins(5);

/// A token service that a registry named.
struct Realm {
    authority: Authority,
    path: String,
    service: Option<String>,
    scope: String,
    target: Target,
}

impl Registry {
    /// Sends one request with credentials that the registry demands and accepts; returns the answer, which may have any
    /// status but 401.
    pub(super) async fn authenticated(
        &self,
        question: &Question<'_>,
        method: &Method,
    ) -> Result<Response<Bytes>, Failure> {
        let key = question.token_key();
        let known = self.tokens.lock().value(&key, std::time::Instant::now());
        let mut response = redirected(question, method, known.as_deref()).await?;
        if known.is_some() && is_refusal(response.status()) {
            self.tokens.lock().remove(&key);
            if response.status() == StatusCode::FORBIDDEN {
                // The owner of this token has lost a right; the others are tried when the registry asks again.
                response = redirected(question, method, None).await?;
            }
        }
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        let mut challenges = response.headers().get_all(header::WWW_AUTHENTICATE).iter();
        let Some(challenge) = challenges.find_map(|value| Challenge::parse(value.to_str().ok()?)) else {
            return Err(question.refusal(response.status()));
        };
        let realm = match challenge {
            Challenge::Basic => None,
            Challenge::Bearer { realm, service } => Some(question.realm(&realm, service)?),
        };
        let mut refused = question.refusal(response.status());
        let mut tried = Vec::new();
        for candidate in question.candidates(realm.as_ref())? {
            let login = match &realm {
                None => candidate.as_ref().and_then(|credential| Some((credential.basic()?, BASIC_LIFE))).map(Ok),
                Some(realm) => Some(realm.token(question, candidate.as_deref()).await),
            };
            // Neither an identity token nor an anonymous client can log in without a token service.
            let Some(login) = login else { continue };
            if !question.is_of_keyring(candidate.as_ref()) {
                tried.push(candidate.as_ref().map_or("anonymous", |credential| &*credential.source).to_owned());
            }
            let (authorization, life) = match login {
                Ok((authorization, life)) => (Arc::<str>::from(authorization), life),
                Err(failure) if failure.class == Class::Auth => {
                    refused = failure;
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            let answer = redirected(question, method, Some(&authorization)).await?;
            if !is_refusal(answer.status()) {
                let bytes = authorization.len();
                self.tokens.lock().insert(&key, authorization, bytes, life, std::time::Instant::now());
                return Ok(answer);
            }
            refused = question.refusal(answer.status());
        }
        if let Some(why) = question.why_anonymous(realm.as_ref()) {
            refused.cause = format!("{} (anonymous, because {why})", refused.cause);
        } else if !tried.is_empty() {
            refused.cause = format!("{} ({})", refused.cause, tried.join(", "));
        }
        Err(refused)
    }
}

impl Question<'_> {
    fn token_key(&self) -> String {
        let host = self.upstream.host();
        let of = self.keyring.narrowed(&[(host.clone(), self.repository.to_owned())]).fingerprint();
        format!("{host}/{} {}", self.repository, of.unwrap_or_default())
    }

    /// The credentials that may be sent to the registry, in the order of attempts; `None` means anonymous.
    fn candidates(&self, realm: Option<&Realm>) -> Result<Vec<Option<Arc<Credential>>>, Failure> {
        if self.why_anonymous(realm).is_some() {
            return Ok(vec![None]);
        }
        let mut all: Vec<_> = Vec::new();
        for credential in self.keyring.fitting(self.upstream.host(), self.repository) {
            let known = |other: &Arc<Credential>| (&other.user, &other.proof) == (&credential.user, &credential.proof);
            if all.len() < TRIED_MAX && !all.iter().any(known) {
                all.push(Arc::clone(credential));
            }
        }
        all.extend(self.upstream.login()?);
        all.extend(self.upstream.docker_config(self.repository).into_iter().take(TRIED_MAX));
        Ok(all.into_iter().map(Some).chain([None]).collect())
    }

    /// Why no credentials are sent to the registry or its token service; `None` if they may be sent.
    fn why_anonymous(&self, realm: Option<&Realm>) -> Option<String> {
        let on_the_way = |to: &Authority| format!("everybody on the way to {to} could read credentials: it has no TLS");
        if !self.upstream.keeps_secrets() {
            return Some(on_the_way(self.upstream.host()));
        }
        let realm = realm.filter(|realm| !realm.target.trusted)?;
        let origin = realm.target.client.origin();
        if !wire::keeps_secrets(origin.tls.is_some(), &realm.authority.host) {
            return Some(on_the_way(&realm.authority));
        }
        Some(format!("{} does not name {}", self.upstream.key("realms"), realm.authority))
    }

    fn is_of_keyring(&self, credential: Option<&Arc<Credential>>) -> bool {
        let mut brought = self.keyring.fitting(self.upstream.host(), self.repository);
        credential.is_some_and(|credential| brought.any(|other| Arc::ptr_eq(other, credential)))
    }

    /// The token service that a challenge names; an error if this client may not send requests to it.
    fn realm(&self, realm: &str, service: Option<String>) -> Result<Realm, Failure> {
        let url = Url::parse(realm).ok_or_else(|| {
            let what = format!("{} names a token service whose address is no HTTP URL", self.upstream.host());
            Failure::new(Class::Misconfigured, what)
        })?;
        let target = self.upstream.realm(&url)?;
        // A registry that names another scope could otherwise get a token for foreign images, or for more than reading,
        // with our password.
        let scope = format!("repository:{}:pull", self.repository);
        Ok(Realm { authority: url.authority, path: url.path, service, scope, target })
    }
}

impl Realm {
    /// The `Authorization` header that the token service grants to `credential` or to an anonymous client, and its
    /// lifetime.
    async fn token(
        &self,
        question: &Question<'_>,
        credential: Option<&Credential>,
    ) -> Result<(String, Duration), Failure> {
        let (host, upstream) = (&self.authority, question.upstream);
        let request = match credential.map(|credential| (credential.basic(), &credential.proof)) {
            Some((None, Proof::IdentityToken(token))) => written(
                request(&Method::POST, &self.path)
                    .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
                    .header(header::ACCEPT, "application/json"),
                self.form(token).into(),
            ),
            Some((Some(basic), _)) => {
                let request = request(&Method::GET, &self.path_with_query());
                written(request.header(header::AUTHORIZATION, basic), Bytes::new())
            }
            _ => written(request(&Method::GET, &self.path_with_query()), Bytes::new()),
        }?;
        let answer = self.target.client.fetch(request, TOKEN_BYTES_MAX, question.deadline).await;
        let answer = answer.map_err(|error| match error {
            wire::Error::Inside { .. } => inside(upstream, host),
            error => failure(upstream, &error),
        })?;
        match answer.status() {
            StatusCode::OK => {
                let token = challenge::token(answer.body()).ok_or_else(|| {
                    let what = format!("the token service {host} answered without a usable token");
                    Failure::new(Class::Unavailable, what)
                })?;
                Ok((format!("Bearer {}", token.0), token.1))
            }
            status if is_temporary(status) => {
                Err(Failure::new(Class::Unavailable, format!("the token service {host} answered {status}")))
            }
            status => Err(Failure::new(Class::Auth, format!("the token service {host} answered {status}"))),
        }
    }

    fn path_with_query(&self) -> String {
        let mut path = self.path.clone();
        path.push(if path.contains('?') { '&' } else { '?' });
        if let Some(service) = &self.service {
            path = path + "service=" + &encoded(service) + "&";
        }
        path + "scope=" + &encoded(&self.scope)
    }

    /// The form body that requests a token with a refresh token (Docker token authentication: OAuth 2.0).
    fn form(&self, token: &str) -> String {
        let service = encoded(self.service.as_deref().unwrap_or_default());
        let (scope, token) = (encoded(&self.scope), encoded(token));
        format!(
            "grant_type=refresh_token&client_id=longhaul-service&service={service}&scope={scope}&refresh_token={token}"
        )
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn inside(upstream: &Upstream<'_>, host: &Authority) -> Failure {
    let key = upstream.key("realms");
    let what = format!("the token service {host} is at an internal address; when that is meant, name it in {key}");
    Failure::new(Class::Misconfigured, what)
}

fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::hosts::Hosts;
    use crate::keychain::Keyring;
    use crate::wanted::Wanted;

    /// Neither pull secrets nor the docker configuration are sent to a registry without TLS on another machine.
    #[test]
    fn a_registry_without_tls_on_another_machine_gets_no_credentials() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        let entry = |user: &str| serde_json::json!({"username": user, "password": "word"});
        let auths = |user: &str| {
            let places = ["plain.corp:5000", "localhost:5000", "reg.corp"];
            let auths: serde_json::Map<_, _> =
                places.map(|place| (place.to_owned(), entry(user))).into_iter().collect();
            serde_json::json!({ "auths": auths }).to_string()
        };
        std::fs::write(&path, auths("docker")).unwrap();
        let keyring = Keyring::docker_config(auths("secret").as_bytes(), &"pull secret n/a".into()).unwrap();
        let resolve = config::Resolve::of(&format!(
            "resolve: {{registries: [{{host: \"plain.corp:5000\", plainHttp: true}}, \
             {{host: \"localhost:5000\", plainHttp: true}}], keychain: {{dockerConfig: {path:?}}}}}"
        ));
        let hosts = Hosts::new(&resolve, wire::Proxies::none(), Arc::default()).unwrap();
        let both = [Some("secret"), Some("docker"), None];
        for (host, expected) in [("plain.corp:5000", &[None][..]), ("localhost:5000", &both), ("reg.corp", &both)] {
            let upstream = hosts.upstream(host).unwrap();
            let (repository, wanted, attempts) = ("app", Wanted::Image("1"), 1);
            let deadline = tokio::time::Instant::now();
            let question = Question { upstream: &upstream, repository, wanted, keyring: &keyring, deadline, attempts };
            let candidates = question.candidates(None).unwrap();
            let users: Vec<_> = candidates.iter().map(|one| one.as_ref().map(|login| &*login.user)).collect();
            assert_eq!(users, expected, "{host}");
            let why = question.why_anonymous(None);
            assert_eq!(why.is_some_and(|why| why.contains(host)), expected.len() == 1, "{host}");
        }
    }
}
