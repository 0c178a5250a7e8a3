//! Certificates generated for a run: one certificate authority, and leaf certificates for the mocks' servers and
//! clients.
//!
//! Owns key generation, the rustls configurations that the mocks and their clients share, and the reading of a client's
//! name from its certificate. This crate writes no files: callers write PEM to disk. Every rustls configuration names
//! its provider (aws-lc-rs), so none depends on a process-wide default.

mod own_authority;
mod signer;
mod subject;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
pub use go_rules::tls::Pace;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SigningKey,
};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, CertificateSigningRequestDer, PrivateKeyDer};

pub use signer::Signer;
pub use subject::{Identity, identity};

/// How far in the past the validity of a new certificate begins. Clocks of containers and virtual machines are often a
/// little late, and must not see a certificate from the future.
const BACKDATED_BY: Duration = Duration::from_hours(1);

/// How long a new certificate is valid. The certificate must outlast a soak of 100 hours, which is 416 days by the
/// clock of a subject that runs a hundred times faster.
const VALID_FOR: Duration = Duration::from_hours(500 * 24);

/// How long ago the validity of an expired certificate ended; longer than the error of any clock.
const ENDED_BEFORE: Duration = Duration::from_hours(1);

/// Why a certificate could not be made, read or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A key or certificate could not be made, for example because a name is no valid SAN.
    #[error("failed to issue the certificate of `{name}`")]
    Issue {
        /// The common name or the requested SANs.
        name: String,
        #[source]
        source: rcgen::Error,
    },
    /// A PEM text contains no valid certificate or key.
    #[error("failed to read {what} from PEM")]
    Pem {
        /// The expected content of the PEM text, such as a certificate or a key.
        what: &'static str,
        #[source]
        source: rustls_pki_types::pem::Error,
    },
    /// rustls refused the certificate or key.
    #[error("failed to set up TLS")]
    Tls(#[from] rustls::Error),
    /// The authorities for client certificates cannot be used.
    #[error("failed to set up the check of client certificates")]
    ClientVerifier(#[from] rustls::server::VerifierBuilderError),
    /// A certificate is no DER as RFC 5280 defines it.
    #[error("failed to read the subject of a certificate: {reason}")]
    Subject { reason: &'static str },
}

/// A certificate authority for one run, whose key is only in memory.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    ca_pem: String,
}

/// The period in which a certificate is valid.
#[derive(Debug, Clone, Copy)]
enum Validity {
    Now,
    /// The certificate is valid for this duration from now.
    For(Duration),
    /// The certificate is valid for a duration from an instant since the epoch.
    At(Duration, Duration),
    Past,
}

/// A leaf certificate and its private key, each as PEM.
#[derive(Clone)]
pub struct Pair {
    /// The certificate, without that of its authority.
    pub certificate_pem: String,
    /// The private key, PKCS #8.
    pub key_pem: String,
}

impl Authority {
    /// Makes a new authority with a fresh P-256 key, valid from an hour ago for 500 days.
    pub fn generate(common_name: &str) -> Result<Self, Error> {
        let issue = |source| Error::Issue { name: common_name.to_owned(), source };
        let mut params = CertificateParams::default();
        set_validity(&mut params, Validity::Now);
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(issue)?;
        let issuer = CertifiedIssuer::self_signed(params, key).map_err(issue)?;
        let ca_pem = issuer.pem();
        Ok(Self { issuer, ca_pem })
    }

    /// The authority's own certificate.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// A server certificate for these DNS names and IP addresses; the first name is also the common name.
    pub fn server(&self, names: &[&str]) -> Result<Pair, Error> {
        self.server_until(names, Validity::Now)
    }

    /// A server certificate that ends after `valid`, so that it must be replaced by then.
    pub fn server_for(&self, names: &[&str], valid: Duration) -> Result<Pair, Error> {
        self.server_until(names, Validity::For(valid))
    }

    /// A server certificate that ends after `valid` by a faster clock. By the machine's clock, the certificate ends
    /// later.
    pub fn server_at(&self, names: &[&str], pace: Pace, valid: Duration) -> Result<Pair, Error> {
        self.server_until(names, Validity::At(pace.now(), valid))
    }

    /// A server certificate that ended an hour ago, which a client must refuse.
    pub fn expired_server(&self, names: &[&str]) -> Result<Pair, Error> {
        self.server_until(names, Validity::Past)
    }

    fn server_until(&self, names: &[&str], validity: Validity) -> Result<Pair, Error> {
        let sans: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let shown = names.join(", ");
        let mut params = CertificateParams::new(sans).map_err(|source| Error::Issue { name: shown.clone(), source })?;
        params.distinguished_name = DistinguishedName::new();
        if let Some(first) = names.first() {
            params.distinguished_name.push(DnType::CommonName, *first);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.issue(params, &shown, validity)
    }

    /// A client certificate for Kubernetes: the common name is the user, the organisations are the groups (Kubernetes
    /// documentation, "Authenticating", X.509 client certificates).
    pub fn client(&self, common_name: &str, organisations: &[&str]) -> Result<Pair, Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let pair = self.issue(params, common_name, Validity::Now)?;
        if organisations.is_empty() {
            return Ok(pair);
        }
        let plain = CertificateDer::from_pem_slice(pair.certificate_pem.as_bytes())
            .map_err(|source| Error::Pem { what: "a certificate", source })?;
        let name = subject::encode(common_name, organisations);
        let sign = |tbs: &[u8]| {
            self.issuer.key().sign(tbs).map_err(|source| Error::Issue { name: common_name.to_owned(), source })
        };
        let der = subject::replace(&plain, &name, sign)?;
        Ok(Pair { certificate_pem: to_pem("CERTIFICATE", &der), key_pem: pair.key_pem })
    }

    /// Makes a client certificate (PEM) with the subject and the key of a certificate request (PEM), valid for this
    /// time. The signature of the request is not verified.
    pub fn sign_request(&self, request_pem: &str, valid: Duration) -> Result<String, Error> {
        let request = CertificateSigningRequestDer::from_pem_slice(request_pem.as_bytes())
            .map_err(|source| Error::Pem { what: "a certificate request", source })?;
        let mut params = CertificateParams::default();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let pair = self.issue(params, "a request", Validity::For(valid))?;
        let template = CertificateDer::from_pem_slice(pair.certificate_pem.as_bytes())
            .map_err(|source| Error::Pem { what: "a certificate", source })?;
        let sign = |tbs: &[u8]| {
            self.issuer.key().sign(tbs).map_err(|source| Error::Issue { name: "a request".to_owned(), source })
        };
        let der = subject::for_request(&template, &request, sign)?;
        Ok(to_pem("CERTIFICATE", &der))
    }

    fn issue(&self, mut params: CertificateParams, name: &str, validity: Validity) -> Result<Pair, Error> {
        let failed = |source| Error::Issue { name: name.to_owned(), source };
        set_validity(&mut params, validity);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?;
        Ok(Pair { certificate_pem: certificate.pem(), key_pem: key.serialize_pem() })
    }
}

impl Authority {
    /// A self-signed client certificate, which is its own authority, as fabric8's test kit makes for its client.
    pub fn client_of_its_own(common_name: &str, organisation: &str) -> Result<Pair, Error> {
        let failed = |source| Error::Issue { name: common_name.to_owned(), source };
        let mut params = CertificateParams::default();
        set_validity(&mut params, Validity::Now);
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, organisation);
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let certificate = params.self_signed(&key).map_err(failed)?;
        Ok(Pair { certificate_pem: certificate.pem(), key_pem: key.serialize_pem() })
    }
}

