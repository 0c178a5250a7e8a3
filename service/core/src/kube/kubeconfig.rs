//! The API server's address, trust and credentials, from a kubeconfig or from the service account files of a Pod.
//!
//! This module reads files and opens no connection. The error for an unsupported feature (exec plugins, disabled
//! verification) names the feature.

mod file;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use crate::authority::{self, Authority};
use crate::config::YamlError;
use crate::wire::{self, Identity, Origin, TlsError, Trust};

const POD_FILES: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The time for which a token is used before its file is read again. Bound service account tokens are rotated long
/// before they expire.
const TOKEN_REREAD: Duration = Duration::from_mins(1);

#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    #[error("{}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}", path.display())]
    Parse { path: PathBuf, source: Box<YamlError> },
    #[error("{}: {what}", path.display())]
    Value { path: PathBuf, what: String },
    #[error("no API server: set kubernetes.kubeconfig or $KUBECONFIG, or run in a pod with a service account")]
    Nowhere,
}

/// An API server: address, trust and credentials.
pub struct Cluster {
    pub origin: Origin,
    /// The path prefix of every request, without a trailing slash.
    pub base_path: String,
    /// The bearer token of this service; may be empty.
    pub token: Token,
    /// The namespace of the Pod in which this process runs.
    pub namespace: Option<String>,
    source: Source,
    /// SHA-256 of all files that were read, except token files, because tokens are read again separately.
    fingerprint: [u8; 32],
}

/// The source of a cluster's settings: a kubeconfig or a Pod.
#[derive(Debug, Clone)]
enum Source {
    File(PathBuf),
    Pod(PathBuf),
}

/// A bearer token, whose file is read again after a while.
pub struct Token {
    source: TokenSource,
    known: Mutex<Option<(Arc<str>, Instant)>>,
}

enum TokenSource {
    None,
    Fixed(Arc<str>),
    File(PathBuf),
}

impl Cluster {
    /// Reads the cluster from the kubeconfig at `path`, else from `$KUBECONFIG`, else from the files of the Pod in
    /// which this process runs.
    pub fn find(path: Option<&Path>) -> Result<Self, KubeconfigError> {
        let named = std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty()).map(PathBuf::from);
        Self::load(&path.map(Path::to_owned).or(named).map_or_else(|| Source::Pod(POD_FILES.into()), Source::File))
    }

    /// Reads the files again; returns the cluster if one of the files has changed.
    pub fn reread(&self) -> Result<Option<Self>, KubeconfigError> {
        Self::load(&self.source).map(|fresh| Some(fresh).filter(|fresh| fresh.fingerprint != self.fingerprint))
    }

    fn load(source: &Source) -> Result<Self, KubeconfigError> {
        match source {
            Source::File(path) => Self::from_file(path),
            Source::Pod(folder) => Self::from_pod(folder),
        }
    }

    fn from_file(path: &Path) -> Result<Self, KubeconfigError> {
        let text = String::from_utf8_lossy(&read(path)?).into_owned();
        let mut seen = Sha256::new_with_prefix(&text);
        let file = file::read(&text)
            .map_err(|source| KubeconfigError::Parse { path: path.into(), source: Box::new(source) })?;
        let value = |what: String| KubeconfigError::Value { path: path.into(), what };
        let context = file.contexts.into_iter().find(|context| context.name == file.current_context);
        let context = context.ok_or_else(|| value(format!("there is no context `{}`", file.current_context)))?.context;
        let cluster = file.clusters.into_iter().find(|cluster| cluster.name == context.cluster);
        let cluster = cluster.ok_or_else(|| value(format!("there is no cluster `{}`", context.cluster)))?.cluster;
        let user = file.users.into_iter().find(|user| user.name == context.user).and_then(|user| user.user);
        let user = user.unwrap_or_default();
        if cluster.insecure_skip_tls_verify {
            return Err(value("insecure-skip-tls-verify is not supported: give the certificate-authority".into()));
        }
        if user.exec.is_some() {
            return Err(value(
                "exec plugins are not supported: use a token, a tokenFile or a client certificate".into(),
            ));
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let pem = |file: Option<PathBuf>, data: Option<String>, key: &str| match (data, file) {
            (Some(data), _) => base64::engine::general_purpose::STANDARD
                .decode(data.trim())
                .map(Some)
                .map_err(|error| value(format!("{key}-data: {error}"))),
            (None, Some(file)) => read(&folder.join(file)).map(Some),
            (None, None) => Ok(None),
        };
        let authority =
            pem(cluster.certificate_authority, cluster.certificate_authority_data, "certificate-authority")?;
        let chain = pem(user.client_certificate, user.client_certificate_data, "client-certificate")?;
        let key = pem(user.client_key, user.client_key_data, "client-key")?;
        let tls = |error: TlsError| value(error.to_string());
        for pem in [&authority, &chain, &key].into_iter().flatten() {
            seen.update(pem);
        }
        let identity = match (chain, key) {
            (Some(chain), Some(key)) => Some(Identity {
                chain: wire::certificates_from_pem(&chain).map_err(tls)?,
                key: wire::key_from_pem(&key).map_err(tls)?,
            }),
            (None, None) => None,
            _ => return Err(value("client-certificate and client-key are needed together".into())),
        };
        let trust = authority.as_deref().map_or(Trust::System, Trust::Pem);
        let config = wire::client_config(trust, identity).map_err(tls)?;
        let (mut origin, base_path) = server(&cluster.server, config).ok_or_else(|| {
            value(format!("`{}` is not the URL of a server: write https://host:port", cluster.server))
        })?;
        origin.server_name = cluster.tls_server_name;
        let source = match (user.token, user.token_file) {
            (_, Some(file)) => TokenSource::File(folder.join(file)),
            (Some(token), None) => TokenSource::Fixed(token.into()),
            (None, None) => TokenSource::None,
        };
        if !matches!(source, TokenSource::None) && !wire::keeps_secrets(origin.tls.is_some(), &origin.host) {
            let what = format!("`{}` would expose the token in the network: write https://", cluster.server);
            return Err(value(what));
        }
        Ok(Self {
            origin,
            base_path,
            token: Token::new(source),
            namespace: None,
            source: Source::File(path.into()),
            fingerprint: seen.finalize().into(),
        })
    }

    fn from_pod(folder: &Path) -> Result<Self, KubeconfigError> {
        let host = std::env::var("KUBERNETES_SERVICE_HOST").map_err(|_| KubeconfigError::Nowhere)?;
        let port = match std::env::var("KUBERNETES_SERVICE_PORT") {
            Err(_) => 443,
            Ok(text) => authority::port(&text).map_err(|error| KubeconfigError::Value {
                path: "$KUBERNETES_SERVICE_PORT".into(),
                what: error.to_string(),
            })?,
        };
        let authority_path = folder.join("ca.crt");
        let authority = read(&authority_path)?;
        let config = wire::client_config(Trust::Pem(&authority), None);
        let config =
            config.map_err(|error| KubeconfigError::Value { path: authority_path, what: error.to_string() })?;
        let origin = Origin { host, port, tls: Some(Arc::new(config)), server_name: None };
        let token = Token::new(TokenSource::File(folder.join("token")));
        let namespace = std::fs::read_to_string(folder.join("namespace")).ok();
        let namespace = namespace.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let (source, fingerprint) = (Source::Pod(folder.into()), Sha256::digest(&authority).into());
        Ok(Self { origin, base_path: String::new(), token, namespace, source, fingerprint })
    }
}

