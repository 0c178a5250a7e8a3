//! Where a control plane of real programs is, and what lets somebody in.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::programs::files::Files;

/// The way into a running control plane.
#[derive(Debug)]
pub struct Access {
    pub(crate) files: Files,
    pub(crate) address: SocketAddr,
    pub(crate) version: String,
}

impl Access {
    /// `https://127.0.0.1:port`, of a node `https://10.N.0.2:6443`.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Where the API server listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the API server says it is, for example `v1.34.1`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The authority of the API server's certificate.
    pub fn ca_pem(&self) -> &str {
        self.files.ca_pem()
    }

    /// The bearer token of a user.
    pub fn token(&self, user: &str) -> Option<&str> {
        self.files.token(user)
    }

    /// A kubeconfig with everything in it; none for somebody who is not among the users of the configuration.
    pub fn kubeconfig(&self, user: &str) -> Option<String> {
        self.files.kubeconfig(user, &self.url())
    }

    /// The audit log: one JSON event a line, metadata only, rotated at 100 MiB.
    pub fn audit_log(&self) -> PathBuf {
        self.files.log("audit.log")
    }

    /// The folder of the logs of all programs.
    pub fn logs(&self) -> PathBuf {
        self.files.logs()
    }
}
