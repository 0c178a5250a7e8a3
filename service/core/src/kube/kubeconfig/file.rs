//! The YAML format of a kubeconfig, without the meaning of its values.

use std::path::PathBuf;

use serde::Deserialize;

use crate::config::{YamlError, yaml};

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct File {
    #[serde(default)]
    pub current_context: String,
    pub clusters: Vec<NamedCluster>,
    /// Contexts: pairs of a user and a cluster.
    pub contexts: Vec<NamedContext>,
    #[serde(default)]
    pub users: Vec<NamedUser>,
}

#[derive(Deserialize)]
pub struct NamedCluster {
    pub name: String,
    pub cluster: RawCluster,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RawCluster {
    pub server: String,
    pub certificate_authority: Option<PathBuf>,
    /// The trusted authorities in base64, instead of a file.
    pub certificate_authority_data: Option<String>,
    /// The expected name in the server's certificate.
    pub tls_server_name: Option<String>,
    /// Whether every server certificate is accepted; not supported.
    #[serde(default)]
    pub insecure_skip_tls_verify: bool,
}

#[derive(Deserialize)]
pub struct NamedContext {
    pub name: String,
    pub context: RawContext,
}

#[derive(Deserialize)]
pub struct RawContext {
    pub cluster: String,
    pub user: String,
}

#[derive(Deserialize)]
pub struct NamedUser {
    pub name: String,
    #[serde(default)]
    pub user: Option<RawUser>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", default)]
pub struct RawUser {
    pub token: Option<String>,
    // kubectl writes this one key in camel case.
    #[serde(rename = "tokenFile")]
    pub token_file: Option<PathBuf>,
    pub client_certificate: Option<PathBuf>,
    /// The client certificate in base64, instead of a file.
    pub client_certificate_data: Option<String>,
    pub client_key: Option<PathBuf>,
    /// The client key in base64, instead of a file.
    pub client_key_data: Option<String>,
    /// A program that prints credentials; not supported.
    pub exec: Option<serde_json::Value>,
}

pub fn read(text: &str) -> Result<File, YamlError> {
    yaml(text)
}
