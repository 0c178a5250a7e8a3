//! Tokens of service accounts: JSON web tokens (RFC 7519) signed with ES256 or RS256 (RFC 7518, 3.3 and 3.4).
//!
//! Owns the signing key, which is configured or made at the start and never leaves memory. The module also owns the
//! claims in a token (Kubernetes documentation, "Managing Service Accounts", bound tokens) and the public key set. This
//! module must not know the store: `authentication` checks whether an account exists. Callers pass the time.

mod key;

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use key::Key;
pub(crate) use key::Unusable;

/// The default issuer and audience of tokens: kubeadm's default.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// Maximum number of verified tokens that are remembered, because verifying a signature costs more than all other work
/// of a small read.
const VERIFIED_MAX: usize = 10_000;
/// Largest token that is checked; a real token has about 1 KiB.
const TOKEN_MAX_BYTES: usize = 16 * 1024;
/// The signing key and the verified tokens.
pub(crate) struct Tokens {
    key: Key,
    key_id: String,
    /// The issuer of tokens, which is also the default audience.
    pub issuer: Arc<str>,
    verified: Mutex<HashMap<String, Arc<Claims>>>,
}

/// A service account or bound object in a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subject {
    pub name: String,
    pub uid: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claims {
    pub id: String,
    pub namespace: String,
    pub account: Subject,
    /// `(kind, object)` of the bound object: a `Pod`, `Secret` or `Node`. The token ends when the object is deleted.
    pub bound: Option<(String, Subject)>,
    pub audiences: Vec<String>,
    /// The time of signing in seconds since 1970.
    pub issued_s: i64,
    /// The first second, counted from 1970, in which the token is no longer valid.
    pub ends_s: i64,
}

/// Why a token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error("it is not a token of this server")]
    Foreign,
    #[error("its signature is wrong")]
    Signature,
    #[error("service account token has expired")]
    Expired,
    #[error("service account token is not valid yet")]
    Early,
}

impl Tokens {
    /// Signs tokens with a PEM key, or with a new key if there is none.
    pub fn new(issuer: Option<&str>, key_pem: Option<&str>) -> Result<Self, Unusable> {
        let key = key_pem.map_or_else(Key::generate, Key::read)?;
        let key_id = BASE64URL.encode(Sha256::digest(key.spki()));
        Ok(Self { key, key_id, issuer: issuer.unwrap_or(ISSUER).into(), verified: Mutex::default() })
    }

    pub fn sign(&self, claims: &Claims) -> Result<String, Unusable> {
        let header = json!({"alg": self.key.algorithm(), "kid": self.key_id});
        let encode = |value: &Value| BASE64URL.encode(value.to_string());
        let message = format!("{}.{}", encode(&header), encode(&claims.to_value(&self.issuer)));
        let signature = self.key.sign(message.as_bytes())?;
        Ok(format!("{message}.{}", BASE64URL.encode(signature)))
    }

    /// The claims of a token, if this server signed the token and the token is valid now.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<Arc<Claims>, Error> {
        let known = self.verified.lock().get(token).cloned();
        let claims = if let Some(claims) = known {
            claims
        } else {
            let claims = Arc::new(self.check(token)?);
            self.remember(token, &claims, now);
            claims
        };
        match now.as_second() {
            now_s if now_s >= claims.ends_s => Err(Error::Expired),
            now_s if now_s < claims.issued_s => Err(Error::Early),
            _ => Ok(claims),
        }
    }

    /// The public key as a JSON web key set (RFC 7517).
    pub fn key_set(&self) -> Value {
        let mut key = self.key.public();
        key["use"] = Value::from("sig");
        key["kid"] = Value::from(self.key_id.clone());
        key["alg"] = Value::from(self.key.algorithm());
        json!({"keys": [key]})
    }

    /// The signature algorithm: `ES256` or `RS256`.
    pub fn algorithm(&self) -> &'static str {
        self.key.algorithm()
    }

    fn check(&self, token: &str) -> Result<Claims, Error> {
        if token.len() > TOKEN_MAX_BYTES {
            return Err(Error::Foreign);
        }
        let (message, signature) = token.rsplit_once('.').ok_or(Error::Foreign)?;
        let (header, payload) = message.split_once('.').ok_or(Error::Foreign)?;
        let header = part(header).ok_or(Error::Foreign)?;
        if header["alg"] != self.key.algorithm() || header["kid"] != self.key_id.as_str() {
            return Err(Error::Foreign);
        }
        let signature = BASE64URL.decode(signature).map_err(|_| Error::Signature)?;
        self.key.verify(message.as_bytes(), &signature).map_err(|_| Error::Signature)?;
        part(payload).as_ref().and_then(|claims| Claims::read(claims, &self.issuer)).ok_or(Error::Foreign)
    }

    fn remember(&self, token: &str, claims: &Arc<Claims>, now: Timestamp) {
        let mut verified = self.verified.lock();
        if verified.len() >= VERIFIED_MAX {
            verified.retain(|_, claims| claims.ends_s > now.as_second());
        }
        if verified.len() < VERIFIED_MAX {
            verified.insert(token.to_owned(), claims.clone());
        }
    }
}