impl Pair {
    fn chain(&self) -> Result<Vec<CertificateDer<'static>>, Error> {
        certificates(&self.certificate_pem)
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, Error> {
        PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes())
            .map_err(|source| Error::Pem { what: "a private key", source })
    }
}

impl std::fmt::Debug for Pair {
    /// Leaves the keys out, because the `Debug` text of a configuration may get into logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair").field("certificate_pem", &self.certificate_pem).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").field("ca_pem", &self.ca_pem).finish_non_exhaustive()
    }
}

/// A server configuration that offers HTTP/2 and HTTP/1.1 by ALPN. With `clients_ca_pem`, a client certificate must
/// come from that authority. A client without a certificate is accepted, because clients may authenticate by bearer
/// tokens instead.
pub fn server_config(pair: &Pair, clients_ca_pem: Option<&str>) -> Result<Arc<ServerConfig>, Error> {
    let builder =
        ServerConfig::builder_with_provider(go_rules::tls::provider()).with_safe_default_protocol_versions()?;
    let builder = match clients_ca_pem {
        None => builder.with_no_client_auth(),
        Some(ca_pem) => {
            let authorities = certificates(ca_pem)?;
            let roots = Arc::new(roots(ca_pem)?);
            let verifier =
                WebPkiClientVerifier::builder_with_provider(roots, go_rules::tls::provider()).allow_unauthenticated();
            builder.with_client_cert_verifier(own_authority::OrItself::new(verifier.build()?, authorities))
        }
    };
    let mut config = builder.with_single_cert(pair.chain()?, pair.key()?)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.ignore_client_order = true;
    Ok(Arc::new(config))
}

