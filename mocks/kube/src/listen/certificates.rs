//! The certificates that an endpoint shows to new connections.
//!
//! Owns the server configurations of one endpoint: the right one, and those that a fault shows instead. All of them are
//! made before the first connection, so that a handshake costs the same with every one.

use std::sync::Arc;

use rustls::ServerConfig;

use mock_faults::Kind;
use mock_pki::{Authority, Pair};

use super::super::config::Identity;

/// The common name of an authority that no client trusts; it equals the common name in every real cluster.
const STRANGER: &str = "kubernetes";

#[derive(Debug)]
pub(crate) struct Certificates {
    right: Arc<ServerConfig>,
    expired: Arc<ServerConfig>,
    unknown: Arc<ServerConfig>,
    rotated: Arc<ServerConfig>,
}

impl Certificates {
    /// Makes a certificate for these names and the certificates for faults; client certificates of `authority` and of
    /// `signer` are accepted.
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

    /// The given certificate and the certificates for faults. Clients without a certificate are accepted.
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

    /// The same certificates for an endpoint that offers other protocols by ALPN, most preferred first.
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

    /// The configuration for a new connection.
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
