//! The built-in service as subject: its configuration for this run.
//!
//! The scenario's settings are kept as they are; addresses, certificates and the registry are replaced by those of the
//! run. The service itself checks the result, strictly.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::scenario::{Ground, Subject};

/// A configuration has a few kilobytes.
const BYTES_MAX: u64 = 1 << 20;

/// What of the world goes into the configuration.
pub(crate) struct Wiring<'a> {
    pub(crate) admission: SocketAddr,
    pub(crate) health: SocketAddr,
    pub(crate) certificate: &'a Path,
    pub(crate) key: &'a Path,
    /// As images name the registry.
    pub(crate) registry: &'a str,
    /// Where it really is.
    pub(crate) endpoint: SocketAddr,
    /// What it says to the registry, where that wants to know: a name, and the file with the password.
    pub(crate) login: Option<(&'a str, &'a Path)>,
    /// The section of its API over Deployments, if the run calls that.
    pub(crate) replicas: Option<Value>,
    /// Its validators and the rules of its policy, if images are signed in the run.
    pub(crate) trust: Option<(Value, Value)>,
}

/// Why a configuration could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the service configuration {path} cannot be read: {why}")]
    Read { path: PathBuf, why: String },
    #[error("the service configuration {path} is no YAML mapping: {detail}")]
    Parse { path: PathBuf, detail: String },
}

/// The configuration, ready to be written to a file. JSON is YAML.
pub(crate) fn configuration(subject: &Subject, ground: &Ground, wiring: &Wiring<'_>) -> Result<String, Error> {
    let mut config = settings(subject, ground)?;
    let mut section = |name: &str, values: Value| {
        let entry = config.entry(name).or_insert_with(|| json!({}));
        // A section that is no mapping is replaced: the service would refuse it anyway.
        if !entry.is_object() {
            *entry = json!({});
        }
        if let (Some(entry), Value::Object(values)) = (entry.as_object_mut(), values) {
            entry.extend(values);
        }
    };
    section("admission", json!({"listen": wiring.admission, "certificate": wiring.certificate, "key": wiring.key}));
    section("health", json!({"listen": wiring.health}));
    if let Some(replicas) = &wiring.replicas {
        section("replicas", replicas.clone());
    }
    if let Some((_, rules)) = &wiring.trust {
        section("policy", json!({"rules": rules}));
    }
    let mut registry = json!({"host": wiring.registry, "endpoint": wiring.endpoint, "plainHttp": true});
    if let Some((name, password)) = wiring.login {
        registry["username"] = json!(name);
        registry["passwordFile"] = json!(password);
    }
    section("resolve", json!({"registries": [registry]}));
    if let Some((validators, _)) = &wiring.trust {
        config.insert("validators".to_owned(), validators.clone());
    }
    Ok(serde_json::to_string_pretty(&Value::Object(config)).unwrap_or_default())
}

fn settings(subject: &Subject, ground: &Ground) -> Result<Map<String, Value>, Error> {
    if let Some(settings) = &subject.settings {
        return Ok(settings.clone());
    }
    let Some(path) = &subject.config else { return Ok(Map::new()) };
    let text = ground.text(path, BYTES_MAX).map_err(|why| Error::Read { path: path.clone(), why })?;
    serde_saphyr::from_str(&text.text)
        .map_err(|error| Error::Parse { path: path.clone(), detail: text.problem(&error) })
}
