//! The certificates that an endpoint shows to new connections.
//!
//! Owns the TLS configurations of one endpoint: the correct configuration, and the configurations that faults use
//! instead. All configurations are made before the first connection, so that every handshake takes the same time.

use std::sync::Arc;

use rustls::ServerConfig;

use mock_faults::Kind;
use mock_pki::{Authority, Pair};

use super::super::config::Identity;

/// The common name of a certificate authority that no client trusts; the authorities of real clusters have the same
/// common name.
const STRANGER: &str = "kubernetes";

#[derive(Debug)]
pub(crate) struct Certificates {
    right: Arc<ServerConfig>,
    expired: Arc<ServerConfig>,
    unknown: Arc<ServerConfig>,
    rotated: Arc<ServerConfig>,
}

impl Certificates {
    /// Makes a certificate for these names, and the certificates for faults. The listener accepts client certificates
    /// of `authority` and of `signer`.
    pub fn new(authority: &Authority, signer: Option<&Authority>, names: &[&str]) -> Result<Self, mock_pki::Error> {
        let clients_ca = format!("{}{}", authority.ca_pem(), signer.map_or("", Authority::ca_pem));
        let config = |pair: &Pair| mock_pki::server_config(pair, Some(&clients_ca));
        Ok(Self {
            right: config(&authority.server(names)?)?,
            expired: config(&authority.expired_server(names)?)?,
            unknown: config(&Authority::generate(STRANGER)?.server(names)?)?,
            rotated: config(&authority.server(names)?)?,
        })
    }

    /// The TLS configurations for the certificate in `identity`, and those for faults. Clients need not send a
    /// certificate.
    pub fn of(identity: &Identity) -> Result<Self, mock_pki::Error> {
        let right = mock_pki::server_config(&identity.serving, identity.clients_ca_pem.as_deref())?;
        let stranger = Authority::generate(STRANGER)?;
        let other = |pair: &Pair| mock_pki::server_config(pair, identity.clients_ca_pem.as_deref());
        Ok(Self {
            expired: other(&stranger.expired_server(&["localhost"])?)?,
            unknown: other(&stranger.server(&["localhost"])?)?,
            // The key of the certificate's authority is not here, so no second certificate of the same authority can be
            // made.
            rotated: right.clone(),
            right,
        })
    }

    /// Returns the same certificates with other protocols for ALPN; the preferred protocol is first.
    pub fn with_alpn(&self, alpn: &[&str]) -> Self {
        let offering = |config: &Arc<ServerConfig>| {
            let mut config = ServerConfig::clone(config);
            config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
            Arc::new(config)
        };
        Self {
            right: offering(&self.right),
            expired: offering(&self.expired),
            unknown: offering(&self.unknown),
            rotated: offering(&self.rotated),
        }
    }

    /// The TLS configuration for a new connection; `instead` is the kind of certificate that an active fault wants.
    pub fn shown(&self, instead: Option<Kind>) -> Arc<ServerConfig> {
        let config = match instead {
            None => &self.right,
            Some(Kind::Expired) => &self.expired,
            Some(Kind::UnknownCa) => &self.unknown,
            Some(Kind::Rotated) => &self.rotated,
        };
        config.clone()
    }
}
