//! A kubeconfig as it is written. What its values mean is said where they are used.

use std::path::PathBuf;

use serde::Deserialize;

use crate::config::{YamlError, yaml};

/// The file.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct File {
    /// Name of the context that counts.
    #[serde(default)]
    pub current_context: String,
    /// Where API servers are.
    pub clusters: Vec<NamedCluster>,
    /// Which user goes with which cluster.
    pub contexts: Vec<NamedContext>,
    /// Who somebody is.
    #[serde(default)]
    pub users: Vec<NamedUser>,
}

/// A cluster and its name.
#[derive(Deserialize)]
pub struct NamedCluster {
    /// Its name.
    pub name: String,
    /// What it is.
    pub cluster: RawCluster,
}

/// A cluster.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RawCluster {
    /// URL of the API server.
    pub server: String,
    /// File of the authorities that are trusted.
    pub certificate_authority: Option<PathBuf>,
    /// The same, in base64.
    pub certificate_authority_data: Option<String>,
    /// The name that the certificate has to have.
    pub tls_server_name: Option<String>,
    /// Whether any certificate would do.
    #[serde(default)]
    pub insecure_skip_tls_verify: bool,
}

/// A context and its name.
#[derive(Deserialize)]
pub struct NamedContext {
    /// Its name.
    pub name: String,
    /// What it is.
    pub context: RawContext,
}

/// A context.
#[derive(Deserialize)]
pub struct RawContext {
    /// Name of the cluster.
    pub cluster: String,
    /// Name of the user.
    pub user: String,
}

/// A user and its name.
#[derive(Deserialize)]
pub struct NamedUser {
    /// Its name.
    pub name: String,
    /// What it is.
    #[serde(default)]
    pub user: Option<RawUser>,
}

/// A user.
#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", default)]
pub struct RawUser {
    /// A bearer token.
    pub token: Option<String>,
    /// The file of a bearer token.
    // kubectl writes this one key in camel case.
    #[serde(rename = "tokenFile")]
    pub token_file: Option<PathBuf>,
    /// File of a certificate.
    pub client_certificate: Option<PathBuf>,
    /// The same, in base64.
    pub client_certificate_data: Option<String>,
    /// File of its key.
    pub client_key: Option<PathBuf>,
    /// The same, in base64.
    pub client_key_data: Option<String>,
    /// A program that would have to be asked.
    pub exec: Option<serde_json::Value>,
}

/// Reads a kubeconfig.
pub fn read(text: &str) -> Result<File, YamlError> {
    yaml(text)
}
