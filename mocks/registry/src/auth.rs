//! Anonymous, basic and token authentication, and the permissions of users.
//!
//! Owns the decision whether a request is allowed, and the challenge in a refusal. Tokens follow Docker's token
//! authentication specification (distribution documentation, "Token Authentication Specification" and "`OAuth2` Token
//! Authentication"). A token contains its permissions and a keyed hash, so the registry stores no tokens. Pure: the
//! time is an argument.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::HeaderMap;
use http::header::{AUTHORIZATION, HOST, WWW_AUTHENTICATE};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::refusal::{Code, Refusal};
use super::route::Kind;

/// The service name of this registry in challenges and tokens.
const SERVICE: &str = "longhaul-registry";
/// Maximum number of scopes in one token request; clients ask for a few.
const SCOPES_MAX: usize = 32;
/// SHA-256's block size in bytes, to which RFC 2104 pads the key.
const HMAC_BLOCK: usize = 64;

/// The authentication that the registry requires of clients.
#[derive(Debug, Clone, Default)]
pub enum Auth {
    /// All clients may do everything.
    #[default]
    Anonymous,
    /// Basic authentication (RFC 7617) on every request.
    Basic { users: Vec<User> },
    /// A bearer token from `/token` on every request.
    Token {
        users: Vec<User>,
        /// Whether anonymous clients get a token to pull.
        anonymous_pull: bool,
        /// How long a token is valid. Docker's specification asks for at least 60 s.
        lifetime: Duration,
    },
}

#[derive(Clone)]
pub struct User {
    /// The user name, without `:`, which a user name in RFC 7617 cannot contain.
    pub name: String,
    pub password: String,
    /// The repositories that the user may access: names, or prefixes that end in `*`.
    pub repositories: Vec<String>,
    /// Whether the user may push and delete too, not only pull.
    pub push: bool,
}

/// A permission on one repository, which a request needs or a token grants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Scope {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) actions: Vec<String>,
}

/// Decides whether a request is authenticated and allowed.
pub(super) struct Authenticator {
    auth: Auth,
    key: [u8; 32],
}

#[derive(Serialize, Deserialize)]
struct Claims {
    sub: String,
    /// The end of the token's validity, in milliseconds since the run's epoch.
    expires_ms: u64,
    access: Vec<Scope>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TokenRequest {
    pub(super) scopes: Vec<Scope>,
    pub(super) credentials: Option<(String, String)>,
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("User")
            .field("name", &self.name)
            .field("repositories", &self.repositories)
            .field("push", &self.push)
            .finish_non_exhaustive()
    }
}

impl User {
    fn may(&self, repository: &str, action: &str) -> bool {
        let here = self.repositories.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => repository.starts_with(prefix),
            None => pattern == repository,
        });
        here && (action == "pull" || self.push)
    }
}

impl Scope {
    /// The scope that a request needs; `None` for requests that concern no repository.
    pub(super) fn needed(kind: Kind, repository: Option<&str>) -> Option<Self> {
        let actions: &[&str] = match kind {
            Kind::ManifestPut
            | Kind::UploadStart
            | Kind::UploadChunk
            | Kind::UploadFinish
            | Kind::UploadStatus
            | Kind::UploadCancel => &["pull", "push"],
            Kind::ManifestDelete | Kind::BlobDelete => &["delete"],
            Kind::Catalog => {
                return Some(Self { kind: "registry".into(), name: "catalog".into(), actions: vec!["*".into()] });
            }
            _ => &["pull"],
        };
        Some(Self::on_repository(repository?, actions))
    }

    pub(super) fn on_repository(name: &str, actions: &[&str]) -> Self {
        let actions = actions.iter().map(|&action| action.to_owned()).collect();
        Self { kind: "repository".into(), name: name.into(), actions }
    }

    /// Parses a scope such as `repository:library/nginx:pull,push`. The name between the first and the last `:` may
    /// itself contain a `:` before a port.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        let (name, actions) = rest.rsplit_once(':')?;
        let actions = actions.split(',').filter(|action| !action.is_empty()).map(str::to_owned).collect();
        Some(Self { kind: kind.to_owned(), name: name.to_owned(), actions })
    }

    fn covers(&self, needed: &Self) -> bool {
        self.kind == needed.kind
            && self.name == needed.name
            && needed.actions.iter().all(|action| self.actions.contains(action))
    }
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.kind, self.name, self.actions.join(","))
    }
}

impl TokenRequest {
    /// Reads the key-value pairs of a request to `/token`, from the query of a `GET` or from the form of a `POST`.
    pub(super) fn read(headers: &HeaderMap, pairs: &[(String, String)]) -> Self {
        let value = |key: &str| pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
        let texts = pairs.iter().filter(|(name, _)| name == "scope").flat_map(|(_, value)| value.split(' '));
        let form = value("username").zip(value("password"));
        Self {
            scopes: texts.filter_map(Scope::parse).take(SCOPES_MAX).collect(),
            credentials: form.or_else(|| basic(headers)),
        }
    }
}

