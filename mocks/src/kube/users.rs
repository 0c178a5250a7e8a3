//! Who is asking: bearer tokens and client certificates.
//!
//! Owns authentication (Kubernetes documentation, "Authenticating") and the kubeconfig files. It decides nothing
//! about what somebody may do.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{HeaderMap, header};
use parking_lot::Mutex;
use serde_json::json;

use super::config::User;
use crate::pki;

/// Living tokens that were asked for.
const ISSUED_MAX: usize = 10_000;

/// Somebody who was recognised.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Who {
    pub name: Arc<str>,
    pub groups: Vec<String>,
    pub uid: String,
}

#[derive(Debug)]
pub(crate) struct Users {
    by_token: HashMap<String, Arc<Who>>,
    /// Tokens that were asked for, with their end.
    issued: Mutex<HashMap<String, (Arc<Who>, Instant)>>,
    tokens: BTreeMap<String, String>,
}

impl Users {
    pub fn new(users: &[User]) -> Result<Self, String> {
        let mut known = Self { by_token: HashMap::new(), issued: Mutex::new(HashMap::new()), tokens: BTreeMap::new() };
        for user in users {
            if user.name.is_empty() || user.token.is_empty() {
                return Err(format!("`{}` needs a name and a token", user.name));
            }
            let who = Arc::new(Who::new(&user.name, &user.groups));
            if known.by_token.insert(user.token.clone(), who).is_some() {
                return Err(format!("the token of `{}` is somebody else's too", user.name));
            }
            if known.tokens.insert(user.name.clone(), user.token.clone()).is_some() {
                return Err(format!("`{}` is there twice", user.name));
            }
        }
        Ok(known)
    }

    /// The bearer of the request's token; `Err` for a token that nobody has.
    pub fn bearer(&self, headers: &HeaderMap) -> Result<Option<Arc<Who>>, ()> {
        let Some(header) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
        let text = header.to_str().map_err(|_| ())?;
        let Some((scheme, token)) = text.split_once(' ') else { return Err(()) };
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Ok(None);
        }
        self.by_token(token.trim()).map(Some).ok_or(())
    }

    /// The owner of a token, for token reviews.
    pub fn by_token(&self, token: &str) -> Option<Arc<Who>> {
        if let Some(who) = self.by_token.get(token) {
            return Some(who.clone());
        }
        let issued = self.issued.lock();
        issued.get(token).filter(|(_, ends)| Instant::now() < *ends).map(|(who, _)| who.clone())
    }

    /// Makes a token valid until `ends`. Expired ones make room; past 10,000 living ones nothing is issued.
    pub fn issue(&self, token: String, who: Who, ends: Instant) {
        let mut issued = self.issued.lock();
        if issued.len() >= ISSUED_MAX {
            issued.retain(|_, (_, ends)| Instant::now() < *ends);
        }
        if issued.len() < ISSUED_MAX {
            issued.insert(token, (Arc::new(who), ends));
        }
    }

    pub fn kubeconfig(&self, user: &str, url: &str, ca_pem: &str) -> Option<String> {
        let token = self.tokens.get(user)?;
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "longhaul", "cluster": {
                "server": url, "certificate-authority-data": BASE64.encode(ca_pem),
            }}],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": "longhaul", "context": {"cluster": "longhaul", "user": user, "namespace": "default"}}],
            "current-context": "longhaul",
            "preferences": {},
        });
        Some(serde_saphyr::to_string(&config).expect("plain maps, lists and texts always serialise"))
    }
}

impl Who {
    pub fn new(name: &str, groups: &[String]) -> Self {
        let mut groups = groups.to_vec();
        if !groups.iter().any(|group| group == "system:authenticated") {
            groups.push("system:authenticated".to_owned());
        }
        Self { name: name.into(), groups, uid: format!("uid-of-{name}") }
    }

    /// Somebody who showed a token or a certificate.
    pub fn is_known(&self) -> bool {
        self.groups.iter().any(|group| group == "system:authenticated")
    }

    pub fn anonymous() -> Self {
        Self { name: "system:anonymous".into(), groups: vec!["system:unauthenticated".to_owned()], uid: String::new() }
    }

    /// The holder of a client certificate that TLS has verified already.
    pub fn from_certificate(certificate: &rustls_pki_types::CertificateDer<'_>) -> Option<Self> {
        let identity = pki::identity(certificate).ok()?;
        (!identity.common_name.is_empty()).then(|| Self::new(&identity.common_name, &identity.organisations))
    }
}
