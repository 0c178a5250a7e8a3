//! The configured users, their tokens and client certificates.
//!
//! Owns the users (Kubernetes documentation, "Authenticating") and the kubeconfig files. `authentication` decides to
//! which user a token belongs. The modules `authorization` and `rbac` own permissions.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{HeaderMap, header};
use parking_lot::RwLock;
use serde_json::{Value, json};

use super::config::{ServiceAccounts, User};
use super::tokens::{self, Tokens};

/// Maximum number of replaced tokens that are remembered with their users.
const RETIRED_MAX: usize = 1024;

/// An authenticated or anonymous user.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Who {
    pub name: Arc<str>,
    pub groups: Vec<String>,
    pub uid: String,
    /// Additional attributes of the user, as reviews show them.
    pub extra: BTreeMap<String, Vec<String>>,
}

#[derive(Debug)]
pub(crate) struct Users {
    known: RwLock<Known>,
    token_files: BTreeMap<String, PathBuf>,
    pub tokens: Tokens,
}

/// Why the configured users are invalid.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{user}` needs a name and a token")]
    Incomplete { user: String },
    #[error("the token of `{user}` is somebody else's too")]
    SharedToken {
        /// The second of the two users that share a token.
        user: String,
    },
    #[error("`{user}` is there twice")]
    Twice { user: String },
    #[error("`{user}` has a token file and no token")]
    NoToken { user: String },
    #[error("{}", path.display())]
    TokenFile { path: PathBuf, source: std::io::Error },
    #[error("the key for the tokens of service accounts cannot be used")]
    Key(#[source] tokens::Unusable),
}

#[derive(Debug, Default)]
struct Known {
    by_token: HashMap<String, Arc<Who>>,
    tokens: BTreeMap<String, String>,
    /// Old tokens, each with its user.
    retired: BTreeMap<String, Arc<str>>,
    /// Old tokens that are still accepted until the given time, at most one for each user.
    staying: BTreeMap<Arc<str>, (String, Instant)>,
}

impl Users {
    /// The users of a server; writes the tokens to the files in `token_files`.
    pub fn new(
        users: &[User],
        token_files: &BTreeMap<String, PathBuf>,
        accounts: &ServiceAccounts,
    ) -> Result<Self, Error> {
        let mut known = Known::default();
        for user in users {
            if user.name.is_empty() || user.token.is_empty() {
                return Err(Error::Incomplete { user: user.name.clone() });
            }
            let who = Arc::new(Who::new(&user.name, &user.groups));
            if known.by_token.insert(user.token.clone(), who).is_some() {
                return Err(Error::SharedToken { user: user.name.clone() });
            }
            if known.tokens.insert(user.name.clone(), user.token.clone()).is_some() {
                return Err(Error::Twice { user: user.name.clone() });
            }
        }
        for (user, path) in token_files {
            let token = known.tokens.get(user).ok_or_else(|| Error::NoToken { user: user.clone() })?;
            write_token(path, token).map_err(|source| Error::TokenFile { path: path.clone(), source })?;
        }
        let token_files = token_files.clone();
        let tokens = Tokens::new(accounts.issuer.as_deref(), accounts.key_pem.as_deref()).map_err(Error::Key)?;
        Ok(Self { known: RwLock::new(known), token_files, tokens })
    }

    /// Gives a user a new token, and writes it to the user's token file; `None` if the user does not exist. The old
    /// token is refused after `stays`, or at the next rotation.
    pub fn rotate(&self, user: &str, token: &str, stays: Duration) -> Option<std::io::Result<()>> {
        {
            let mut known = self.known.write();
            let old = known.tokens.insert(user.to_owned(), token.to_owned());
            let Some(old) = old else {
                known.tokens.remove(user);
                return None;
            };
            let who = known.by_token.remove(&old)?;
            if let Some((older, _)) = known.staying.remove(&who.name) {
                known.by_token.remove(&older);
            }
            if !stays.is_zero() {
                known.by_token.insert(old.clone(), who.clone());
                known.staying.insert(who.name.clone(), (old.clone(), Instant::now() + stays));
            }
            if known.retired.len() >= RETIRED_MAX {
                known.retired.pop_first();
            }
            known.retired.insert(old, who.name.clone());
            known.by_token.insert(token.to_owned(), who);
        }
        Some(self.token_files.get(user).map_or(Ok(()), |path| write_token(path, token)))
    }

    /// The user whose replaced token this request contains.
    pub fn former_bearer(&self, headers: &HeaderMap) -> Option<Arc<str>> {
        let (_, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
        self.known.read().retired.get(token.trim()).cloned()
    }

    pub fn by_token(&self, token: &str) -> Option<Arc<Who>> {
        let known = self.known.read();
        let who = known.by_token.get(token)?;
        let is_over = |(old, end): &(String, Instant)| old == token && Instant::now() >= *end;
        (!known.staying.get(&who.name).is_some_and(is_over)).then(|| who.clone())
    }

    pub fn kubeconfig(&self, user: &str, url: &str, ca_pem: &str) -> Option<String> {
        let token = self.known.read().tokens.get(user)?.clone();
        let proof = match self.token_files.get(user) {
            // The JavaScript client reads only the second name.
            Some(path) => json!({"tokenFile": path, "token-file": path}),
            None => json!({"token": token}),
        };
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "longhaul", "cluster": {
                "server": url, "certificate-authority-data": BASE64.encode(ca_pem),
            }}],
            "users": [{"name": user, "user": proof}],
            "contexts": [{"name": "longhaul", "context": {"cluster": "longhaul", "user": user, "namespace": "default"}}],
            "current-context": "longhaul",
            "preferences": {},
        });
        Some(serde_saphyr::to_string(&config).expect("plain maps, lists and texts always serialise"))
    }
}

/// Replaces the token file atomically, so that no reader sees only a part of the token.
fn write_token(path: &Path, token: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let beside = path.with_extension("new");
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(token.as_bytes())?;
    std::fs::rename(beside, path)
}

impl Who {
    pub fn new(name: &str, groups: &[String]) -> Self {
        let mut groups = groups.to_vec();
        if !groups.iter().any(|group| group == "system:authenticated") {
            groups.push("system:authenticated".to_owned());
        }
        Self { name: name.into(), groups, uid: format!("uid-of-{name}"), extra: BTreeMap::new() }
    }

    /// The user as `TokenReview` and admission reviews show it.
    pub fn info(&self) -> Value {
        let mut info = json!({"username": &*self.name, "uid": self.uid, "groups": self.groups});
        if !self.extra.is_empty() {
            info["extra"] = json!(self.extra);
        }
        info
    }

    /// Whether the user has authenticated with a token or a certificate.
    pub fn is_known(&self) -> bool {
        self.groups.iter().any(|group| group == "system:authenticated")
    }

    pub fn anonymous() -> Self {
        let groups = vec!["system:unauthenticated".to_owned()];
        Self { name: "system:anonymous".into(), groups, uid: String::new(), extra: BTreeMap::new() }
    }

    /// The user of a client certificate that TLS has already verified.
    pub fn from_certificate(certificate: &rustls_pki_types::CertificateDer<'_>) -> Option<Self> {
        let identity = mock_pki::identity(certificate).ok()?;
        (!identity.common_name.is_empty()).then(|| Self::new(&identity.common_name, &identity.organisations))
    }
}
