//! Where to connect: address, name, trusted certificates, and the TCP and TLS handshakes.

use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use rustls::ClientConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{Class, Failure, chain};

/// As k8s.io/apimachinery sets it for kube-apiserver's clients.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);
const TLS_LIMIT: Duration = Duration::from_secs(10);

/// Why an address cannot be used. Says what to write instead.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EndpointError {
    #[error("`{url}` is no address ({why}): write for example `https://127.0.0.1:8443/mutate`")]
    Url { url: String, why: String },
    #[error("`{name}` is no server name: write a DNS name or an IP address that is in the server's certificate")]
    ServerName { name: String },
    #[error("the CA certificates cannot be used: {why}")]
    Ca { why: String },
}

/// A server. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    host: Arc<str>,
    port: u16,
    /// `host:port` as it goes into the `Host` header.
    pub authority: Arc<str>,
    /// The path of the URL as written.
    pub path: Arc<str>,
    name: ServerName<'static>,
    tls: Arc<ClientConfig>,
}

impl Endpoint {
    /// `name` is what the certificate must be for; empty: the host of the URL. `alpn` is the one protocol offered.
    pub(crate) fn new(url: &str, name: &str, ca_pem: &str, alpn: &[u8]) -> Result<Self, EndpointError> {
        let bad = |why: &str| EndpointError::Url { url: url.to_owned(), why: why.to_owned() };
        let uri: Uri = url.parse().map_err(|error: http::uri::InvalidUri| bad(&error.to_string()))?;
        if uri.scheme_str() != Some("https") {
            return Err(bad("it must begin with https://"));
        }
        if uri.query().is_some() {
            return Err(bad("it must not have a query; Kubernetes forbids it for webhooks"));
        }
        let authority = uri.authority().ok_or_else(|| bad("it has no host"))?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let name = if name.is_empty() { host } else { name };
        let name =
            ServerName::try_from(name.to_owned()).map_err(|_| EndpointError::ServerName { name: name.to_owned() })?;
        Ok(Self {
            host: host.into(),
            port: authority.port_u16().unwrap_or(443),
            authority: authority.as_str().into(),
            path: uri.path().into(),
            name,
            tls: Arc::new(client_config(ca_pem, alpn)?),
        })
    }

    /// A TCP connection and a TLS session on it.
    pub(crate) async fn connect(&self) -> Result<TlsStream<TcpStream>, Failure> {
        let connect = |text: String| Failure { class: Class::Connect, text };
        let tls = |text: String| Failure { class: Class::Tls, text };
        let at = format!("{}:{}", self.host, self.port);
        let tcp = tokio::time::timeout(CONNECT_LIMIT, TcpStream::connect((&*self.host, self.port)))
            .await
            .map_err(|_| connect(format!("{at}: no connection in {} s", CONNECT_LIMIT.as_secs())))?
            .map_err(|error| connect(format!("{at}: {error}")))?;
        // Go's net package does so for every connection.
        tcp.set_nodelay(true).map_err(|error| connect(format!("{at}: {error}")))?;
        let session = TlsConnector::from(Arc::clone(&self.tls)).connect(self.name.clone(), tcp);
        let stream = tokio::time::timeout(TLS_LIMIT, session)
            .await
            .map_err(|_| tls(format!("{at}: no TLS session in {} s", TLS_LIMIT.as_secs())))?
            .map_err(|error| tls(format!("{at}: {}", chain(&error))))?;
        let offered = self.tls.alpn_protocols.first().map(Vec::as_slice);
        let agreed = stream.get_ref().1.alpn_protocol();
        // HTTP/1.1 is what a server without ALPN speaks; HTTP/2 needs the server's word.
        if offered == Some(b"h2") && agreed != offered {
            return Err(tls(format!("{at}: the server does not offer HTTP/2 (ALPN h2)")));
        }
        Ok(stream)
    }
}

fn client_config(ca_pem: &str, alpn: &[u8]) -> Result<ClientConfig, EndpointError> {
    let bad = |why: String| EndpointError::Ca { why };
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca_pem.as_bytes()) {
        let certificate = certificate.map_err(|error| bad(format!("{error:?}")))?;
        roots.add(certificate).map_err(|error| bad(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(bad(
            "there is no `BEGIN CERTIFICATE` block: give the CA that signed the server's, as PEM".to_owned()
        ));
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.to_vec()];
    // Go resumes sessions only with a session cache, and kube-apiserver's webhook clients have none.
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_to_write() {
        let error = |url: &str, name: &str, ca: &str| Endpoint::new(url, name, ca, b"h2").unwrap_err().to_string();
        assert!(error("http://a/", "", "").contains("begin with https://): write for example"));
        assert!(error("nonsense at all", "", "").contains("is no address"));
        assert!(error("https://a/", "not a name", "").contains("`not a name` is no server name"));
        assert!(error("https://a/", "", "no pem").contains("no `BEGIN CERTIFICATE` block"));
    }
}
