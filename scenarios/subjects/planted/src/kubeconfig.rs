//! Reads the kubeconfig file: the API server's address, its certificate authority, and the client's token.
//!
//! This module uses the file's current context, and reads a token file again when needed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use parking_lot::Mutex;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::Value;

#[derive(Debug)]
pub struct Kubeconfig {
    /// Host name or IP address of the API server, without brackets.
    pub host: String,
    pub port: u16,
    pub roots: Arc<rustls::RootCertStore>,
    pub credential: Credential,
}

/// A bearer token that can be read again from its file.
#[derive(Debug)]
pub struct Credential {
    file: Option<PathBuf>,
    token: Mutex<Arc<str>>,
}

impl Kubeconfig {
    pub fn read(path: &str) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("failed to read {path}"))?;
        let folder = Path::new(path).parent().unwrap_or(Path::new("."));
        Self::parse(&text, folder).with_context(|| format!("failed to use {path}"))
    }

    fn parse(text: &str, folder: &Path) -> anyhow::Result<Self> {
        let config: Value = serde_saphyr::from_str(text).context("not YAML")?;
        let named = |list: &str, name: &Value| {
            config[list].as_array().into_iter().flatten().find(|entry| entry["name"] == *name).cloned()
        };
        let context = named("contexts", &config["current-context"]).context("no current context")?["context"].clone();
        let cluster = named("clusters", &context["cluster"]).context("no such cluster")?["cluster"].clone();
        let user = named("users", &context["user"]).context("no such user")?["user"].clone();
        let server = cluster["server"].as_str().context("no server")?;
        let server = server.strip_prefix("https://").context("the server is not https")?;
        let authority: http::uri::Authority = server.trim_end_matches('/').parse()?;
        let pem = match (&cluster["certificate-authority-data"], &cluster["certificate-authority"]) {
            (Value::String(data), _) => BASE64.decode(data)?,
            (_, Value::String(file)) => std::fs::read(folder.join(file))?,
            _ => anyhow::bail!("no certificate authority"),
        };
        let mut roots = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            roots.add(certificate?)?;
        }
        // A relative path is relative to the file that names it.
        let file = user["tokenFile"].as_str().map(|file| folder.join(file));
        let token = match &file {
            Some(file) => read_token(file)?,
            None => user["token"].as_str().context("neither token nor tokenFile")?.into(),
        };
        let port = units::port(authority.as_str(), 443).context("the server is nowhere")?;
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let credential = Credential { file, token: Mutex::new(token) };
        Ok(Self { host, port, roots: Arc::new(roots), credential })
    }
}

impl Credential {
    /// The current bearer token.
    pub fn token(&self) -> Arc<str> {
        self.token.lock().clone()
    }

    /// Reads the token file again. If the token file cannot be read, the old token stays.
    pub fn renew(&self) {
        if let Some(token) = self.file.as_deref().and_then(|file| read_token(file).ok()) {
            *self.token.lock() = token;
        }
    }
}

fn read_token(file: &Path) -> anyhow::Result<Arc<str>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
    Ok(text.trim().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_file_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), "one\n").unwrap();
        std::fs::write(folder.path().join("ca.pem"), "").unwrap();
        let text = "
clusters: [{name: c, cluster: {server: 'https://127.0.0.1:6443', certificate-authority: ca.pem}}]
users: [{name: u, user: {tokenFile: token}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
";
        let config = Kubeconfig::parse(text, folder.path()).unwrap();
        assert_eq!((config.host.as_str(), config.port, &*config.credential.token()), ("127.0.0.1", 6443, "one"));
        std::fs::write(folder.path().join("token"), "two").unwrap();
        assert_eq!(&*config.credential.token(), "one");
        config.credential.renew();
        assert_eq!(&*config.credential.token(), "two");
    }

    #[test]
    fn a_port_that_is_none_does_not_become_the_default_one() {
        let folder = tempfile::tempdir().unwrap();
        let with = |server: &str| {
            let text = format!(
                "{{clusters: [{{name: c, cluster: {{server: 'https://{server}', certificate-authority-data: ''}}}}], \
                 users: [{{name: u, user: {{token: t}}}}], contexts: [{{name: x, context: {{cluster: c, user: u}}}}], \
                 current-context: x}}"
            );
            Kubeconfig::parse(&text, folder.path()).map(|config| config.port)
        };
        assert_eq!(with("a").unwrap(), 443);
        assert_eq!(with("[::1]:8443").unwrap(), 8443);
        assert!(format!("{:#}", with("a:99999").unwrap_err()).contains("`99999` is no port"));
    }
}
