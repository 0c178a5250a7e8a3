//! The address and credentials of a control plane that consists of real Kubernetes programs.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::programs::files::Files;

/// Address, certificate authority and tokens of a running control plane.
#[derive(Debug)]
pub struct Access {
    pub(crate) files: Files,
    pub(crate) address: SocketAddr,
    pub(crate) version: String,
}

impl Access {
    /// The URL of the API server: `https://127.0.0.1:port`, or `https://10.N.0.2:6443` for a node.
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

    /// A kubeconfig of `user` that contains all certificates and tokens; `None` for a user that is not configured.
    pub fn kubeconfig(&self, user: &str) -> Option<String> {
        self.files.kubeconfig(user, &self.url())
    }

    /// The path of the audit log: one JSON event a line, only metadata, rotated at 100 MiB.
    pub fn audit_log(&self) -> PathBuf {
        self.files.log("audit.log")
    }

    pub fn logs(&self) -> PathBuf {
        self.files.logs()
    }
}
