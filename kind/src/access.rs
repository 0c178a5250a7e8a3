//! The address of a control plane of real programs, and its credentials.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::programs::files::Files;

/// The access to a running control plane.
#[derive(Debug)]
pub struct Access {
    pub(crate) files: Files,
    pub(crate) address: SocketAddr,
    pub(crate) version: String,
}

impl Access {
    /// `https://127.0.0.1:port`, for a node `https://10.N.0.2:6443`.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The version that the API server reports, for example `v1.34.1`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The certificate authority of the API server.
    pub fn ca_pem(&self) -> &str {
        self.files.ca_pem()
    }

    pub fn token(&self, user: &str) -> Option<&str> {
        self.files.token(user)
    }

    /// A kubeconfig with everything in it; none for a user who is not in the configuration.
    pub fn kubeconfig(&self, user: &str) -> Option<String> {
        self.files.kubeconfig(user, &self.url())
    }

    /// The audit log: one JSON event a line, metadata only, rotated at 100 MiB.
    pub fn audit_log(&self) -> PathBuf {
        self.files.log("audit.log")
    }

    pub fn logs(&self) -> PathBuf {
        self.files.logs()
    }
}