impl Authenticator {
    pub(super) const fn new(auth: Auth, key: [u8; 32]) -> Self {
        Self { auth, key }
    }

    /// Accepts a request and returns its user, or refuses it with the challenge.
    pub(super) fn check(
        &self,
        headers: &HeaderMap,
        secure: bool,
        needed: Option<&Scope>,
        now: Duration,
    ) -> Result<Option<String>, Refusal> {
        match &self.auth {
            Auth::Anonymous => Ok(None),
            Auth::Basic { users } => {
                let Some(user) = basic(headers).and_then(|given| find(users, &given)) else {
                    return Err(self.challenge(headers, secure, needed, None));
                };
                if let Some(scope) = needed
                    && scope.kind == "repository"
                    && !scope.actions.iter().all(|action| user.may(&scope.name, action))
                {
                    return Err(Refusal::new(Code::Denied).detail(scope.to_string()));
                }
                Ok(Some(user.name.clone()))
            }
            Auth::Token { .. } => {
                let Some(token) = bearer(headers) else {
                    return Err(self.challenge(headers, secure, needed, None));
                };
                let Some(claims) = self.open(token, now) else {
                    return Err(self.challenge(headers, secure, needed, Some("invalid_token")));
                };
                let given = |scope: &Scope| claims.access.iter().any(|access| access.covers(scope));
                if needed.is_none_or(given) {
                    Ok(Some(claims.sub))
                } else {
                    Err(self.challenge(headers, secure, needed, Some("insufficient_scope")))
                }
            }
        }
    }

    /// The refusal 401, with a challenge for the registry's kind of authentication.
    pub(super) fn challenge(
        &self,
        headers: &HeaderMap,
        secure: bool,
        needed: Option<&Scope>,
        error: Option<&str>,
    ) -> Refusal {
        let refusal = Refusal::new(Code::Unauthorized);
        if let Auth::Basic { .. } = self.auth {
            return refusal.header(WWW_AUTHENTICATE, r#"Basic realm="longhaul""#);
        }
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
        let scheme = if secure { "https" } else { "http" };
        let mut challenge = format!(r#"Bearer realm="{scheme}://{host}/token",service="{SERVICE}""#);
        if let Some(scope) = needed {
            challenge = format!(r#"{challenge},scope="{scope}""#);
        }
        if let Some(error) = error {
            challenge = format!(r#"{challenge},error="{error}""#);
        }
        let refusal = match needed {
            Some(scope) => refusal.detail(serde_json::json!([scope])),
            None => refusal,
        };
        refusal.header(WWW_AUTHENTICATE, &challenge)
    }

    /// The answer of `/token`: a token for the requested scopes that the user is allowed, possibly none.
    pub(super) fn token(&self, request: &TokenRequest, now: Duration) -> Result<serde_json::Value, Refusal> {
        let Auth::Token { users, anonymous_pull, lifetime } = &self.auth else {
            return Err(Refusal::new(Code::Unsupported).status(http::StatusCode::NOT_FOUND));
        };
        let user = match &request.credentials {
            None => None,
            Some(given) => Some(find(users, given).ok_or_else(|| Refusal::new(Code::Unauthorized))?),
        };
        let granted = |scope: &Scope| {
            let may = |action: &String| match user {
                Some(user) if scope.kind == "registry" => user.push,
                Some(user) => user.may(&scope.name, action),
                None => *anonymous_pull && scope.kind == "repository" && action == "pull",
            };
            let actions = scope.actions.iter().filter(|action| may(action)).cloned().collect();
            Scope { actions, ..scope.clone() }
        };
        let claims = Claims {
            sub: user.map_or_else(String::new, |user| user.name.clone()),
            expires_ms: u64::try_from((now + *lifetime).as_millis()).unwrap_or(u64::MAX),
            access: request.scopes.iter().map(granted).filter(|scope| !scope.actions.is_empty()).collect(),
        };
        let token = self.seal(&claims);
        Ok(serde_json::json!({ "token": token, "access_token": token, "expires_in": lifetime.as_secs() }))
    }

    fn seal(&self, claims: &Claims) -> String {
        let text = serde_json::to_vec(claims).unwrap_or_default();
        let mac = hmac_sha256(&self.key, &text);
        format!("{}.{}", URL_SAFE_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(mac))
    }

    fn open(&self, token: &str, now: Duration) -> Option<Claims> {
        let (text, mac) = token.split_once('.')?;
        let (text, mac) = (URL_SAFE_NO_PAD.decode(text).ok()?, URL_SAFE_NO_PAD.decode(mac).ok()?);
        if mac != hmac_sha256(&self.key, &text) {
            return None;
        }
        let claims: Claims = serde_json::from_slice(&text).ok()?;
        (now.as_millis() < u128::from(claims.expires_ms)).then_some(claims)
    }
}

fn find<'a>(users: &'a [User], (name, password): &(String, String)) -> Option<&'a User> {
    users.iter().find(|user| user.name == *name && user.password == *password)
}

fn basic(headers: &HeaderMap) -> Option<(String, String)> {
    let text = String::from_utf8(STANDARD.decode(credentials(headers, "basic")?).ok()?).ok()?;
    text.split_once(':').map(|(name, password)| (name.to_owned(), password.to_owned()))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    credentials(headers, "bearer")
}

fn credentials<'a>(headers: &'a HeaderMap, scheme: &str) -> Option<&'a str> {
    let (given, rest) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    given.eq_ignore_ascii_case(scheme).then_some(rest.trim())
}

