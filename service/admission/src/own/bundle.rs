//! The bundles of the webhook configurations: read, and written by server-side apply.
//!
//! Owns the field `caBundle` of the entries that call our Service, under a field manager of its own, and no other field: whoever
//! applies the configurations leaves it out and never takes it away. It makes no configuration.

use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use http::StatusCode;
use rustls_pki_types::CertificateDer;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Place;
use super::held::pem;
use super::step::Trusted;
use service_core::kube::{self, Client, Webhooks};

/// The name of the writer for the API server; it is the owner of the field.
const FIELD_MANAGER: &str = "longhaul-service-certificates";
/// A request that takes longer is asked again.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why it is not known or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No answer, or not the one.
    #[error("mutatingwebhookconfigurations/{name}: {source}{}", remedy(source))]
    Request {
        /// The configuration.
        name: String,
        source: kube::Error,
    },
    /// An answer that is no configuration.
    #[error("mutatingwebhookconfigurations/{name}: {source}")]
    Answer {
        /// The configuration.
        name: String,
        source: serde_json::Error,
    },
}

/// The outcome of a look at the configurations.
#[derive(Debug, Default)]
pub struct Look {
    /// The trusted authorities.
    pub trusted: Trusted,
    /// The configurations with the names of their entries that are ours.
    entries: Vec<(String, Vec<String>)>,
    /// Notes for a person: configurations that are missing, or call somebody else.
    pub notes: Vec<String>,
}

/// Says what to do where rights are missing.
fn remedy(error: &kube::Error) -> &'static str {
    match error.status() {
        Some(StatusCode::FORBIDDEN) => {
            " (the role needs `get` and `patch` on it: `longhaul-service manifests` prints one)"
        }
        _ => "",
    }
}

/// Reads all configurations.
pub async fn look(place: &Place, client: &Client) -> Result<Look, Error> {
    let mut look = Look::default();
    let (namespace, service) = (&place.namespace, &place.settings.service);
    for name in &place.settings.webhooks {
        let deadline = Instant::now() + TIMEOUT;
        let body = match client.read_at_most(&Webhooks::path(name), Webhooks::bytes_max(), deadline).await {
            Ok(body) => body,
            Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => {
                look.notes.push(format!("there is no mutatingwebhookconfigurations/{name}: apply it"));
                continue;
            }
            Err(source) => return Err(Error::Request { name: name.clone(), source }),
        };
        let found = Webhooks::read(&body).map_err(|source| Error::Answer { name: name.clone(), source })?;
        let ours: Vec<_> = found.of_service(namespace, service).collect();
        if ours.is_empty() {
            look.notes.push(format!("mutatingwebhookconfigurations/{name} calls no Service {namespace}/{service}"));
        }
        // One that cannot be read trusts nobody, and is written over.
        look.trusted.entries.extend(ours.iter().map(|entry| entry.bundle().unwrap_or_default()));
        look.entries.push((name.clone(), ours.iter().map(|entry| entry.name.clone()).collect()));
    }
    Ok(look)
}

/// Has every entry trust exactly `bundle`.
pub async fn publish(look: &Look, bundle: &[CertificateDer<'_>], client: &Client) -> Result<(), Error> {
    for (name, entries) in look.entries.iter().filter(|(_, entries)| !entries.is_empty()) {
        let path = format!("{}?fieldManager={FIELD_MANAGER}&force=true", Webhooks::path(name));
        let object = Bytes::from(object(name, entries, bundle).to_string());
        let applied = client.apply(&path, object, Instant::now() + TIMEOUT).await;
        applied.map_err(|source| Error::Request { name: name.clone(), source })?;
    }
    Ok(())
}

/// The applied object: of each entry its name, which is the key of the list, and the one field.
fn object(name: &str, entries: &[String], bundle: &[CertificateDer<'_>]) -> Value {
    let bundle = base64::engine::general_purpose::STANDARD.encode(pem(bundle));
    let entry = |entry: &String| json!({"name": entry, "clientConfig": {"caBundle": bundle}});
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": entries.iter().map(entry).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_applied_but_the_bundle_of_each_entry() {
        let bundle = [CertificateDer::from_slice(b"x")];
        let object = object("w", &["a".into(), "b".into()], &bundle);
        let encoded = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCmVBPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=";
        let entry = |name: &str| json!({"name": name, "clientConfig": {"caBundle": encoded}});
        assert_eq!(object["webhooks"], json!([entry("a"), entry("b")]));
        assert_eq!(object.as_object().unwrap().len(), 4);
    }
}