/// A client configuration that trusts `ca_pem` only, shows `pair` if the server asks, and offers `alpn` (most preferred
/// first, for example `["h2"]`; empty offers nothing).
pub fn client_config(ca_pem: &str, pair: Option<&Pair>, alpn: &[&str]) -> Result<Arc<ClientConfig>, Error> {
    let provider = go_rules::tls::provider();
    let verifier = go_rules::tls::verifier(&certificates(ca_pem)?, &provider)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match pair {
        None => builder.with_no_client_auth(),
        Some(pair) => builder.with_client_auth_cert(pair.chain()?, pair.key()?)?,
    };
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    Ok(Arc::new(config))
}

/// A client configuration that checks certificates by a faster clock.
pub fn client_config_at(pace: Option<Pace>, ca_pem: &str, alpn: &[&str]) -> Result<Arc<ClientConfig>, Error> {
    let config = client_config(ca_pem, None, alpn)?;
    let Some(pace) = pace else { return Ok(config) };
    let mut config = Arc::unwrap_or_clone(config);
    config.time_provider = Arc::new(pace);
    Ok(Arc::new(config))
}

fn roots(ca_pem: &str) -> Result<RootCertStore, Error> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(ca_pem)? {
        store.add(certificate)?;
    }
    Ok(store)
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|source| Error::Pem { what: "a certificate", source })
}

/// A PEM text (RFC 7468): base64 in lines of 64 characters between two labels.
fn to_pem(label: &str, der: &[u8]) -> String {
    let text = BASE64.encode(der);
    let mut pem = format!("-----BEGIN {label}-----\n");
    for line in text.as_bytes().chunks(64) {
        pem.extend(line.iter().map(|&byte| char::from(byte)));
        pem.push('\n');
    }
    pem + "-----END " + label + "-----\n"
}

