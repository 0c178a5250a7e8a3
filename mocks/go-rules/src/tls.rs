//! The differences between TLS in Go and rustls: the preferred cipher suites, and the accepted certificates.
//!
//! kube-apiserver, registries and most webhooks are written in Go, so their mocks and judges decide as Go does. This
//! module owns no connection and no key. rustls does the handshakes and all other checks.

mod leaf;
mod pace;
mod trust;

use std::sync::Arc;

use rustls::CipherSuite;
use rustls::crypto::CryptoProvider;

pub use pace::Pace;
pub use trust::verifier;

/// The crypto provider of this project with the cipher suites in Go's order, AES-128 first. A Go server ignores the
/// client's order (<https://go.dev/blog/tls-cipher-suites>), so a server also needs
/// `ServerConfig::ignore_client_order`.
pub fn provider() -> Arc<CryptoProvider> {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.cipher_suites.sort_by_key(|suite| {
        let aes_128 = matches!(
            suite.suite(),
            CipherSuite::TLS13_AES_128_GCM_SHA256
                | CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
                | CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
        );
        (suite.tls13().is_none(), !aes_128)
    });
    Arc::new(provider)
}

#[cfg(test)]
mod tests {
    use rustls::SupportedCipherSuite;

    use super::*;

    #[test]
    fn suites_are_offered_as_go_offers_them() {
        let offered: Vec<CipherSuite> = provider().cipher_suites.iter().map(SupportedCipherSuite::suite).collect();
        assert_eq!(
            offered[..4],
            [
                CipherSuite::TLS13_AES_128_GCM_SHA256,
                CipherSuite::TLS13_AES_256_GCM_SHA384,
                CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
                CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
            ]
        );
        assert_eq!(offered.len(), rustls::crypto::aws_lc_rs::default_provider().cipher_suites.len());
    }
}
