//! A server: its address, name and trusted certificates, and the TCP and TLS handshakes.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::failure::{Class, Failure, chain};
use crate::socket::Peer;

/// The deadline of opening a connection, as in kube-apiserver's clients (k8s.io/apimachinery).
pub(crate) const CONNECT_LIMIT: Duration = Duration::from_secs(30);
pub(crate) const TLS_LIMIT: Duration = Duration::from_secs(10);
const HTTPS_PORT: u16 = 443;
/// Maximum number of session tickets that a client keeps. Each ticket is used once, so at most this many handshakes can
/// resume a session at the same time.
const TICKETS: usize = 256;

/// Why an address cannot be used, with advice for the user.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EndpointError {
    #[error("`{url}` is no address ({why}): write for example `https://127.0.0.1:8443/mutate`")]
    Url { url: String, why: String },
    #[error("`{name}` is no server name: write a DNS name or an IP address that is in the server's certificate")]
    ServerName { name: String },
    #[error("the CA certificates cannot be used: {why}")]
    Ca { why: String },
    #[error("the client certificate cannot be used: {why}")]
    Identity { why: String },
    #[error("`{host}` has no address ({why}): check the name, or write the IP address and name the server apart")]
    Resolve { host: String, why: String },
}

/// The TLS settings for a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tls<'a> {
    /// The only application protocol that the client offers.
    pub alpn: &'a [u8],
    /// Whether TLS sessions are resumed.
    pub resumption: bool,
    /// The client's certificate chain and its key, as PEM.
    pub identity: Option<(&'a str, &'a str)>,
    /// The clock by which certificates are checked, if it is not the machine's clock.
    pub pace: Option<go_rules::tls::Pace>,
}

/// A server with its address and TLS settings, which is cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    host: Arc<str>,
    port: u16,
    /// Host and port as in the header `Host`.
    pub authority: Arc<str>,
    /// The path in the URL, as it was written.
    pub path: Arc<str>,
    name: ServerName<'static>,
    tls: Arc<ClientConfig>,
    resumption: bool,
}

impl Endpoint {
    /// Parses the URL of a server. `name` is the name that the certificate must contain; if empty, the host of the URL.
    /// `alpn` is the only application protocol that the client offers.
    pub(crate) fn new(url: &str, name: &str, ca_pem: &str, alpn: &[u8]) -> Result<Self, EndpointError> {
        // Go resumes sessions only with a session cache, and kube-apiserver's webhook clients have none.
        Self::with(url, name, ca_pem, Tls { alpn, resumption: false, identity: None, pace: None })
    }

    /// Parses a URL for use with these TLS settings; see [`Endpoint::new`].
    pub(crate) fn with(url: &str, name: &str, ca_pem: &str, tls: Tls<'_>) -> Result<Self, EndpointError> {
        let bad = |why: &str| EndpointError::Url { url: units::masked(url), why: why.to_owned() };
        let uri: Uri = url.parse().map_err(|error: http::uri::InvalidUri| bad(&error.to_string()))?;
        if uri.scheme_str() != Some("https") {
            return Err(bad("it must begin with https://"));
        }
        if uri.query().is_some() {
            return Err(bad("it must not have a query; Kubernetes forbids it for webhooks"));
        }
        let authority = uri.authority().ok_or_else(|| bad("it has no host"))?;
        // Kubernetes forbids user and password in the address of a webhook, too.
        let port = units::port(authority.as_str(), HTTPS_PORT).map_err(|error| bad(&error.to_string()))?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let name = if name.is_empty() { host } else { name };
        let name =
            ServerName::try_from(name.to_owned()).map_err(|_| EndpointError::ServerName { name: name.to_owned() })?;
        Ok(Self {
            host: host.into(),
            port,
            authority: authority.as_str().into(),
            path: uri.path().into(),
            name,
            resumption: tls.resumption,
            tls: Arc::new(client_config(ca_pem, tls)?),
        })
    }

    /// The server as a [`Peer`], for connections that seal their records themselves. Resolves the host's addresses,
    /// which may take seconds. The addresses are kept, because a look-up would delay the sending thread.
    pub(crate) fn peer(&self) -> Result<Peer, EndpointError> {
        let unresolved = |why: String| EndpointError::Resolve { host: self.host.to_string(), why };
        let addresses: Vec<_> =
            (&*self.host, self.port).to_socket_addrs().map_err(|error| unresolved(error.to_string()))?.collect();
        if addresses.is_empty() {
            return Err(unresolved("the look-up found nothing".to_owned()));
        }
        let mut tls = ClientConfig::clone(&self.tls);
        tls.enable_secret_extraction = true;
        let at = format!("{}:{}", self.host, self.port);
        Ok(Peer { at, addresses, name: self.name.clone(), tls: Arc::new(tls), resumption: self.resumption })
    }