/// HMAC-SHA-256 (RFC 2104).
fn hmac_sha256(key: &[u8; 32], text: &[u8]) -> Vec<u8> {
    let pad = |byte: u8| {
        let mut block = [byte; HMAC_BLOCK];
        block.iter_mut().zip(key).for_each(|(block, key)| *block ^= key);
        block
    };
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(10);

    fn authenticator() -> Authenticator {
        let user = |name: &str, push| User {
            name: name.into(),
            password: "secret".into(),
            repositories: vec!["team/*".into(), "one".into()],
            push,
        };
        let users = vec![user("reader", false), user("writer", true)];
        Authenticator::new(Auth::Token { users, anonymous_pull: false, lifetime: Duration::from_mins(1) }, [7; 32])
    }

    fn token(authenticator: &Authenticator, user: &str, scope: &str) -> String {
        let request = TokenRequest {
            scopes: Scope::parse(scope).into_iter().collect(),
            credentials: Some((user.into(), "secret".into())),
        };
        authenticator.token(&request, NOW).unwrap()["token"].as_str().unwrap().to_owned()
    }

    fn allowed(authenticator: &Authenticator, token: &str, kind: Kind, name: &str, now: Duration) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
        authenticator.check(&headers, true, Scope::needed(kind, Some(name)).as_ref(), now).is_ok()
    }

    #[test]
    fn a_token_gives_what_was_asked_and_may_be_had() {
        let authenticator = authenticator();
        let reader = token(&authenticator, "reader", "repository:team/a:pull,push");
        assert!(allowed(&authenticator, &reader, Kind::ManifestGet, "team/a", NOW));
        assert!(!allowed(&authenticator, &reader, Kind::ManifestPut, "team/a", NOW), "a reader does not push");
        assert!(!allowed(&authenticator, &reader, Kind::ManifestGet, "team/b", NOW), "the token is for one repository");
        let writer = token(&authenticator, "writer", "repository:team/a:pull,push");
        assert!(allowed(&authenticator, &writer, Kind::ManifestPut, "team/a", NOW));
        assert!(!allowed(&authenticator, &writer, Kind::ManifestDelete, "team/a", NOW), "delete was not asked for");
        let elsewhere = token(&authenticator, "writer", "repository:other:pull");
        assert!(!allowed(&authenticator, &elsewhere, Kind::ManifestGet, "other", NOW));
    }

    #[test]
    fn tokens_end_and_cannot_be_forged() {
        let authenticator = authenticator();
        let token = token(&authenticator, "writer", "repository:one:pull");
        assert!(allowed(&authenticator, &token, Kind::BlobGet, "one", NOW + Duration::from_secs(59)));
        assert!(!allowed(&authenticator, &token, Kind::BlobGet, "one", NOW + Duration::from_mins(1)));
        let (claims, mac) = token.split_once('.').unwrap();
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
        let forged = URL_SAFE_NO_PAD.encode(text.replace("one", "two"));
        assert!(!allowed(&authenticator, &format!("{forged}.{mac}"), Kind::BlobGet, "two", NOW));
        assert!(!allowed(&authenticator, "nonsense", Kind::BlobGet, "one", NOW));
    }

    #[test]
    fn the_keyed_hash_is_rfc_4231_case_2_like() {
        // RFC 4231, test case 2 has the key "Jefe"; RFC 2104 pads short keys with zeros, so this is the same key.
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        let mac = hmac_sha256(&key, b"what do ya want for nothing?");
        assert_eq!(mac[..8], [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e]);
    }

    #[test]
    fn the_challenge_names_realm_and_scope() {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "registry:5000".parse().unwrap());
        let needed = Scope::needed(Kind::ManifestPut, Some("a/b"));
        let refusal = authenticator().check(&headers, false, needed.as_ref(), NOW).unwrap_err();
        let response = refusal.into_response();
        assert_eq!(
            response.headers()[WWW_AUTHENTICATE],
            r#"Bearer realm="http://registry:5000/token",service="longhaul-registry",scope="repository:a/b:pull,push""#
        );
    }
}