impl Token {
    fn new(source: TokenSource) -> Self {
        Self { source, known: Mutex::new(None) }
    }

    /// The present token; `None` if the cluster has none.
    pub fn value(&self) -> Option<Arc<str>> {
        let path = match &self.source {
            TokenSource::None => return None,
            TokenSource::Fixed(token) => return Some(Arc::clone(token)),
            TokenSource::File(path) => path,
        };
        let mut known = self.known.lock();
        if let Some((token, read_at)) = known.as_ref()
            && read_at.elapsed() < TOKEN_REREAD
        {
            return Some(Arc::clone(token));
        }
        match std::fs::read_to_string(path) {
            Ok(text) => Some(Arc::clone(&known.insert((text.trim().into(), Instant::now())).0)),
            Err(error) => {
                // The former token may still be valid, and without a token the request surely fails.
                tracing::warn!(name: crate::logs::names::TOKEN_KEPT, %error, path = %path.display(), "token not read");
                known.as_ref().map(|(token, _)| Arc::clone(token))
            }
        }
    }

    /// Records that the API server refused the token, so that the token file is read again before the next request.
    pub fn refused(&self) {
        if let Some((_, read_at)) = self.known.lock().as_mut() {
            *read_at = Instant::now().checked_sub(TOKEN_REREAD).unwrap_or(*read_at);
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, KubeconfigError> {
    std::fs::read(path).map_err(|source| KubeconfigError::Read { path: path.into(), source })
}

fn server(url: &str, tls: rustls::ClientConfig) -> Option<(Origin, String)> {
    let uri: http::Uri = url.parse().ok()?;
    let (tls, port) = match uri.scheme_str()? {
        "https" => (Some(Arc::new(tls)), 443),
        "http" => (None, 80),
        _ => return None,
    };
    let Authority { host, port: written } = Authority::parse(uri.authority()?.as_str()).ok()?;
    let origin = Origin { host, port: written.unwrap_or(port), tls, server_name: None };
    Some((origin, uri.path().trim_end_matches('/').to_owned()))
}

#[cfg(test)]
mod tests;
