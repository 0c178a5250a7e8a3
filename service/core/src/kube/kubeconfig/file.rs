//! The file format of a kubeconfig. The users of its values explain their meaning.

use std::path::PathBuf;

use serde::Deserialize;

use crate::config::{YamlError, yaml};

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct File {
    /// Name of the context in use.
    #[serde(default)]
    pub current_context: String,
    pub clusters: Vec<NamedCluster>,
    /// Pairs of a user and a cluster.
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
    /// File of the trusted authorities.
    pub certificate_authority: Option<PathBuf>,
    /// The same in base64, inside the kubeconfig.
    pub certificate_authority_data: Option<String>,
    /// The expected name in the server's certificate.
    pub tls_server_name: Option<String>,
    /// Whether any certificate is accepted.
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
    /// The same in base64, inside the kubeconfig.
    pub client_certificate_data: Option<String>,
    pub client_key: Option<PathBuf>,
    /// The same in base64, inside the kubeconfig.
    pub client_key_data: Option<String>,
    /// A program that prints credentials; not supported.
    pub exec: Option<serde_json::Value>,
}

pub fn read(text: &str) -> Result<File, YamlError> {
    yaml(text)
}