fn set_validity(params: &mut CertificateParams, validity: Validity) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let (from, until) = match validity {
        Validity::Now => (now.saturating_sub(BACKDATED_BY), now + VALID_FOR),
        Validity::For(valid) => (now.saturating_sub(BACKDATED_BY), now + valid),
        Validity::At(then, valid) => (then.saturating_sub(BACKDATED_BY), then + valid),
        Validity::Past => (now.saturating_sub(VALID_FOR), now.saturating_sub(ENDED_BEFORE)),
    };
    params.not_before = epoch + from;
    params.not_after = epoch + until;
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use rustls::{CipherSuite, ClientConnection, ServerConnection};

    use super::*;

    /// A certificate ends by the faster clock of its owner, not by the machine's clock.
    #[test]
    fn a_certificate_ends_by_the_clock_of_its_owner() {
        let authority = Authority::generate("ca").unwrap();
        let hours = |count: u64| Duration::from_secs(count * 3600);
        let accepted = |from: Pace, valid: Duration, by: Option<Pace>| {
            let pair = authority.server_at(&["localhost"], from, valid).unwrap();
            let server = server_config(&pair, None).unwrap();
            let client = client_config_at(by, authority.ca_pem(), &[]).unwrap();
            let mut client = ClientConnection::new(client, "localhost".try_into().unwrap()).unwrap();
            let mut server = ServerConnection::new(server).unwrap();
            let (mut hello, mut answer) = (Vec::new(), Vec::new());
            client.write_tls(&mut hello).unwrap();
            server.read_tls(&mut hello.as_slice()).unwrap();
            server.process_new_packets().unwrap();
            server.write_tls(&mut answer).unwrap();
            client.read_tls(&mut answer.as_slice()).unwrap();
            client.process_new_packets().is_ok()
        };
        let pace = Pace::from_now(u32::MAX);
        // Within microseconds the owner's clock is days ahead of the machine's, by which the certificate is not valid
        // yet.
        let begun = pace.now();
        while pace.now() < begun + hours(48) {
            std::hint::spin_loop();
        }
        assert!(!accepted(pace, hours(2), None), "by the machine's clock it is not valid yet");
        assert!(accepted(Pace::from_now(1), hours(2), Some(Pace::from_now(1))));
        assert!(!accepted(Pace::from_now(1), hours(2), Some(pace)), "by the owner's clock it has ended");
    }

    /// A client that prefers AES-256 gets AES-128, because a server like Go's decides the cipher suite.
    #[test]
    fn the_server_decides_which_cipher_suite() {
        let authority = Authority::generate("ca").unwrap();
        let server = server_config(&authority.server(&["localhost"]).unwrap(), None).unwrap();
        let default = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        assert_eq!(default.cipher_suites[0].suite(), CipherSuite::TLS13_AES_256_GCM_SHA384);
        let client = ClientConfig::builder_with_provider(default)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots(authority.ca_pem()).unwrap())
            .with_no_client_auth();
        let mut client = ClientConnection::new(Arc::new(client), "localhost".try_into().unwrap()).unwrap();
        let mut server = ServerConnection::new(server).unwrap();
        let mut hello = Vec::new();
        client.write_tls(&mut hello).unwrap();
        server.read_tls(&mut hello.as_slice()).unwrap();
        server.process_new_packets().unwrap();
        let chosen = server.negotiated_cipher_suite().map(|suite| suite.suite());
        assert_eq!(chosen, Some(CipherSuite::TLS13_AES_128_GCM_SHA256));
    }

    /// A client accepts a webhook's own certificate as its `caBundle`, as `openssl req -x509` makes it.
    #[test]
    fn a_client_believes_the_certificate_that_it_trusts() {
        let own = || {
            let mut params = CertificateParams::new(["hook.shop.svc".to_owned()]).unwrap();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let key = KeyPair::generate().unwrap();
            Pair { certificate_pem: params.self_signed(&key).unwrap().pem(), key_pem: key.serialize_pem() }
        };
        let (hook, other) = (own(), own());
        let shows = |pair| server_config(pair, None).unwrap();
        let believes = |pair: &Pair| client_config(&pair.certificate_pem, None, &["h2"]).unwrap();
        handshake(shows(&hook), believes(&hook), "hook.shop.svc").unwrap();
        handshake(shows(&hook), believes(&hook), "other.shop.svc").unwrap_err();
        handshake(shows(&hook), believes(&other), "hook.shop.svc").unwrap_err();
    }

    /// Does one TLS handshake in memory and sends one byte in each direction; returns the client's identity as the
    /// server saw it.
    fn handshake(server: Arc<ServerConfig>, client: Arc<ClientConfig>, name: &str) -> Result<Option<Identity>, String> {
        let name = rustls_pki_types::ServerName::try_from(name.to_owned()).unwrap();
        let mut server = ServerConnection::new(server).unwrap();
        let mut client = ClientConnection::new(client, name).unwrap();
        client.writer().write_all(b"x").unwrap();
        for _ in 0..10 {
            let mut wire = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut wire).unwrap();
            }
            server.read_tls(&mut wire.as_slice()).unwrap();
            server.process_new_packets().map_err(|e| format!("server: {e}"))?;
            let mut wire = Vec::new();
            while server.wants_write() {
                server.write_tls(&mut wire).unwrap();
            }
            client.read_tls(&mut wire.as_slice()).unwrap();
            client.process_new_packets().map_err(|e| format!("client: {e}"))?;
        }
        let mut got = [0];
        server.reader().read_exact(&mut got).map_err(|e| e.to_string())?;
        assert_eq!(client.alpn_protocol(), Some(b"h2".as_slice()));
        Ok(server.peer_certificates().map(|chain| identity(&chain[0]).unwrap()))
    }

    #[test]
    fn a_client_is_known_by_name_and_groups() {
        let authority = Authority::generate("test authority").unwrap();
        let pair = authority.server(&["localhost", "127.0.0.1", "::1"]).unwrap();
        let server = server_config(&pair, Some(authority.ca_pem())).unwrap();
        for groups in [&[][..], &["system:masters"], &["a", "b", "system:authenticated"]] {
            let user = authority.client("jane", groups).unwrap();
            let client = client_config(authority.ca_pem(), Some(&user), &["h2", "http/1.1"]).unwrap();
            for name in ["localhost", "127.0.0.1", "::1"] {
                let seen = handshake(server.clone(), client.clone(), name).unwrap().unwrap();
                assert_eq!(seen.common_name, "jane");
                assert_eq!(seen.organisations, groups);
            }
        }
    }

    /// As in Go's `x509.Verify`, a client certificate among the roots is accepted, whatever its content.
    #[test]
    fn a_client_may_be_its_own_authority() {
        let authority = Authority::generate("ours").unwrap();
        let (jane, mallory) = (
            Authority::client_of_its_own("jane", "system:masters"),
            Authority::client_of_its_own("jane", "system:masters"),
        );
        let (jane, mallory) = (jane.unwrap(), mallory.unwrap());
        let server = server_config(&authority.server(&["localhost"]).unwrap(), Some(&jane.certificate_pem)).unwrap();
        let client = |pair: &Pair| client_config(authority.ca_pem(), Some(pair), &["h2"]).unwrap();
        let seen = handshake(server.clone(), client(&jane), "localhost").unwrap().unwrap();
        assert_eq!(
            (seen.common_name.as_str(), seen.organisations.as_slice()),
            ("jane", &["system:masters".to_owned()][..])
        );
        handshake(server, client(&mallory), "localhost").unwrap_err();
    }

    #[test]
    fn client_certificates_are_optional_but_checked() {
        let authority = Authority::generate("ours").unwrap();
        let stranger = Authority::generate("theirs").unwrap();
        let server = server_config(&authority.server(&["localhost"]).unwrap(), Some(authority.ca_pem())).unwrap();
        let anonymous = client_config(authority.ca_pem(), None, &["h2"]).unwrap();
        assert!(handshake(server.clone(), anonymous, "localhost").unwrap().is_none());

        let forged = stranger.client("jane", &["system:masters"]).unwrap();
        let forged = client_config(authority.ca_pem(), Some(&forged), &["h2"]).unwrap();
        let refused = handshake(server.clone(), forged, "localhost").unwrap_err();
        assert!(refused.starts_with("server: "), "{refused}");

        let wrong_name = client_config(authority.ca_pem(), None, &["h2"]).unwrap();
        let refused = handshake(server.clone(), wrong_name, "example.org").unwrap_err();
        assert!(refused.starts_with("client: "), "{refused}");

        let expired = server_config(&authority.expired_server(&["localhost"]).unwrap(), None).unwrap();
        let trusting = client_config(authority.ca_pem(), None, &["h2"]).unwrap();
        let refused = handshake(expired, trusting, "localhost").unwrap_err();
        assert!(refused.contains("expired"), "{refused}");

        let distrusting = client_config(stranger.ca_pem(), None, &["h2"]).unwrap();
        let refused = handshake(server, distrusting, "localhost").unwrap_err();
        assert!(refused.starts_with("client: "), "{refused}");
    }

    #[test]
    fn a_debug_line_shows_no_key() {
        let pair = Authority::generate("ours").unwrap().server(&["localhost"]).unwrap();
        assert!(pair.key_pem.contains("PRIVATE KEY"));
        assert!(!format!("{pair:?}").contains("PRIVATE KEY"));
    }

    #[test]
    fn a_broken_pem_is_an_error_that_says_what_was_looked_for() {
        let broken = Pair { certificate_pem: String::new(), key_pem: "nonsense".to_owned() };
        let error = server_config(&broken, None).unwrap_err();
        assert_eq!(error.to_string(), "failed to read a private key from PEM");
    }
}
