//! The fault `certificate-expiry`: writes a certificate that expires soon into the subject's Secret, and the next
//! certificate before the first expires. A hit is the expiry of the certificate that expires soon.
//!
//! The hit states how many connections to the Service got a valid certificate. If a subject keeps the old certificate,
//! every later call fails, which the judge of calls reports.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use hyper::Method;
use mock_faults::{CertificateExpiryKeys, VALID};
use serde_json::json;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;

use super::{PlayedFault, Serving, Subject};
use crate::run::deploy::Rollout;

const MERGE: &str = "application/merge-patch+json";
/// Number of test connections; kube-proxy distributes them over the Pods.
const CONNECTIONS: u32 = 24;
const CONNECT_LIMIT: Duration = Duration::from_secs(3);

pub(super) async fn play(deed: &PlayedFault<'_>) -> Result<()> {
    let (subject, keys) = (deed.subject()?, deed.fault.keys::<CertificateExpiryKeys>());
    let serving = subject.serving.as_ref().context("the run makes no serving certificate for it")?;
    let valid = keys.valid.unwrap_or(VALID).0;
    let mut times = deed.times(keys.pause);
    while times.next().await?.is_some() {
        times.does(expire(subject, serving, valid)).await?;
    }
    Ok(())
}

async fn expire(subject: &Subject, serving: &Serving, valid: Duration) -> Result<String> {
    let names: Vec<&str> = serving.names.iter().map(String::as_str).collect();
    let ending = serving.authority.server_for(&names, valid)?;
    let ends = tokio::time::Instant::now() + valid;
    put(&subject.rollout, serving, &ending).await?;
    tokio::time::sleep(valid * 2 / 3).await;
    put(&subject.rollout, serving, &serving.authority.server(&names)?).await?;
    // A certificate expires at the end of its last second.
    tokio::time::sleep_until(ends + Duration::from_secs(2)).await;
    let believed = match subject.rollout.reached().first() {
        Some(service) => believed(*service, serving).await?,
        None => return Ok("it has ended".to_owned()),
    };
    Ok(format!("it has expired; {believed} of {CONNECTIONS} connections to its Service get a valid one"))
}

/// Writes the certificate into the Secret from which the Pods read it.
async fn put(rollout: &Rollout, serving: &Serving, pair: &mock_pki::Pair) -> Result<()> {
    let (namespace, name) = &serving.secret;
    let path = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
    let patch = json!({"stringData": {"tls.crt": pair.certificate_pem, "tls.key": pair.key_pem}}).to_string();
    let (status, answer) = rollout.cluster().ask(Method::PATCH, &path, patch, MERGE).await?;
    anyhow::ensure!(status.is_success(), "the Secret {name} could not be changed: {status}: {}", answer["message"]);
    rollout.touch().await
}

/// Opens test connections. Returns the number of connections whose certificate a client accepts.
async fn believed(service: SocketAddr, serving: &Serving) -> Result<u32> {
    let tls = mock_pki::client_config(serving.authority.ca_pem(), None, &["http/1.1"])?;
    let name = serving.names.first().context("it is for no name")?;
    let mut count = 0;
    for _ in 0..CONNECTIONS {
        let asked = tokio::time::timeout(CONNECT_LIMIT, is_believed(service, name, Arc::clone(&tls))).await;
        count += u32::from(matches!(asked, Ok(Ok(()))));
    }
    Ok(count)
}

async fn is_believed(service: SocketAddr, name: &str, tls: Arc<ClientConfig>) -> Result<()> {
    let stream = TcpStream::connect(service).await?;
    TlsConnector::from(tls).connect(name.to_owned().try_into()?, stream).await?;
    Ok(())
}