    /// Whether an address of the server is a loopback address.
    pub(crate) fn is_loopback(&self) -> bool {
        self.host.parse::<IpAddr>().is_ok_and(|address| address.is_ipv4() && address.is_loopback())
    }

    /// Makes a TCP connection and a TLS session on it.
    pub(crate) async fn connect(&self) -> Result<TlsStream<TcpStream>, Failure> {
        self.connect_from(None).await
    }

    /// Makes a connection from the client's address `from`, if the server's URL has an address and not a name.
    pub(crate) async fn connect_from(&self, from: Option<IpAddr>) -> Result<TlsStream<TcpStream>, Failure> {
        let connect = |text: String| Failure { class: Class::Connect, text };
        let tls = |text: String| Failure { class: Class::Tls, text };
        let at = format!("{}:{}", self.host, self.port);
        let tcp = tokio::time::timeout(CONNECT_LIMIT, self.tcp(from))
            .await
            .map_err(|_| connect(format!("{at}: no connection in {} s", CONNECT_LIMIT.as_secs())))?
            .map_err(|error| connect(format!("{at}: {error}")))?;
        // Go's net package does so for every connection.
        tcp.set_nodelay(true).map_err(|error| connect(format!("{at}: {error}")))?;
        let session = TlsConnector::from(Arc::clone(&self.tls)).connect(self.name.clone(), tcp);
        tokio::time::timeout(TLS_LIMIT, session)
            .await
            .map_err(|_| tls(format!("{at}: no TLS session in {} s", TLS_LIMIT.as_secs())))?
            .map_err(|error| tls(format!("{at}: {}", chain(&error))))
    }

    async fn tcp(&self, from: Option<IpAddr>) -> std::io::Result<TcpStream> {
        let (Some(from), Ok(to)) = (from, self.host.parse::<IpAddr>()) else {
            return TcpStream::connect((&*self.host, self.port)).await;
        };
        let socket = if from.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.bind(SocketAddr::new(from, 0))?;
        socket.connect(SocketAddr::new(to, self.port)).await
    }
}

fn client_config(ca_pem: &str, tls: Tls<'_>) -> Result<ClientConfig, EndpointError> {
    let bad = |why: String| EndpointError::Ca { why };
    let trusted = CertificateDer::pem_slice_iter(ca_pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    let trusted = trusted.map_err(|error| bad(format!("{error:?}")))?;
    if trusted.is_empty() {
        return Err(bad(
            "there is no `BEGIN CERTIFICATE` block: give the CA that signed the server's, as PEM".to_owned()
        ));
    }
    let provider = go_rules::tls::provider();
    let verifier = go_rules::tls::verifier(&trusted, &provider).map_err(|error| bad(error.to_string()))?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match tls.identity {
        None => config.with_no_client_auth(),
        Some((chain_pem, key_pem)) => {
            let (certificates, key) = identity(chain_pem, key_pem)?;
            let unusable = |error: rustls::Error| EndpointError::Identity { why: chain(&error) };
            config.with_client_auth_cert(certificates, key).map_err(unusable)?
        }
    };
    if let Some(pace) = tls.pace {
        config.time_provider = Arc::new(pace);
    }
    config.alpn_protocols = vec![tls.alpn.to_vec()];
    config.resumption = if tls.resumption { Resumption::in_memory_sessions(TICKETS) } else { Resumption::disabled() };
    Ok(config)
}

fn identity(
    chain_pem: &str,
    key_pem: &str,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), EndpointError> {
    let bad = |why: String| EndpointError::Identity { why };
    let chain = CertificateDer::pem_slice_iter(chain_pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| bad(format!("{error:?}")))?;
    if chain.is_empty() {
        return Err(
            bad("there is no `BEGIN CERTIFICATE` block: give the certificate and its chain, as PEM".to_owned()),
        );
    }
    let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes());
    let missing = |error| bad(format!("its key is no PEM of a private key ({error:?}): give PKCS#8, PKCS#1 or SEC1"));
    Ok((chain, key.map_err(missing)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_to_write() {
        let error = |url: &str, name: &str, ca: &str| Endpoint::new(url, name, ca, b"h2").unwrap_err().to_string();
        assert!(error("http://a/", "", "").contains("begin with https://): write for example"));
        assert!(error("nonsense at all", "", "").contains("is no address"));
        assert!(error("https://a:99999/", "", "").contains("(`99999` is no port: write a number from 1 to 65535"));
        assert!(error("https://a:0/", "", "").contains("`0` is no port"));
        let masked = error("https://user:secret@a/", "", "");
        assert!(masked.contains("`https://***@a/` is no address (it has a user or password"), "{masked}");
        assert!(!error("https://user:sec ret@a/", "", "").contains("sec ret"));
        assert!(error("https://a/", "not a name", "").contains("`not a name` is no server name"));
        assert!(error("https://a/", "", "no pem").contains("no `BEGIN CERTIFICATE` block"));
    }
}
