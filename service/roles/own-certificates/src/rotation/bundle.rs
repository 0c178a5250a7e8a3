//! Reads the `caBundle`s of the webhook configurations, and writes them by server-side apply.
//!
//! This module owns only the field `caBundle` of the webhooks that call the configured Service, with its own field
//! manager. Other tools that apply the webhook configurations leave `caBundle` out, so they never remove its value.
//! This module creates no webhook configuration.

use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use http::StatusCode;
use rustls_pki_types::CertificateDer;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Installation;
use super::step::Trusted;
use super::stored::pem;
use service_core::kube::{self, Client, Webhooks};

const FIELD_MANAGER: &str = "longhaul-service-certificates";
/// Time limit of a request to the API server; after a timeout, the request is repeated.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why a `caBundle` cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("mutatingwebhookconfigurations/{name}: {source}{}", remedy(source))]
    Request { name: String, source: kube::Error },
    #[error("mutatingwebhookconfigurations/{name}: {source}")]
    Answer { name: String, source: serde_json::Error },
}

/// The relevant content of the webhook configurations.
#[derive(Debug, Default)]
pub struct Look {
    pub trusted: Trusted,
    /// The webhook configurations, each with the names of its webhooks that call the Service.
    entries: Vec<(String, Vec<String>)>,
    /// Notes for people: configurations that are missing or call another server.
    pub notes: Vec<String>,
}

/// The part of a message that names missing rights; empty for other errors.
fn remedy(error: &kube::Error) -> &'static str {
    match error.status() {
        Some(StatusCode::FORBIDDEN) => {
            " (the role needs `get` and `patch` on it: `longhaul-service manifests` prints one)"
        }
        _ => "",
    }
}

pub async fn look(place: &Installation, client: &Client) -> Result<Look, Error> {
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
        // An unreadable bundle trusts no authority, and is overwritten.
        look.trusted.entries.extend(ours.iter().map(|entry| entry.bundle().unwrap_or_default()));
        look.entries.push((name.clone(), ours.iter().map(|entry| entry.name.clone()).collect()));
    }
    Ok(look)
}

/// Makes every webhook trust exactly the certificates in `bundle`.
pub async fn publish(look: &Look, bundle: &[CertificateDer<'_>], client: &Client) -> Result<(), Error> {
    for (name, entries) in look.entries.iter().filter(|(_, entries)| !entries.is_empty()) {
        let path = format!("{}?fieldManager={FIELD_MANAGER}&force=true", Webhooks::path(name));
        let object = Bytes::from(object(name, entries, bundle).to_string());
        let applied = client.apply(&path, object, Instant::now() + TIMEOUT).await;
        applied.map_err(|source| Error::Request { name: name.clone(), source })?;
    }
    Ok(())
}

/// The object for server-side apply. Each webhook in the object has only its name, which is the key of the list, and
/// `caBundle`.
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