impl std::fmt::Debug for Tokens {
    /// Prints no key, because `Debug` output ends up in logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

impl Claims {
    /// The user name of the service account.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.account.name)
    }

    fn to_value(&self, issuer: &str) -> Value {
        let subject = |subject: &Subject| json!({"name": subject.name, "uid": subject.uid});
        let mut private = json!({"namespace": self.namespace, "serviceaccount": subject(&self.account)});
        if let Some((kind, bound)) = &self.bound {
            private[kind.to_lowercase()] = subject(bound);
        }
        json!({
            "aud": self.audiences, "exp": self.ends_s, "iat": self.issued_s, "iss": issuer, "jti": self.id,
            "kubernetes.io": private, "nbf": self.issued_s, "sub": self.user(),
        })
    }

    fn read(value: &Value, issuer: &str) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let private = &value["kubernetes.io"];
        let subject = |key: &str| {
            let subject = &private[key];
            Some(Subject { name: text(&subject["name"])?, uid: text(&subject["uid"])? })
        };
        let bound = ["Pod", "Secret", "Node"];
        let bound = bound.iter().find_map(|kind| Some(((*kind).to_owned(), subject(&kind.to_lowercase())?)));
        let claims = Self {
            id: text(&value["jti"])?,
            namespace: text(&private["namespace"])?,
            account: subject("serviceaccount")?,
            bound,
            audiences: value["aud"].as_array()?.iter().filter_map(text).collect(),
            issued_s: value["iat"].as_i64()?,
            ends_s: value["exp"].as_i64()?,
        };
        (value["iss"] == *issuer).then_some(claims)
    }
}

fn part(encoded: &str) -> Option<Value> {
    serde_json::from_slice(&BASE64URL.decode(encoded).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> Claims {
        Claims {
            id: "j".to_owned(),
            namespace: "default".to_owned(),
            account: Subject { name: "robot".to_owned(), uid: "u".to_owned() },
            bound: Some(("Pod".to_owned(), Subject { name: "p".to_owned(), uid: "v".to_owned() })),
            audiences: vec![ISSUER.to_owned()],
            issued_s: 1_000,
            ends_s: 1_600,
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_token_is_believed_until_it_ends() {
        let tokens = Tokens::new(None, None).unwrap();
        let token = tokens.sign(&claims()).unwrap();
        assert_eq!(tokens.verify(&token, at(999)), Err(Error::Early));
        assert_eq!(*tokens.verify(&token, at(1_000)).unwrap(), claims());
        assert_eq!(*tokens.verify(&token, at(1_599)).unwrap(), claims(), "also the second time");
        assert_eq!(tokens.verify(&token, at(1_600)), Err(Error::Expired));
    }

    #[test]
    fn another_key_or_another_text_is_not_believed() {
        let tokens = Tokens::new(None, None).unwrap();
        let token = tokens.sign(&claims()).unwrap();
        assert_eq!(Tokens::new(None, None).unwrap().verify(&token, at(1_000)), Err(Error::Foreign));
        let mut parts: Vec<String> = token.split('.').map(str::to_owned).collect();
        let stronger = Claims { ends_s: 9_999, ..claims() };
        parts[1] = BASE64URL.encode(stronger.to_value(&tokens.issuer).to_string());
        assert_eq!(tokens.verify(&parts.join("."), at(1_000)), Err(Error::Signature));
        let none = BASE64URL.encode(json!({"alg": "none", "kid": tokens.key_id}).to_string());
        assert_eq!(tokens.verify(&format!("{none}.{}.", parts[1]), at(1_000)), Err(Error::Foreign));
        for wrong in ["", "a", "a.b", "a.b.c", "...", &token[..token.len() - 2]] {
            assert!(tokens.verify(wrong, at(1_000)).is_err(), "{wrong}");
        }
    }
}
