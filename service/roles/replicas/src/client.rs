//! The client of the API that scales Deployments: `longhaul-service replicas get|set|list`.
//!
//! This module owns the requests and the printed text. A certificate identifies the command to the API, like every
//! client of the API.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::{Method, Request, Response, header};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use zeroize::Zeroizing;

use super::answer::{CONTINUE, REVISION};
use super::route::BASE;
use service_core::authority::Authority;
use service_core::wire::{
    self, Identity, Limits, Origin, Protocol, Trust, certificates_from_pem, client_config, key_from_pem,
};

/// Time limit of a call, longer than the service's own time limit.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Largest answer, in bytes: one list page of the largest size.
const ANSWER_BYTES_MAX: usize = 8 << 20;
const PAGE: usize = 1000;
const PORT: u16 = 8444;

pub struct Client {
    wire: wire::Client,
}

/// A Deployment on the command line: `NAMESPACE/NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    namespace: String,
    name: String,
}

/// Options of a change of a count or an image.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    /// Change the Deployment only if it has this revision.
    pub revision: Option<String>,
    pub dry_run: bool,
    /// Wait until the cache shows the change.
    pub wait: bool,
}

#[derive(Deserialize)]
struct ErrorBody {
    error: String,
}

impl Terms {
    fn query(&self) -> &'static str {
        match (self.dry_run, self.wait) {
            (true, _) => "?dryRun=All",
            (false, true) => "?wait=observed",
            (false, false) => "",
        }
    }
}

impl std::str::FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((namespace, name)) if super::names::are_names(namespace, name) => {
                Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err("write NAMESPACE/NAME".to_owned()),
        }
    }
}

impl Client {
    /// A client of `server` (`host` or `host:port`). The client trusts the CA in `ca` and uses `certificate`; all files
    /// are PEM.
    pub fn new(server: &str, ca: &Path, certificate: &Path, key: &Path) -> anyhow::Result<Self> {
        let read = |path: &Path| std::fs::read(path).with_context(|| path.display().to_string());
        let Authority { host, port } = Authority::parse(server).with_context(|| format!("--server {server}"))?;
        let chain = certificates_from_pem(&read(certificate)?).with_context(|| certificate.display().to_string())?;
        let private = Zeroizing::new(read(key)?);
        let private = key_from_pem(&private).with_context(|| key.display().to_string())?;
        let authority = read(ca)?;
        let tls = client_config(Trust::Pem(&authority), Some(Identity { chain, key: private }))?;
        let origin = Origin { host, port: port.unwrap_or(PORT), tls: Some(Arc::new(tls)), server_name: None };
        Ok(Self { wire: wire::Client::new(origin, Protocol::Http1, Limits { open_max: 1, idle_max: 1 }) })
    }

    /// Prints the replica count of `name`.
    pub async fn get(&self, name: &Name, out: &mut dyn Write) -> anyhow::Result<()> {
        let answer = self.ask(Method::GET, &name.path(), Bytes::new(), None).await?;
        let body: Value = serde_json::from_slice(answer.body()).context("the answer is no JSON")?;
        writeln!(out, "{}", body["replicaCount"])?;
        Ok(())
    }

    /// Sets the replica count of `name`, and prints the new revision.
    pub async fn set(&self, name: &Name, count: i64, terms: &Terms, out: &mut dyn Write) -> anyhow::Result<()> {
        let body = json!({ "replicaCount": count }).to_string().into();
        let path = name.path() + terms.query();
        let answer = self.ask(Method::PUT, &path, body, terms.revision.as_deref()).await?;
        let revision = answer.headers().get(REVISION).and_then(|value| value.to_str().ok()).unwrap_or("-");
        let message: Value = serde_json::from_slice(answer.body()).context("the answer is no JSON")?;
        writeln!(out, "{} (revision {revision})", message["message"].as_str().unwrap_or_default())?;
        Ok(())
    }

    /// Sets the image of `container` in `name`, and prints the written image.
    pub async fn image(
        &self,
        name: &Name,
        container: &str,
        image: &str,
        terms: &Terms,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let body = json!({ "image": image }).to_string().into();
        let Name { namespace, name } = name;
        let path = format!("{BASE}/namespaces/{namespace}/deployments/{name}/containers/{container}/image");
        let answer = self.ask(Method::PUT, &(path + terms.query()), body, terms.revision.as_deref()).await?;
        let body: Value = serde_json::from_slice(answer.body()).context("the answer is no JSON")?;
        for warning in body["warnings"].as_array().into_iter().flatten() {
            writeln!(out, "warning: {}", warning.as_str().unwrap_or_default())?;
        }
        let text = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
        writeln!(out, "{} ({})", text("message"), text("image"))?;
        Ok(())
    }

    /// Prints all Deployments: namespace, name and count, separated by tabs.
    pub async fn list(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        let mut cursor: Option<String> = None;
        loop {
            let after = cursor.as_ref().map(|cursor| format!("&continue={cursor}")).unwrap_or_default();
            let answer =
                self.ask(Method::GET, &format!("{BASE}/deployments?limit={PAGE}{after}"), Bytes::new(), None).await?;
            let page: Vec<Value> = serde_json::from_slice(answer.body()).context("the answer is no JSON")?;
            for one in page {
                let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
                writeln!(out, "{}\t{}\t{}", text("namespace"), text("name"), one["replicaCount"])?;
            }
            let next = answer.headers().get(CONTINUE).and_then(|value| value.to_str().ok()).map(str::to_owned);
            if next.is_none() || next == cursor {
                return Ok(());
            }
            cursor = next;
        }
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        revision: Option<&str>,
    ) -> anyhow::Result<Response<Bytes>> {
        let mut request = Request::builder().method(method).uri(path).header(header::ACCEPT, "application/json");
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(revision) = revision {
            request = request.header(header::IF_MATCH, format!("\"{revision}\""));
        }
        let request = request.body(body).context("failed to make the request")?;
        let answer = self.wire.fetch(request, ANSWER_BYTES_MAX, Instant::now() + TIMEOUT).await?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let said = serde_json::from_slice::<ErrorBody>(answer.body()).map(|body| body.error);
        bail!("{}: {}", answer.status(), said.unwrap_or_else(|_| "no reason given".into()))
    }
}

impl Name {
    fn path(&self) -> String {
        format!("{BASE}/namespaces/{}/deployments/{}/replicas", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_is_named_with_its_namespace() {
        let name: Name = "team/web".parse().unwrap();
        assert_eq!(name.path(), "/api/v1/namespaces/team/deployments/web/replicas");
        for text in ["web", "", "/", "a/", "A/b", "a/b/c", "../x"] {
            assert!(text.parse::<Name>().is_err(), "{text}");
        }
    }
}
